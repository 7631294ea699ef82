"""
Causes over a whole run: what made its worst wake-ups late, and how two kernels differ.

Pure. The K worst wake-ups are not the run: a cause that is missing here may have made
others late, only never as late.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtscope.explain.model import (
    HELD_BACK,
    Cause,
    Explanation,
    Segment,
)
from rtscope.host.units import format_us
from rtscope.record.explanation import CauseSum

_SHOWN = 3
WITHDRAWN = "withdrawn: an invariant is broken"
"""The name of the cause of wake-ups whose explanations prove nothing."""
_NAMED = frozenset(
    {
        Cause.UNKNOWN,
        Cause.HARDWARE,
        *HELD_BACK,
        Cause.NOT_REALTIME,
        Cause.THROTTLED,
        Cause.FAIR_SERVER,
        Cause.OTHER_TASK,
        Cause.IN_PLACE_OF_HOLDER,
        Cause.IDLE_EXIT,
    }
)
"""The name of these is no function."""


@dataclass(frozen=True, slots=True)
class Causes:
    """The causes of one load on one kernel."""

    load: str
    kernel: str
    wakeups: int
    """How many of the worst were explained: those whose paths were kept."""
    worst_ns: int
    attributed_share: float
    """The least of them, 0 to 1."""
    sums: tuple[CauseSum, ...]
    """Most often dominant first, then by their sum."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Dominant causes of one of two kernels only, under the same load."""

    first: Causes
    second: Causes
    gone: tuple[CauseSum, ...]
    new: tuple[CauseSum, ...]
    common: tuple[tuple[CauseSum, CauseSum], ...]


def causes_of(explanations: Sequence[Explanation], *, load: str, kernel: str) -> Causes:
    """Sum up the causes of a run's worst wake-ups, or of those of its repetitions."""
    kept = [one for one in explanations if one.segments]
    known = [one for one in kept if not one.is_withdrawn]
    found: dict[tuple[Cause, str], list[int]] = {}
    dominant_in: Counter[tuple[Cause, str]] = Counter()
    for explanation in known:
        for key, ns in _sums(explanation.segments).items():
            found.setdefault(key, []).append(ns)
        if explanation.dominant is not None:
            dominant_in[explanation.dominant.counted_as] += 1
    sums = [
        CauseSum(*key, len(ns), dominant_in[key], sum(ns), max(ns))
        for key, ns in found.items()
    ]
    if withdrawn := [one.latency_ns for one in kept if one.is_withdrawn]:
        number = len(withdrawn)
        sums.append(
            CauseSum(
                *(Cause.UNKNOWN, WITHDRAWN, number, number),
                *(sum(withdrawn), max(withdrawn)),
            )
        )
    return Causes(
        load=load,
        kernel=kernel,
        wakeups=len(kept),
        worst_ns=max((e.latency_ns for e in explanations), default=0),
        attributed_share=min((e.attributed_share for e in kept), default=0.0),
        sums=tuple(sorted(sums, key=lambda s: (-s.dominant_in, -s.sum_ns, s.name))),
    )


def title_of(one: CauseSum) -> str:
    """Return a cause with its function, if there is one."""
    before = ": " if one.cause in _NAMED else " in "
    return f"{one.cause}{before}{one.name}" if one.name else str(one.cause)


def differences(causes: Sequence[Causes]) -> tuple[Difference, ...]:
    """Compare the first two kernels of each load."""
    found = []
    for load in dict.fromkeys(one.load for one in causes):
        of_load = [one for one in causes if one.load == load]
        if len(of_load) > 1:
            found.append(difference(of_load[0], of_load[1]))
    return tuple(found)


def difference(first: Causes, second: Causes) -> Difference:
    """Return the dominant causes that only one of two kernels has, and the common."""
    ours = {(s.cause, s.name): s for s in first.sums if s.dominant_in}
    theirs = {(s.cause, s.name): s for s in second.sums if s.dominant_in}
    return Difference(
        first,
        second,
        gone=tuple(s for key, s in ours.items() if key not in theirs),
        new=tuple(s for key, s in theirs.items() if key not in ours),
        common=tuple((s, theirs[key]) for key, s in ours.items() if key in theirs),
    )


def paragraph(difference: Difference, *, virtual: str = "") -> str:
    """Describe how the causes of two kernels differ; times are microseconds."""
    first, second = difference.first, difference.second
    sentences = [
        f"Load {first.load}: the worst wake-up was {format_us(first.worst_ns)} "
        f"{virtual}µs late with {first.kernel} ({first.wakeups} explained) and "
        f"{format_us(second.worst_ns)} {virtual}µs late with {second.kernel} "
        f"({second.wakeups} explained)."
    ]
    if difference.gone:
        gone = _listed(difference.gone)
        sentences.append(f"Dominant cause with {first.kernel} only: {gone}.")
    if difference.new:
        new = _listed(difference.new)
        sentences.append(f"Dominant cause with {second.kernel} only: {new}.")
    if difference.common:
        sentences.append(f"Dominant cause with both: {_both(difference.common)}.")
    return " ".join(sentences)


def _sums(segments: Iterable[Segment]) -> dict[tuple[Cause, str], int]:
    sums: Counter[tuple[Cause, str]] = Counter()
    for segment in segments:
        sums[segment.counted_as] += segment.duration_ns
    return sums


def _listed(sums: Sequence[CauseSum]) -> str:
    shown = [
        f"{title_of(s)} ({_times(s.dominant_in)}, longest {format_us(s.worst_ns)} µs)"
        for s in sums[:_SHOWN]
    ]
    return ", ".join(shown) + _more(len(sums))


def _both(common: Sequence[tuple[CauseSum, CauseSum]]) -> str:
    shown = [
        f"{title_of(a)} ({_times(a.dominant_in)} and {_times(b.dominant_in)}, "
        f"longest {format_us(a.worst_ns)} µs and {format_us(b.worst_ns)} µs)"
        for a, b in common[:_SHOWN]
    ]
    return ", ".join(shown) + _more(len(common))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _more(number: int) -> str:
    return f" and {number - _SHOWN} more" if number > _SHOWN else ""
