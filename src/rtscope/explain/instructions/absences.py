"""
The tasks of a CPU, when the measured one was off it, and what it waited for. Pure.

The calls that it left its CPU in show it, or else those that it returns to: a sleep may
have begun before the path. `waits.toml` has the functions. Whoever made it runnable
again called one of a few functions, on whichever CPU.
"""

import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache, lru_cache
from importlib import resources

import numpy as np

from rtscope.explain.instructions.calls import Frame, Run, begun, plain, role_of
from rtscope.explain.instructions.milestones import wakes_of
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import (
    ENTRIES,
    Queued,
    leads_to_program,
    switch_to,
)
from rtscope.explain.model import Cause
from rtscope.record.instructions.section import RecordKind, TaskSwitch, TraceSection
from rtscope.record.instructions.symbols import USER, SymbolTable


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one CPU's runs; the sequences are empty if none were recorded."""

    names: Sequence[str]
    """Of the task of each run; empty if that is unknown."""
    policies: Sequence[str]
    """Its policy and priority, likewise."""
    prios: Sequence[int | None]
    """What the kernel calls its priority, likewise; None if it was not recorded."""
    measured: Sequence[bool]
    """Whether the thread that is measured did a run; False if that is unknown."""
    arrivals_ns: Sequence[int]
    """When the CPU switched to the measured thread, in virtual ns."""
    departures: Sequence[int]
    """The runs in which the measured thread left the CPU, in order."""


def tasks_of(cpu: int, switched: Sequence[TaskSwitch], runs: Sequence[Run]) -> Tasks:
    """Return the tasks of the CPU that the wake-up was on."""
    leaving = [i for i, run in enumerate(runs) if run.frame.role is Role.SWITCH]
    ends = [runs[i].end_ns for i in leaving]
    switches = [(_begin_of(one, ends), one) for one in switched if one.cpu == cpu]
    if not switches:
        return Tasks((), (), (), (False,) * len(runs), (), ())
    at = [count for count, _ in switches]
    before = [bisect_right(at, run.begin_ns) - 1 for run in runs]
    ours = switches[-1][1].task
    policies = [one.policy for _, one in switches]
    measured = [i >= 0 and switches[i][1].task == ours for i in before]
    return Tasks(
        names=[switches[i][1].name if i >= 0 else "" for i in before],
        policies=[policies[i] if i >= 0 else "" for i in before],
        prios=[switches[i][1].prio if i >= 0 else None for i in before],
        measured=measured,
        arrivals_ns=[
            count for count, one in switches if one.task == ours and not one.changed
        ],
        departures=[i for i in leaving if measured[i]],
    )


def _begin_of(recorded: TaskSwitch, ends: Sequence[int]) -> int:
    """A task is recorded a few instructions behind the switch to it."""
    if recorded.changed:
        return recorded.at_ns
    before = bisect_right(ends, recorded.at_ns) - 1
    return ends[before] if before >= 0 else recorded.at_ns


class Wait(Enum):
    """What a thread that is off its CPU waits for."""

    CPU = auto()
    """It was preempted: it is runnable."""
    TIMER = auto()
    """It sleeps until its timer expires."""
    TIMER_ELSEWHERE = auto()
    """The same, and its timer expires on another CPU."""
    STOPPED = auto()
    FROZEN = auto()
    TRACED = auto()
    HALTED = auto()
    """It is stopped or frozen: who ended that shows which."""
    LOCK = auto()
    PAGE = auto()
    OLD_PAGE = auto()
    """A page that it wanted before its timer was due: since an earlier cycle."""
    DESCRIPTOR = auto()
    MIGRATION = auto()
    QUOTA = auto()
    GRACE_PERIOD = auto()
    """Of RCU: until all its readers have ended."""
    OTHER_CPU = auto()
    """The CPU itself waits, in a loop, until another has done something."""
    THREAD = auto()
    """Another thread is to end the wait: for what is not known."""
    SLEEP = auto()
    """The kernel lets it sleep for a time, as a driver may: it waits for nobody."""
    INTERRUPT = auto()
    """An interrupt is to end the wait, as a device's or a timer's may."""
    MOVED = auto()
    """It is runnable, in the queue of another CPU, until it is moved back."""
    UNKNOWN = auto()


