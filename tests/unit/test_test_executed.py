"""What a thread executed of its program, by function, over all its cycles."""

import time
from collections.abc import Mapping, Sequence

import pytest

from fakes.programcode import UNIT, Block, code_of, content, piece
from rtscope.host.errors import ContractError
from rtscope.present.document import Section
from rtscope.programs.naming import NamedFrame
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.verbs.test.codefile import parse_program_code
from rtscope.verbs.test.codeseen import CodeSeen, ThreadCode
from rtscope.verbs.test.codetables import code_blocks, code_row
from rtscope.verbs.test.executed import (
    ThreadBlocks,
    ThreadUses,
    WhyLeftOut,
    blocks_of_threads,
    worst_uses,
)
from rtscope.verbs.test.functions import UNKNOWN

TID = 11
LOOP, FILTER, COLD = 0x1000, 0x1100, 0x2000
NAMES = {
    LOOP: ("loop", "/src/control.c"),
    FILTER: ("filter", "/src/control.c"),
    FILTER + 8: ("filter", "/src/control.c"),
}


def named(addresses: Sequence[int]) -> Mapping[int, Sequence[NamedFrame]]:
    return {
        one: (NamedFrame(*NAMES[one], 1, "control", one, inlined=False),)
        for one in addresses
        if one in NAMES
    }


def cycle(number: int, instructions: int) -> OutsideCycle:
    """Return one of 1,000 ns, of which it has its CPU from 100 to 500."""
    due = 1000 * number
    return OutsideCycle(
        number=number,
        begin_ns=due,
        timed=True,
        woken_ns=due,
        waker=None,
        behind=None,
        first_ns=due + 100,
        done_ns=due + 500,
        on_cpu_ns=400,
        user_instructions=instructions,
        preemptions=(),
        waits=(),
        calls={},
        faults=0,
        slept=True,
    )


def thread(*instructions: int) -> OutsideThread:
    cycles = tuple(cycle(number, one) for number, one in enumerate(instructions))
    return OutsideThread(TID, TID, "loop", 19, 1000, None, cycles, 0, 0)


def uses(
    one: OutsideThread,
    *parts: Sequence[bytes],
    cpus: Sequence[int] = (0,),
    lost: int = 0,
) -> ThreadUses:
    code = parse_program_code(code_of(*parts, lost=lost))
    return worst_uses(one, ThreadBlocks(code, one, named, cpus=lambda _: cpus))


PLAIN: Sequence[Block] = ((LOOP, 1, 10), (FILTER, 4, 5))
MORE: Sequence[Block] = ((LOOP, 1, 10), (FILTER, 6, 5), (FILTER + 8, 1, 3))


def test_each_function_has_its_worst_cycle_of_all() -> None:
    found = uses(
        thread(30, 43, 30),
        *(content(*PLAIN), piece(500, TID, 1)),
        *(content(*MORE), piece(1500, TID, 2), piece(2500, TID, 1)),
    )

    assert [
        (one.name, one.file, one.instructions, one.cycle, one.cycles)
        for one in found.uses
    ] == [("filter", "control.c", 33, 1, 3), ("loop", "control.c", 10, 0, 3)]
    assert found.left_out == {}


def test_the_pieces_between_two_calls_of_a_cycle_are_added() -> None:
    found = uses(
        thread(60),
        *(content(*PLAIN), piece(90, TID, 1), piece(300, TID, 1)),
        *(piece(400, TID + 1, 1), piece(500, TID, 1), piece(600, TID, 1)),
    )

    assert [(one.name, one.instructions) for one in found.uses] == [
        ("filter", 40),
        ("loop", 20),
    ]


def test_a_cycle_with_other_instructions_than_its_pieces_is_left_out() -> None:
    found = uses(
        thread(30, 31), content(*PLAIN), piece(500, TID, 1), piece(1500, TID, 1)
    )

    assert found.left_out == {WhyLeftOut.OTHER: 1}
    assert [one.cycles for one in found.uses] == [1, 1]


def test_a_thread_without_pieces_has_no_functions_and_no_known_cycle() -> None:
    assert uses(thread(30)) == ThreadUses((), {WhyLeftOut.OTHER: 1})


