"""Budgets of a test, and baselines, over records whose figures are known."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import JUnitXml, Properties
from rich.console import Console

from fakes.programrecords import ALL, Written, file_of
from rtscope.boards.runs.identity import BoardIdentity
from rtscope.host.errors import RecordError
from rtscope.present.render.fitted import LINES, print_fitted
from rtscope.present.render.markdown import render_document
from rtscope.present.render.terminal import print_blocks
from rtscope.programs.naming import NamedFrame, NamedStack, Origin
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import Kind, parse_program_record
from rtscope.programs.outside.model import Place, Wait
from rtscope.verbs.test.answer import (
    ON_A_TERMINAL,
    WIDE,
    Answer,
    answer_blocks,
    answer_document,
    brief_blocks,
    cycle_words,
)
from rtscope.verbs.test.baseline import (
    baseline_text,
    changed,
    differences,
    read_baseline,
)
from rtscope.verbs.test.file import BudgetTable, ProgramTest
from rtscope.verbs.test.forms import answer_junit, answer_row
from rtscope.verbs.test.judge import Outcome, SeenStart, judge, outcome_of
from rtscope.verbs.test.places import done_more

LOOP = 11
BOARD = BoardIdentity(
    *("pc", 2, 500.0, 2500, 2, 1, "debian-6.12-rt", ""), *("0", "0", "0", "0", "0")
)


INNER = (
    *((Kind.USED, 0), (Kind.DONE, 0)),
    *((Kind.USED, 1 << 16 | 1), (Kind.DONE, 1), (Kind.FAULT, 2 << 16 | 1)),
)
"""A use of each of two functions, and a page fault; the last two at known places."""


def seen(
    *,
    work: int = 10_000,
    lost: int = 0,
    kinds: int = ALL,
    inside: Sequence[tuple[Kind, int]] = (),
) -> SeenStart:
    """
    Eight cycles of 1 ms: 5 us latency, a response of 5 us and the work.

    Every second one has more inside.
    """
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(8):
        more = inside if number % 2 else ()
        due_us = 10_000 + 1_000 * number
        written.cycle(LOOP, due_us, work=work + number, inside=more)
    if lost:
        written.put(Kind.LOST, 0, 0, value=lost)
    record = parse_program_record(file_of(written.records, kinds=kinds))
    functions = ("malloc", "free")
    return SeenStart(BOARD, "idle", 1, outside_of(record, functions=functions))


def judged(
    budget: BudgetTable, one: SeenStart, **threads: BudgetTable
) -> dict[str, Outcome]:
    test = ProgramTest(budget=budget, threads=threads)
    return {row.measure.name: row.outcome for row in judge(test, [one])}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("response_ns", 25_014),
        ("latency_ns", 5_000),
        ("execution_ns", 23_014),
        ("instructions", 10_007),
        ("missed", 0),
        ("faults", 0),
        ("blocking", 0),
        ("inversions", 0),
    ],
)
def test_a_budget_is_kept_up_to_its_limit_and_broken_beyond(
    key: str, value: int
) -> None:
    budget = replace(BudgetTable(), **{key: value})
    (kept,) = judged(budget, seen()).values()
    assert kept is Outcome.KEPT
    if value:
        less = replace(BudgetTable(), **{key: value - 1})
        (broken,) = judged(less, seen()).values()
        assert broken is Outcome.BROKEN


def test_the_limits_of_a_name_replace_those_of_all() -> None:
    strict, loose = BudgetTable(response_ns=1), BudgetTable(response_ns=10**6)

    assert judged(strict, seen()) == {"response": Outcome.BROKEN}
    assert judged(strict, seen(), **{"lo*": loose}) == {"response": Outcome.KEPT}


def test_a_thread_that_is_not_there_is_not_seen_and_not_kept() -> None:
    found = judged(BudgetTable(), seen(), io=BudgetTable(missed=0))

    assert found == {"missed": Outcome.NOT_SEEN}
    assert Outcome.NOT_SEEN.exit_status == 3


def test_no_thread_at_all_is_not_seen() -> None:
    nothing = outside_of(parse_program_record(file_of([])))
    empty = replace(seen(), outside=nothing)

    assert judged(BudgetTable(response_ns=10**9), empty) == {
        "response": Outcome.NOT_SEEN
    }


def test_what_the_kernel_does_not_show_is_not_kept() -> None:
    blind = seen(kinds=ALL & ~(1 << Kind.FAULT))

    assert judged(BudgetTable(faults=0), blind) == {"faults": Outcome.NOT_SEEN}


def test_allocations_are_counted_in_all_cycles() -> None:
    def outcome(limit: int, one: SeenStart) -> Outcome:
        return judged(BudgetTable(allocations=limit), one)["allocations"]

    assert outcome(0, seen()) is Outcome.KEPT
    assert outcome(8, seen(inside=INNER)) is Outcome.KEPT
    assert outcome(7, seen(inside=INNER)) is Outcome.BROKEN


def test_allocations_of_a_program_without_names_are_not_seen() -> None:
    stripped = replace(seen(), hidden={100: "/loop: it is static, and stripped"})
    (one,) = judge(ProgramTest(budget=BudgetTable(allocations=0)), [stripped])

    assert (one.outcome, one.value) == (Outcome.NOT_SEEN, None)
    assert one.why == "/loop: it is static, and stripped"
    other = replace(stripped, hidden={101: "another process"})
    assert judged(BudgetTable(allocations=0), other) == {"allocations": Outcome.KEPT}


def test_lost_records_keep_no_budget_and_may_break_one() -> None:
    lossy = seen(lost=5)

    assert judged(BudgetTable(response_ns=10**9), lossy) == {
        "response": Outcome.NOT_SEEN
    }
    assert judged(BudgetTable(response_ns=1), lossy) == {"response": Outcome.BROKEN}


def test_beside_a_load_that_died_no_budget_is_kept_and_one_may_be_broken() -> None:
    doubt = "the load ended before the measurement did"
    one = replace(seen(), doubts=(doubt,))
    wide = BudgetTable(response_ns=1_000_000, execution_ns=1)

    assert judged(wide, one) == {
        "response": Outcome.NOT_SEEN,
        "execution": Outcome.BROKEN,
    }
    text = render_document(answer_document(answered(wide, one)))
    assert f"T{doubt[1:]}." in text


def test_a_warning_of_the_kernel_is_said_and_changes_no_answer() -> None:
    one = replace(seen(), notes=("the kernel warned",))
    wide = BudgetTable(response_ns=1_000_000)

    assert judged(wide, one) == {"response": Outcome.KEPT}
    text = render_document(answer_document(answered(wide, one)))
    assert "The kernel warned." in text


def test_the_worst_outcome_decides() -> None:
    test = ProgramTest(budget=BudgetTable(response_ns=1, allocations=0, missed=0))

    assert outcome_of(judge(test, [seen()])) is Outcome.BROKEN
    assert outcome_of(()) is Outcome.KEPT


# --- baselines ------------------------------------------------------------------------

TEST = ProgramTest(command=("./loop",))


def saved(tmp_path: Path, *some: SeenStart) -> Path:
    path = tmp_path / "base.json"
    path.write_text(baseline_text(TEST, some))
    return path


def test_equal_results_do_not_differ(tmp_path: Path) -> None:
    before = read_baseline(saved(tmp_path, seen()))

    assert list(differences(TEST, [seen()], before, tolerance=None)) == []
    assert list(differences(TEST, [seen()], before, tolerance=0.0)) == []
    assert changed([seen()], before) == ()


def test_the_first_cycle_that_differs_is_named(tmp_path: Path) -> None:
    before = read_baseline(saved(tmp_path, seen()))
    (one,) = differences(TEST, [seen(work=10_500)], before, tolerance=None)

    assert "cycle 0 is the first that differs" in one.words
    assert "instructions 10,000 then, 10,500 now" in one.words
    assert one.worse


def test_what_a_worse_cycle_did_is_named_with_its_place(tmp_path: Path) -> None:
    before = read_baseline(saved(tmp_path, seen()))
    stacks = {1: NamedStack((OWN,), None), 2: NamedStack((PUSH,), None)}
    worse = replace(seen(work=10_001, inside=INNER), stacks=stacks)
    found = list(differences(TEST, [worse], before, tolerance=0.0))

    # the first cycle that is beyond all of before is one with more inside
    (most,) = (one for one in found if "most instructions" in one.words)
    assert (most.thread, most.cycle, most.worst) == ("loop", 7, 7)
    assert "first in cycle 7; more than in most cycles: malloc" in most.words
    assert "free in write_log() log.c:41 (once)" in most.words
    assert "page fault by a write in push() queue.c:12 (once)" in most.words


def test_a_lock_that_is_held_longer_than_usual_is_more() -> None:
    (thread,) = seen().outside.threads

    def waited(ns: int) -> Wait:
        return Wait("futex", 0, ns, None, is_lock=True, is_inversion=False, place=1)

    cycles = [
        replace(one, waits=(waited(8_000 if one.number == 5 else 1_000),))
        for one in thread.cycles
    ]
    thread = replace(thread, cycles=tuple(cycles))

    assert done_more(thread, cycles[5]) == {Place("futex", 1): 1}
    assert done_more(thread, cycles[5], waits=False) == {}
    assert done_more(thread, cycles[4]) == {}


def test_what_every_cycle_does_is_not_more_than_usual(tmp_path: Path) -> None:
    before = read_baseline(saved(tmp_path, seen()))
    found = list(differences(TEST, [seen(work=11_000)], before, tolerance=0.02))

    assert {(one.cycle, one.worst) for one in found} == {(0, 7)}
    said = "beyond it first in cycle 0, most in cycle 7"
    assert all(said in one.words for one in found)
    assert not any("more than" in one.words for one in found)


def doing(*places: Place, work: int, line: int) -> SeenStart:
    """Return a start that allocates at places in all of its cycles."""
    one = seen(work=work)
    (thread,) = one.outside.threads
    cycles = tuple(replace(cycle, allocations=places) for cycle in thread.cycles)
    outside = replace(one.outside, threads=(replace(thread, cycles=cycles),))
    known = {1: replace(OWN, line=line), 2: PUSH}
    stacks = {number: NamedStack((frame,), None) for number, frame in known.items()}
    return replace(one, outside=outside, stacks=stacks)


@pytest.mark.parametrize(
    ("unknown", "old", "named"), [(0, False, True), (1, False, False), (0, True, False)]
)
def test_what_every_cycle_does_but_did_not_before_is_named(
    tmp_path: Path, unknown: int, old: bool, named: bool
) -> None:
    log, push = Place("malloc", 1), Place("malloc", 2)
    somewhere = [Place("malloc", 9)] * unknown
    path = saved(tmp_path, doing(log, *somewhere, work=10_000, line=41))
    if old:
        path.write_text(re.sub(r', "usual": \{[^}]*\}', "", path.read_text()))
    now = doing(log, push, push, work=11_000, line=43)
    found = list(differences(TEST, [now], read_baseline(path), tolerance=0.02))

    said = "; more than before in most cycles: malloc in push() queue.c:12"
    assert {f"{said} (0 then, 2 now)" in one.words for one in found} == {named}
    assert not any("write_log" in one.words for one in found)


@pytest.mark.parametrize(("tolerance", "rows"), [(0.02, 2), (0.2, 0)])
def test_a_tolerance_allows_so_much_more(
    tmp_path: Path, tolerance: float, rows: int
) -> None:
    before = read_baseline(saved(tmp_path, seen()))
    found = list(differences(TEST, [seen(work=11_000)], before, tolerance=tolerance))

    assert len(found) == rows


def test_inputs_that_changed_are_named(tmp_path: Path) -> None:
    before = read_baseline(saved(tmp_path, seen()))
    other = replace(seen(), identity=replace(BOARD, kernel_digest="1"))

    assert changed([other], before) == ("the kernel",)


def test_a_run_that_the_baseline_lacks_differs(tmp_path: Path) -> None:
    before = read_baseline(saved(tmp_path, seen()))
    other = replace(seen(), load="memory")
    found = list(differences(TEST, [other], before, tolerance=None))

    assert [one.words for one in found] == [
        "the baseline has no such run",
        "only the baseline has this run",
    ]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema": 9}', '{"schema": 1}', "\0", "[" * 10_000]
)
def test_another_file_is_no_baseline(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    with pytest.raises(RecordError, match=str(path)):
        read_baseline(path)


def test_a_baseline_whose_cycles_lack_a_figure_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, seen())
    path.write_text(
        path.read_text().replace('"instructions": [10000, ', '"instructions": [')
    )

    with pytest.raises(RecordError, match="has not all figures of its cycles"):
        read_baseline(path)


# --- the answer -----------------------------------------------------------------------


def test_of_many_threads_one_look_has_the_worst() -> None:
    written = Written()
    for number in range(60):
        written.thread(LOOP + number, f"loop{number}")
        for cycle in range(3):
            work = 10_000 + 100 * (number * 7 % 60)
            written.cycle(LOOP + number, 10_000 + 1_000 * cycle, work=work)
    record = parse_program_record(file_of(written.records, kinds=ALL))
    many = replace(seen(), outside=outside_of(record))
    answer = answered(BudgetTable(), many)
    console = Console(file=io.StringIO(), width=80, color_system=None)

    with console.capture() as captured:
        print_fitted(lambda room: brief_blocks(answer, room), console)

    lines = captured.get().splitlines()
    assert len(lines) <= LINES
    shown = [int(x.split()[0][4:]) for x in lines if re.match(r"loop\d+ +\d", x)]
    left_out = next(int(x.split()[1]) for x in lines if x.endswith("more: -v"))
    assert len(shown) + left_out == 60
    by_work = sorted(range(60), key=lambda number: -(number * 7 % 60))
    assert sorted(shown) == sorted(by_work[: len(shown)])


def answered(budget: BudgetTable, one: SeenStart) -> Answer:
    test = replace(TEST, budget=budget)
    return Answer(test, (one,), judge(test, [one]), "", False, (), ())


def test_the_answer_names_thread_value_and_limit() -> None:
    broken = answered(BudgetTable(response_ns=20_000), seen())
    kept = answered(BudgetTable(response_ns=30_000), seen())

    said = "worst response 25.0 virtual µs of thread loop, of 20.0 virtual µs allowed"
    assert (broken.sentence, broken.exit_status) == (said, 1)
    assert kept.exit_status == 0
    blind = replace(seen(), hidden={100: "stripped"})
    assert answered(BudgetTable(allocations=0), blind).exit_status == 3


def ordinary(*names: str) -> SeenStart:
    """Return a start in which the program's threads are no real-time ones."""
    one = seen()
    (loop,) = one.outside.threads
    threads = tuple(replace(loop, name=name, prio=120) for name in names)
    return replace(one, outside=replace(one.outside, threads=threads))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no thread had a whole cycle"),
        (["loop"], "no real-time thread: loop is ordinary"),
        (["a", "b", "a"], "no real-time thread: a and b are ordinary"),
        (["a", "b", "c", "d", "e"], "no real-time thread: a, b, c and 2 more are"),
    ],
)
def test_a_program_without_a_real_time_thread_is_not_judged(
    names: list[str], said: str
) -> None:
    one = ordinary(*names)
    bare, asked = answered(BudgetTable(), one), answered(BudgetTable(missed=0), one)

    assert bare.sentence.startswith(said)
    assert said in asked.sentence
    assert (bare.exit_status, asked.exit_status) == (3, 3)
    assert answer_row(bare)["outcome"] == "not seen"
    whole = render_document(answer_document(bare))
    assert ("--policy fifo" in whole) == bool(names)
    assert "| cycles" not in whole