CAUSES: Mapping[Wait, Cause] = {
    Wait.STOPPED: Cause.STOPPED,
    Wait.FROZEN: Cause.FROZEN,
    Wait.TRACED: Cause.TRACED,
    Wait.HALTED: Cause.STOPPED,
    Wait.LOCK: Cause.LOCK,
    Wait.DESCRIPTOR: Cause.DESCRIPTOR,
    Wait.MIGRATION: Cause.MIGRATION,
    Wait.QUOTA: Cause.CPU_QUOTA,
    Wait.GRACE_PERIOD: Cause.GRACE_PERIOD,
    Wait.THREAD: Cause.BLOCKED,
    Wait.SLEEP: Cause.OWN_SLEEP,
    Wait.INTERRUPT: Cause.AWAITED_INTERRUPT,
    Wait.MOVED: Cause.OTHER_TASK,
    Wait.OLD_PAGE: Cause.PAGE_FAULT,
    Wait.TIMER_ELSEWHERE: Cause.TIMER_ELSEWHERE,
}
"""What keeps the thread itself from being runnable; a new page is its fault's time."""


@dataclass(frozen=True, slots=True)
class Absence:
    """The measured thread was off its CPU; virtual times in ns."""

    begin_ns: int
    """When it left; the begin of the path if it was away by then."""
    end_ns: int
    """When the CPU switched to it again."""
    runnable_ns: int
    """From when on it was runnable again; its end if nothing shows that."""
    wait: Wait
    calls: tuple[str, ...]
    """The calls that it waited in, innermost first."""
    ended_by: str = ""
    """The task that made it runnable again, with its CPU."""
    holder: TaskSwitch | None = None
    """Of the lock that it waited for: the task that released it."""
    asleep: "tuple[Wait, int, str] | None" = None
    """For what, how many ns and in which function that holder slept, if half of it."""
    evidence: tuple[str, ...] = ()
    """What shows it, where that is neither the calls nor who ended it."""
    is_sure: bool = True
    """False if it only follows from what came next."""
    woken: tuple[int, int] | None = None
    """When the call began that made it runnable again, and its CPU, if that shows."""
    queued: Queued | None = None
    runner: TaskSwitch | None = None
    """Who had the other CPU that the thread was moved to."""

    @property
    def cause(self) -> Cause | None:
        """What held the thread back; None if that is its CPU, timer, or a page."""
        return CAUSES.get(self.wait)

    @property
    def is_end_exact(self) -> bool:
        """Tell whether it shows at which instruction the thread was runnable again."""
        return self.queued is not None or self.wait is Wait.TIMER_ELSEWHERE

    @property
    def readers(self) -> str:
        """What ends readers' sections, where a grace period awaits them; or empty."""
        if self.wait is not Wait.GRACE_PERIOD:
            return ""
        of_srcu = any("srcu" in name for name in self.calls)
        return "__srcu_read_unlock" if of_srcu else "__rcu_read_unlock"

    @property
    def waited_in(self) -> str:
        """The call that shows what it waited for; empty if none does."""
        known = next(filter(known_wait, self.calls), "")
        if known or self.wait not in (Wait.THREAD, Wait.INTERRUPT):
            return known
        return next((one for one in self.calls if not is_of_scheduler(one)), "")


