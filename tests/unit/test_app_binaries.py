"""Files of a checked program, damaged or hostile: each has an end and a reason."""

import lzma
import os
import struct
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest
import zstandard

from fakes.elffiles import (
    ALLOC,
    CODE,
    COMPRESSED,
    SYMTAB,
    Part,
    elf_file,
    kind,
    symbols,
    uleb,
    unit,
)
from rtscope.programs.binaries import reading
from rtscope.programs.binaries.debuginfo import DebugInfo
from rtscope.programs.binaries.demangling import demangled
from rtscope.programs.binaries.elf import MAX_UNPACKED_BYTES, Damaged, ElfFile
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.reading import Request, answer_to
from rtscope.programs.binaries.rustnames import MAX_TEXT
from rtscope.programs.binaries.serving import TookTooLong

SUBPROGRAM, INLINED, COMPILE_UNIT = 0x2E, 0x1D, 0x11
NAME, LOW, HIGH, ORIGIN, RANGES, STMT = 0x03, 0x11, 0x12, 0x31, 0x55, 0x10
ADDR, TEXT, DATA4, REF4, OFFSET = 0x01, 0x08, 0x06, 0x13, 0x17
RANGE = struct.pack("<QI", CODE, 0x100)
GIB = 1 << 30


def compressed(size: int, content: bytes, how: int = 1) -> bytes:
    return struct.pack("<IIQQ", how, 0, size, 1) + content


def debug_file(entries: bytes, kinds: bytes, *more: Part) -> Image:
    parts = (
        *symbols(("known", CODE, 0x100)),
        Part(".debug_info", unit(entries)),
        Part(".debug_abbrev", kinds + b"\0"),
    )
    return Image(elf_file([*parts, *more]), "prog")


TOP = kind(1, COMPILE_UNIT, (LOW, ADDR), (HIGH, DATA4), children=True)
FUNCTION = kind(2, SUBPROGRAM, (NAME, TEXT), (LOW, ADDR), (HIGH, DATA4), children=True)


def name_at(image: Image, vaddr: int = CODE) -> list[str]:
    places = DebugInfo(image.elf).places([vaddr])
    return [one.function for one in places.get(vaddr, ())]


def test_a_function_has_its_name_and_those_that_were_inlined_into_it() -> None:
    inlined = kind(3, INLINED, (NAME, TEXT), (LOW, ADDR), (HIGH, DATA4), children=False)
    inner = b"\3inner\0" + struct.pack("<QI", CODE + 0x10, 0x10)
    entries = b"\1" + RANGE + b"\2outer\0" + RANGE + inner + b"\0\0"
    image = debug_file(entries, TOP + FUNCTION + inlined)

    assert name_at(image) == ["outer"]
    assert name_at(image, CODE + 0x18) == ["inner", "outer"]
    assert name_at(image, CODE + 0x100) == []


def test_an_entry_whose_origin_is_itself_has_an_end() -> None:
    itself = kind(
        2, SUBPROGRAM, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4), children=False
    )
    begin = 11 + 1 + len(RANGE)
    entries = b"\1" + RANGE + b"\2" + struct.pack("<I", begin) + RANGE + b"\0"

    assert name_at(debug_file(entries, TOP + itself)) == [""]


def test_two_entries_that_name_each_other_have_an_end() -> None:
    pair = kind(
        2, SUBPROGRAM, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4), children=False
    )
    first = 11 + 1 + len(RANGE)
    second = first + 1 + 4 + len(RANGE)
    entries = b"\1" + RANGE
    entries += b"\2" + struct.pack("<I", second) + RANGE
    entries += b"\2" + struct.pack("<I", first) + RANGE + b"\0"

    assert name_at(debug_file(entries, TOP + pair)) == [""]


def test_a_million_entries_inside_each_other_are_damage() -> None:
    nested = kind(2, 0x0B, children=True)
    entries = b"\1" + RANGE + b"\2" * 1_000_000
    info = DebugInfo(debug_file(entries, TOP + nested).elf)

    assert info.places([CODE]) == {}
    assert info.damage == "entries are nested too deep"


def test_a_list_of_pieces_without_an_end_is_damage() -> None:
    pieces = kind(2, SUBPROGRAM, (NAME, TEXT), (RANGES, OFFSET), children=False)
    entries = b"\1" + RANGE + b"\2many\0" + struct.pack("<I", 0) + b"\0"
    endless = Part(".debug_ranges", struct.pack("<QQ", 1, 2) * 100_000)
    info = DebugInfo(debug_file(entries, TOP + pieces, endless).elf)

    assert info.places([CODE]) == {}
    assert info.damage == "a function has too many pieces"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (b"\4\0", "it ends"),
        (b"\xff" * 12, "a unit is larger than what it is in"),
        (struct.pack("<IHIBBBbBB", 14, 4, 8, 1, 1, 1, 0, 0, 1) + b"\0\0", "no range"),
        (struct.pack("<IHIBBBbBB", 11, 9, 5, 1, 1, 1, 0, 1, 1), "of version 9"),
        (
            struct.pack("<IHBBIBBBbBB", 40, 5, 8, 0, 30, 1, 1, 1, 0, 1, 1)
            + (b"\1\1\x08" + uleb(1 << 60)).ljust(30, b"\0"),
            "lines name",
        ),
    ],
)
def test_lines_that_cannot_be_read_leave_the_names(lines: bytes, why: str) -> None:
    top = kind(
        1, COMPILE_UNIT, (LOW, ADDR), (HIGH, DATA4), (STMT, OFFSET), children=True
    )
    entries = b"\1" + RANGE + bytes(4) + b"\2outer\0" + RANGE + b"\0\0"
    info = DebugInfo(
        debug_file(entries, top + FUNCTION, Part(".debug_line", lines)).elf
    )

    assert [one.function for one in info.places([CODE])[CODE]] == ["outer"]
    assert why in info.damage


