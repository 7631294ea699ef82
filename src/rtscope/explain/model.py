"""
An explanation: segments from the programmed expiry to the thread's own code. Pure.

The parts are those of StarFive's Figure 2-4. A segment without a cause is what could
not be explained; it is printed like every other, so that the sum always closes:

    A + B + C + D + E + residual = latency

An explanation may add up to the nanosecond and be false: its sum proves nothing. These
statements are checked against the records that the explanation was not made from.
"""

import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from functools import cache
from importlib import resources
from itertools import accumulate

# What must hold of every explained wake-up: a broken invariant withdraws its
# explanation.


class Invariant(Enum):
    """A statement that every explanation must fulfil; `invariants.toml` words them."""

    EXPIRY = auto()
    """The timer expired in the wake-up, not before it was due, nor long after."""
    ARRIVAL = auto()
    """Between the expiry and its own code the thread completed one sleep only."""
    RUNNABLE = auto()
    """The thread was runnable wherever another task is blamed."""
    IDLE = auto()
    """The idle task delayed nobody: an idle CPU runs a runnable thread."""
    CHOICE = auto()
    """The blamed task could be chosen before the thread."""
    KEPT = auto()
    """No less urgent task kept the CPU for long without evidence of why."""
    SWITCHES = auto()
    """Each switch of tasks was recorded, and the kernel's functions show it."""
    TIME = auto()
    """What was recorded accounts for the time that the clock says went by."""
    MARK = auto()
    """The record has the mark of this wake-up, with its latency."""
    SENT = auto()
    """The thread that sent an event was running when it read the clock."""


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold, and where; times in ns since the expiry."""

    invariant: Invariant
    begin_ns: int
    end_ns: int
    values: Mapping[str, int | str]
    """What was found, by the names in the text of the invariant."""


def text_of(broken: Broken) -> str:
    """Say which invariant is broken, and what was found instead."""
    return _texts()[broken.invariant.name].format(**broken.values)


class Covered:
    """The times that broken invariants cover, each ns once."""

    def __init__(self, broken: Iterable[Broken]) -> None:
        """Join the times that overlap."""
        self._begins: list[int] = []
        self._ends: list[int] = []
        for one in sorted(broken, key=lambda one: one.begin_ns):
            if self._ends and one.begin_ns <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], one.end_ns)
            elif one.end_ns > one.begin_ns:
                self._begins.append(one.begin_ns)
                self._ends.append(one.end_ns)
        lengths = (e - b for b, e in zip(self._begins, self._ends, strict=True))
        self._before = [0, *accumulate(lengths)]

    def between(self, begin_ns: int, end_ns: int) -> int:
        """Return how much of a time they cover, in ns."""
        return max(0, self._until(end_ns) - self._until(begin_ns))

    def _until(self, at_ns: int) -> int:
        at = bisect_right(self._begins, at_ns)
        if not at:
            return 0
        return self._before[at] - max(0, self._ends[at - 1] - at_ns)


def first_of_each(broken: Sequence[Broken]) -> tuple[Broken, ...]:
    """Return the longest of each invariant, in the order of the list."""
    longest: dict[Invariant, Broken] = {}
    for one in broken:
        best = longest.setdefault(one.invariant, one)
        if one.end_ns - one.begin_ns > best.end_ns - best.begin_ns:
            longest[one.invariant] = one
    return tuple(longest[kind] for kind in Invariant if kind in longest)


@cache
def _texts() -> Mapping[str, str]:
    file = resources.files("rtscope.explain").joinpath("invariants.toml")
    return dict(tomllib.loads(file.read_text("utf-8")))


# --- an explanation: segments from the programmed expiry to the thread's own code -----


class Part(StrEnum):
    """The part of the path from the expiry to the thread that time was spent in."""

    A = "A"
    """Until the timer's interrupt is entered: interrupts off, or another delay."""
    B = "B"
    """In interrupts: the timer's own, and others before and after it."""
    C = "C"
    """Until the scheduler is called: preemption off."""
    D = "D"
    """In the scheduler, until the thread's context is there."""
    E = "E"
    """From there to the thread's own code."""


TITLES: Mapping[Part, str] = {
    Part.A: "before the interrupt",
    Part.B: "interrupt handling",
    Part.C: "preemption off",
    Part.D: "scheduling",
    Part.E: "return to the thread",
}


EVENT_TITLES: Mapping[Part, str] = {**TITLES, Part.A: "the event's way"}
"""Of wake-ups by an event."""
GAP_TITLES: Mapping[Part, str] = {**TITLES, Part.E: "rest of the gap"}
"""Of a thread that never sleeps."""


