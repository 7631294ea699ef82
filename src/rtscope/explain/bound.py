"""
The latency bound from observed critical sections. Pure.

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
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.explain.chains import shortened
from rtscope.host.units import NS_PER_S, format_us
from rtscope.record.explanation import CpuBound, Interrupt, LongestSection

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
