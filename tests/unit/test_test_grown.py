"""Which functions execute more than in a baseline, and on which of their lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.programcode import Block, code_of, content, piece
from rtscope.boards.runs.identity import BoardIdentity
from rtscope.present.document import Table
from rtscope.programs.naming import NamedFrame, NamedStack, Origin
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.model import Outside, OutsideCycle, OutsideThread, Place
from rtscope.verbs.test import keptcode
from rtscope.verbs.test.baseline import (
    Difference,
    baseline_text,
    differences,
    read_baseline,
)
from rtscope.verbs.test.codefile import parse_program_code
from rtscope.verbs.test.executed import MAX_NAME, ThreadBlocks, place_of
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.functions import UNKNOWN
from rtscope.verbs.test.grown import growth_row, growth_table, line_of
from rtscope.verbs.test.judge import SeenStart
from rtscope.verbs.test.profile import ThreadProfile

TID = 11
BOARD = BoardIdentity(
    *("pc", 2, 500.0, 2500, 2, 1, "debian-6.12-rt", ""), *("0", "0", "0", "0", "0")
)
TEST = ProgramTest(command=("./control",))
COMPUTE, LOOP, STEP, COPY, OTHER, NOWHERE = range(0x1000, 0x7000, 0x1000)


def frame(
    name: str,
    line: int = 0,
    *,
    file: str = "",
    image: str = "control",
    origin: Origin = Origin.PROGRAM,
) -> NamedFrame:
    return NamedFrame(name, file, line, image, 0, inlined=False, origin=origin)


def library(name: str) -> NamedFrame:
    return frame(name, image="libc.so.6", origin=Origin.RUNTIME)


NAMES: Mapping[int, Sequence[NamedFrame]] = {
    COMPUTE: [frame("compute", 40, file="/src/filter.c")],
    LOOP: [frame("compute", 42, file="/src/filter.c")],
    STEP: [frame("step", 9, file="/src/filter.c")],
    COPY: [library("memset")],
}
USUAL: Sequence[Block] = ((COMPUTE, 1, 40), (LOOP, 20, 10), (STEP, 1, 10))
"""250 instructions, 240 of them in compute()."""


def seen(
    *cycles: Sequence[Block],
    names: Mapping[int, Sequence[NamedFrame]] = NAMES,
    calls: Mapping[str, int] | None = None,
    more_ns: int = 0,
    wrong: int = 0,
) -> SeenStart:
    """
    Return a start with cycles that executed these blocks, 2 ns for an instruction.

    Each has `more_ns` of something else; `wrong`: so many instructions more than its
    pieces have.
    """
    units, made = [], []
    for number, blocks in enumerate(cycles):
        due_ns, used = 1_000_000 * number, wrong + sum(n * k for _, n, k in blocks)
        done_ns = due_ns + 5_000 + 2 * used + more_ns
        units += [content(*blocks), piece(done_ns, TID, number + 1)]
        made.append(
            OutsideCycle(
                *(number, due_ns, True, due_ns, None, None, due_ns + 5_000, done_ns),
                *(done_ns - due_ns, used, (), (), dict(calls or {}), 0, True),
            )
        )
    thread = OutsideThread(TID, TID, "control", 19, 1_000_000, None, tuple(made), 0, 0)
    code = ThreadBlocks(
        parse_program_code(code_of(*units)),
        thread,
        lambda some: {one: names[one] for one in some if one in names},
        cpus=lambda _: (0,),
    )
    outside = Outside((thread,), 0, 10_000_000, 0, frozenset(Kind), 1)
    profiles = {TID: ThreadProfile(code)}
    return SeenStart(BOARD, "idle", 1, outside, code=profiles)


def found(
    tmp_path: Path, then: SeenStart, now: SeenStart, tolerance: float | None = 0.01
) -> Sequence[Difference]:
    path = tmp_path / "base.json"
    path.write_text(baseline_text(TEST, [then]))
    before = read_baseline(path)
    return list(differences(TEST, [now], before, tolerance=tolerance))


def says(
    tmp_path: Path, then: SeenStart, now: SeenStart, tolerance: float | None = 0.01
) -> str:
    """Return what is said of the instructions."""
    some = found(tmp_path, then, now, tolerance)
    (words,) = (one.words for one in some if one.figure == "instructions")
    return words


# --- in words -------------------------------------------------------------------------


def test_a_busy_loop_is_named_with_its_line(tmp_path: Path) -> None:
    worse = [USUAL, [(COMPUTE, 1, 40), (LOOP, 3_020, 10), (STEP, 1, 10)], USUAL]
    some = found(tmp_path, seen(USUAL, USUAL, USUAL), seen(*worse))

    said = (
        "; more instructions than in any cycle before: compute() filter.c:42 "
        "(240 then, 30,240 now)"
    )
    assert [one.figure for one in some] == ["response", "instructions"]
    assert all(one.words.endswith(said) for one in some)


def test_a_new_function_and_the_one_that_went_are_named(tmp_path: Path) -> None:
    names = {**NAMES, LOOP: [frame("fresh", 50, file="/src/filter.c")]}
    names[COMPUTE] = names[STEP]
    then = seen(USUAL, names={**NAMES, STEP: [frame("main", 3, file="/src/main.c")]})
    now = seen([(STEP, 1, 10), (LOOP, 900, 10)], names=names)

    assert says(tmp_path, then, now).endswith(
        "; more instructions than in any cycle before: fresh() filter.c:50 (0 then, "
        "9,000 now) and step() filter.c:9 (0 then, 10 now); not any more: compute() "
        "filter.c:42 (240 then, 0 now) and main() main.c:3 (10 then, 0 now)"
    )


def test_the_programs_own_line_stands_before_functions_of_libraries(
    tmp_path: Path,
) -> None:
    names = {
        **NAMES,
        **{at: [library(f"copy{at:x}")] for at in (0x9000, 0xA000, 0xB000, 0xC000)},
    }
    many = [(at, 1, at) for at in (0x9000, 0xA000, 0xB000, 0xC000)]
    now = seen(
        [*USUAL, (STEP + 1, 1, 3), *many], names={**names, STEP + 1: names[STEP]}
    )

    assert says(tmp_path, seen(USUAL), now).endswith(
        "before: step() filter.c:9 (10 then, 13 now), copyc000() of libc.so.6 (0 then, "
        "49,152 now), copyb000() of libc.so.6 (0 then, 45,056 now) and 2 other "
        "functions"
    )


def test_an_equal_result_is_compared_with_the_same_cycle(tmp_path: Path) -> None:
    short: Sequence[Block] = ((COMPUTE, 1, 40), (STEP, 1, 10))
    now: Sequence[Block] = ((COMPUTE, 1, 40), (COPY, 1, 90))
    then = seen(USUAL, short, USUAL)

    # memset() is new; that compute() executes most in other cycles is no reason
    assert says(tmp_path, then, seen(USUAL, now, USUAL), None).endswith(
        "instructions 50 then, 130 now; more instructions: memset() of libc.so.6 (0 "
        "then, 90 now); fewer: step() filter.c:9 (10 then, 0 now)"
    )


def test_functions_that_meet_in_a_cycle_are_compared_with_the_worst(
    tmp_path: Path,
) -> None:
    one: Sequence[Block] = ((LOOP, 20, 10),)
    other: Sequence[Block] = ((COPY, 1, 190),)
    now = seen(one, other, [*one, *other])

    assert says(tmp_path, seen(one, other, other), now).endswith(
        "; more instructions than in the worst cycle before: memset() of libc.so.6 (0 "
        "then, 190 now)"
    )


def test_more_calls_are_named(tmp_path: Path) -> None:
    then = seen(USUAL, calls={"write": 1, "read": 2})
    now = seen([*USUAL, (COPY, 9, 9)], calls={"write": 400, "read": 2, "getpid": 1})

    assert says(tmp_path, then, now).endswith(
        "; more calls than in any cycle before: write (1 then, 400 now) and getpid (0 "
        "then, 1 now)"
    )


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (90_000, "; longer in calls than in any cycle before: write in save() a.c:7"),
        (1_900, ""),  # less than a tenth of what is to be explained
    ],
)
def test_a_call_that_takes_longer_is_named_with_its_line(
    tmp_path: Path, ns: int, said: str
) -> None:
    def spent(one: SeenStart, more: Mapping[Place, int]) -> SeenStart:
        (thread,) = one.outside.threads
        cycles = tuple(replace(cycle, called=more) for cycle in thread.cycles)
        outside = replace(one.outside, threads=(replace(thread, cycles=cycles),))
        own = NamedStack((frame("save", 7, file="/src/a.c"),), None)
        return replace(one, outside=outside, stacks={2: own})

    then = spent(seen(USUAL, calls={"write": 2}), {Place("write", 1): 1_000})
    late = seen(USUAL, calls={"write": 2}, more_ns=100_000)
    now = spent(late, {Place("write", 1): 900, Place("write", 2): ns})
    (one,) = found(tmp_path, then, now)

    figures = f" (1.00 virtual µs then, {(ns + 900) / 1000:.1f} virtual µs now)"
    assert one.words.endswith(f"{said}{figures}" if said else "first in cycle 0")


def test_instructions_are_no_reason_for_what_the_kernel_took(tmp_path: Path) -> None:
    then = seen(USUAL)
    late = seen([*USUAL, (STEP + 1, 1, 10)], more_ns=100_000)

    (response,) = found(tmp_path, then, late, 0.05)
    assert response.figure == "response"
    assert "more instructions" not in response.words


def test_code_without_a_name_is_named_by_its_file(tmp_path: Path) -> None:
    bare = {
        **NAMES,
        OTHER: [frame("", image="libx.so")],
        NOWHERE: [frame("", image="")],
    }
    now = seen([*USUAL, (OTHER, 9, 9), (NOWHERE, 9, 7)], names=bare)

    assert says(tmp_path, seen(USUAL), now).endswith(
        "before: code without a name in libx.so (0 then, 81 now) and code without a "
        "name (0 then, 63 now)"
    )


# --- unknown --------------------------------------------------------------------------


def test_an_older_baseline_opens_and_what_it_lacks_is_said(tmp_path: Path) -> None:
    old = replace(seen(USUAL), code={})
    words = says(tmp_path, old, seen([*USUAL, (LOOP, 99, 10)]))

    assert words.endswith(
        "; which functions, is not known: the baseline has no functions of this "
        "thread; write one anew with rtscope test --save"
    )


def test_why_the_functions_of_a_cycle_are_not_known_is_said(tmp_path: Path) -> None:
    (one,) = found(tmp_path, seen(USUAL), seen([*USUAL, (LOOP, 9, 10)], wrong=1), None)

    assert one.words.endswith(
        "; which functions, is not known: its pieces have other instructions than the "
        "cycle, cycle 0"
    )
    assert growth_row(one.growth)["functions"] is None


# --- found again ----------------------------------------------------------------------


def test_a_function_is_found_again_in_a_file_of_another_name(tmp_path: Path) -> None:
    moved = {
        at: [replace(one, file="/src/fir.c") for one in frames]
        for at, frames in NAMES.items()
    }
    now = seen([*USUAL, (LOOP + 1, 1, 500)], names={**moved, LOOP + 1: moved[LOOP]})

    assert says(tmp_path, seen(USUAL), now).endswith(
        "before: compute() fir.c:42 (240 then, 740 now)"
    )


@pytest.mark.parametrize(
    "name",
    ["step.constprop.0", "step.isra.0.cold", "step::h0123456789abcdef", "step.llvm.7"],
)
def test_what_a_compiler_adds_to_a_name_is_left_out(name: str) -> None:
    assert place_of([frame(name)]).within == ("step", "control")


def test_code_of_a_library_put_into_a_function_counts_as_that() -> None:
    inner = frame("push", 99, file="/usr/include/c++/14/vec.h", origin=Origin.RUNTIME)
    own = frame("compute", 42, file="/src/filter.cpp")
    place = place_of([inner, own, frame("main", 7, file="/src/filter.cpp")])

    assert (place.shown, place.within, place.line) == (
        ("push", "vec.h"),
        ("compute", "filter.cpp"),
        42,
    )
    assert place_of([]).within == (UNKNOWN, "")


def test_a_name_is_cut_and_is_found_again(tmp_path: Path) -> None:
    names = {**NAMES, LOOP: [frame("T" * 10_000, 4, file="/src/filter.cpp")]}
    words = says(
        *(tmp_path, seen(USUAL, names=names)),
        seen([*USUAL, (LOOP, 99, 10)], names=names),
    )

    assert f" {'T' * MAX_NAME}…() filter.cpp:4 (200 then, 1,190 now)" in words


@pytest.mark.parametrize(
    ("now", "then", "line"),
    [
        ({40: 3, 41: 30_240, 42: 5}, {30: 3, 31: 240, 32: 5}, 41),  # a longer loop
        ({40: 900, 41: 7, 42: 5}, {30: 900, 31: 5}, 41),  # a line more
        ({40: 6, 41: 480}, {40: 3, 41: 240}, 41),  # called twice
        ({40: 8, 41: 8}, {}, 40),
        ({40: 8, 41: 9}, {40: 8, 41: 9}, 41),
        ({}, {40: 8}, 0),
    ],
)
def test_the_line_that_grew_is_found(
    now: Mapping[int, int], then: Mapping[int, int], line: int
) -> None:
    assert line_of(now, then) == line


# --- kept -----------------------------------------------------------------------------


def test_what_is_kept_is_bounded_and_has_the_worst_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptcode, "MOST_NUMBERS", 6)
    monkeypatch.setattr(keptcode, "MOST_LINES", 2)
    cycles = [[*USUAL, (COPY, 1, number)] for number in (1, 2, 3, 9, 5)]
    path = tmp_path / "base.json"
    path.write_text(baseline_text(TEST, [seen(*cycles)]))
    (kept,) = read_baseline(path).starts[0].threads
    code = kept.code
    assert code is not None

    # of cycle 2, the middle one, and of the worst, three functions each
    assert code.cycles == [-1, -1, 0, 1, -1]
    assert code.of_cycle(3) == {
        ("compute", "filter.c"): 240,
        ("step", "filter.c"): 10,
        ("memset", "libc.so.6"): 9,
    }
    assert [one.lines for one in code.functions] == [[(40, 40), (42, 200)], [], []]
    assert (code.of_cycle(0), code.of_cycle(99)) == (None, None)


def test_equal_cycles_are_kept_once_and_the_file_is_the_same(tmp_path: Path) -> None:
    one, other = (baseline_text(TEST, [seen(*[USUAL] * 50)]) for _ in range(2))
    path = tmp_path / "base.json"
    path.write_text(one)
    code = read_baseline(path).starts[0].threads[0].code

    assert one == other
    assert code is not None
    assert code.contents == [[0, 240, 1, 10]]
    assert code.cycles == [0] * 50


def test_functions_that_grew_alike_are_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    more = [(at, 1, 50) for at in (OTHER, COPY, NOWHERE)]
    names = {**NAMES, OTHER: [library("z")], COPY: [library("b")]}
    names[NOWHERE] = [library("a")]
    (_, one) = found(tmp_path, seen(USUAL), seen([*USUAL, *more], names=names))

    assert one.growth is not None
    assert [row.function for row in one.growth.functions] == ["a", "b", "z"]


def test_programs_read_the_functions_and_pages_have_a_table(tmp_path: Path) -> None:
    (_, one) = found(tmp_path, seen(USUAL), seen([*USUAL, (COPY, 1, 50)]))

    assert growth_row(one.growth) == {
        "functions": [
            {
                "function": "memset",
                "file": "libc.so.6",
                "line": 0,
                "before": 0,
                "now": 50,
            }
        ],
        "functions_than": "any",
        "calls": [],
    }
    assert one.growth is not None
    (shown,) = growth_table(one.growth)
    assert isinstance(shown, Table)
    assert growth_row(None)["functions"] is None
