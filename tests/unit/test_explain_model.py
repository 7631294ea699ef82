"""Segments of a wake-up: how they add up, which is dominant, and which are one."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.explain.joining import joined
from rtscope.explain.model import (
    COMPETING_TASKS,
    HELD_BACK,
    INHERENT,
    TITLES,
    Cause,
    Confidence,
    Explanation,
    OtherCpuActivity,
    Part,
    Segment,
)
from rtscope.explain.runs import causes_of, difference, paragraph, title_of
from rtscope.explain.words import (
    caveats_of,
    evidence,
    sentence,
    where,
)
from rtscope.host.units import format_share

INTERRUPT = Cause.TIMER_INTERRUPT


def segment(
    begin_ns: int,
    end_ns: int,
    cause: Cause = Cause.SOFTIRQ,
    name: str = "f",
    *,
    part: Part = Part.A,
    executed_ns: int | None = None,
    task: str = "",
) -> Segment:
    return Segment(
        part, begin_ns, end_ns, cause, name, executed_ns=executed_ns, task=task
    )


def explanation(*segments: Segment, latency_ns: int | None = None) -> Explanation:
    late = max(s.end_ns for s in segments) if latency_ns is None else latency_ns
    return Explanation(0, 1, late, segments)


def dominant_of(*segments: Segment) -> str:
    found = explanation(*segments).dominant
    assert found is not None
    return found.name


# --- sums -------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.sampled_from(Part), st.integers(0, 1000)), min_size=1, max_size=9
    ),
    st.integers(0, 500),
)
def test_parts_and_residual_add_up_to_the_latency(
    pieces: list[tuple[Part, int]], more_ns: int
) -> None:
    at, segments = 0, []
    for part, length in pieces:
        segments.append(segment(at, at + length, part=part))
        at += length
    found = Explanation(0, 1, at + more_ns, tuple(segments))

    assert found.residual_ns == more_ns
    assert sum(found.parts_ns.values()) + found.residual_ns == found.latency_ns
    assert set(found.parts_ns) == set(Part) == set(TITLES)


@pytest.mark.parametrize(
    ("cause", "confidence", "share"),
    [
        (Cause.SOFTIRQ, Confidence.SEEN, 0.5),
        (Cause.SOFTIRQ, Confidence.INFERRED, 0.5),
        (Cause.SOFTIRQ, Confidence.GUESSED, 0.0),
        (Cause.UNKNOWN, Confidence.SEEN, 0.0),
    ],
)
def test_only_what_is_no_guess_is_attributed(
    cause: Cause, confidence: Confidence, share: float
) -> None:
    one = replace(segment(0, 50, cause), confidence=confidence)

    assert explanation(one, latency_ns=100).attributed_share == share
    assert explanation(one, latency_ns=25).attributed_share == min(1.0, 4 * share)
    assert explanation(one, latency_ns=0).attributed_share == 0.0


def test_instructions_are_counted_if_one_segment_counts_them() -> None:
    assert explanation(segment(0, 1), segment(1, 2, executed_ns=0)).is_counted
    assert not explanation(segment(0, 1)).is_counted


# --- the dominant one -------------------------------------------------------------


def test_pieces_of_one_cause_are_dominant_together() -> None:
    pieces = (
        segment(0, 40, name="cut"),
        segment(40, 100, Cause.EARLIER_INTERRUPT, "irq"),
        segment(100, 130, name="cut"),
        segment(130, 131, Cause.EARLIER_INTERRUPT, "other"),
    )

    assert dominant_of(*pieces) == "cut"
    found = explanation(*pieces).dominant
    assert found is not None
    assert (found.begin_ns, found.end_ns) == (0, 40)


@pytest.mark.parametrize("cause", [*Cause])
def test_what_every_wake_up_has_is_dominant_only_if_all_else_is_short(
    cause: Cause,
) -> None:
    usual = segment(0, 1000, cause, "usual")
    other = segment(1000, 1999, Cause.EARLIER_INTERRUPT, "irq")
    expected = "irq" if cause in INHERENT else "usual"

    assert dominant_of(usual, other) == expected
    assert dominant_of(usual, replace(other, end_ns=1249)) == "usual"


def test_a_task_is_dominant_by_all_that_it_did_wherever_that_was() -> None:
    first = segment(0, 300, Cause.OTHER_TASK, "(user space)", task="rival")
    second = segment(300, 700, Cause.OTHER_TASK, "(user space)", task="reader")
    third = segment(700, 1000, Cause.OTHER_TASK, "do_exit", task="rival")

    found = explanation(first, second, third).dominant

    assert found is not None
    assert (found.task, found.name) == ("rival", "(user space)")


@pytest.mark.parametrize("cause", [*Cause])
def test_a_segment_counts_with_its_pauses_whatever_its_cause(cause: Cause) -> None:
    """A loop that pauses delays the thread as one that does not."""
    paused = segment(0, 9_000, cause, executed_ns=10, name="paused")
    worked = segment(9_000, 9_500, Cause.EARLIER_INTERRUPT, "irq", executed_ns=500)

    assert dominant_of(paused, worked) == "paused"
    assert explanation(latency_ns=5).dominant is None


# --- neighbours -------------------------------------------------------------------


def test_neighbours_of_one_cause_become_one_with_all_that_shows_it() -> None:
    first = replace(
        segment(0, 10, executed_ns=4),
        evidence=("a", "b"),
        functions=(("f", 3), ("g", 1)),
        callers=("f", "main"),
        other_cpus=(OtherCpuActivity(1, "x", 1.0, 5),),
    )
    second = replace(
        segment(10, 30, executed_ns=9),
        evidence=("b", "c"),
        functions=(("g", 8), ("f", 1)),
        callers=("h",),
        other_cpus=(OtherCpuActivity(2, "y", 0.5, 6),),
    )

    assert joined([first, second]) == (
        replace(
            first,
            end_ns=30,
            executed_ns=13,
            evidence=("a", "b", "c"),
            functions=(("g", 9), ("f", 4)),
            other_cpus=(*first.other_cpus, *second.other_cpus),
        ),
    )
    assert joined([first, replace(second, executed_ns=None)])[0].executed_ns is None
    assert joined([replace(first, executed_ns=None), second])[0].executed_ns is None
    assert joined([replace(first, callers=()), second])[0].callers == ("h",)
    for pair in ([Confidence.SEEN, Confidence.INFERRED], [*Confidence][1::-1]):
        pieces = [
            replace(one, confidence=sure)
            for one, sure in zip((first, second), pair, strict=True)
        ]
        assert joined(pieces)[0].confidence is Confidence.INFERRED


@pytest.mark.parametrize(
    "changed",
    [
        {"part": Part.B},
        {"cause": Cause.LOCK},
        {"name": "g"},
        {"task": "hog"},
        {"begin_ns": 11},
    ],
)
def test_what_differs_or_does_not_touch_stays_apart(changed: dict[str, object]) -> None:
    first, second = segment(0, 10), segment(10, 30)
    other = replace(second, **changed)  # type: ignore[arg-type]

    assert joined([first, second]) == (replace(first, end_ns=30),)
    assert joined([first, other]) == (first, other)


def test_a_segment_without_a_length_is_none() -> None:
    assert joined([segment(0, 0), segment(0, 5, name="g"), segment(5, 5)]) == (
        segment(0, 5, name="g"),
    )
    assert joined([]) == ()


# --- words ------------------------------------------------------------------------


def named(*segments: Segment, latency_ns: int | None = None) -> list[str]:
    """Return the functions that the sentence names, in order."""
    counted = [replace(one, executed_ns=one.duration_ns) for one in segments]
    text = sentence(explanation(*counted, latency_ns=latency_ns))
    return re.findall(r" in (\w+): ", text)


def test_three_causes_of_a_tenth_or_more_are_named_and_the_dominant_always() -> None:
    lengths = {"a": 300, "b": 250, "c": 200, "d": 150, "e": 100}
    at, segments = 0, []
    for name, length in lengths.items():
        segments.append(segment(at, at + length, name=name))
        at += length

    assert named(*segments) == ["a", "b", "c"]
    assert named(segment(0, 99), segment(99, 100, name="g"), latency_ns=1000) == ["f"]
    assert named(segment(0, 100), segment(100, 199, name="g"), latency_ns=1000) == ["f"]
    usual = [
        segment(at, at + 1000, cause, "a")
        for at, cause in ((0, Cause.RETURN), (1000, Cause.DELIVERY), (2000, INTERRUPT))
    ]
    assert named(*usual, segment(3000, 3400, name="short"))[-1:] == ["short"]


@pytest.mark.parametrize(
    ("callers", "text"),
    [
        ((), "f"),
        (("a",), "a"),
        (("a", "b", "c"), "a < b < c"),
        (("a", "b", "c", "d"), "a < b < c < d"),
        (("a", "b", "c", "d", "e"), "a < b < c < … < e"),
    ],
)
def test_a_place_is_three_callers_and_the_outermost(
    callers: tuple[str, ...], text: str
) -> None:
    one = segment(0, 1, name=callers[0] if callers else "f")

    assert where(replace(one, callers=callers)) == text


@pytest.mark.parametrize(
    ("part_ns", "whole_ns", "text"),
    [(1, 1, "100.0 %"), (1, 3, "33.3 %"), (0, 5, "0.0 %"), (5, 0, "0.0 %")],
)
def test_a_share_of_nothing_is_none(part_ns: int, whole_ns: int, text: str) -> None:
    assert format_share(part_ns, whole_ns) == text


def test_evidence_tells_task_other_cpus_and_functions_in_this_order() -> None:
    one = replace(
        segment(0, 1000, executed_ns=800, task="hog"),
        evidence=("seen",),
        other_cpus=(OtherCpuActivity(3, "x", 0.25, 5000),),
        functions=(("a", 400), ("b", 200), ("c", 100), ("d", 100)),
    )

    assert evidence(one) == (
        "seen",
        "the task was hog",
        "CPU 3 executed 5.00 µs in this time, 25 % of it in x",
        "functions executed most: a 50.0 %, b 25.0 %, c 12.5 %",
    )
    assert evidence(replace(one, functions=one.functions[:1]))[-1].startswith("CPU 3")
    assert evidence(segment(0, 1)) == ()


def test_a_guess_is_called_one_and_more_than_a_twentieth_is_a_caveat() -> None:
    guess = replace(
        segment(0, 100, Cause.HARDWARE, "while load ran"),
        confidence=Confidence.GUESSED,
    )
    found = explanation(guess, segment(100, 1000, name="g"))

    assert "Probably hardware or a hypervisor: 0.100 µs;" in sentence(found)
    assert caveats_of(found) == (
        "the cause of 10.0 % of the latency is a guess: hardware or hypervisor",
    )
    less = explanation(replace(guess, end_ns=50), segment(50, 1000, name="g"))
    assert caveats_of(less) == ()
    unknown = explanation(
        segment(0, 100, Cause.UNKNOWN, "x"), segment(100, 1000, name="g")
    )
    assert caveats_of(unknown) == ("the cause of 10.0 % of the latency is unknown",)


def test_more_than_three_other_causes_are_told_as_shorter_ones() -> None:
    short = [
        segment(900 + 20 * n, 920 + 20 * n, cause, "x")
        for n, cause in enumerate(
            (Cause.SCHEDULER, Cause.RETURN, Cause.LOCK, Cause.PAGE_FAULT)
        )
    ]

    assert sentence(explanation(segment(0, 900), *short)).endswith(
        "Rest (0.080 µs): the scheduler 0.020 µs, the return path 0.020 µs, waiting "
        "for a lock 0.020 µs and shorter ones."
    )
    three = sentence(explanation(segment(0, 900), *short[:3]))
    assert "and shorter ones" not in three
    residual = sentence(explanation(segment(0, 900), latency_ns=1000))
    assert "unknown" in residual.partition("Rest")[2]
    assert "Rest" not in sentence(explanation(segment(0, 900)))


# --- causes over a run ------------------------------------------------------------


@pytest.mark.parametrize("cause", [*Cause])
def test_a_cause_is_counted_by_task_by_function_or_by_itself(cause: Cause) -> None:
    named = "" if cause in INHERENT else "hog" if cause in COMPETING_TASKS else "f"

    assert segment(0, 1, cause, task="hog").counted_as == (cause, named)
    plain = "" if cause in INHERENT else "f"
    assert segment(0, 1, cause).counted_as == (cause, plain)


TITLED = {
    *HELD_BACK,
    *(Cause.UNKNOWN, Cause.HARDWARE, Cause.NOT_REALTIME, Cause.IN_PLACE_OF_HOLDER),
    *(Cause.THROTTLED, Cause.FAIR_SERVER, Cause.OTHER_TASK, Cause.IDLE_EXIT),
}


@pytest.mark.parametrize("cause", sorted(set(Cause) - INHERENT))
def test_a_cause_is_titled_with_its_function_or_its_task(cause: Cause) -> None:
    (one,) = causes_of([explanation(segment(0, 9, cause))], load="", kernel="").sums

    assert title_of(one) == (f"{cause}: f" if cause in TITLED else f"{cause} in f")
    assert title_of(replace(one, name="")) == str(cause)


def test_causes_come_by_how_often_they_were_dominant_then_by_their_sum() -> None:
    found = causes_of(
        [
            explanation(segment(0, 50, name="b"), segment(50, 60, name="a")),
            explanation(segment(0, 40, name="a"), segment(40, 45, name="c")),
            explanation(segment(0, 30, name="a"), segment(30, 39, name="d")),
            explanation(latency_ns=99),
        ],
        load="l",
        kernel="k",
    )

    assert [
        (s.name, s.wakeups, s.dominant_in, s.sum_ns, s.worst_ns) for s in found.sums
    ] == [
        ("a", 3, 2, 80, 40),
        ("b", 1, 1, 50, 50),
        ("d", 1, 0, 9, 9),
        ("c", 1, 0, 5, 5),
    ]
    assert (found.wakeups, found.worst_ns, found.attributed_share) == (3, 99, 1.0)
    nothing = causes_of([], load="l", kernel="k")
    assert (nothing.worst_ns, nothing.attributed_share, nothing.sums) == (0, 0.0, ())


def test_three_dominant_causes_are_told_and_the_others_counted() -> None:
    many = causes_of(
        [explanation(segment(0, 1000 * n, name=f"f{n}")) for n in range(1, 6)],
        load="l",
        kernel="a",
    )
    none = causes_of([], load="l", kernel="b")

    assert paragraph(difference(many, none)) == (
        "Load l: the worst wake-up was 5.00 µs late with a (5 explained) and 0 µs "
        "late with b (0 explained). Dominant cause with a only: a softirq in f5 "
        "(once, longest 5.00 µs), a softirq in f4 (once, longest 4.00 µs), a softirq "
        "in f3 (once, longest 3.00 µs) and 2 more."
    )
    both = paragraph(difference(many, replace(many, kernel="c")))
    assert both.endswith(" and 2 more.")
    assert "(once and once, longest 5.00 µs and 5.00 µs)" in both
    three = replace(many, sums=many.sums[:3])
    assert "more" not in paragraph(difference(three, none))
