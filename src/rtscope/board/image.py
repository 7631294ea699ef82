"""What a kernel image says about itself: its architecture, and how long it must be."""

import zlib
from pathlib import Path

from rtscope.errors import UsageError

HEAD_BYTES = 64 << 10

_ELF = {62: "x86_64", 183: "aarch64", 243: "riscv64", 3: "i386", 40: "armv7l"}
_PE = {
    0x8664: "x86_64",
    0xAA64: "aarch64",
    0x5064: "riscv64",
    0x14C: "i386",
    0x1C2: "armv7l",
}
_SECTOR = 512

MAX_IMAGE_BYTES = 1 << 30

BOOTS = {"x86_64": "bzImage", "aarch64": "Image or Image.gz", "riscv64": "Image"}
"""What of a kernel's build QEMU boots."""


def read_image(path: Path, arch: str) -> bytes:
    """Return an image; UsageError if it is none, or not one for the architecture."""
    if path.is_dir():
        raise UsageError(
            f"--kernel {path}: a directory; name the image in it ({BOOTS[arch]})"
        )
    if not path.is_file():
        raise UsageError(f"--kernel {path}: no such file")
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise UsageError(f"--kernel {path}: too large for a kernel image")
        image = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--kernel {path}: {error.strerror}") from error
    refuse_unbootable(image, path, arch)
    return image


def arch_of_image(image: bytes) -> str | None:
    """
    Return the architecture of a Linux kernel image, as `uname -m` says it.

    None if it does not say: only what is certain is told. Magic numbers: the kernel's
    Documentation/arch/{x86/boot,arm64/booting,riscv/boot-image-header}.rst; ELF and PE
    by their machine field.
    """
    head = _unpacked(image)
    if head[:4] == b"\x7fELF":
        return _ELF.get(_number(head, 18, 2))
    if head[0x38:0x3C] == b"ARM\x64":
        return "aarch64"
    if head[0x38:0x3C] == b"RSC\x05":
        return "riscv64"
    if _is_bzimage(head):
        # XLF_KERNEL_64; without it the kernel is a 32-bit one.
        return "x86_64" if _number(head, 0x236, 2) & 1 else "i386"
    if head[:2] == b"MZ":
        at = _number(head, 0x3C, 4)
        if head[at : at + 4] == b"PE\0\0":
            return _PE.get(_number(head, at + 4, 2))
    return None


def missing_bytes(image: bytes) -> int:
    """Return how much of an image is cut off, where its header tells its length."""
    if not _is_bzimage(image):
        return 0
    # setup_sects (0 stands for 4) and the boot sector, then syssize in 16 bytes.
    sectors = (image[0x1F1] or 4) + 1
    whole = sectors * _SECTOR + _number(image, 0x1F4, 4) * 16
    return max(0, whole - len(image))


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
            f"--kernel {path}: not whole: its header tells of {cut} bytes more than "
            f"its {len(image)}; copy it again"
        )


def _is_bzimage(head: bytes) -> bool:
    return head[0x1FE:0x200] == b"\x55\xaa" and head[0x202:0x206] == b"HdrS"


def _number(content: bytes, at: int, size: int) -> int:
    return int.from_bytes(content[at : at + size], "little")


def _unpacked(image: bytes) -> bytes:
    if image[:2] != b"\x1f\x8b":
        return image
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(image, HEAD_BYTES)
    except zlib.error:
        return b""
