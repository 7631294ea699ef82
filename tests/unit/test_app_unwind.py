"""Stacks from registers, copied memory and tables of frames: known answers."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from rtscope.programs.binaries.expression import Expression, Unreadable, evaluate
from rtscope.programs.binaries.frametable import FrameRow, Saved
from rtscope.programs.binaries.image import Image, Symbol
from rtscope.programs.binaries.unwind import (
    BY_MACHINE,
    Stack,
    Unwinder,
    registers_in,
)
from rtscope.programs.memorymap import MemoryMap, parse_maps

X86, ARM = BY_MACHINE["x86_64"], BY_MACHINE["aarch64"]
MAPS = parse_maps(
    """\
1000-2000 r--p 00000000 08:01 5    /bin/prog
2000-4000 r-xp 00001000 08:01 5    /bin/prog
7000-8000 r-xp 00000000 00:00 0
9000-a000 rw-p 00000000 00:00 0    [stack]
"""
)
SP = 0x9000


@dataclass
class FakeImage:
    """A file whose rows a test gives, by the file's addresses."""

    rows: dict[range, FrameRow]
    symbols: dict[int, str] = field(default_factory=dict)
    name: str = "prog"
    code: dict[int, bytes] = field(default_factory=dict)
    slots: dict[int, str] = field(default_factory=dict)

    def functions_named(self, name: str) -> list[Symbol]:
        known = {"write": 0x1100, "__write": 0x1100, "read": 0x1080}
        return [
            Symbol(name, at, 0, global_=True) for n, at in known.items() if n == name
        ]

    def code_at(self, vaddr: int, size: int) -> bytes:
        return self.code.get(vaddr, b"")[:size]

    @property
    def frames(self) -> "FakeImage":
        return self

    def row_at(self, vaddr: int) -> FrameRow | None:
        return next((row for at, row in self.rows.items() if vaddr in at), None)

    def vaddr_of(self, offset: int) -> int:
        return offset

    def symbol_at(self, vaddr: int) -> Symbol | None:
        name = self.symbols.get(vaddr)
        return None if name is None else Symbol(name, vaddr, 0, global_=True)


def row(
    offset: int, *, register: int = 7, signal: bool = False, **more: Saved
) -> FrameRow:
    """Return a row of x86-64 whose return address is just below the frame."""
    saved = {16: Saved("at", -8), **{int(k[1:]): v for k, v in more.items()}}
    return FrameRow(register, offset, None, saved, 16, signal)


def unwound(
    rows: dict[range, FrameRow],
    words: Sequence[int],
    *,
    pc: int = 0x2100,
    symbols: dict[int, str] | None = None,
    at_entry: bool = False,
    made: range = range(0),
    made_name: str = "JS:step",
    frame: int = 0x1234,
    code: dict[int, bytes] | None = None,
    slots: dict[int, str] | None = None,
) -> Stack:
    fake = FakeImage(rows, symbols or {}, code=code or {}, slots=slots or {})
    image = cast(Image, fake)
    unwinder = Unwinder(
        X86,
        MemoryMap(MAPS),
        lambda mapping: image if mapping.is_file else None,
        made=lambda address: made_name if address in made else "",
    )
    copied = struct.pack(f"<{len(words)}Q", *words)
    registers = {16: pc, 7: SP, 6: frame}
    return unwinder.unwind(registers, copied, at_entry=at_entry)


def addresses(stack: Stack) -> list[int]:
    return [frame.address for frame in stack.frames]


def test_a_sample_of_a_program_of_32_bits_is_of_the_same_form() -> None:
    machine = BY_MACHINE["i386"]
    sample = struct.pack("<20Q", *range(100, 112), *[1 << 60] * 8)

    found = registers_in(sample, machine)

    # AX BX CX DX SI DI BP SP IP, by the numbers of the System V ABI for i386
    assert found == {
        **{0: 100, 3: 101, 1: 102, 2: 103},
        **{6: 104, 7: 105, 5: 106, machine.sp: 107, machine.pc: 108},
    }