def absences_of(
    section: TraceSection,
    symbols: SymbolTable,
    runs: Sequence[Run],
    tasks: Tasks,
    switches: Sequence[TaskSwitch],
) -> tuple[Absence, ...]:
    """
    Return the absences of the measured thread in a path, in order.

    Without recorded tasks it is known of the last one only: the mark is the thread's.
    """
    ends = {run.end_ns for run in runs if run.frame.role is Role.SWITCH}
    if tasks.names:
        arrivals = [at_ns for at_ns in tasks.arrivals_ns if at_ns in ends]
    else:
        arrivals = [max(ends)] if ends else []
    absences, since = [], -1
    for arrival in arrivals:
        departed = (runs[i] for i in tasks.departures)
        left = next(
            (x for x in departed if since < x.begin_ns and x.end_ns < arrival), None
        )
        calls = tuple(left_in(left)) if left else ()
        begin_ns = left.begin_ns if left else max(since, section.first_ns)
        wait = wait_of(calls)
        if wait is Wait.UNKNOWN and all(map(is_of_scheduler, calls)):
            # A thread that came in this path, and has not left the scheduler since, was
            # preempted there. Else the path began behind the calls that matter.
            calls = (
                calls if left and since >= 0 else (*calls, *returned_to(runs, arrival))
            )
            wait = Wait.CPU if left and since >= 0 else wait_of(calls)
        absence = Absence(begin_ns, arrival, arrival, wait, calls)
        absences.append(_with_end(absence, runs, section, symbols, switches))
        since = arrival
    return tuple(absences)


def wait_of(calls: Sequence[str]) -> Wait:
    """Return what a thread waits for that left its CPU in these calls."""
    caller, called = "", False
    for at, name in enumerate(calls):
        if known_wait(name):
            return _of_callers(calls[at:])
        if caller:
            continue
        if role_of(name) is Role.PREEMPT or role_of(name) in ENTRIES:
            return Wait.CPU
        if leads_to_program(name):
            return Wait.CPU
        if not is_of_scheduler(name):
            caller, called = name, at > 0 and name != USER
    # A function that calls the scheduler itself waits for somebody to wake it.
    return Wait.THREAD if called else Wait.UNKNOWN


def known_wait(name: str) -> Wait | None:
    """Return what a thread waits for in a function; None if nobody knows."""
    return _waits().get(name)


def _of_callers(calls: Sequence[str]) -> Wait:
    """Return a wait that is known by what called it, as a lock or a fault may."""
    of = [wait for name in calls if (wait := known_wait(name))]
    if of[0] is Wait.CPU:  # it gave its CPU away, whatever it was about to do
        return Wait.CPU
    if Wait.PAGE in of:  # a fault that waits for the lock of the address space
        return Wait.PAGE
    if of[0] in (Wait.TIMER, Wait.THREAD) and Wait.SLEEP in of:
        return Wait.SLEEP
    said = (one for one in of if one is not Wait.THREAD)
    return next(said, Wait.THREAD) if of[0] is Wait.THREAD else of[0]


@cache
def spins() -> Mapping[str, Wait]:
    """Return the functions that loop until another CPU is done: what they wait for."""
    return {
        name: Wait[wait] for wait, names in _table("spins") for name in names.split()
    }


@cache
def _helpers() -> frozenset[str]:
    """Return the functions that such loops call, and others too."""
    return frozenset(name for _, names in _table("helps") for name in names.split())


def spin_of(frame: Frame) -> Wait | None:
    """Return what a call waits for in a loop, or as part of one; None if for none."""
    loops, name = spins(), plain(frame.name)
    if name not in _helpers():
        return loops.get(name)
    callers = (loops.get(plain(one.name)) for one in frame.chain())
    return next(filter(None, callers), None)


def is_of_scheduler(name: str) -> bool:
    """Tell whether any thread that leaves its CPU is in this function."""
    return role_of(name) is not Role.OTHER or name.startswith("schedule")


def left_in(left: Run) -> Iterator[str]:
    """Yield the calls that a thread left its CPU in, innermost first."""
    for frame in left.frame.chain():
        yield plain(frame.name)


