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

from rtscope.host.units import NS_PER_S
from rtscope.record.explanation import CpuBound, Interrupt, LongestSection

GIVE_UP_NS = NS_PER_S
"""Interrupts that keep a window this long busy leave no time for anything else."""


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
    found = [
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
        interrupts=tuple(sorted(found, key=lambda i: (-i.max_in_window_ns, i.vector))),
    )