def test_each_caller_is_found_until_one_has_none() -> None:
    rows = {
        range(0x1100, 0x1200): row(16),
        range(0x1200, 0x1300): row(8),
        range(0x1300, 0x1400): row(8, r16=Saved("undefined")),
    }

    stack = unwound(rows, [0, 0x2210, 0x2310])

    assert addresses(stack) == [0x2100, 0x2210, 0x2310]
    assert stack.complete


def test_a_call_at_the_end_of_a_function_is_of_that_function() -> None:
    # 0x2200 is where the next function begins: the call before it never returns
    rows = {
        range(0x1100, 0x1200): row(8),
        range(0x1200, 0x1300): row(8, r16=Saved("undefined")),
    }

    stack = unwound(rows, [0x2200, 0x2300])

    assert addresses(stack) == [0x2100, 0x2200, 0x2300]
    assert stack.frames[1].place == 0x11FF


def test_what_a_signal_has_interrupted_did_not_call() -> None:
    rows = {
        range(0x1100, 0x1200): row(8, signal=True),
        range(0x1200, 0x1300): row(8, r16=Saved("undefined")),
    }

    stack = unwound(rows, [0x2200])

    assert not stack.frames[1].called
    assert stack.complete


def test_a_register_that_a_function_saved_finds_the_next_frame() -> None:
    rows = {
        range(0x1100, 0x1200): row(16, r6=Saved("at", -16)),
        range(0x1200, 0x1300): row(16, register=6, r16=Saved("at", -8)),
        range(0x1300, 0x1400): row(8, r16=Saved("undefined")),
    }

    stack = unwound(rows, [SP + 24, 0x2210, 0, 0, 0x2310])

    assert addresses(stack) == [0x2100, 0x2210, 0x2310]


@pytest.mark.parametrize(
    ("words", "pc", "why"),
    [
        ([], 0x2100, "deeper than the 0 KiB"),
        ([0x7100], 0x2100, "memory without a file could not be read"),
        ([0x2500], 0x2100, "prog has no unwind table for 0x2500"),
        ([0x5000], 0x2100, "nothing is at 0x5000"),
    ],
)
def test_a_stack_that_ends_early_says_why(words: list[int], pc: int, why: str) -> None:
    stack = unwound({range(0x1100, 0x1200): row(8)}, words, pc=pc)

    assert stack.ends_early is not None
    assert why in stack.ends_early


def test_a_stack_with_a_page_that_nobody_touched_says_so() -> None:
    words = [0] * 512

    stack = unwound({range(0x1100, 0x1200): row(0x5000)}, words, pc=0x2100)

    assert stack.ends_early == (
        "it is deeper than the 4 KiB that were copied: the next page of the stack is "
        "not in memory"
    )


MADE = range(0x7000, 0x7200)
"""Of memory without a file: named by the program for profilers."""


def test_code_that_the_program_made_is_left_by_its_frame_pointer() -> None:
    rows = {range(0x1200, 0x1300): row(8, r16=Saved("undefined"))}
    # two such frames, each with the pointer to the next and where it returns to
    words = [0, SP + 32, 0x7150, 0, SP + 48, 0x2210]

    stack = unwound(rows, words, pc=0x7100, made=MADE, frame=SP + 8)

    assert addresses(stack) == [0x7100, 0x7150, 0x2210]
    assert stack.complete


def test_a_part_of_v8_in_its_own_file_is_left_as_what_it_makes() -> None:
    rows = {range(0x1200, 0x1300): row(8, r16=Saved("undefined"))}
    names = {0x1100: "Builtins_CallApiCallback"}
    words = [0, SP + 32, 0x7150, 0, SP + 48, 0x2210]

    stack = unwound(rows, words, pc=0x2100, made=MADE, frame=SP + 8, symbols=names)

    assert addresses(stack) == [0x2100, 0x7150, 0x2210]
    assert stack.complete


@pytest.mark.parametrize("frame", [SP, 0x1234])
def test_a_function_of_python_is_left_by_its_two_words(frame: int) -> None:
    """With a frame pointer, as Python 3.13 makes it, and without one, as 3.12 does."""
    saved = Saved("in", 6)
    rows = {range(0x1200, 0x1300): row(0, register=6, r16=Saved("at", -8), r6=saved)}
    rows[range(0x1300, 0x1400)] = row(8, r16=Saved("undefined"))
    words = [SP + 32, 0x2210, 0, 0x2310]

    stack = unwound(rows, words, pc=0x7100, made=MADE, made_name="py::f:x", frame=frame)

    assert addresses(stack)[:2] == [0x7100, 0x2210]
    assert stack.complete is (frame == SP)  # its caller needs the frame pointer


