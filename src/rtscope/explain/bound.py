"""
What the wake-ups of a run show together: the tail by cause, and a latency bound. Pure.

Source: D. B. de Oliveira, D. Casini, R. S. de Oliveira, T. Cucinotta, "Demystifying the
Real-Time Linux Scheduling Latency", ECRTS 2020, doi 10.4230/LIPIcs.ECRTS.2020.9:

    L_IF = max(D_ST, D_POID) + D_PAIE + D_PSD                  (Lemma 7)
    L    = least fixed point of L = L_IF + I(L), from L_IF     (Theorem 8)

with I(L) the sum, over the vectors v, of the most that v executed in any window of
length L of the recorded arrivals (the paper's sliding window). The rtsl tool takes
v's own interference off the window first; here the window is L itself, which is never
less. The composition is proven, its parameters are only observed maxima: it is no
proof, and a section that was never executed is not in it.

The paper's L ends when the scheduler has returned. A thread that reads a clock is
later by its own return, which is added (`Section.BACK`).

A board records the paths of its K worst wake-ups; the histogram counts all. Those of
the tail that were not recorded are counted apart, and never spread over the known
causes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.contract import ThreadResult
from rtscope.explain.instructions.calls import shortened
from rtscope.explain.model import Cause, Explanation
from rtscope.host.units import NS_PER_S, format_us, plural
from rtscope.record.explanation import CpuBound, Interrupt, LongestSection, TailCause
from rtscope.stats.distribution import Distribution, distribution_of
from rtscope.stats.summary import BEYOND_LOW_NS

GIVE_UP_NS = NS_PER_S
"""Interrupts that keep a window this long busy leave no time for anything else."""

BoundRow = tuple[str, str, str]
"""Title, length in µs, place."""


class Section(StrEnum):
    """A kind of critical section of the paper, and the return that it does not have."""

    POID = "POID"
    """Preemption or interrupts disabled by a thread, not to call the scheduler."""
    PAIE = "PAIE"
    """Both enabled, another thread is to run, and the scheduler is not called yet."""
    PSD = "PSD"
    """Preemption disabled to call the scheduler, until it is enabled again."""
    ST = "ST"
    """Its tail: from interrupts off for the switch to the end of PSD."""
    BACK = "BACK"
    """From there until the measuring thread sleeps again; not of the paper."""


TITLES: Mapping[Section, str] = {
    Section.POID: "preemption or interrupts off",
    Section.PAIE: "switch due, scheduler not called yet",
    Section.PSD: "in the scheduler",
    Section.ST: "in the scheduler, from the switch on",
    Section.BACK: "measuring thread, until it sleeps again",
}


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The interrupts of one vector, by ascending begin; the arrays are equally long."""

    begins_ns: NDArray[np.int64]
    durations_ns: NDArray[np.int64]

    def max_in_window(self, window_ns: int) -> int:
        """Return the most executed by arrivals that begin within a window."""
        if not len(self.begins_ns):
            return 0
        last = np.searchsorted(self.begins_ns, self.begins_ns + window_ns, side="right")
        sums = np.concatenate(([0], np.cumsum(self.durations_ns)))
        return int((sums[last] - sums[:-1]).max())


def arrivals_of(pairs: Sequence[tuple[int, int]]) -> Arrivals:
    """Return arrivals of begin and duration in ns, in any order."""
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Arrivals(rows[:, 0], rows[:, 1])


def scheduling_latency(longest: Mapping[Section, int]) -> int:
    """Return L_IF in ns, Lemma 7 of the paper; a kind that is missing counts as 0."""
    poid, paie, psd, tail = (
        longest.get(kind, 0)
        for kind in (Section.POID, Section.PAIE, Section.PSD, Section.ST)
    )
    return max(tail, poid) + paie + psd


