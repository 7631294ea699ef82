"""
Read a kernel's image: architecture, banner, build ID, configuration.

An image is a vmlinux, an Image, a bzImage, an EFI zboot image or one of these packed.
A configuration is in it if it was built with CONFIG_IKCONFIG.
"""

import io
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.host.errors import TargetError, UsageError
from rtscope.host.files.archive import DAMAGES, PIECE_BYTES, UNPACKERS
from rtscope.host.files.opening import read_named
from rtscope.machine.kernelconfig import IKCONFIG, KernelConfig, parse_config

MAX_IMAGE_BYTES = 256 << 20
MAX_PLAIN_BYTES = 256 << 20
"""Of an image once unpacked."""

_CUT_SHORT = "cut short"
_HEAD_BYTES = 64 << 10

_ELF = {62: "x86_64", 183: "aarch64", 243: "riscv64", 3: "i386", 40: "armv7l"}
_PE = {
    0x8664: "x86_64",
    0xAA64: "aarch64",
    0x5064: "riscv64",
    0x14C: "i386",
    0x1C2: "armv7l",
}

_BANNER = re.compile(rb"Linux version [0-9][ -~]{1,500}\n")
_NUMBERED = re.compile(rb"Linux version [0-9][ -~]{1,400} #[0-9]+ [ -~]{1,100}\n")
"""The one that the kernel shows: another was made before the number of the build."""

GNU_BUILD_ID = bytes.fromhex("04000000 14000000 03000000") + b"GNU\0"
"""namesz, descsz of a SHA-1, NT_GNU_BUILD_ID, name (elf(5)); little-endian."""


@dataclass(frozen=True, slots=True)
class KernelImage:
    """The identity that is in an image; None for missing parts."""

    source: str
    banner: str | None
    """The text of /proc/version of this kernel."""
    build_id: str | None
    """Hexadecimal; also in /sys/kernel/notes of the running kernel."""
    config: KernelConfig | None


def image_bytes(path: Path) -> bytes:
    """Return the file of an image; UsageError if it cannot be one."""
    kind = (
        "kernel image; instead of a vmlinux with debug information name the Image, or "
        "use --config FILE"
    )
    return read_named(path, limit=MAX_IMAGE_BYTES, kind=kind, error=UsageError)


def read_image(path: Path) -> KernelImage:
    """Read an image; UsageError if it is none, or is packed in a way not known."""
    return parse_image(image_bytes(path), source=str(path))


def parse_image(content: bytes, *, source: str) -> KernelImage:
    """Read an image from memory; see `read_image`."""
    plain = unpacked_image(content, source=source)
    if len(plain) < (whole := _whole_bytes(plain)):
        raise UsageError(
            f"{source}: cut short: its header states {whole} bytes, and it has "
            f"{len(plain)}; copy it again"
        )
    banner = _NUMBERED.search(plain) or _BANNER.search(plain)
    if banner is None:
        raise UsageError(
            f"{source}: no kernel image: it does not contain 'Linux version'; name a "
            "vmlinux, Image, bzImage or vmlinuz"
        )
    return KernelImage(
        source=source,
        banner=banner[0].decode("ascii").strip(),
        build_id=build_id_in(plain),
        config=_config(plain, source=source),
    )


def arch_of_image(image: bytes) -> str | None:
    """
    Return the architecture of a Linux kernel image, as `uname -m` prints it.

    None if it is not certain. Magic numbers: the kernel's
    Documentation/arch/{x86/boot,arm64/booting,riscv/boot-image-header}.rst; ELF and PE
    by their machine field.
    """
    head = _head(image)
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
    """Return how much of a bzImage is cut off; 0 for other images."""
    if not _is_bzimage(image):
        return 0
    # The boot sector, the setup, then syssize in 16 bytes.
    whole = _setup_bytes(image) + _number(image, 0x1F4, 4) * 16
    return max(0, whole - len(image))


def build_id_in(content: bytes) -> str | None:
    """Return the GNU build ID, hexadecimal, of an image or of ELF notes."""
    at = content.find(GNU_BUILD_ID)
    begin = at + len(GNU_BUILD_ID)
    digits = content[begin : begin + 20]
    return digits.hex() if at >= 0 and len(digits) == 20 else None


def _config(plain: bytes, *, source: str) -> KernelConfig | None:
    match = IKCONFIG.search(plain)
    if match is None:
        return None
    try:
        return parse_config(match[1], source=source)
    except TargetError:
        return None


