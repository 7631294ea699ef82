"""How the designs of a stranger are planted, and judged."""

import dataclasses
import datetime
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from culprits.scenes import BOTH
from culprits.strangers.boots import SLOTS, boots_of
from culprits.strangers.judge import judge
from culprits.strangers.run import brief_table, summary, table
from culprits.strangers.truth import (
    PATH,
    SETS,
    Completion,
    Design,
    DesignSet,
    read_designs,
)

PLAIN, RT = BOTH
EVERY = (*SETS, PATH)
ALL = [design for of in EVERY for design in read_designs(of)]
DESIGN = Design(
    name="a-valve",
    happens="A driver has interrupts off in close_valve.",
    causes=("interrupts off",),
    must=("close_valve",),
    script="true",
    late=(PLAIN,),
)
WHOLE_NS = (0, 1_000_000_000)


def document(
    cause: str = "interrupts off",
    name: str = "close_valve",
    *,
    latency_ns: int = 400_000,
    sequence: int = 1000,
    kernel: str = PLAIN,
    evidence: tuple[str, ...] = (),
) -> dict[str, Any]:
    segment = {"cause": cause, "name": name, "task": "", "evidence": list(evidence)}
    wakeup = {
        "sequence": sequence,
        "latency_ns": latency_ns,
        "dominant_segment": 0,
        "segments": [segment],
        "sentence": f"CPU 1 woke late: {name}.",
    }
    return {"kernel": kernel, "wakeups": [wakeup]}


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (document(), "right"),
        (document("preemption off"), "half"),
        (document(name="open_valve"), "half"),
        (document("a softirq", "open_valve"), "wrong"),
        (document("a softirq", "f", evidence=("callers: close_valve",)), "half"),
        (document("unknown"), "unknown"),
        (document(latency_ns=10_000), "not late"),
        (document(latency_ns=10_000, kernel=RT), "right"),
        (document(kernel=RT), "wrong"),
        (document(sequence=6000), "not late"),
    ],
)
def test_a_sentence_is_right_only_with_kind_and_words(
    told: dict[str, Any], verdict: str
) -> None:
    assert judge(DESIGN, told, WHOLE_NS).verdict == verdict


def test_a_sentence_that_leaves_most_of_the_latency_to_its_rest_is_half_right() -> None:
    told = document()
    told["wakeups"][0]["sentence"] += " close_valve: 5 µs. Rest (1,286 µs): more."
    told["wakeups"][0]["latency_ns"] = 1_291_000
    assert judge(DESIGN, told, WHOLE_NS).verdict == "half"


def test_an_explanation_that_was_withdrawn_is_unknown() -> None:
    told = document()
    told["wakeups"][0]["dominant_segment"] = None
    assert judge(DESIGN, told, WHOLE_NS).verdict == "unknown"


@pytest.mark.parametrize("of", EVERY, ids=lambda of: str(of.name))
def test_each_design_is_planted_once_and_its_slot_meets_no_other(of: DesignSet) -> None:
    designs = read_designs(of)
    boots = list(boots_of(designs))
    planted = [design for boot in boots for design in boot.designs]
    assert sorted(d.name for d in planted) == sorted(d.name for d in designs)
    for boot in boots:
        assert len(boot.designs) <= SLOTS
        modules = [module for d in boot.designs for module in d.modules]
        assert len(modules) == len(set(modules))
        slots = [boot.window_ns(design) for design in boot.designs]
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(slots))


@pytest.mark.parametrize("of", EVERY, ids=lambda of: str(of.name))
def test_a_design_names_what_is_built_and_a_truth_that_can_be_judged(
    of: DesignSet,
) -> None:
    assert set(of.sources) == set(of.programs)
    for design in read_designs(of):
        assert set(design.modules) <= set(of.modules)
        assert set(design.programs) <= set(of.programs)
        assert "'" not in design.script
        assert (
            bool(design.causes)
            == bool(design.must)
            == bool(design.late or design.maybe)
        )


def test_a_wake_up_that_was_to_be_late_and_was_not_is_counted_as_not_right() -> None:
    rows = [
        judge(DESIGN, document(), WHOLE_NS),
        judge(DESIGN, document(latency_ns=1), WHOLE_NS),
    ]
    assert "Of 1 late wake-ups 1 are explained right by" in summary(rows)
    assert "of 1 others 0 were rightly not late" in summary(rows)


COMPLETED = dataclasses.replace(
    DESIGN,
    causes=("a probe", "interrupts off"),
    must=("close_valve|open_valve",),
    completed=Completion(
        on=datetime.date(2026, 1, 2),
        why="kprobe_ftrace_handler() turns them off.",
        path="close_valve < ksys_close",
        causes=("a probe",),
        must=("close_valve",),
    ),
)


@pytest.mark.parametrize(
    ("told", "at_first"),
    [
        (document(), ""),
        (document("a probe"), "half"),
        (document(name="open_valve"), "half"),
        (document("a probe", "open_valve"), "wrong"),
    ],
)
def test_what_only_the_completed_truth_allows_is_not_right_by_the_first_one(
    told: dict[str, Any], at_first: str
) -> None:
    judged = judge(COMPLETED, told, WHOLE_NS)
    assert (judged.verdict, judged.at_first) == ("right", at_first)


def test_both_truths_are_counted_and_a_completed_one_is_listed_with_its_reason() -> (
    None
):
    rows = [
        judge(COMPLETED, document(), WHOLE_NS),
        judge(COMPLETED, document("a probe"), WHOLE_NS),
    ]
    counted = summary(rows)
    assert "1 are explained right by the truth as first written (1 right" in counted
    assert "2 by the completed truth (2 right)" in counted
    listed = table([COMPLETED], rows, {})
    assert "| right | right |" in listed
    assert "| half | right |" in listed
    assert "2026-01-02 | a probe | kprobe_ftrace_handler() turns them off. |" in listed


def test_a_completed_truth_names_a_function_and_a_path_and_adds_something() -> None:
    for design in ALL:
        if (later := design.completed) is not None:
            assert re.search(r"\w\(\)", later.why)
            assert " < " in later.path
            assert set(later.causes) <= set(design.causes)
            first = design.at_first()
            assert (first.causes, first.must) != (design.causes, design.must)


def test_no_two_sets_have_a_design_of_the_same_name() -> None:
    names = [design.name for design in ALL]
    assert len(names) == len(set(names))


def test_what_has_to_be_ready_comes_before_the_quiet_time() -> None:
    for boot in boots_of(ALL):
        words = " ".join(boot.campaign((), Path("out")))
        for design in boot.designs:
            if design.ready:
                assert words.index(design.ready) < words.index("usleep 1000000")


def test_a_brief_table_has_a_row_for_each_design_and_marks_what_is_not_right() -> None:
    rows = [
        judge(DESIGN, document("a probe"), WHOLE_NS),
        judge(DESIGN, document(latency_ns=1, kernel=RT), WHOLE_NS),
    ]
    listed = brief_table([DESIGN], rows, {DESIGN.name: {PLAIN: "half", RT: "wrong"}})

    assert (
        "`a-valve` | **half**: a probe: close_valve, 400 µs | quiet; first: wrong"
        in (listed)
    )
    assert "truth completed" not in listed


def test_a_design_of_an_event_has_a_boot_of_its_own_and_asks_for_the_event() -> None:
    boots = list(boots_of(read_designs(PATH)))

    assert all(len(boot.designs) == 1 for boot in boots)
    for boot in boots:
        words = boot.campaign((), Path("out"))
        assert words[words.index("--event") + 1] == boot.designs[0].event