@pytest.mark.parametrize("names", [{0x1100: "__clone3"}, {}], ids=["named", "stripped"])
def test_what_starts_a_thread_has_the_caller_that_called_it(
    names: dict[int, str],
) -> None:
    rows = {range(0x1200, 0x1300): row(8, r16=Saved("undefined"))}
    # its first instruction is 32 bytes before the place
    call = b"\xe8" + struct.pack("<i", 0x20E0 - 0x2210)
    far = b"\xe8" + struct.pack("<i", 0x2000 - 0x2210 - 0x1000)

    starts = unwound(rows, [0x2210], symbols=names, code={0x120B: call})
    other = unwound(rows, [0x2210], symbols=names, code={0x120B: far})
    started = unwound(rows, [0x9008], symbols=names)

    assert addresses(starts) == [0x2100, 0x2210]
    assert starts.complete
    assert addresses(other) == addresses(started) == [0x2100]
    assert other.complete is started.complete is bool(names)


@pytest.mark.parametrize(
    ("words", "frame", "made"),
    [
        ([0, SP + 32, 0x7150], SP - 8, MADE),  # below the stack pointer
        ([0, SP + 32, 0x5000], SP + 8, MADE),  # returns to where nothing is
        ([0, SP + 32, 0x7150], SP + 8, range(0)),  # nobody says who made it
    ],
)
def test_a_frame_pointer_that_leads_nowhere_is_none(
    words: list[int], frame: int, made: range
) -> None:
    stack = unwound({}, words, pc=0x7100, made=made, frame=frame)

    assert addresses(stack) == [0x7100]
    assert not stack.complete


def test_no_progress_is_no_endless_stack() -> None:
    rows = {range(0x1100, 0x1200): row(0, r16=Saved("is", 0x2150 - SP))}

    stack = unwound(rows, [0], pc=0x2150)

    assert stack.ends_early == "the unwind table goes in a circle"


def test_a_function_without_a_table_returns_by_convention_where_it_begins() -> None:
    rows = {range(0x1200, 0x1300): row(8, r16=Saved("undefined"))}

    assert addresses(unwound(rows, [0x2210], at_entry=True)) == [0x2100, 0x2210]
    assert not unwound(rows, [0x2210]).complete


def call(at: int, to: int) -> dict[int, bytes]:
    """Return the code of a call that returns to a place of the file."""
    return {at - 5: b"\xe8" + struct.pack("<i", to - at)}


OUTER = {range(0x1200, 0x1300): row(8, r16=Saved("undefined"))}
NAMED = {0x1100: "write", 0x114F: "inner"}
JUMP = b"\xe9" + struct.pack("<i", 0x1100 - 0x10C5)


@pytest.mark.parametrize(
    ("words", "code", "found"),
    [
        ([0, 7, 0x2210], call(0x1210, 0x1100), True),
        ([0x2210], call(0x1210, 0x1100), True),
        # by another name of it
        ([0, 0x2210], {**call(0x1210, 0x10C0), 0x10C0: JUMP}, True),
        # of an earlier call: it calls something else
        ([0, 0x2250, 0x2210], call(0x1210, 0x1100) | call(0x1250, 0x1000), True),
        ([0, 0x2210], call(0x1210, 0x1000), False),
        ([0, 0x2210], {}, False),
        ([0] * 16 + [0x2210], call(0x1210, 0x1100), False),
    ],
)
def test_a_function_without_a_table_returns_to_where_it_is_called(
    words: list[int], code: dict[int, bytes], found: bool
) -> None:
    stack = unwound(OUTER, words, symbols=NAMED, code=code)

    assert addresses(stack) == [0x2100, 0x2210][: 1 + found]
    assert stack.complete is found


def by_pointer(at: int, to: int, *, code: bytes = b"\xff\x15") -> dict[int, bytes]:
    """Return code that ends before a place, and names a pointer."""
    return {at - 6: code + struct.pack("<i", to - at)}