@pytest.mark.parametrize(
    "content",
    [
        compressed(3 * GIB, zlib.compress(bytes(1 << 20))),
        compressed(MAX_UNPACKED_BYTES + 1, zlib.compress(b"")),
        compressed(1 << 63, zlib.compress(b"")),
        compressed(1 << 20, zlib.compress(bytes(1 << 10))),
        compressed(1 << 20, b"no such form"),
        compressed(1 << 20, zstandard.compress(bytes(1 << 10)), 2),
        compressed(1 << 20, b"damaged", 2),
        compressed(10, zlib.compress(bytes(10)), 77),
        b"short",
    ],
)
def test_a_section_that_unpacks_to_too_much_or_not_at_all_is_damage(
    content: bytes,
) -> None:
    packed = Part(".debug_info", content, flags=COMPRESSED)

    with pytest.raises(Damaged):
        DebugInfo(ElfFile(elf_file([packed]))).places([CODE])


@pytest.mark.slow
def test_sections_that_unpack_to_little_each_count_together() -> None:
    size = MAX_UNPACKED_BYTES // 4
    one = compressed(size, zlib.compress(bytes(size)))
    names = [f".debug_{n}" for n in range(5)]
    elf = ElfFile(elf_file([Part(n, one, flags=COMPRESSED) for n in names]))

    for name in names[:4] * 2:
        assert len(elf.part(name)) == size
    with pytest.raises(Damaged, match="more than 128 of a file"):
        elf.part(names[4])


def test_a_frame_table_is_never_unpacked() -> None:
    content = compressed(GIB, zlib.compress(bytes(1 << 20)))
    frames = Part(".eh_frame", content, flags=COMPRESSED | ALLOC, address=0x2000)

    assert Image(elf_file([frames]), "prog").frames.row_at(CODE) is None


@pytest.mark.slow
def test_small_debug_data_that_unpacks_to_too_much_is_left_out() -> None:
    packed = lzma.compress(bytes(80 << 20))
    image = Image(elf_file([Part(".gnu_debugdata", packed)]), "prog")

    assert image.symbol_at(CODE) is None


def test_a_file_that_says_it_has_all_sections_of_the_world_is_damage() -> None:
    for count in (0xFFFF, 60_000):
        with pytest.raises(Damaged):
            _ = ElfFile(elf_file([Part(".a", b"")], count=count)).sections


def test_a_table_of_symbols_beyond_the_file_is_damage() -> None:
    table = Part(".symtab", b"", type=SYMTAB, link=2, size=1 << 62)
    image = Image(elf_file([table, Part(".strtab", b"\0")]), "prog")

    with pytest.raises(Damaged, match=r"ends before the end of \.symtab"):
        image.symbol_at(CODE)


@pytest.mark.parametrize("error", [MemoryError(), Damaged("no"), TookTooLong("5 s")])
def test_a_table_that_cannot_be_read_is_read_once(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    reads = []

    def fail(elf: ElfFile) -> None:
        reads.append(elf)
        raise error

    for name in ("SymbolTable", "FrameTable", "GoTable"):
        monkeypatch.setattr(f"rtscope.programs.binaries.image.{name}", fail)
        image = Image(elf_file(symbols(("known", CODE, 0x100))), "prog")
        reads.clear()

        for _ in range(3):
            with pytest.raises(type(error)):
                image.symbol_at(CODE) if name == "SymbolTable" else image.row_at(CODE)

        assert len(reads) == 1


@pytest.mark.slow
def test_a_name_of_cpp_that_doubles_with_each_step_stays_as_it_is() -> None:
    pairs = "".join(f"IS{n}_S{n}_ES_" for n in "0123456789ABCDEFGHIJKLM")
    name = f"_Z1f1AIiiES_{pairs}ISN_SN_E"
    _ = demangled(name)

    assert demangled(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "_RNvC1a" + "1b" * 5_000,
        "_RINvC1a1fTB2_B2_E" + "TB4_B4_E" * 40 + "E",
        "_R" + "I" * 4_000,
        "_R" + "NvB_" * 100,
        "_RNvB_1a",
        "_RNvC1a999999b",
        "_RNvC1au5b_____",
        "_RFG" + "z" * 40 + "_E",
    ],
)
def test_a_name_of_rust_that_is_damaged_or_grows_stays_short(name: str) -> None:
    assert len(demangled(name)) <= max(len(name), MAX_TEXT)