class Since(StrEnum):
    """What the latency of a wake-up begins with."""

    DUE = "the timer was due"
    SENT = "the event was sent"
    GAP = "the gap began"
    """Of a thread that never sleeps."""


class Cause(StrEnum):
    """What kind of thing took the time."""

    INTERRUPTS_OFF = "interrupts off"
    EARLIER_INTERRUPT = "an earlier interrupt"
    IDLE_EXIT = "leaving idle"
    DELIVERY = "interrupt delivery"
    """Interrupts were on, none came yet: because of hardware or a hypervisor."""
    TIMER_INTERRUPT = "the timer interrupt"
    OTHER_INTERRUPT = "another interrupt"
    TIMER_CALLBACK = "another timer's callback"
    SOFTIRQ = "a softirq"
    PREEMPTION_OFF = "preemption off"
    NOT_PREEMPTED = "kernel code without preemption"
    """Nobody turned preemption off: this kernel does not preempt its own code."""
    LOCK = "waiting for a lock"
    SCHEDULER = "the scheduler"
    OTHER_TASK = "another task"
    """Of a higher priority, or it would have given way."""
    NOT_REALTIME = "the thread is not real-time"
    """Another task ran: only a real-time thread runs as soon as it is woken."""
    THROTTLED = "real-time throttling"
    """Real-time threads had used up their share of the time, until Linux 6.11."""
    FAIR_SERVER = "the fair server"
    """It gives ordinary tasks their share, before real-time ones, since Linux 6.8."""
    IN_PLACE_OF_HOLDER = "another task in place of a lock's holder"
    """The thread waited for a lock; who held it was runnable, and that task ran."""
    STOPPED = "a stopped thread"
    """A signal stopped the thread itself."""
    FROZEN = "a frozen thread"
    """The freezer of its cgroup, or that of a suspend, stopped it."""
    TRACED = "a traced thread"
    """A debugger stopped it."""
    MIGRATION = "a migration"
    """The thread was moved to another CPU."""
    DESCRIPTOR = "waiting for a descriptor"
    """The thread waited for a file, a pipe, a socket, or another thread's event."""
    OTHER_CPU = "waiting for another CPU"
    """For its answer, or for what it is to write to memory."""
    GRACE_PERIOD = "waiting for a grace period"
    """Of RCU: it ends behind the last of the readers that were there."""
    BLOCKED = "waiting for another thread"
    """The thread waited for what another is to do."""
    AWAITED_INTERRUPT = "waiting for an interrupt"
    """The thread waited for what a device or a timer tells by an interrupt."""
    OWN_SLEEP = "a sleep of its own"
    """The kernel let the thread sleep for a time, as a driver may: for nobody."""
    CPU_QUOTA = "a CPU quota"
    """The group of the thread, or its deadline server, had used up its time."""
    PAGE_FAULT = "a page fault"
    RETURN = "the return path"
    OWN_CODE = "the program's own code"
    """Of a whole cycle: what the thread runs between its wake-up and its sleep."""
    SYSTEM_CALL = "a system call"
    """Of a whole cycle: what the kernel does because the thread asks for it."""
    SENDING = "sending the event"
    CARRIER = "a thread that carries the event"
    EVENT_INTERRUPT = "the event's interrupt"
    ON_ITS_WAY = "an interrupt on its way"
    """From the CPU that woke the thread to the thread's own."""
    DEVICE = "a device that waits"
    """Between the store that it is used by and its request for an interrupt."""
    DEFERRED = "a deferred poll"
    """Where the device put the event it lay, until a timer let its driver look."""
    QUEUED = "waiting in a queue"
    """Of the sender's interface, until a timer let that go on."""
    TIMER_SLACK = "timer slack"
    """Timers of threads that are not real-time may expire some 50 us late."""
    TICK = "a timer that waits for the tick"
    """High-resolution timers are off: the kernel looks at timers at each tick."""
    PUT_OFF = "a timer interrupt put off"
    """The one before took so long that the kernel let the next wait as long."""
    LATE_TIMER = "a timer that expires in a softirq"
    """The thread was not real-time when it armed its timer."""
    TIMER_ELSEWHERE = "a timer on another CPU"
    """It expired there: the thread's CPU had given it away, as by nohz_full=."""
    HARDWARE = "hardware or hypervisor"
    PROBE = "a probe"
    """The handler of a probe or a tracer that was attached to a function."""
    UNKNOWN = "unknown"


