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
later by its own return, which is added (`Section.BACK`), and on a virtual board an
interrupt may wait for the quanta of other CPUs (`quantum_delay_ns`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.units import NS_PER_S

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


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest critical section of a kind, without the interrupts in it."""

    section: Section
    duration_ns: int
    name: str = ""
    """The function that all of it was in; empty if that is not known."""
    callers: tuple[str, ...] = ()
    """It and who called it, innermost first."""
    executed_ns: int | None = None
    """What this CPU executed from its begin to its end; None if that is not known."""
    dominant_function: str = ""
    """The function that it executed most in."""
    note: str = ""
    """A limit of the recording, such as a missing begin."""


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


@dataclass(frozen=True, slots=True)
class Interference:
    """The time that one vector adds."""

    vector: str
    arrivals: int
    longest_ns: int
    min_interarrival_ns: int | None
    """The least time from one arrival to the next; None for fewer than two."""
    max_in_window_ns: int
    """The most that it executed in a window as long as the bound."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The latency bound of one CPU from its observed critical sections."""

    cpu: int
    longest: tuple[Longest, ...]
    """One of each kind that was seen."""
    interference: tuple[Interference, ...]
    """Most in a window first."""
    quantum_delay_ns: int
    scheduling_ns: int
    """L_IF: the paper's latency without interrupts."""
    bound_ns: int | None
    """With interrupts and additions to the paper's; None above GIVE_UP_NS."""
    not_recorded: tuple[str, ...] = field(default=())
    """Parts that were not recorded; the bound may be too small by them."""

    @property
    def complete(self) -> bool:
        """Whether everything that the bound is made of was seen."""
        return self.bound_ns is not None and not self.not_recorded


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
    longest: Sequence[Longest],
    *,
    arrivals: Mapping[str, Arrivals],
    quantum_delay_ns: int = 0,
    not_recorded: Sequence[str] = (),
) -> Bound:
    """Return the bound from the critical sections and interrupts of one CPU."""
    known = {one.section: one.duration_ns for one in longest}
    scheduling_ns = scheduling_latency(known)
    start_ns = scheduling_ns + known.get(Section.BACK, 0) + quantum_delay_ns
    bound_ns = fixed_point(start_ns, tuple(arrivals.values()))
    window_ns = start_ns if bound_ns is None else bound_ns
    found = [
        Interference(
            vector,
            len(one.begins_ns),
            int(one.durations_ns.max(initial=0)),
            int(np.diff(one.begins_ns).min()) if len(one.begins_ns) > 1 else None,
            one.max_in_window(window_ns),
        )
        for vector, one in arrivals.items()
    ]
    return Bound(
        cpu=cpu,
        longest=tuple(longest),
        interference=tuple(
            sorted(found, key=lambda i: (-i.max_in_window_ns, i.vector))
        ),
        quantum_delay_ns=quantum_delay_ns,
        scheduling_ns=scheduling_ns,
        bound_ns=bound_ns,
        not_recorded=tuple(not_recorded),
    )


def worst_of(bounds: Sequence[Bound]) -> Bound | None:
    """Return the largest bound; None without any."""
    return max(
        bounds,
        key=lambda b: GIVE_UP_NS if b.bound_ns is None else b.bound_ns,
        default=None,
    )
