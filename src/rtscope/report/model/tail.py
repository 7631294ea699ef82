"""
The latest wake-ups of a run by cause: those whose cause is known, and how many are not.

A board records the paths of its K worst wake-ups; the histogram counts all. What of the
tail was not recorded is counted, and never spread over the causes that are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtscope.contract import ThreadResult
from rtscope.record.explanation import TailCause
from rtscope.report.words import plural
from rtscope.stats.distribution import Distribution, distribution_of
from rtscope.units import format_us

ONE_OF = 1000
"""The tail is the latest of so many wake-ups: 0.1 %."""
BINS = 24
CAUSES_SHOWN = 5
"""More causes are told apart by no one: the rest are one."""
OTHERS = "other causes"


@dataclass(frozen=True, slots=True)
class Blamed:
    """A wake-up whose cause is known."""

    latency_ns: int
    cause: str


@dataclass(frozen=True, slots=True)
class Bin:
    """A range [low, high) of latencies."""

    low_ns: int
    high_ns: int
    known: tuple[int, ...]
    """Wake-ups by cause, in the order of the tail's causes."""
    unknown: int


@dataclass(frozen=True, slots=True)
class Tail:
    """The latest wake-ups of a run: at most 0.1 % of them, or the last bucket."""

    samples: int
    """All wake-ups of the run."""
    from_ns: int
    wakeups: int
    causes: tuple[TailCause, ...]
    """Most first; the last may be all others."""
    bins: tuple[Bin, ...]

    @property
    def recorded(self) -> int:
        """Of how many the cause is known."""
        return sum(one.wakeups for one in self.causes)

    @property
    def unknown(self) -> int:
        """Of how many it is not."""
        return max(0, self.wakeups - self.recorded)


def tail_of(threads: Sequence[ThreadResult], known: Sequence[Blamed]) -> Tail | None:
    """Set the causes that are known against all wake-ups; None without any."""
    found = distribution_of(threads)
    if not found.total:
        return None
    from_ns = _from(found)
    inside = [one for one in known if one.latency_ns >= from_ns]
    causes = _causes(inside)
    names = [one.cause for one in causes]
    counted = [(b.latency_ns, b.cause if b.cause in names else OTHERS) for b in inside]
    return Tail(
        samples=found.total,
        from_ns=from_ns,
        wakeups=int(found.count[found.low_ns >= from_ns].sum()) + found.beyond,
        causes=causes,
        bins=_bins(found, from_ns, counted, names),
    )


def sentence_of_tail(tail: Tail, *, virtual: str) -> str:
    """Tell the causes of the tail, and of how many nothing is known."""
    told = ", ".join(
        f"{one.cause} {_times(one.wakeups)} (sum {format_us(one.sum_ns)}, worst "
        f"{format_us(one.worst_ns)})"
        for one in tail.causes
    )
    return (
        f"Of the latest {plural(tail.wakeups, 'wake-up')} of {tail.samples:,}, from "
        f"{format_us(tail.from_ns)} {virtual}µs on: {_of(tail)}"
        f"{f': {told}' if told else ''}."
    )


def _of(tail: Tail) -> str:
    if not tail.recorded:
        return "none recorded"
    return (
        f"{tail.recorded:,} recorded and {tail.unknown:,} not recorded; blamed for "
        "those recorded"
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _from(found: Distribution) -> int:
    """Return the low edge of the lowest bucket that is wholly in the latest 0.1 %."""
    from_above = np.cumsum(found.count[::-1]) + found.beyond
    inside = int(np.searchsorted(from_above, found.total / ONE_OF, side="right"))
    return int(found.low_ns[::-1][max(0, inside - 1)])


def _causes(inside: Sequence[Blamed]) -> tuple[TailCause, ...]:
    by_cause: dict[str, list[int]] = {}
    for one in inside:
        by_cause.setdefault(one.cause, []).append(one.latency_ns)
    rows = sorted(
        by_cause.items(), key=lambda row: (-len(row[1]), -max(row[1]), row[0])
    )
    shown = rows if len(rows) <= CAUSES_SHOWN else rows[: CAUSES_SHOWN - 1]
    rest = [ns for _, latencies in rows[len(shown) :] for ns in latencies]
    listed = [*shown, *([(OTHERS, rest)] if rest else [])]
    return tuple(
        TailCause(cause=cause, wakeups=len(ns), sum_ns=sum(ns), worst_ns=max(ns))
        for cause, ns in listed
    )


def _bins(
    found: Distribution,
    from_ns: int,
    counted: Sequence[tuple[int, str]],
    names: Sequence[str],
) -> tuple[Bin, ...]:
    width = max(1, -(-(found.max_ns + 1 - from_ns) // BINS))
    bins = []
    for low_ns in range(from_ns, found.max_ns + 1, width):
        high_ns = low_ns + width
        inside = (found.low_ns >= low_ns) & (found.low_ns < high_ns)
        of_cause = [
            sum(low_ns <= ns < high_ns and cause == name for ns, cause in counted)
            for name in names
        ]
        # A latency may lie in another bin than the low edge of its bucket does.
        unknown = max(0, int(found.count[inside].sum()) - sum(of_cause))
        bins.append(Bin(low_ns, high_ns, tuple(of_cause), unknown))
    return tuple(bins)