def test_why_a_cycle_is_left_out_is_what_the_record_shows() -> None:
    parts = (content(*PLAIN), piece(500, TID, 1), piece(1500, TID, 1))

    assert uses(thread(30, 31), *parts, cpus=(0, 1)).left_out == {
        WhyLeftOut.TWO_CPUS: 1
    }
    # the first one ended before the last piece: that it was full is not why
    assert uses(thread(31, 30, 30), *parts, lost=1).left_out == {
        WhyLeftOut.FULL: 1,
        WhyLeftOut.OTHER: 1,
    }


def test_a_cycle_with_a_block_beyond_its_count_is_left_out() -> None:
    often = 2**32 - 1
    parts = (content((LOOP, often, 2)), content((LOOP, often - 1, 2)))
    pieces = (piece(500, TID, 1), piece(1500, TID, 2))
    found = uses(thread(2 * often, 2 * often - 2), *parts, *pieces)

    assert found.left_out == {WhyLeftOut.BEYOND_COUNT: 1}
    assert [(one.cycle, one.cycles) for one in found.uses] == [(1, 1)]


def test_each_reason_is_told_with_its_cycles() -> None:
    left_out = {WhyLeftOut.TWO_CPUS: 1, WhyLeftOut.OTHER: 2}
    seen = ThreadCode("pc", "loop", TID, ThreadUses((), left_out), 9)
    (section,) = code_blocks(CodeSeen((seen,), ()))

    assert section == Section(
        "Worst cycle of each function",
        (
            ("loop: 1 cycle of 9 left out: on two CPUs.", "limit"),
            (
                "loop: 2 cycles of 9 left out: its pieces have other instructions "
                "than the cycle.",
                "limit",
            ),
        ),
    )
    (row,) = code_row(CodeSeen((seen,), ()))["threads"]
    assert row["cycles_left_out"] == 3


def test_code_without_a_name_is_shown_as_such() -> None:
    found = uses(thread(7), content((COLD, 1, 7)), piece(500, TID, 1))

    assert [(one.name, one.instructions) for one in found.uses] == [(UNKNOWN, 7)]


def test_all_blocks_of_a_thread_are_known_also_outside_of_its_cycles() -> None:
    code = parse_program_code(
        code_of(
            *(content((COLD, 1, 7)), piece(20, TID, 1)),
            *(content(*PLAIN), piece(500, TID, 2), piece(600, TID + 1, 2)),
        )
    )

    assert blocks_of_threads(code, [TID]).tolist() == [LOOP, FILTER, COLD]
    assert blocks_of_threads(code, [TID + 1, TID + 2]).tolist() == [LOOP, FILTER]
    assert blocks_of_threads(code, [TID + 2]).tolist() == []


@pytest.mark.slow
def test_the_pieces_of_many_threads_are_told_apart_in_one_pass() -> None:
    threads = 200_000
    ends = [piece(at, threads - at // 2, 1 + at % 2) for at in range(2 * threads)]
    data = code_of(content((COLD, 1, 7)), content(*PLAIN), *ends)

    began_s = time.process_time()
    code = parse_program_code(data)
    blocks = blocks_of_threads(code, code.threads)
    own_s = time.process_time() - began_s

    assert blocks.tolist() == [LOOP, FILTER, COLD]
    assert list(code.threads)[:2] == [1, 2]
    assert len(code.threads) == threads
    assert code.threads[1].ended_ns.tolist() == [2 * threads - 2, 2 * threads - 1]
    assert code.threads[threads].contents.tolist() == [0, 1]
    assert own_s < 15  # a pass over all pieces for each thread takes minutes


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RTSCPROG" + bytes(8),
        code_of()[:-4] + bytes(8),
        code_of() + bytes(8),
        code_of(piece(5, TID, 1)),
        code_of(content((LOOP, 1, 1)), piece(5, TID, 2)),
        code_of(content((LOOP, 1, 1)), piece(5, TID, 0)),
        code_of([UNIT.pack(2**64 - 1, 4, 0)], content((LOOP, 1, 1))),
        code_of([UNIT.pack(2**64 - 1, 2**32 - 1, 0)]),
    ],
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(ContractError):
        parse_program_code(data)


def test_what_was_not_written_is_told() -> None:
    assert parse_program_code(code_of(lost=9)).lost == 9
