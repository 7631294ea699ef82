"""Which functions of an allocator are probed beside those of C."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from rtscope.programs.binaries.allocators import beside_malloc, of_language
from rtscope.programs.binaries.image import Image, Symbol
from rtscope.programs.images import Images, Probe, each_once, probes_in
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.memorymap import parse_maps
from rtscope.programs.probes import (
    NAMES_OF_SYMBOLS,
    OWN_ALLOCATORS,
    by_use,
    is_allocation,
    plain_name,
)

MALLOC, FREE, NEW, DELETE, STUB, SLOT = 0x1000, 0x1100, 0x2000, 0x2100, 0x3000, 0x4000
SIZE = 0x20
ALLOCATOR = {"malloc": MALLOC, "free": FREE, "_Znwm": NEW, "_ZdlPv": DELETE}


@dataclass
class FakeImage:
    """A file with functions, and the code that a test gives to some of them."""

    functions: Mapping[str, int]
    code: Mapping[int, bytes] = field(default_factory=dict)
    slots: Mapping[int, str] = field(default_factory=dict)
    machine: str = "EM_X86_64"

    @property
    def elf(self) -> SimpleNamespace:
        return SimpleNamespace(machine=self.machine)

    def functions_named(self, name: str) -> list[Symbol]:
        at = self.functions.get(name)
        return [] if at is None else [Symbol(name, at, SIZE, global_=True)]

    def code_at(self, vaddr: int, size: int) -> bytes:
        code = self.code.get(vaddr, b"")
        return code.ljust(size, b"\x90")[:size] if size > 6 else code[:size]


def at_distance(instruction: bytes, *, begin: int, to: int, after: int = 0) -> bytes:
    """Return code of a function that begins there and enters another place."""
    end = begin + after + len(instruction) + 4
    return b"\x90" * after + instruction + struct.pack("<i", to - end)


CALL, JUMP, JUMP_POINTER = b"\xe8", b"\xe9", b"\xff\x25"


def found(
    functions: Mapping[str, int],
    code: Mapping[int, bytes] | None = None,
    *,
    slots: Mapping[int, str] | None = None,
    machine: str = "EM_X86_64",
) -> list[str]:
    image = FakeImage(functions, code or {}, slots or {}, machine)
    names = ["_Znwm", "_ZdlPv"]
    known = ["malloc", "free"]
    return [one.name for one in beside_malloc(cast(Image, image), names, known=known)]


def test_operators_of_an_allocator_are_found() -> None:
    assert found(ALLOCATOR) == ["_Znwm", "_ZdlPv"]


def test_a_library_of_operators_alone_calls_another_allocator() -> None:
    assert found({"_Znwm": NEW, "_ZdlPv": DELETE}) == []


def test_code_that_is_not_read_may_call_malloc() -> None:
    assert found(ALLOCATOR, machine="EM_RISCV") == []


@pytest.mark.parametrize(
    "code",
    [
        at_distance(CALL, begin=NEW, to=MALLOC, after=5),
        at_distance(JUMP, begin=NEW, to=MALLOC),
        at_distance(JUMP, begin=NEW, to=DELETE),  # which is probed
        at_distance(JUMP_POINTER, begin=NEW, to=SLOT),
    ],
)
def test_an_operator_that_enters_another_function_that_is_probed_is_none(
    code: bytes,
) -> None:
    assert found(ALLOCATOR, {NEW: code}, slots={SLOT: "malloc"}) == ["_ZdlPv"]


def test_a_linkage_table_may_be_between() -> None:
    code = {
        NEW: at_distance(CALL, begin=NEW, to=STUB),
        STUB: at_distance(JUMP_POINTER, begin=STUB, to=SLOT),
    }

    assert found(ALLOCATOR, code, slots={SLOT: "malloc"}) == ["_ZdlPv"]
    assert found(ALLOCATOR, code, slots={SLOT: "write"}) == ["_Znwm", "_ZdlPv"]


def test_another_name_of_free_is_no_other_function() -> None:
    assert found({**ALLOCATOR, "_ZdlPv": FREE}) == ["_Znwm"]


def test_an_allocator_under_a_name_of_its_own_is_known_by_its_first_function() -> None:
    image = cast(Image, FakeImage({"mi_malloc": MALLOC, "mi_free": FREE}))
    groups = (("_rjem_malloc", "mi_free"), ("mi_malloc", "mi_zalloc", "mi_free"))

    names = [one.name for one in of_language(image, groups)]

    assert names == ["mi_malloc", "mi_free"]


@pytest.mark.parametrize(
    ("symbol", "event"),
    [
        ("gc_qalloc", "gc_qalloc"),
        ("SYSTEM_$$_SYSGETMEM$QWORD$$POINTER", "getmem"),
        ("newObjRC1", "newObjRC1"),
    ],
)
def test_languages_with_allocators_of_their_own(symbol: str, event: str) -> None:
    assert any(symbol in row for row in OWN_ALLOCATORS)
    assert NAMES_OF_SYMBOLS.get(symbol, symbol) == event
    assert is_allocation(event)


def test_the_ones_that_are_used_most_come_first() -> None:
    order = sorted(
        ["reallocarray", "operator new", "aligned_alloc", "free"], key=by_use
    )

    assert order == ["free", "operator new", "aligned_alloc", "reallocarray"]


MAPS = """\
1000-2000 r-xp 00000000 08:01 5    /usr/lib/libc.so.6
3000-4000 r-xp 00000000 08:01 6    /opt/lib/liballocator.so.2
"""
ALL_OF_C = [("malloc", 1), ("calloc", 2), ("posix_memalign", 3)]
OF_CXX = [("operator new", 4), ("operator delete", 5)]


class FakeImages:
    """Files of a process, with the functions that a test gives them."""

    def __init__(self, functions: Mapping[str, list[tuple[str, int]]]) -> None:
        self._functions = functions

    def read(self, pieces: object) -> None:
        assert pieces

    def functions(self, piece: Piece) -> list[tuple[str, int]]:
        return self._functions.get(piece.path, [])


def names_probed(functions: Mapping[str, list[tuple[str, int]]]) -> list[str]:
    images = cast(Images, FakeImages(functions))
    found = probes_in(parse_maps(MAPS), images, directory="/d")
    return [f"{one.name} {one.inode}" for one in found]


def test_the_allocator_in_the_place_of_the_c_library_comes_before_that() -> None:
    other = [*ALL_OF_C, *OF_CXX]

    both = {"/usr/lib/libc.so.6": ALL_OF_C, "/opt/lib/liballocator.so.2": other}

    assert names_probed(both) == [
        *("malloc 6", "calloc 6", "operator new 6", "operator delete 6"),
        *("posix_memalign 6", "malloc.2 5", "calloc.2 5", "posix_memalign.2 5"),
    ]


def test_the_c_library_alone_comes_by_use() -> None:
    shuffled = {"/usr/lib/libc.so.6": ALL_OF_C[::-1]}

    assert names_probed(shuffled) == ["calloc 5", "malloc 5", "posix_memalign 5"]


def test_operators_are_numbered_and_summed_up_as_others_are() -> None:
    places = [(7, Probe("operator new", at, "/f", 7)) for at in (NEW, NEW, DELETE)]

    names = [one.name for one in each_once(places)]

    assert names == ["operator new", "operator new.2"]
    assert [plain_name(one) for one in names] == ["operator new"] * 2
    assert all(map(is_allocation, names))
    assert plain_name("runtime.mallocgc") == "runtime.mallocgc"