def test_no_number_is_cut_on_a_terminal_of_80_columns() -> None:
    one = seen()
    (loop,) = one.outside.threads
    renamed = replace(one, outside=replace(one.outside, threads=(
        replace(loop, name="a-long-name-of-1"),
    )))  # fmt: skip
    answer = answered(BudgetTable(response_ns=20_000, allocations=0), renamed)
    why = "it has no names of functions, as it is static and stripped of them, " * 3
    judged = tuple(replace(x, why=why) for x in answer.judged)
    answer = replace(answer, judged=judged)
    written = io.StringIO()

    blocks = answer_blocks(answer, tables=ON_A_TERMINAL)
    print_blocks(blocks, Console(file=written, width=80))

    text = written.getvalue()
    assert "…" not in text
    assert all(heading in text for heading in WIDE)
    assert text.count("stripped") == 3 * len(judged)


def test_an_ordinary_thread_with_a_table_of_its_own_is_judged() -> None:
    test = replace(TEST, threads={"loop": BudgetTable(response_ns=30_000)})
    one = ordinary("loop")
    answer = Answer(test, (one,), judge(test, [one]), "", False, (), ())

    assert (answer.outcome, answer.exit_status) == (Outcome.KEPT, 0)
    assert "--policy" not in render_document(answer_document(answer))
    assert answered(BudgetTable(), seen()).exit_status == 0


