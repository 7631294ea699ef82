"""
The tail of a run: its latest wake-ups, counted by cause. Pure.

A board records the paths of its K worst wake-ups; the histogram counts all. Those of
the tail that were not recorded are counted apart, and never spread over the known
causes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtscope.contract import ThreadResult
from rtscope.explain.model import Cause, Explanation
from rtscope.host.units import format_us, plural
from rtscope.record.explanation import TailCause
from rtscope.stats.distribution import Distribution, distribution_of
from rtscope.stats.summary import BEYOND_LOW_NS

ONE_OF = 1000
"""The tail is the worst of so many wake-ups: 0.1 %."""
BINS = 24
CAUSES_SHOWN = 5
"""More causes are too many colours: the rest are one."""
OTHERS = "other causes"


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A wake-up whose cause is known."""

    latency_ns: int
    cause: str
    blamed_ns: int
    """How long the cause took, of the latency."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A range [low, high) of latencies."""

    low_ns: int
    high_ns: int
    known: tuple[int, ...]
    """Wake-ups by cause, in the order of the tail's causes."""
    unknown: int


@dataclass(frozen=True, slots=True)
class WorstWakeups:
    """The worst wake-ups of a run: at most 0.1 % of them, or the last bucket."""

    samples: int
    """All wake-ups of the run."""
    from_ns: int
    wakeups: int
    causes: tuple[TailCause, ...]
    """Most first; the last may be all others."""
    bins: tuple[Bin, ...]
    recorded: int
    """Of how many the cause is known."""
    unknown: int
    """Of how many it is not."""


def known_cause(explanation: Explanation) -> KnownCause:
    """Return the cause of an explained wake-up, for the count of the tail."""
    dominant = explanation.dominant
    cause = Cause.UNKNOWN if dominant is None else dominant.cause
    return KnownCause(explanation.latency_ns, str(cause), explanation.dominant_ns)


def tail_of(
    threads: Sequence[ThreadResult], known: Sequence[KnownCause]
) -> WorstWakeups | None:
    """Count the known causes among the worst wake-ups; None without any."""
    distribution = distribution_of(threads)
    total = distribution.total
    if not total:
        return None
    from_ns = _from(distribution, total)
    inside = [one for one in known if one.latency_ns >= from_ns]
    causes = _causes(inside)
    wakeups = (
        int(distribution.count[distribution.low_ns >= from_ns].sum())
        + distribution.beyond
    )
    return WorstWakeups(
        samples=total,
        from_ns=from_ns,
        wakeups=wakeups,
        causes=causes,
        bins=_bins(distribution, from_ns, inside, [one.cause for one in causes]),
        recorded=len(inside),
        unknown=max(0, wakeups - len(inside)),
    )


def sentence_of_tail(tail: WorstWakeups, *, virtual: str) -> str:
    """Name the causes of the tail, and count the wake-ups of unknown cause."""
    causes = ", ".join(f"{one.cause} {_how_long(one)}" for one in tail.causes)
    return (
        f"Worst {plural(tail.wakeups, 'wake-up')} of {tail.samples:,}, from "
        f"{format_us(tail.from_ns)} {virtual}µs: {tail.recorded:,} recorded, "
        f"{tail.unknown:,} not recorded."
        f"{f' Dominant causes of those recorded: {causes}.' if causes else ''}"
    )


def _how_long(one: TailCause) -> str:
    longest = format_us(one.worst_ns)
    if one.wakeups == 1:
        return f"once ({longest} µs)"
    return f"{one.wakeups:,} times (longest {longest}, sum {format_us(one.sum_ns)} µs)"


def _from(distribution: Distribution, total: int) -> int:
    """Return the low edge of the lowest bucket that is wholly in the latest 0.1 %."""
    from_above = np.cumsum(distribution.count[::-1]) + distribution.beyond
    inside = int(np.searchsorted(from_above, total / ONE_OF, side="right"))
    return int(distribution.low_ns[::-1][max(0, inside - 1)])


def _causes(inside: Sequence[KnownCause]) -> tuple[TailCause, ...]:
    by_cause: dict[str, list[int]] = {}
    for one in inside:
        by_cause.setdefault(one.cause, []).append(one.blamed_ns)
    rows = sorted(
        by_cause.items(), key=lambda row: (-len(row[1]), -max(row[1]), row[0])
    )
    most_frequent = rows if len(rows) <= CAUSES_SHOWN else rows[: CAUSES_SHOWN - 1]
    rest = [ns for _, latencies in rows[len(most_frequent) :] for ns in latencies]
    listed = [*most_frequent, *([(OTHERS, rest)] if rest else [])]
    return tuple(
        TailCause(cause=cause, wakeups=len(ns), sum_ns=sum(ns), worst_ns=max(ns))
        for cause, ns in listed
    )


def _bins(
    distribution: Distribution,
    from_ns: int,
    inside: Sequence[KnownCause],
    names: Sequence[str],
) -> tuple[Bin, ...]:
    """
    Count the wake-ups by latency and cause, each once.

    All are counted at the begin of their bucket, also those whose latency is known:
    what a bucket has besides them was not recorded.
    """
    width = max(1, -(-(distribution.max_ns + 1 - from_ns) // BINS))
    # In a last bucket, that of the longest: what is in none.
    low_ns = np.append(distribution.low_ns, np.int64(BEYOND_LOW_NS))
    count = np.append(distribution.count, distribution.beyond)
    at_ns = np.array([one.latency_ns for one in inside], dtype=np.int64)
    placed_ns = low_ns[np.searchsorted(low_ns, at_ns, side="right") - 1].tolist()
    causes = [one.cause if one.cause in names else OTHERS for one in inside]
    bins = []
    for begin_ns in range(from_ns, distribution.max_ns + 1, width):
        end_ns = begin_ns + width
        of_cause = [
            sum(
                begin_ns <= ns < end_ns and cause == name
                for ns, cause in zip(placed_ns, causes, strict=True)
            )
            for name in names
        ]
        counted = int(count[(low_ns >= begin_ns) & (low_ns < end_ns)].sum())
        bins.append(
            Bin(begin_ns, end_ns, tuple(of_cause), max(0, counted - sum(of_cause)))
        )
    return tuple(bins)