def returned_to(runs: Sequence[Run], arrival_ns: int) -> Iterator[str]:
    """Yield the calls that a thread returns to: of none of them the caller is known."""
    last = ""
    for run in runs[begun(runs, arrival_ns) :]:
        name = plain(run.frame.name)
        if run.frame.role is Role.SWITCH or name == USER:
            return
        if run.frame.caller is None and name != last:
            yield name
            last = name


def _with_end(
    absence: Absence,
    runs: Sequence[Run],
    section: TraceSection,
    symbols: SymbolTable,
    switches: Sequence[TaskSwitch],
) -> Absence:
    """Find out when the thread was runnable again, and by whom."""
    begin, end, wait = absence.begin_ns, absence.end_ns, absence.wait
    holder: TaskSwitch | None = None
    woken: tuple[int, int] | None = None
    if wait is Wait.HALTED:
        ends = (
            kind
            for kind in (Wait.FROZEN, Wait.STOPPED)
            if any(begin < at < end for at, _ in _calls(section, symbols, kind))
        )
        wait = next(ends, wait)
    here = [one for one in switches if one.cpu == section.cpu]
    is_timed = wait is Wait.TIMER or bool(_MAY_END.intersection(absence.calls))
    wakes = _expiries(runs, switch_to(end, here), begin, end) if is_timed else []
    if wakes and wait is Wait.DESCRIPTOR:
        by_others = calls_of(section, symbols, "futex_wake")
        wait = wait if any(begin < x[0] < end for x in by_others) else Wait.TIMER
    if wait is Wait.CPU:
        runnable_ns, by = begin, ""
    elif wait is Wait.TIMER:
        expiry_ns = section.last_ns - section.latency_ns
        due = [at_ns for at_ns in wakes if at_ns >= expiry_ns]
        if not wakes and any(
            begin < at_ns < end for at_ns, _ in calls_of(section, symbols, SETS_POLICY)
        ):
            due = _sole_wake(runs, max(begin, expiry_ns), end)
        # A path that begins behind the expiry does not show how the sleep ended.
        ended = begin if begin == section.first_ns > expiry_ns else end
        runnable_ns, by = (due or wakes or [ended])[0], ""
    else:
        ours = [one.task for one in here[-1:]]
        calls = ends_of_waits(wait, section, symbols, switches)
        calls = [call for call in calls if call[1].task not in ours]
        inside = [call for call in calls if begin < call[0] < end]
        if wait is Wait.LOCK:
            inside = _of_one_cpu(inside, section.cpu)
            holder = inside[-1][1] if inside else None
        runnable_ns, by = end, ""
        if inside:
            runnable_ns, last = inside[-1]
            woken = runnable_ns, last.cpu
            by = f"{last.name or 'an unknown task'} on CPU {last.cpu}"
    return replace(
        absence,
        runnable_ns=runnable_ns,
        wait=wait,
        ended_by=by,
        holder=holder,
        is_sure=wait in _OF_ITS_CPU or woken is not None,
        woken=woken,
    )


SETS_POLICY = "__sched_setscheduler"
"""A thread that was ordinary when it was woken may be real-time when it runs."""


_MAY_END = frozenset({"futex_wait", "__futex_wait", "futex_wait_queue"})
"""A wait for another thread, as of a condition or semaphore, may have a timeout."""


def _expiries(
    runs: Sequence[Run], arrived: TaskSwitch | None, begin_ns: int, end_ns: int
) -> list[int]:
    """Return when timers of this CPU woke a thread of that kind, in order."""
    inside = (run for call in wakes_of(runs, arrived) for run in call)
    woke = (run.begin_ns for run in inside if run.frame.role is Role.WAKE)
    return sorted(at_ns for at_ns in woke if begin_ns <= at_ns < end_ns)


def _sole_wake(runs: Sequence[Run], begin_ns: int, end_ns: int) -> list[int]:
    """Return when the one callback between two times woke a thread, of any policy."""
    inside = (call[0].begin_ns for call in wakes_of(runs, None))
    found = [at_ns for at_ns in inside if begin_ns <= at_ns < end_ns]
    return found if len(found) == 1 else []