def doubling_rust(steps: int) -> str:
    """Return a name in which each type is a pair of the one before."""
    text, last = "INvC1a1fi", 8
    for _ in range(steps):
        begin = len(text)
        number = "" if last == 0 else _base62(last - 1)
        text += f"TB{number}_B{number}_E"
        last = begin
    return f"_R{text}E"


def _base62(value: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    text = ""
    while True:
        value, digit = divmod(value, 62)
        text = digits[digit] + text
        if not value:
            return text


def test_a_name_of_rust_that_doubles_with_each_step_stays_as_it_is() -> None:
    assert demangled(doubling_rust(1)) == "a::f::<isize, (isize, isize)>"
    assert demangled(doubling_rust(60)) == doubling_rust(60)


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("malloc", "malloc"),
        ("_Zbroken", "_Zbroken"),
        ("_ZN4prog6append17h0123456789abcdefE", "prog::append"),
        (
            "_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$"
            "4drop17h0123456789abcdefE",
            "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
        ),
        ("_ZN4prog3run17h0123456789abcdefE.llvm.12345", "prog::run"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
        ("_RNCNvC3foo3bar0B3_", "foo::bar::{closure#0}"),
        ("_RINvC3foo3barlReE", "foo::bar::<i32, &str>"),
        ("_RNvMC3fooNtB2_1S3new", "<foo::S>::new"),
        ("_RNvXC3fooNtB2_1SNtB2_1T3run", "<foo::S as foo::T>::run"),
        (
            "_RINvC3foo3barAhj4_TbcEFUKCmEuE",
            'foo::bar::<[u8; 4], (bool, char), unsafe extern "C" fn(u32)>',
        ),
        ("_RNvC3foou8gdel_5qa", "foo::gödel"),
    ],
)
def test_names_are_those_of_the_source(mangled: str, name: str) -> None:
    assert demangled(mangled) == name


def test_names_of_cpp_are_those_of_the_source() -> None:
    assert demangled("_ZN3foo3barEv") in ("foo::bar()", "_ZN3foo3barEv")


# --- the process that reads them ----------------------------------------------------


def asked(tmp_path: Path, **files: bytes) -> Request:
    rows: dict[str, Mapping[str, str]] = {}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        rows[name] = {"path": str(tmp_path / name), "name": f"/{name}"}
    return Request(rows, find=["known"])


def test_a_file_that_cannot_be_read_has_its_reason_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    good = elf_file(symbols(("known", CODE, 16)))
    cut = Part(".symtab", b"", type=SYMTAB, link=2, size=1 << 62)
    request = asked(
        tmp_path, good=good, none=b"#!/bin/sh", empty=b"", cut=elf_file([cut])
    )
    request.files["gone"] = {"path": str(tmp_path / "gone"), "name": "/gone"}
    request.files["pipe"] = {"path": str(tmp_path / "pipe"), "name": "/pipe"}
    os.mkfifo(tmp_path / "pipe")

    answer = answer_to(request)

    found = {row["file"]: row for row in answer.of("file")}
    assert answer.ended == ""
    assert found["good"]["functions"] == [["known", CODE]]
    assert found["none"]["error"] == "not an ELF file"
    assert found["empty"]["error"] == "it is empty"
    assert found["pipe"]["error"] == "not a plain file"
    assert "No such file" in found["gone"]["error"]
    assert "ends before the end" in found["cut"]["damaged"]


ENDINGS: dict[str, str] = {
    "a signal": "os.kill(os.getpid(), 7)",
    "its memory": "x = bytearray(1 << 40)",
    "its time": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
    "an error": "raise AssertionError('of no kind that is known')",
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_ends_the_process_is_left_out_and_the_others_are_read(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "serving.py"
    program.write_text(
        "import os, resource, sys\n"
        "from rtscope.programs.binaries import serving\n"
        "opened = serving._opened\n"
        "def ended(path, name):\n"
        "    if name == '/bad':\n"
        + "".join(f"        {line}\n" for line in ENDINGS[ending].splitlines())
        + "    return opened(path, name)\n"
        "serving._opened = ended\n"
        "sys.exit(serving.main())\n"
    )
    monkeypatch.setattr(reading, "_PROGRAM", (str(program),))
    good = elf_file(symbols(("known", CODE, 16)))

    answer = answer_to(asked(tmp_path, first=good, bad=good, last=good))

    found = {row["file"]: row for row in answer.of("file")}
    assert answer.ended == ""
    assert (
        found["first"]["functions"] == found["last"]["functions"] == [["known", CODE]]
    )
    assert found["bad"]["error"]


def test_a_process_that_cannot_run_leaves_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))

    answer = answer_to(asked(tmp_path, good=elf_file([])))

    assert answer.rows == ()
    assert "did not run" in answer.ended