def test_every_form_has_the_broken_budget_and_what_took_the_time() -> None:
    answer = answered(BudgetTable(response_ns=20_000, missed=0), seen())
    junit, markdown = answer_junit(answer), render_document(answer_document(answer))
    row = answer_row(answer)

    assert 'tests="2" failures="1" errors="0"' in junit
    assert "20.0 virtual µs of its own instructions" in junit
    assert (
        "| loop | response | 25.0 virtual µs | 20.0 virtual µs | broken |" in markdown
    )
    assert (row["outcome"], row["exit_status"]) == ("broken", 1)
    assert row["threads"][0]["response"] == 25_014
    assert row["threads"][0]["allocations"] == 0


def test_the_failure_in_junit_has_the_cause_as_the_markdown_does() -> None:
    stacks = {1: NamedStack((OWN,), None), 2: NamedStack((PUSH, OWN), None)}
    budget = BudgetTable(response_ns=10_000, faults=3, missed=0)
    cause = "loop, cycle 7: 25.0 µs. Waiting for mmap_lock held by io."
    one = replace(seen(inside=INNER), stacks=stacks)
    answer = replace(answered(budget, one), cause=cause)
    found = JUnitXml.fromstring(answer_junit(answer).encode())
    cases = {case.name.partition(" of ")[0]: case for suite in found for case in suite}
    markdown = render_document(answer_document(answer)).replace("\\", "")

    (late,) = cases["response"].result
    said, recorded = late.text.splitlines()
    assert recorded == cause
    assert said in markdown
    assert cause in markdown
    assert "more than in most cycles: malloc" in said
    assert "free in write_log() log.c:41 (once)" in said
    (faulted,) = cases["page faults"].result
    assert "page fault by a write in push() queue.c:12 (4 times)" in faulted.message
    assert (
        "page fault by a write, 4 times: push queue.c:12 < write_log log.c:41"
        in faulted.text
    )
    figures = {row.name: row.value for row in cases["response"].child(Properties)}
    assert (figures["response ns"], figures["limit ns"]) == ("25014", "10000")
    assert (figures["cycle"], figures["cycles"]) == ("7", "8")
    assert (figures["allocations count"], figures["missed count"]) == ("8", "0")
    assert cases["missed periods"].is_passed


