"""Check that a kernel image boots on a board, before QEMU starts."""

from pathlib import Path

from rtscope.errors import UsageError
from rtscope.kernel.image import arch_of_image, image_bytes, missing_bytes

BOOTS = {"x86_64": "bzImage", "aarch64": "Image or Image.gz", "riscv64": "Image"}
"""What of a kernel's build QEMU boots."""


def bootable_image(path: Path, arch: str) -> bytes:
    """Return an image; UsageError if it certainly does not boot on an architecture."""
    if path.is_dir():
        raise UsageError(
            f"--kernel {path}: a directory; name the image in it ({BOOTS[arch]})"
        )
    if not path.exists():
        raise UsageError(f"--kernel {path}: no such file")
    try:
        image = image_bytes(path)
    except UsageError as error:
        raise UsageError(f"--kernel {error}") from error
    refuse_unbootable(image, path, arch)
    return image


def refuse_unbootable(image: bytes, path: Path, arch: str) -> None:
    """Raise UsageError for an image that certainly does not boot on an architecture."""
    found = arch_of_image(image)
    if found is None:
        raise UsageError(
            f"--kernel {path}: no kernel image; for {arch} name the "
            f"build's {BOOTS[arch]}"
        )
    if found != arch:
        raise UsageError(
            f"--kernel {path}: a kernel for {found}, and the board is {arch}; name "
            "an image for it, or another board (rtscope board list)"
        )
    if image[:2] == b"\x1f\x8b" and arch != "aarch64":
        raise UsageError(
            f"--kernel {path}: in gzip, which only arm64's boot loader unpacks; for "
            f"{arch} name the build's {BOOTS[arch]}"
        )
    if cut := missing_bytes(image):
        raise UsageError(
            f"--kernel {path}: cut short: {cut} bytes are missing after its "
            f"{len(image)}; copy it again"
        )