TICK_REMEDY = (
    "remedy: boot without highres=off; the kernel needs CONFIG_HIGH_RES_TIMERS, and a "
    "clock source and a timer that let it use them"
)
"""What to do about `Cause.TICK`."""

PUT_OFF_REMEDY = "remedy: fewer timers due at once on this CPU, or shorter callbacks"
"""What to do about `Cause.PUT_OFF`."""

TIMER_ELSEWHERE_REMEDY = (
    "remedy, which may cost as much: sysctl kernel.timer_migration=0, or no nohz_full= "
    "for the CPUs of real-time threads"
)
"""What to do about `Cause.TIMER_ELSEWHERE`."""


class Confidence(StrEnum):
    """How sure a cause is."""

    SEEN = "seen"
    """The events themselves show it."""
    INFERRED = "inferred"
    """It follows from what is around it."""
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True)
class Segment:
    """A contiguous piece of the path, with one cause."""

    part: Part
    begin_ns: int
    """Since the expiry."""
    end_ns: int
    cause: Cause
    name: str
    """The function, interrupt or task; empty if none is known."""
    executed_ns: int | None = None
    """Of it, time in which this CPU executed; None if that is unknown.

    The rest it paused, mostly asleep.
    """
    evidence: tuple[str, ...] = ()
    confidence: Confidence = Confidence.SEEN
    functions: tuple[tuple[str, int], ...] = ()
    """Functions executed in it, and their own ns; most first."""
    callers: tuple[str, ...] = ()
    """The function nearly all of it happened in and who called it, innermost first."""
    other_cpus: tuple["OtherCpuActivity", ...] = ()
    """Activity of other CPUs, where this one waited for them."""
    task: str = ""
    """The task that the CPU ran; empty if it is not known, or was the measured one."""
    policy: str = ""
    """Its policy and priority; empty if they were not recorded."""
    jumped_to: str = ""
    """Of its calls, one that an unknown function may have led to by a jump."""
    holder: str = ""
    """Who held the thread back or let it go on, and what that task did; or empty."""
    pieces: tuple[tuple[str, int], ...] = ()
    """Handlers or system calls that it is made of, and their ns; most first."""

    duration_ns: int = field(init=False)
    counted_as: tuple[Cause, str] = field(init=False)
    """The cause that it is summed up under, and its task or place."""

    def __post_init__(self) -> None:
        """Take the duration and the cause, once for all that need them."""
        object.__setattr__(self, "duration_ns", self.end_ns - self.begin_ns)
        object.__setattr__(self, "counted_as", _counted_as(self))


@dataclass(frozen=True, slots=True)
class OtherCpuActivity:
    """The function that another CPU executed most during a segment."""

    cpu: int
    name: str
    """The call that began and ended it, if most was spent in a helper."""
    share: float
    """Of what that CPU executed in the segment, 0 to 1."""
    executed_ns: int
    """What it executed in the segment, of all functions."""
    callers: tuple[str, ...] = ()
    """The function and who called it, innermost first."""
    task: str = ""
    """The task that it ran; empty if it is not known."""
    policy: str = ""
    """Its policy and priority; empty if they were not recorded."""
    helper: str = ""
    """The function that the time was spent in, if that is another."""
    waits: bool = False
    """It waited in a loop itself."""
    is_idle: bool = False
    """It was idle, and no interrupt or call made it execute for long."""
    jumped_to: str = ""
    """Of its calls, one that an unknown function may have led to by a jump."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One wake-up, explained."""

    cpu: int
    sequence: int
    """Its number in the run; -1 for one of a trace that has no record."""
    latency_ns: int
    segments: tuple[Segment, ...]
    """In order; they do not overlap."""
    notes: tuple[str, ...] = field(default=())
    """What limits the explanation: a path that begins too late, lost events."""
    broken: tuple[Broken, ...] = field(default=())
    """Invariants that do not hold: the causes of their times prove nothing."""
    head: str = ""
    """What took the time, where that is no wake-up that rtscope measured itself."""
    unread_ns: int = 0
    """From the reading of the clock to the mark that a recorded path ends with."""
    since: Since = Since.DUE
    """What its times are counted from."""

    titles: Mapping[Part, str] = field(init=False, compare=False)
    """What its parts are called."""
    is_counted: bool = field(init=False)
    """Instructions were counted: along a path they are, not by events."""
    parts_ns: Mapping[Part, int] = field(init=False, compare=False)
    """The time of each part."""
    residual_ns: int = field(init=False)
    """What no segment covers; negative if they cover more than the latency."""
    attributed_share: float = field(init=False)
    """How much of the latency has a cause that is no guess, and proven, 0 to 1."""
    is_withdrawn: bool = field(init=False)
    """Broken invariants cover the dominant cause, or much of the latency."""
    dominant_ns: int = field(init=False)
    """How long the dominant cause took in all its segments; 0 without one."""
    dominant: Segment | None = field(init=False)
    """What took longest, of what need not be there: its longest segment; None if the
    explanation is withdrawn.

    The timer's own interrupt, the scheduler and the return belong to every wake-up:
    they are dominant only if all else is shorter than a quarter of them.
    """

    def __post_init__(self) -> None:
        """Take the figures of the segments, once for all that need them."""
        parts_ns, known_ns = dict.fromkeys(Part, 0), 0
        unproven = Covered(self.broken).between
        for one in self.segments:
            parts_ns[one.part] += one.duration_ns
            guessed = one.confidence is Confidence.GUESSED
            if one.cause is not Cause.UNKNOWN and not guessed:
                known_ns += one.duration_ns
                known_ns -= unproven(one.begin_ns, one.end_ns)
        dominant = _dominant(self.segments)
        unproven_ns = unproven(0, max(0, self.latency_ns))
        withdrawn = unproven_ns > WITHDRAWN_SHARE * self.latency_ns or (
            dominant is not None
            and 2 * unproven(dominant.begin_ns, dominant.end_ns) > dominant.duration_ns
        )
        if withdrawn:
            dominant = None
        share = known_ns / self.latency_ns if self.latency_ns > 0 else 0.0
        figures = {
            "titles": _TITLES_SINCE[self.since],
            "is_counted": any(one.executed_ns is not None for one in self.segments),
            "parts_ns": parts_ns,
            "residual_ns": self.latency_ns - sum(parts_ns.values()),
            "attributed_share": min(1.0, share),
            "is_withdrawn": withdrawn,
            "dominant": dominant,
            "dominant_ns": sum(
                one.duration_ns
                for one in self.segments
                if dominant is not None and one.counted_as == dominant.counted_as
            ),
        }
        for name, figure in figures.items():
            object.__setattr__(self, name, figure)


