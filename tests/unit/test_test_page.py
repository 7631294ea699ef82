"""The page of a test: the worst cycle over all CPUs, and the responses."""

import re
from dataclasses import replace

import pytest

from fakes.programrecords import CLOCK_NANOSLEEP, Written, file_of
from pages.jsonkeys import keys_without_words
from rtscope.boards.runs.identity import BoardIdentity
from rtscope.explain.outsidetimeline import NOT_SEEN, marks_of, outside_timeline
from rtscope.present.render.page import page_of
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import (
    Kind,
    ProgramRecord,
    parse_program_record,
)
from rtscope.programs.outside.model import Stage
from rtscope.verbs.test.answer import Answer, worst_of
from rtscope.verbs.test.codeseen import CodeSeen, ThreadCode
from rtscope.verbs.test.executed import ThreadUses, WorstUse
from rtscope.verbs.test.file import BudgetTable, ProgramTest
from rtscope.verbs.test.forms import answer_row
from rtscope.verbs.test.judge import SeenStart, judge
from rtscope.verbs.test.page import page_document
from rtscope.verbs.test.reached import Unreached
from rtscope.verbs.test.responsecharts import MOST_DOTS, over_time_of

LOOP, OTHER = 11, 12
BOARD = BoardIdentity(
    *("pc", 2, 500.0, 2500, 2, 1, "debian-6.12-rt", ""), *("0", "0", "0", "0", "0")
)
LIMIT_NS = 30_000


def record_of(cycles: int) -> ProgramRecord:
    """Cycles of 1 ms; in the fourth another thread has the CPU for 40 us."""
    written = Written()
    written.thread(LOOP, "loop")
    written.thread(OTHER, "<other>", own=False)
    for number in range(cycles):
        due = 10_000 + 1_000 * number
        if number != 3:
            written.cycle(LOOP, due)
            continue
        written.wake(LOOP, due + 1, due_us=due)
        written.runs(LOOP, due + 4, first_us=due + 5)
        written.returns(LOOP, due + 5, CLOCK_NANOSLEEP)
        written.leaves(LOOP, due + 10, by=OTHER, slept=False)
        written.put(Kind.IN, due + 50, LOOP, detail=2, value=OTHER)
        written.call(LOOP, due + 60, CLOCK_NANOSLEEP, asked_us=due + 1000)
        written.leaves(LOOP, due + 62)
    return parse_program_record(file_of(written.records))


def answer_of(record: ProgramRecord) -> Answer:
    seen = SeenStart(BOARD, "idle", 1, outside_of(record))
    test = ProgramTest(budget=BudgetTable(response_ns=LIMIT_NS))
    return Answer(test, (seen,), judge(test, [seen]), "", False, (), ())


def page(record: ProgramRecord) -> str:
    return page_of(page_document(answer_of(record), record, None))


@pytest.mark.slow
def test_the_worst_cycle_is_drawn_with_who_took_its_cpu() -> None:
    record = record_of(8)
    worst = worst_of(answer_of(record))
    assert worst is not None

    (track,) = outside_timeline(record, worst.cycle).tracks

    held = [(one.name, one.begin_ns, one.end_ns) for one in track.slices]
    assert held[-3:] == [
        ("loop", 4_000, 10_000),
        ("<other>", 10_000, 50_000),
        ("loop", 50_000, 60_000),
    ]


def test_the_times_of_a_cycle_have_their_names_in_order() -> None:
    worst = worst_of(answer_of(record_of(8)))
    assert worst is not None

    assert marks_of(worst.cycle) == (
        (0, "due 0"),
        (1_000, "woken 1.00"),
        (5_000, "first instruction 5.00"),
        (60_000, "done 60.0"),
    )


def test_a_page_of_the_program_alone_says_what_is_not_seen() -> None:
    drawn = page(record_of(8))

    assert NOT_SEEN in drawn
    assert "&lt;other&gt;" in drawn
    assert "<other>" not in drawn


def test_a_page_loads_nothing_and_says_its_board_once() -> None:
    drawn = page(record_of(8))

    assert drawn.count("irtual board pc") == 1
    assert "<script" not in drawn
    assert not re.search(r"""(?:src|href)=["'](?!#)""", drawn)


def test_a_page_has_the_responses_beside_what_is_allowed() -> None:
    drawn = page(record_of(8))

    assert drawn.count("allowed 30.0") == 2
    assert "Responses of loop over time" in drawn
    assert "cycle 3" in drawn


def test_of_many_cycles_the_worst_is_still_drawn() -> None:
    (thread,) = outside_of(record_of(2 * MOST_DOTS)).threads

    drawn = over_time_of(thread, LIMIT_NS, began_ns=0, name="one")

    dots = re.findall(r"M([0-9.]+) ([0-9.]+)h0", drawn)
    circle = re.search(r'cx="([0-9.]+)" cy="([0-9.]+)"', drawn)
    assert circle is not None
    assert circle.groups() in dots
    assert len(dots) < MOST_DOTS


def test_every_key_of_the_answer_is_explained() -> None:
    use = WorstUse("filter", "control.c", 9, 2, 8)
    threads = (ThreadCode("pc", "loop", 11, ThreadUses((use,), {}), 8),)
    files = (Unreached("pc", "control", 6, ("stop",), ("main",), ""),)
    answer = replace(
        answer_of(record_of(8)), cause="a lock", code=CodeSeen(threads, files)
    )

    assert keys_without_words(answer_row(answer), "TestAnswer") == []
    assert answer_row(answer)["cause"] == "a lock"


def test_the_parts_of_all_wake_ups_are_shown_with_what_they_are() -> None:
    seen = page(record_of(40))

    assert "Parts of the wake-up latency" in seen
    rows = re.findall(r"<t[dh][^>]*>(interrupt|scheduler|return)</t[dh]>", seen)
    assert rows == [stage.value for stage in Stage]
    assert 'class="chart parts"' in seen
