"""Functions that ended with a jump to the next one: from code whose jumps are known."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from rtscope.programs.binaries.callsites import jumps_on
from rtscope.programs.binaries.image import Image, Symbol
from rtscope.programs.binaries.tailcalls import TailCalls
from rtscope.programs.binaries.unwind import Frame

SIZE = 0x100
MOVED = 0x5000
LOOP, SAVE, STORE, SYNC, COLD = (0x1000 + SIZE * n for n in range(5))
STUB, SLOT, FAR = 0x2000, 0x3000, 0x900
RETURN = LOOP + 0x20
NAMES = {LOOP: "loop", SAVE: "save", STORE: "store", SYNC: "sync", COLD: "save.cold"}


@dataclass
class Code:
    """A file: its functions, each of `SIZE` bytes, and what is at some places in it."""

    code: dict[int, bytes]
    names: Mapping[int, str] = field(default_factory=lambda: NAMES)
    slots: Mapping[int, str] = field(default_factory=dict)
    machine: str = "EM_X86_64"

    @property
    def elf(self) -> SimpleNamespace:
        return SimpleNamespace(machine=self.machine)

    def symbol_at(self, vaddr: int) -> Symbol | None:
        begin = vaddr - vaddr % SIZE
        name = self.names.get(begin)
        return None if name is None else Symbol(name, begin, SIZE, global_=True)

    def functions_named(self, name: str) -> list[Symbol]:
        at = [vaddr for vaddr, known in self.names.items() if known == name]
        return [Symbol(name, vaddr, SIZE, global_=True) for vaddr in at]

    def code_at(self, vaddr: int, size: int) -> bytes:
        made = bytearray(b"\x90" * size)
        for at, piece in self.code.items():
            for number, byte in enumerate(piece):
                if 0 <= at + number - vaddr < size:
                    made[at + number - vaddr] = byte
        return bytes(made)


def to(at: int, target: int, instruction: bytes) -> dict[int, bytes]:
    """Return an instruction that leads to a place, there."""
    return {at: instruction + struct.pack("<i", target - at - len(instruction) - 4)}


def jump(at: int, target: int) -> dict[int, bytes]:
    return to(at, target, b"\xe9")


def short(function: int, target: int) -> dict[int, bytes]:
    """Return a short jump at the end of a function to the next one."""
    assert target == function + SIZE
    return {target - 10: b"\xeb\x08"}


CALL_SAVE = to(RETURN - 5, SAVE, b"\xe8")


def frame(file: Code, vaddr: int, *, called: bool) -> Frame:
    return Frame(vaddr + MOVED, called, cast(Image, file), vaddr, None)


def between(file: Code, below: Frame) -> list[int | None]:
    """Return the places of what is put between a frame and the loop that called it."""
    caller = frame(file, RETURN, called=True)
    frames = TailCalls().with_left_out([below, caller])
    assert frames[0] == below
    assert frames[-1] == caller
    assert all(
        not x.called and x.address - (x.vaddr or 0) == MOVED for x in frames[1:-1]
    )
    return [one.vaddr for one in frames[1:-1]]


@pytest.mark.parametrize("instruction", [b"\xe9", b"\x0f\x84"])
def test_a_function_that_jumped_to_the_next_one_is_on_the_stack(
    instruction: bytes,
) -> None:
    file = Code(CALL_SAVE | to(SAVE + 0x30, SYNC, instruction))

    assert between(file, frame(file, SYNC + 9, called=False)) == [SAVE + 0x30]


@pytest.mark.parametrize("by_stub", [True, False])
def test_so_is_one_that_jumped_to_another_file(by_stub: bool) -> None:
    pointer = to(SAVE + 0x30, SLOT, b"\xff\x25")
    stub = jump(SAVE + 0x30, STUB) | to(STUB, SLOT, b"\xff\x25")
    file = Code(CALL_SAVE | (stub if by_stub else pointer), slots={SLOT: "fsync"})
    library = Code({}, names={FAR: "fsync"})

    assert between(file, frame(library, FAR, called=False)) == [SAVE + 0x30]


@pytest.mark.parametrize("instruction", [b"\xeb", b"\x74"])
def test_so_is_one_that_jumped_a_short_way(instruction: bytes) -> None:
    code = {STORE - 10: instruction + b"\x08"} | jump(STORE + 4, SYNC)
    found = between(file := Code(CALL_SAVE | code), frame(file, SYNC, called=False))

    assert found == [STORE + 4, STORE - 10]


def test_two_that_jumped_one_after_the_other_are_in_their_order() -> None:
    file = Code(CALL_SAVE | jump(SAVE + 0x30, STORE) | jump(STORE + 0x40, SYNC))

    found = between(file, frame(file, SYNC + 9, called=False))

    assert found == [STORE + 0x40, SAVE + 0x30]


@pytest.mark.parametrize(
    "code",
    [
        jump(SAVE + 0x30, SYNC) | jump(SAVE + 0x50, SYNC),
        jump(SAVE + 0x30, SYNC) | jump(SAVE + 0x50, STORE) | jump(STORE + 4, SYNC),
        jump(SAVE + 0x30, SYNC) | short(SAVE, STORE) | jump(STORE + 4, SYNC),
        jump(SAVE + 0x30, STORE),
        {},
    ],
    ids=["two jumps", "two ways", "a short way", "another function", "none"],
)
def test_where_it_is_not_known_which_nothing_is_added(code: dict[int, bytes]) -> None:
    file = Code(CALL_SAVE | code)

    assert between(file, frame(file, SYNC + 9, called=False)) == []


REGISTER, NEWER, VIRTUAL = b"\xff\xe0", b"\x41\xff\xe3", b"\xff\x60\x10"
VARIABLE = to(SAVE + 0x50, SLOT, b"\xff\x25")


@pytest.mark.parametrize(
    "code",
    [
        {SAVE + 0x50: REGISTER},
        {SAVE + 0x50: NEWER},
        {SAVE + 0x50: VIRTUAL},
        {SAVE + 0x4F: b"\xff\x66\x08"},
        VARIABLE,
        jump(SAVE + 0x50, STORE) | {STORE + 8: REGISTER},
    ],
    ids=["register", "newer", "method", "in a structure", "variable", "by another"],
)
def test_a_jump_by_a_pointer_may_lead_there_too(code: dict[int, bytes]) -> None:
    file = Code(CALL_SAVE | jump(SAVE + 0x30, SYNC) | code)

    assert between(file, frame(file, SYNC + 9, called=False)) == []


@pytest.mark.parametrize(
    "code",
    [
        {SAVE + 0x50: b"\x3e" + REGISTER},
        {SAVE + 0x50: b"\x48\x01\xd0" + REGISTER},
        {SAVE + 0x50: b"\x49\x01\xd3" + NEWER},
        {SAVE + 0x50: b"\xff\x24\xc5"},
        # calls back, before an instruction of the stack protector
        {SAVE + 0x50: b"\xe8\x00\xf0\xff\xff\x66\x90"},
        {SAVE + 0x50: b"\x0f\x84\x00\xf0\xff\xff\x66\x90"},
        {SAVE + 0x50: b"\xff\xd0"},
        {SAVE + 0x50: b"\x83\xf8\xff\x74"},
    ],
    ids=["untracked", "switch", "newer", "table", "call", "branch", "calls", "number"],
)
def test_a_switch_and_a_call_lead_to_no_other_function(code: dict[int, bytes]) -> None:
    file = Code(CALL_SAVE | jump(SAVE + 0x30, SYNC) | code)

    assert between(file, frame(file, SYNC + 9, called=False)) == [SAVE + 0x30]


@pytest.mark.parametrize("runs", [SAVE + 9, COLD + 9], ids=["itself", "a part of it"])
def test_the_function_that_was_called_is_there_once(runs: int) -> None:
    file = Code(CALL_SAVE | jump(SAVE + 0x30, COLD) | jump(COLD + 0x30, SAVE))

    assert between(file, frame(file, runs, called=False)) == []


def test_functions_that_jump_to_each_other_come_to_an_end() -> None:
    file = Code(CALL_SAVE | jump(SAVE + 0x30, STORE) | jump(STORE + 0x40, SAVE))

    assert between(file, frame(file, SYNC + 9, called=False)) == []


def test_a_call_by_a_pointer_and_another_processor_add_nothing() -> None:
    by_pointer = Code(jump(SAVE + 0x30, SYNC))
    arm = Code(CALL_SAVE | jump(SAVE + 0x30, SYNC), machine="EM_AARCH64")

    for file in (by_pointer, arm):
        assert between(file, frame(file, SYNC + 9, called=False)) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (CALL_SAVE | jump(SAVE + 0x30, SYNC), True),
        (CALL_SAVE | jump(SAVE + 0x30, STORE) | jump(STORE + 4, SYNC), True),
        (CALL_SAVE | jump(SAVE + 0x30, STORE), False),
        (jump(SAVE + 0x30, SYNC), False),
    ],
)
def test_a_place_to_return_to_is_after_a_call_that_jumps_on(
    code: dict[int, bytes], found: bool
) -> None:
    """So the caller of a function without a table of frames is known."""
    image = cast(Image, Code(code))
    sync = Symbol("sync", SYNC, SIZE, global_=True)

    assert jumps_on(image, RETURN, (image, sync)) is found