STUB = 0x1310
SLOT = 0x1800
TO_STUB = {0x1210 - 6: b"\x90\xe8" + struct.pack("<i", STUB - 0x1210)}
JUMP_BY_POINTER = by_pointer(STUB + 6, SLOT, code=b"\xff\x25")
LANDING, BOUNDED = {STUB: b"\xf3\x0f\x1e\xfa"}, {STUB + 4: b"\xf2"}


@pytest.mark.parametrize(
    ("code", "name", "found"),
    [
        (by_pointer(0x1210, SLOT), "write", True),  # -fno-plt
        (by_pointer(0x1210, SLOT), "__write", True),  # by another name of it
        (by_pointer(0x1210, SLOT), "read", False),
        (by_pointer(0x1210, SLOT + 8), "write", False),
        ({**TO_STUB, **JUMP_BY_POINTER}, "write", True),
        ({**TO_STUB, **JUMP_BY_POINTER}, "read", False),
        (
            {
                **TO_STUB,
                **LANDING,
                **BOUNDED,
                **by_pointer(STUB + 11, SLOT, code=b"\xff\x25"),
            },
            "write",
            True,
        ),
        (TO_STUB, "write", False),
    ],
)
def test_a_function_without_a_table_may_be_called_by_a_pointer_of_another_file(
    code: dict[int, bytes], name: str, found: bool
) -> None:
    words = [0, 0x2210]
    stack = unwound(OUTER, words, symbols=NAMED, code=code, slots={SLOT: name})

    assert addresses(stack) == [0x2100, 0x2210][: 1 + found]


@pytest.mark.parametrize("name", ["runtime.mcall", "runtime.systemstack.abi0"])
def test_what_has_its_own_stack_in_go_has_no_caller(name: str) -> None:
    rows = {range(0x1100, 0x1200): row(8), range(0x1200, 0x1300): row(8)}

    stack = unwound(rows, [0x2210, 0x16], symbols={0x120F: name})

    assert addresses(stack) == [0x2100, 0x2210]
    assert stack.complete


def test_where_a_thread_begins_needs_no_table() -> None:
    rows = {range(0x1100, 0x1200): row(8)}

    stack = unwound(rows, [0x2210], symbols={0x120F: "clone"})

    assert stack.complete


def test_a_linkage_table_tells_its_frame_by_an_expression() -> None:
    # as ld writes it: sp + 8, and 8 more behind the first push
    # breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus
    linkage = Expression(bytes.fromhex("770880003f1a3b2a332422"))

    def at(pc: int) -> int:
        return evaluate(linkage, registers={7: SP, 16: pc}, read=lambda a: 0)

    assert at(0x1000) == SP + 8
    assert at(0x100B) == SP + 16


def test_an_expression_that_asks_for_what_is_not_there_is_refused() -> None:
    # plus, breg3 0, nothing, an unknown one, and one that is cut short
    for operations in ("22", "7300", "", "ff", "0a01"):
        with pytest.raises(Unreadable):
            evaluate(
                Expression(bytes.fromhex(operations)), registers={}, read=lambda a: 0
            )


def test_registers_have_the_numbers_of_dwarf() -> None:
    x86 = registers_in(struct.pack("<20Q", *range(100, 120)), X86)
    arm = registers_in(struct.pack("<33Q", *range(100, 133)), ARM)

    # perf: AX BX CX DX SI DI BP SP IP; DWARF: ax dx cx bx si di bp sp, r8-r15, ip
    assert (x86[0], x86[3], x86[7], x86[16], x86[8]) == (100, 101, 107, 108, 112)
    assert (arm[0], arm[30], arm[31], arm[ARM.pc]) == (100, 130, 131, 132)
    assert registers_in(b"12345678", X86) == {}


def test_what_is_where_comes_from_the_maps() -> None:
    maps = MemoryMap(MAPS)

    found = maps.at(0x2FFF)
    assert found is not None
    assert (found.path, found.offset, found.executable) == ("/bin/prog", 0x1000, True)
    assert maps.at(0x4000) is None
    assert maps.at(0x0) is None
    assert [one.is_file for one in maps.mappings] == [True, True, False, False]