OWN = NamedFrame(
    *("write_log", "/src/log.c", 41, "loop", 7, False), origin=Origin.PROGRAM
)
PUSH = replace(OWN, function="push", file="queue.c", line=12)


def test_the_time_of_the_kernel_is_for_calls_and_faults() -> None:
    (thread,) = seen(inside=INNER).outside.threads
    cycle = replace(thread.worst, user_instructions=5_000, calls={"mmap": 2})

    assert "of the kernel for 2 system calls and 1 page fault" in cycle_words(
        thread, cycle, 1
    )


def test_a_broken_count_says_where_in_the_program_it_was() -> None:
    stacks = {1: NamedStack((OWN,), None), 2: NamedStack((PUSH,), None)}
    budget = BudgetTable(allocations=0, faults=3, missed=0)
    answer = answered(budget, replace(seen(inside=INNER), stacks=stacks))
    said = "malloc (4 times) and free in write_log() log.c:41 (4 times)"
    faults = "page fault by a write in push() queue.c:12 (4 times)"

    assert answer.sentence == f"allocations 8 of thread loop, of 0 allowed: {said}"
    markdown = render_document(answer_document(answer)).replace("\\", "")
    assert f"broken {said}" in markdown
    assert f"broken {faults}" in markdown
    assert f"0 allowed: {said}" in answer_junit(answer)
    (by_name,) = (
        one for one in answer_row(answer)["budgets"] if one["budget"] == "allocations"
    )
    assert by_name["places"][1] == {
        "what": "free",
        "times": 4,
        "function": "write_log",
        "file": "/src/log.c",
        "line": 41,
        "stack": ["write_log log.c:41"],
        "ends_early": None,
    }
    kept = answered(BudgetTable(allocations=8), seen(inside=INNER))
    assert kept.sentence == "allocations 8 of thread loop, of 8 allowed"