_TITLES_SINCE = {
    Since.DUE: TITLES,
    Since.SENT: EVENT_TITLES,
    Since.GAP: GAP_TITLES,
}

WITHDRAWN_SHARE = 0.05
"""More of the latency that proves nothing: the explanation is withdrawn."""

INHERENT = frozenset(
    {
        *(Cause.TIMER_INTERRUPT, Cause.SCHEDULER, Cause.RETURN, Cause.DELIVERY),
        *(Cause.SENDING, Cause.CARRIER, Cause.EVENT_INTERRUPT, Cause.ON_ITS_WAY),
    }
)


HELD_BACK = frozenset(
    {
        *(Cause.STOPPED, Cause.FROZEN, Cause.TRACED, Cause.MIGRATION),
        *(Cause.DESCRIPTOR, Cause.CPU_QUOTA, Cause.GRACE_PERIOD, Cause.BLOCKED),
        *(Cause.TIMER_ELSEWHERE, Cause.AWAITED_INTERRUPT, Cause.OWN_SLEEP),
    }
)
"""Causes that keep the thread itself from being runnable: nothing else delays it."""

COMPETING_TASKS = frozenset(
    {
        *(Cause.OTHER_TASK, Cause.NOT_REALTIME, Cause.THROTTLED, Cause.FAIR_SERVER),
        Cause.IN_PLACE_OF_HOLDER,
    }
)
"""Causes that are another task: what matters is which, not where it was."""


def _counted_as(segment: Segment) -> tuple[Cause, str]:
    if segment.cause in INHERENT:
        return segment.cause, ""  # the place differs, and means nothing
    if segment.cause in COMPETING_TASKS and segment.task:
        return segment.cause, segment.task
    return segment.cause, segment.name


def _dominant(segments: Sequence[Segment]) -> Segment | None:
    longest = max(segments, key=_length_ns, default=None)
    spent: Counter[tuple[Cause, str]] = Counter()
    for one in segments:
        if one.cause not in INHERENT:
            # Interrupts cut what goes on behind them: pieces of one are one.
            spent[one.counted_as] += one.duration_ns
    if longest is None or not spent or 4 * max(spent.values()) < longest.duration_ns:
        return longest
    dominant = max(spent, key=lambda key: spent[key])
    pieces = [one for one in segments if one.counted_as == dominant]
    return max(pieces, key=_length_ns)


def _length_ns(segment: Segment) -> int:
    """Return how long a segment is: a loop that pauses delays the thread as well."""
    return segment.duration_ns