def fixed_point(start_ns: int, arrivals: Sequence[Arrivals]) -> int | None:
    """
    Return the least L = start + I(L) in ns, Theorem 8 of the paper.

    I is never less for a longer window, so that the iteration from below ends at the
    least fixed point. None if that lies above GIVE_UP_NS.
    """
    bound_ns = start_ns
    while bound_ns <= GIVE_UP_NS:
        more_ns = start_ns + sum(one.max_in_window(bound_ns) for one in arrivals)
        if more_ns == bound_ns:
            return bound_ns
        bound_ns = more_ns
    return None


def compose(
    cpu: int,
    longest: Sequence[LongestSection],
    *,
    arrivals: Mapping[str, Arrivals],
    not_recorded: Sequence[str] = (),
) -> CpuBound:
    """Return the bound from the critical sections and interrupts of one CPU."""
    known = {Section(one.section): one.duration_ns for one in longest}
    scheduling_ns = scheduling_latency(known)
    start_ns = scheduling_ns + known.get(Section.BACK, 0)
    bound_ns = fixed_point(start_ns, tuple(arrivals.values()))
    window_ns = start_ns if bound_ns is None else bound_ns
    interrupts = [
        Interrupt(
            vector,
            len(one.begins_ns),
            int(one.durations_ns.max(initial=0)),
            int(np.diff(one.begins_ns).min()) if len(one.begins_ns) > 1 else None,
            one.max_in_window(window_ns),
        )
        for vector, one in arrivals.items()
    ]
    return CpuBound(
        cpu=cpu,
        bound_ns=bound_ns,
        scheduling_ns=scheduling_ns,
        complete=bound_ns is not None and not not_recorded,
        not_recorded=tuple(not_recorded),
        sections=tuple(longest),
        interrupts=tuple(
            sorted(interrupts, key=lambda i: (-i.max_in_window_ns, i.vector))
        ),
    )


def caveats_of_bounds(bounds: Sequence[CpuBound]) -> tuple[str, ...]:
    """Return why a bound may be too small: lost events, or a wake-up above it."""
    lost = dict.fromkeys(what for one in bounds for what in one.not_recorded)
    outside = [
        one.cpu
        for one in bounds
        if one.bound_ns is not None and one.observed_max_ns > one.bound_ns
    ]
    caveats = [f"Not recorded: {what}." for what in lost]
    if outside:
        cpus = ", ".join(map(str, outside))
        caveats.append(
            f"CPU {cpus} exceeded its bound: something is outside of the model, such "
            "as a thread with at least the priority of the measuring one."
        )
    return tuple(caveats)


def bound_rows(bound: CpuBound) -> tuple[BoundRow, ...]:
    """Return the parts of a bound, in the order in which it adds up."""
    known = {one.section: one for one in bound.sections}
    rows = [_section_row(known[kind]) for kind in Section if kind in known]
    counted = [
        _interrupt_row(one) for one in bound.interrupts if one.max_in_window_ns > 0
    ]
    return (*rows, *counted)


def _section_row(one: LongestSection) -> BoundRow:
    place = shortened(one.callers) or (
        f"most in {one.dominant_function}" if one.dominant_function else one.name
    )
    aside = (
        f"; {format_us(one.executed_ns)} µs executed here"
        if one.executed_ns is not None
        else ""
    )
    note = f"; {one.note}" if one.note else ""
    title = f"{one.section}  {TITLES[Section(one.section)]}"
    return title, format_us(one.duration_ns), f"{place}{aside}{note}"


def _interrupt_row(one: Interrupt) -> BoundRow:
    closest = (
        ""
        if one.min_interarrival_ns is None
        else f", at least {format_us(one.min_interarrival_ns)} µs apart"
    )
    return (
        f"IRQ  {one.vector}",
        format_us(one.max_in_window_ns),
        f"{one.arrivals:,} observed, longest {format_us(one.longest_ns)} µs{closest}",
    )


# --- the tail of a run: its latest wake-ups, counted by cause -------------------------

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