_OF_ITS_CPU = frozenset({Wait.CPU, Wait.TIMER})
"""Of these the thread's own CPU shows the end."""

EndOfWait = tuple[int, TaskSwitch]
"""When a task made others runnable, and which."""


def ends_of_waits(
    wait: Wait,
    section: TraceSection,
    symbols: SymbolTable,
    switches: Sequence[TaskSwitch],
) -> list[EndOfWait]:
    """Return who called what ends such waits, in order."""
    return [
        (at_ns, task_at(at_ns, cpu, switches))
        for at_ns, cpu in _calls(section, symbols, wait)
    ]


def _of_one_cpu(calls: list[EndOfWait], cpu: int) -> list[EndOfWait]:
    """Return the calls on the thread's own CPU if it made any: each has its locks."""
    return [call for call in calls if call[1].cpu == cpu] or calls


def _calls(
    section: TraceSection, symbols: SymbolTable, wait: Wait
) -> Iterator[tuple[int, int]]:
    """Yield time and CPU of the calls that end such waits, in order."""
    yield from _begins_at(section, _addresses(symbols, "ended-by", wait))


def ending(wait: Wait) -> frozenset[str]:
    """Return the functions that end such a wait; of a stop those of all stops."""
    of = (Wait.STOPPED, Wait.FROZEN, Wait.TRACED) if wait is Wait.HALTED else (wait,)
    lines = (line for one in of for line in _others_calls("ended-by").get(one, ()))
    return frozenset(name for line in lines for name in line)


def begins_of_waits(
    wait: Wait, section: TraceSection, symbols: SymbolTable
) -> Iterator[tuple[int, int]]:
    """Yield time and CPU of the calls by which others make a thread wait, in order."""
    yield from _begins_at(section, _addresses(symbols, "begun-by", wait))


def calls_of(
    section: TraceSection, symbols: SymbolTable, function: str
) -> Iterator[tuple[int, int]]:
    """Yield time and CPU of the calls of a function, in order."""
    yield from _begins_at(section, tuple(symbols.addresses_of(function)))


def _begins_at(
    section: TraceSection, addresses: Sequence[int]
) -> Iterator[tuple[int, int]]:
    if not addresses:
        return
    called = (section.kinds == RecordKind.BLOCK) & np.isin(
        section.values, np.array(addresses, np.uint64)
    )
    yield from zip(
        section.at_ns[called].tolist(), section.cpus[called].tolist(), strict=True
    )


@lru_cache(maxsize=16)
def _addresses(symbols: SymbolTable, key: str, wait: Wait) -> tuple[int, ...]:
    """Return where the functions begin that end or begin such waits: a long search."""
    of_lines = (
        (list(symbols.addresses_of(name)) for name in names)
        for names in _others_calls(key).get(wait, ())
    )
    return tuple(at for line in of_lines for at in next(filter(None, line), ()))


def task_at(at_ns: int, cpu: int, switches: Sequence[TaskSwitch]) -> TaskSwitch:
    """Return the task of a CPU at a time; one without a name if none was recorded."""
    before = [one for one in switches if one.cpu == cpu and one.at_ns <= at_ns]
    return before[-1] if before else TaskSwitch(at_ns, cpu, 0, "")


@cache
def _waits() -> Mapping[str, Wait]:
    return {name: Wait[wait] for wait, names in _table("in") for name in names.split()}


@cache
def _others_calls(key: str) -> Mapping[Wait, Sequence[Sequence[str]]]:
    return {
        Wait[wait]: [line.split() for line in lines.splitlines()]
        for wait, lines in _table(key)
    }


def _table(key: str) -> Iterator[tuple[str, str]]:
    here = resources.files("rtscope.explain.instructions")
    table = tomllib.loads(here.joinpath("waits.toml").read_text("utf-8"))[key]
    yield from table.items()
