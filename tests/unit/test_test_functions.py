"""Which functions took the instructions of a recorded cycle."""

from collections.abc import Mapping, Sequence

import numpy as np

from rtscope.programs.naming import NamedFrame
from rtscope.programs.outside.model import OutsideCycle
from rtscope.programs.outside.wakeups import Party, Preemption
from rtscope.record.instructions.section import (
    RecordKind,
    SectionKind,
    TraceSection,
)
from rtscope.record.instructions.symbols import parse_symbols
from rtscope.verbs.test.functions import (
    KERNEL,
    MOST_SHOWN,
    UNKNOWN,
    FunctionUse,
    functions_of,
    functions_row,
    functions_table,
)

KERNEL_AT = 0xFFFFFFFF81000000
SYMBOLS = parse_symbols(
    f"{KERNEL_AT:x} T schedule\n{KERNEL_AT + 0x100:x} T do_nanosleep\n"
    f"{KERNEL_AT + 0x200:x} T behind\n"
)
OTHER = Party(9, "other", own=False)
CYCLE = OutsideCycle(
    number=3,
    begin_ns=0,
    timed=True,
    woken_ns=10,
    waker=None,
    behind=None,
    first_ns=120,
    done_ns=500,
    on_cpu_ns=0,
    user_instructions=0,
    preemptions=(Preemption(OTHER, 200, 300),),
    waits=(),
    calls={},
    faults=0,
    slept=True,
    in_ns=100,
)
OWN = {
    0x1000: NamedFrame("filtered", "/src/hello.c", 7, "hello", 0x1000, inlined=False),
    0x1040: NamedFrame("filtered", "/src/hello.c", 9, "hello", 0x1040, inlined=False),
    0x2000: NamedFrame("cos", "", 0, "/usr/lib/libm.so.6", 0x2000, inlined=False),
}


def section(blocks: Sequence[tuple[int, int, int]]) -> TraceSection:
    """Return a section of blocks: CPU, time, address."""
    return TraceSection(
        kind=SectionKind.WORST,
        cpu=0,
        latency_ns=500,
        sequence=3,
        first_ns=0,
        last_ns=500,
        cut=False,
        left_out=False,
        at_ns=np.array([one[1] for one in blocks], np.int64),
        cpus=np.array([one[0] for one in blocks], np.uint8),
        kinds=np.full(len(blocks), RecordKind.BLOCK, np.uint8),
        values=np.array([one[2] for one in blocks], np.uint64),
    )


def named(addresses: Sequence[int]) -> Mapping[int, Sequence[NamedFrame]]:
    return {one: (OWN[one],) for one in addresses if one in OWN}


def uses(blocks: Sequence[tuple[int, int, int]]) -> tuple[FunctionUse, ...]:
    return functions_of(
        section(blocks), CYCLE, cpu=0, shift=1, symbols=SYMBOLS, named=named
    )


def test_instructions_are_of_the_function_in_which_each_block_lies() -> None:
    found = uses(
        [
            (0, 100, KERNEL_AT + 8),
            (0, 120, 0x1000),
            (0, 140, 0x2000),
            (0, 150, 0x1040),
            (0, 160, 0x9000),
            (0, 170, KERNEL_AT + 0x104),
        ]
    )

    assert functions_row(found) == [
        {"function": "do_nanosleep", "file": KERNEL, "instructions": 165},
        {"function": "filtered", "file": "hello.c", "instructions": 15},
        {"function": "schedule", "file": KERNEL, "instructions": 10},
        {"function": UNKNOWN, "file": "", "instructions": 5},
        {"function": "cos", "file": "libm.so.6", "instructions": 5},
    ]


def test_only_what_the_thread_itself_had_its_cpu_for_counts() -> None:
    found = uses(
        [
            (0, 90, 0x2000),  # another one's, before it
            (0, 120, 0x1000),
            (1, 130, 0x2000),  # of another CPU
            (0, 200, 0x2000),  # who preempts it
            (0, 300, 0x1000),
            (0, 500, 0x2000),  # behind its end
        ]
    )

    assert [(one.name, one.instructions) for one in found] == [("filtered", 140)]


def test_a_table_counts_the_functions_that_it_leaves_out() -> None:
    many = [FunctionUse(f"f{n}", "a.c", 100 - n) for n in range(MOST_SHOWN + 2)]

    rows = functions_table(many).rows

    assert rows[MOST_SHOWN] == ["2 others", "", "159"]
    assert len(rows) == MOST_SHOWN + 1