def unpacked_image(content: bytes, *, source: str) -> bytes:
    """Unpack an image, also one that is packed twice (zboot in gzip); UsageError."""
    for _ in range(3):
        try:
            packed = _payload(content)
            if packed is None:
                return content
            content = _unpacker(packed, source=source)(packed)
        except DAMAGES as e:
            raise UsageError(f"{source}: damaged: {e}") from e
    return content


def _unpacker(packed: bytes, *, source: str) -> Callable[[bytes], bytes]:
    for magic, unpack in _PACKERS.items():
        if packed.startswith(magic):
            return unpack
    raise UsageError(
        f"{source}: unknown compression ({packed[:4].hex()}); name the vmlinux, or "
        "--config FILE"
    )


def _whole_bytes(plain: bytes) -> int:
    """Return the least size that an image's header states; 0 if it states none."""
    try:
        if plain[:4] == b"\x7fELF":
            # elf(5): e_shoff, e_shentsize, e_shnum; 64 bits, little-endian.
            (at,) = struct.unpack_from("<Q", plain, 0x28)
            size, count = struct.unpack_from("<HH", plain, 0x3A)
            return int(at + size * count)
        (pe,) = struct.unpack_from("<I", plain, 0x3C)
        if plain[:2] != b"MZ" or plain[pe : pe + 4] != b"PE\0\0":
            return 0
        # The EFI stub's header (PE/COFF): SizeOfRawData, PointerToRawData of sections.
        (count,) = struct.unpack_from("<H", plain, pe + 6)
        (optional,) = struct.unpack_from("<H", plain, pe + 20)
        table = pe + 24 + optional
        rows = [
            struct.unpack_from("<II", plain, table + 40 * number + 16)
            for number in range(count)
        ]
        return max((int(size + begin) for size, begin in rows), default=0)
    except struct.error:
        return 0


def _payload(content: bytes) -> bytes | None:
    """Return the packed kernel in an image; None if it lies there plainly."""
    if content.startswith((*_PACKERS, *_NOT_UNPACKED)):
        return content
    if content[0x202:0x206] == b"HdrS" and len(content) > 0x250:
        # Documentation/arch/x86/boot.rst: payload_offset, payload_length
        offset, length = struct.unpack_from("<II", content, 0x248)
        return _within(content, _setup_bytes(content) + offset, length)
    if content[:2] == b"MZ" and content[4:8] == b"zimg":
        # drivers/firmware/efi/libstub/zboot-header.S
        offset, length = struct.unpack_from("<II", content, 8)
        return _within(content, offset, length)
    return None


def _is_bzimage(head: bytes) -> bool:
    return head[0x1FE:0x200] == b"\x55\xaa" and head[0x202:0x206] == b"HdrS"


def _setup_bytes(bzimage: bytes) -> int:
    """Return where the kernel proper begins: setup_sects, of which 0 stands for 4."""
    return ((bzimage[0x1F1] or 4) + 1) * 512


def _number(content: bytes, at: int, size: int) -> int:
    return int.from_bytes(content[at : at + size], "little")


def _head(image: bytes) -> bytes:
    """Return the first bytes of an image, unpacked if it is in gzip."""
    if image[:2] != b"\x1f\x8b":
        return image[:_HEAD_BYTES]
    try:
        return zlib.decompressobj(wbits=31).decompress(image, _HEAD_BYTES)
    except zlib.error:
        return b""


def _within(content: bytes, begin: int, length: int) -> bytes:
    if begin + length > len(content):
        raise EOFError(_CUT_SHORT)
    return content[begin : begin + length]


def _bounded(unpacker: Callable[[], Any]) -> Callable[[bytes], bytes]:
    def unpack(packed: bytes) -> bytes:
        # Piece by piece: in one go the unpackers take twice what they give.
        unpacking = unpacker()
        plain = io.BytesIO()
        for at in range(0, len(packed), PIECE_BYTES):
            left = MAX_PLAIN_BYTES + 1 - plain.tell()
            plain.write(unpacking.decompress(packed[at : at + PIECE_BYTES], left))
            if plain.tell() > MAX_PLAIN_BYTES:
                raise EOFError(f"more than {MAX_PLAIN_BYTES:,} bytes unpacked")
            if unpacking.eof:
                return plain.getvalue()
        raise EOFError(_CUT_SHORT)

    return unpack


_PACKERS: Mapping[bytes, Callable[[bytes], bytes]] = {
    magic: _bounded(unpacker) for magic, (_, unpacker) in UNPACKERS.items()
}
_NOT_UNPACKED = (b"\x02\x21\x4c\x18", b"\x04\x22\x4d\x18", b"\x89LZO")
"""Image.lz4, in its old format and today's, and Image.lzo."""
