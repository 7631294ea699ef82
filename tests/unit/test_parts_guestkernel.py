"""A kernel as a board takes it: unpacked where QEMU can enter it, modules unsigned."""

import gzip
import struct

import pytest

from rtscope.boards.parts.guestkernel import (
    entered_unpacked,
    without_signature,
    without_signatures,
)
from rtscope.boards.parts.initrd import File, Link, pack, unpack

MAGIC = b"~Module signature appended~\n"


def elf(*, name: bytes = b"Xen\0", kind: int = 18) -> bytes:
    """Return a kernel with one note; Elf64_Ehdr and a Elf64_Phdr of elf(5)."""
    note = struct.pack("<III", len(name), 4, kind) + name + struct.pack("<I", 1 << 20)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    return (
        header + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, *[len(note)] * 2, 4) + note
    )


def bzimage(kernel: bytes) -> bytes:
    """Return it packed, as Documentation/arch/x86/boot.rst has it."""
    packed = gzip.compress(kernel)
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x1FE:0x206] = b"\x55\xaa\xeb\x66HdrS"
    struct.pack_into("<II", head, 0x248, 0, len(packed))
    return bytes(head) + packed


def signed(module: bytes, signature: bytes) -> bytes:
    about = struct.pack(">8xI", len(signature))
    return module + signature + about + MAGIC


def test_a_kernel_that_can_be_entered_is_unpacked() -> None:
    assert entered_unpacked(bzimage(elf())) == elf()
    assert entered_unpacked(elf()) == elf()


@pytest.mark.parametrize(
    "image",
    [
        bzimage(elf(kind=7)),
        bzimage(elf(name=b"GNU\0")),
        bzimage(b"\x7fELF" + bytes(60)),
        bzimage(b"no kernel"),
        bzimage(elf())[:-9],
        b"\x02\x21\x4c\x18" + bytes(99),
        b"",
    ],
    ids=["other-note", "of-another", "damaged", "no-elf", "cut", "lz4", "empty"],
)
def test_any_other_image_is_booted_as_it_came(image: bytes) -> None:
    assert entered_unpacked(image) is None


def test_a_module_loses_its_signature_alone() -> None:
    assert without_signature(signed(b"code", b"sig" * 9)) == b"code"


@pytest.mark.parametrize(
    "module",
    [
        b"code",
        b"",
        MAGIC,
        b"code" + MAGIC,
        b"short" + struct.pack(">8xI", 6) + MAGIC,
        signed(b"code", b"sig") + b"\0",
    ],
)
def test_a_module_without_a_whole_signature_stays(module: bytes) -> None:
    assert without_signature(module) == module


def test_every_module_of_an_archive_loses_it_and_the_rest_stays() -> None:
    archive = pack(
        {
            "lib/modules/a.ko": File(signed(b"a", b"1")),
            "lib/modules/order": File(b"a.ko \n"),
            "lib/b": Link("a"),
        }
    )

    entries = unpack(without_signatures(archive))

    assert entries["lib/modules/a.ko"] == File(b"a")
    assert entries["lib/modules/order"] == File(b"a.ko \n")
    assert entries["lib/b"] == Link("a")
