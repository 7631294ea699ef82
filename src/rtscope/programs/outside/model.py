"""Threads of a program and their cycles, as they were seen from outside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from rtscope.programs.cycles.paces import Pace
from rtscope.programs.cycles.periods import Basis
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.wakeups import Party, Preemption

ORDINARY = 100
"""The kernel's `prio` from here on is of no real-time thread."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A sleep within a cycle."""

    call: str
    """The system call; empty: in none, as at a page fault or a lock of the kernel."""
    began_ns: int
    ended_ns: int
    ended_by: Party | None
    """Who ended it: of a lock, who held it last; None: nobody that was seen."""
    is_lock: bool
    """For what another thread holds: a lock of the program, a file or the kernel."""
    is_inversion: bool
    """It waited for a lock that a less urgent thread of the program held."""

    place: int = 0
    """The number of the stack of the call; 0: it has none."""

    @property
    def at(self) -> "Place":
        """Where in the program it was."""
        return Place(self.call or "the kernel", self.place)

    @property
    def lasted_ns(self) -> int:
        """How long it was."""
        return self.ended_ns - self.began_ns


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a program something was that a budget is about."""

    what: str
    """The function that allocates, the system call; of a page fault, what was done."""
    number: int
    """Of its stack; 0: it has none."""


class Stage(StrEnum):
    """A part of a wake-up latency, in the order of time."""

    INTERRUPT = "interrupt"
    """From when its timer was due to where that wakes it: interrupts off, the entry."""
    SCHEDULER = "scheduler"
    """From there to where it has its CPU: preemption off, others, the switch."""
    RETURN = "return"
    """From there to its first own instruction."""


@dataclass(frozen=True, slots=True)
class OutsideCycle:
    """One cycle; virtual ns since the board was switched on."""

    number: int
    begin_ns: int
    """When its timer was due; without one, when it was woken."""
    timed: bool
    """Whether a timer was due."""
    woken_ns: int
    waker: Party | None
    behind: Party | None
    """Who had its CPU before it."""
    first_ns: int
    """Its first own instruction."""
    done_ns: int
    """Where it calls what waits for the next cycle."""
    on_cpu_ns: int
    user_instructions: int
    preemptions: tuple[Preemption, ...]
    waits: tuple[Wait, ...]
    calls: Mapping[str, int]
    faults: int
    slept: bool
    """False: its time had passed already, and it went on at once."""
    faulted: tuple[Place, ...] = ()
    """Where each page fault was."""
    allocations: tuple[Place, ...] = ()
    """Calls of functions that allocate or free memory; none within another."""
    in_ns: int | None = None
    """When it had its CPU; None: it did not sleep."""
    late_ns: int = 0
    """How long after its timer was due the cycle before ended; 0: it had ended."""
    called: Mapping[Place, int] = field(default_factory=dict)
    """For how many ns it had its CPU in calls that did not sleep, by their places."""

    @property
    def stages(self) -> Mapping[Stage, int] | None:
        """
        The parts of its latency in ns, whose sum it is.

        None: it did not sleep, the cycle before made it late, or two CPUs saw it, whose
        times are not in order. One that no timer began has no interrupt.
        """
        if self.in_ns is None or self.late_ns:
            return None
        ends = (self.begin_ns, self.woken_ns, self.in_ns, self.first_ns)
        parts = [end - begin for begin, end in pairwise(ends)]
        if min(parts) < 0:
            return None
        stages = dict(zip(Stage, parts, strict=True))
        if not self.timed:
            del stages[Stage.INTERRUPT]
        return stages

    @property
    def latency_ns(self) -> int:
        """From its begin to its first own instruction."""
        return self.first_ns - self.begin_ns

    @property
    def response_ns(self) -> int:
        """From its begin to its end."""
        return self.done_ns - self.begin_ns

    @property
    def preempted_ns(self) -> int:
        """How long others had its CPU."""
        return sum(one.ended_ns - one.began_ns for one in self.preemptions)

    @property
    def waited_ns(self) -> int:
        """How long it slept within the cycle."""
        return sum(one.lasted_ns for one in self.waits)


@dataclass(frozen=True, slots=True)
class OutsideThread:
    """A thread of the program, and its cycles in the time that is judged."""

    tid: int
    process: int
    name: str
    prio: int
    """The kernel's, at its last cycle."""
    period_ns: int | None
    basis: Basis | None
    """None: it has no period."""
    cycles: tuple[OutsideCycle, ...]
    missed: int | None
    """Periods that it skipped, or whose cycle was not done when the next one was due;
    None: nothing is due."""
    cut: int
    """Cycles of which an end is not in the time that is judged."""
    cut_ns: int = 0
    """How long the longest of these took until that time was over; 0: there is none."""
    asked_ns: int | None = None
    """For which interval it asks in the middle; None: it sleeps to times, or for
    something else."""
    paces: tuple[Pace, ...] = ()
    """Its periods one after another; none if it never changes."""

    @property
    def is_realtime(self) -> bool:
        """Whether its policy is a real-time one."""
        return self.prio < ORDINARY

    @property
    def priority_words(self) -> str:
        """Its priority as users know it."""
        if self.prio < 0:
            return "deadline"
        return str(99 - self.prio) if self.is_realtime else "ordinary"

    @property
    def worst(self) -> OutsideCycle:
        """The cycle with the longest response; of equal ones the first."""
        return max(self.cycles, key=lambda one: one.response_ns)


@dataclass(frozen=True, slots=True)
class Outside:
    """What a program did in the time that is judged."""

    threads: tuple[OutsideThread, ...]
    began_ns: int
    ended_ns: int
    lost: int
    """Records that were not written; the last cycles are then missing."""
    kinds: frozenset[Kind]
    shift: int
    lived_ns: int | None = None
    """From its begin to its end; None: something of it did not end by itself."""
