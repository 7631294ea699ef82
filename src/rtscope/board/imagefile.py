"""
Kernel images of the user's own: told by their first bytes, before a board boots them.

The sources, in the kernel's tree: Documentation/arch/x86/boot.rst (`HdrS`, xloadflags),
arch/arm64/booting.rst and arch/riscv/boot-image-header.rst (`Image`), and
drivers/firmware/efi/libstub/zboot-header.S (EFI zboot).
"""

import zlib
from pathlib import Path

from rtscope.errors import UsageError

HEAD_BYTES = 4096
MAX_IMAGE_BYTES = 1 << 30

_ELF_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64", 3: "i386", 40: "arm"}
_PE_MACHINES = {0x8664: "x86_64", 0xAA64: "aarch64", 0x5064: "riscv64", 0x14C: "i386"}
_GZIP = b"\x1f\x8b"
_X86_64_ENTRY = 1  # XLF_KERNEL_64

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
    found = arch_of(image[:HEAD_BYTES])
    if found is None:
        raise UsageError(
            f"--kernel {path}: no kernel image; for {arch} name the build's "
            f"{BOOTS[arch]}"
        )
    if found != arch:
        raise UsageError(
            f"--kernel {path}: a kernel for {found}, and the board is {arch}; name "
            "an image for it, or another board (rtscope board list)"
        )
    return image


def arch_of(head: bytes) -> str | None:
    """Return an image's architecture, as `uname -m` says it; None if it is none."""
    if head.startswith(_GZIP):
        inside = _arch_of_plain(_unpacked(head))
        # Of the boards only arm64's boot loader unpacks.
        return inside if inside == "aarch64" else None
    return _arch_of_plain(head)


def _arch_of_plain(head: bytes) -> str | None:
    if head[:4] == b"\x7fELF":
        return _ELF_MACHINES.get(_number(head, 18, size=2))
    if head[0x202:0x206] == b"HdrS":
        return "x86_64" if _number(head, 0x236, size=2) & _X86_64_ENTRY else "i386"
    if head[56:60] == b"ARM\x64":
        return "aarch64"
    if head[56:60] == b"RSC\x05":
        return "riscv64"
    if head[:2] == b"MZ" and head[4:8] == b"zimg":
        pe = _number(head, 0x3C, size=4)
        return _PE_MACHINES.get(_number(head, pe + 4, size=2))
    return None


def _unpacked(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def _number(head: bytes, at: int, *, size: int) -> int:
    return int.from_bytes(head[at : at + size], "little")
