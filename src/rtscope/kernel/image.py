"""
What a kernel's image tells of itself: its banner, its build ID, its configuration.

An image is a vmlinux, an Image, a bzImage, an EFI zboot image or one of these in gzip.
A configuration is in it if it was built with CONFIG_IKCONFIG.
"""

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import zstandard

from rtscope.errors import TargetError, UsageError
from rtscope.kernel.config import KernelConfig, parse_config

MAX_IMAGE_BYTES = 256 << 20
MAX_PLAIN_BYTES = 1 << 30

_BANNER = re.compile(rb"Linux version [0-9][ -~]{1,500}\n")
_IKCONFIG = re.compile(rb"IKCFG_ST(\x1f\x8b.{1,4194304}?)IKCFG_ED", re.DOTALL)

GNU_BUILD_ID = bytes.fromhex("04000000 14000000 03000000") + b"GNU\0"
"""namesz, descsz of a SHA-1, NT_GNU_BUILD_ID, name (elf(5)); little-endian."""


@dataclass(frozen=True, slots=True)
class KernelImage:
    """What an image tells; None for what it does not."""

    source: str
    banner: str | None
    """What /proc/version of this kernel says."""
    build_id: str | None
    """Hexadecimal; also in /sys/kernel/notes of the running kernel."""
    config: KernelConfig | None


def read_image(path: Path) -> KernelImage:
    """Read an image; UsageError if it is none, or is packed in a way not known."""
    try:
        size = path.stat().st_size
        if size > MAX_IMAGE_BYTES:
            raise UsageError(f"{path}: {size} bytes are too many for a kernel image")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return parse_image(content, source=str(path))


def parse_image(content: bytes, *, source: str) -> KernelImage:
    """Read an image from memory; see `read_image`."""
    plain = _plain(content, source=source)
    banner = _BANNER.search(plain)
    if banner is None:
        raise UsageError(
            f"{source}: no kernel image: 'Linux version' stands nowhere in it (wanted: "
            "vmlinux, Image, bzImage or vmlinuz)"
        )
    return KernelImage(
        source=source,
        banner=banner[0].decode("ascii").strip(),
        build_id=build_id_in(plain),
        config=_config(plain, source=source),
    )


def build_id_in(content: bytes) -> str | None:
    """Return the GNU build ID, hexadecimal, of an image or of ELF notes."""
    at = content.find(GNU_BUILD_ID)
    begin = at + len(GNU_BUILD_ID)
    found = content[begin : begin + 20]
    return found.hex() if at >= 0 and len(found) == 20 else None


def _config(plain: bytes, *, source: str) -> KernelConfig | None:
    found = _IKCONFIG.search(plain)
    if found is None:
        return None
    try:
        return parse_config(found[1], source=source)
    except TargetError:
        return None


def _plain(content: bytes, *, source: str) -> bytes:
    """Unpack an image, also one that is packed twice (zboot in gzip)."""
    for _ in range(3):
        packed = _payload(content)
        if packed is None:
            return content
        unpack = next(
            (u for magic, u in _PACKERS.items() if packed[: len(magic)] == magic), None
        )
        if unpack is None:
            raise UsageError(
                f"{source}: packed in a way that rtscope does not know "
                f"({packed[:4].hex()}); give it the vmlinux, or --config FILE"
            )
        try:
            content = unpack(packed)
        except (
            zlib.error,
            lzma.LZMAError,
            zstandard.ZstdError,
            OSError,
            EOFError,
        ) as e:
            raise UsageError(f"{source}: damaged: {e}") from e
    return content


def _payload(content: bytes) -> bytes | None:
    """Return the packed kernel in an image; None if it lies there plainly."""
    if content[:2] == b"\x1f\x8b":
        return content
    if content[0x202:0x206] == b"HdrS" and len(content) > 0x250:
        # Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length
        sectors = content[0x1F1] or 4
        offset, length = struct.unpack_from("<II", content, 0x248)
        begin = (sectors + 1) * 512 + offset
        return content[begin : begin + length]
    if content[:2] == b"MZ" and content[4:8] == b"zimg":
        # drivers/firmware/efi/libstub/zboot-header.S
        offset, length = struct.unpack_from("<II", content, 8)
        return content[offset : offset + length]
    return None


def _gunzip(packed: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(packed, MAX_PLAIN_BYTES)


def _unxz(packed: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(packed, MAX_PLAIN_BYTES)


def _unzstd(packed: bytes) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(packed)
    return reader.read(MAX_PLAIN_BYTES)


def _unbzip2(packed: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(packed, MAX_PLAIN_BYTES)


_PACKERS: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": _gunzip,
    b"\xfd7zXZ\0": _unxz,
    b"\x5d\0\0": _unxz,
    b"\x28\xb5\x2f\xfd": _unzstd,
    b"BZh": _unbzip2,
}
