"""
What held a thread back: the holder of a lock, a group without CPU time. Pure.

The task that ended the wait had the lock. If this holder was not running, it was
blocked (perhaps on another lock) or preempted by another task.

The kernel counts such a thread as runnable: its timer wakes it and it is queued, in a
queue that the scheduler passes over. `throttle_cfs_rq` takes a queue of ordinary
threads off a CPU, `unthrottle_cfs_rq` gives it back there (before Linux 6.3 on any CPU,
which is not looked for). With RT_GROUP_SCHED queues of real-time threads have a quota
too, and other functions take them off, which is not looked for either. Which queue it
was is not recorded: that it was the thread's own has to follow from what the CPU did
meanwhile.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.absences import (
    Absence,
    EndOfWait,
    Tasks,
    Wait,
    is_of_scheduler,
    known_wait,
    left_in,
    returned_to,
    wait_of,
)
from rtscope.explain.instructions.calls import Frame, Run, plain
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import switch_to
from rtscope.explain.model import OtherCpuActivity
from rtscope.host.units import format_us
from rtscope.record.instructions.section import TaskSwitch

HARDLY = 4
"""A CPU that executed less than one in so many parts of a time was mostly idle."""
MAX_CHAIN = 8
"""Holders that wait for one another: more than that are a mistake in reading."""
IDLE = "swapper/"
"""How the names of the idle tasks begin."""


@dataclass(frozen=True, slots=True)
class InPlace:
    """A time in which another task ran, and a lock's holder was runnable there."""

    begin_ns: int
    """Virtual time."""
    end_ns: int
    holder: TaskSwitch
    runner: TaskSwitch
    """With the CPU that it ran on, and the holder was to run on."""


@dataclass(frozen=True, slots=True)
class Locks:
    """What is known of all locks of a path."""

    releases: Sequence[EndOfWait]
    switches: Sequence[TaskSwitch]
    """Of all CPUs, in order."""
    runs_on: Callable[[int], Sequence[Run]]
    """What a CPU executed."""

    def in_place_of_holder(self, absence: Absence) -> tuple[InPlace, ...]:
        """Return who ran in the place of the holder of the lock, in order."""
        if absence.holder is None:
            return ()
        begin, end = absence.begin_ns, absence.runnable_ns
        lock = _taken_in(absence.calls)
        times = self._in_place(absence.holder, begin, end, lock, MAX_CHAIN)
        return tuple(sorted(times, key=lambda one: one.begin_ns))

    def sleep_of_holder(self, absence: Absence) -> tuple[Wait, int, str] | None:
        """Return for what, how long and where the holder slept, if for half of it."""
        if absence.holder is None:
            return None
        begin, end = absence.begin_ns, absence.runnable_ns
        spent: Counter[tuple[Wait, str]] = Counter()
        for left, back in self._away(absence.holder.task, begin, end):
            since = begin if left is None else max(begin, left.at_ns)
            calls = self._waits_in(left, back)
            wait = wait_of(calls)
            if wait is not Wait.CPU:
                spent[wait, _sleeps_in(calls)] += min(end, back.at_ns) - since
        if not spent:
            return None
        (wait, where), ns = max(spent.items(), key=lambda row: row[1])
        if 2 * ns < max(1, end - begin):
            return None
        return wait, ns, where

    def _in_place(
        self, holder: TaskSwitch, begin_ns: int, end_ns: int, lock: str, links: int
    ) -> Iterator[InPlace]:
        for left, back in self._away(holder.task, begin_ns, end_ns):
            since = begin_ns if left is None else max(begin_ns, left.at_ns)
            calls = self._waits_in(left, back)
            wait = wait_of(calls)
            if wait is Wait.CPU:
                cpu = back.cpu if left is None else left.cpu
                yield from self._runners(holder, cpu, since, back.at_ns)
            elif wait is Wait.LOCK and links:
                owner = self._released_by(holder.task, since, back.at_ns)
                other = _taken_in(calls)
                # One that waited for the same lock did not have it before.
                since = begin_ns if other == lock else since
                if owner is not None:
                    yield from self._in_place(
                        owner, since, back.at_ns, other, links - 1
                    )

    def _released_by(self, task: int, begin_ns: int, end_ns: int) -> TaskSwitch | None:
        """Return who released the lock that a task waited for between two times."""
        by = [
            one
            for at_ns, one in self.releases
            if begin_ns < at_ns < end_ns and one.task != task
        ]
        return by[-1] if by else None

    def _away(
        self, task: int, begin_ns: int, end_ns: int
    ) -> Iterator[tuple[TaskSwitch | None, TaskSwitch]]:
        """Yield the switches from a task, None before the path, and next to it."""
        left: TaskSwitch | None = None
        on: int | None = None
        for one in self.switches:
            if one.at_ns >= end_ns:
                return
            if one.task == task:
                if on is None and one.at_ns > begin_ns:
                    yield left, one
                on, left = one.cpu, None
            elif one.cpu == on:
                on, left = None, one

    def _waits_in(self, left: TaskSwitch | None, back: TaskSwitch) -> Sequence[str]:
        """Return the calls that a task was in between two switches."""
        run = None if left is None else self._switching(left)
        calls = [] if run is None else [*left_in(run)]
        if wait_of(calls) is not Wait.UNKNOWN:
            return calls
        run = self._switching(back)
        runs = self.runs_on(back.cpu)
        return [] if run is None else [*returned_to(runs, run.end_ns)]

    def _switching(self, switch: TaskSwitch) -> Run | None:
        """Return the run that switched: the record of it comes a little later."""
        runs = self.runs_on(switch.cpu)
        before = bisect_right(runs, switch.at_ns, key=lambda run: run.end_ns)
        return next(
            (
                runs[i]
                for i in range(before - 1, -1, -1)
                if runs[i].frame.role is Role.SWITCH
            ),
            None,
        )

    def _runners(
        self, holder: TaskSwitch, cpu: int, begin_ns: int, end_ns: int
    ) -> Iterator[InPlace]:
        mine = [one for one in self.switches if one.cpu == cpu]
        first = max(0, bisect_right(mine, begin_ns, key=lambda one: one.at_ns) - 1)
        last = bisect_left(mine, end_ns, key=lambda one: one.at_ns)
        ends = [one.at_ns for one in mine[first + 1 : last]]
        for one, until in zip(mine[first:last], [*ends, end_ns], strict=True):
            since = max(begin_ns, one.at_ns)
            if until > since and not one.name.startswith(IDLE):
                yield InPlace(since, until, holder, one)


def _sleeps_in(calls: Sequence[str]) -> str:
    """Return the first function behind those that let any thread sleep."""
    others = (one for one in calls if not (known_wait(one) or is_of_scheduler(one)))
    return next(others, "")


def _taken_in(calls: Sequence[str]) -> str:
    """Return the function that takes the lock which a task waits for."""
    waits = [at for at, name in enumerate(calls) if known_wait(name) is Wait.LOCK]
    return calls[waits[-1] + 1] if waits and waits[-1] + 1 < len(calls) else ""


def longest_in_place(
    times: Sequence[InPlace], begin_ns: int, end_ns: int
) -> InPlace | None:
    """Return who ran for the most of a time, if that was half of it or more."""
    inside = (
        (min(one.end_ns, end_ns) - max(one.begin_ns, begin_ns), one)
        for one in times
        if one.begin_ns < end_ns and begin_ns < one.end_ns
    )
    ns, longest = max(inside, key=lambda row: row[0], default=(0, None))
    return longest if 2 * ns >= max(1, end_ns - begin_ns) else None


_DID = {
    Wait.TRACED: "was stopped by a debugger",
    Wait.STOPPED: "was stopped by a signal",
    Wait.HALTED: "was stopped by a signal or frozen",
    Wait.FROZEN: "was frozen",
    Wait.TIMER: "slept until a timer expired",
    Wait.PAGE: "waited for a page",
    Wait.LOCK: "waited for another lock",
    Wait.DESCRIPTOR: "waited for a descriptor",
    Wait.GRACE_PERIOD: "waited for a grace period of RCU",
    Wait.THREAD: "waited for another thread",
}


def of_sleep(absence: Absence) -> str:
    """Write what the holder of the lock did, if it slept itself; else nothing."""
    if absence.holder is None or absence.asleep is None:
        return ""
    wait, ns, function = absence.asleep
    name = absence.holder.name or "an unknown task"
    where = f" in {function}" if function else ""
    return f"its holder {name} {_DID.get(wait, 'slept')} for {format_us(ns)} µs{where}"


def of_idle_cpus(
    others: Sequence[OtherCpuActivity], executed_ns: int, duration_ns: int
) -> str:
    """
    Write of an unknown holder that it hardly ran, if no CPU did; else nothing.

    `executed_ns` is what the thread's own CPU executed.
    """
    ran_ns = max([executed_ns, *(one.executed_ns for one in others)])
    if HARDLY * ran_ns > duration_ns:
        return ""
    did = " and ".join(
        f"CPU {one.cpu} executed {format_us(one.executed_ns)} µs" for one in others
    )
    return f"its holder hardly ran: {did or 'no other CPU executed anything'}"


# --- A thread whose group had used up its CPU time: when, and what shows that ---------

THROTTLE, UNTHROTTLE = "throttle_cfs_rq", "unthrottle_cfs_rq"
PROMPT_NS = 10_000
"""A board delivers an interrupt that is on, and leaves its idle loop, at once: up to
4,700 ns were seen on `pc`, whose timer ticks coarsely."""
_CALLERS = 6
_MAY_RUN = frozenset({Wait.CPU, Wait.TIMER, Wait.TIMER_ELSEWHERE})
"""Behind these waits the thread is runnable, and its CPU may be kept from it."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A queue was throttled, or unthrottled."""

    run: Run
    """The one in which the call began."""
    throttles: bool
    of_thread: bool
    """The thread that is measured had the CPU."""


def over_quota(
    absences: Sequence[Absence],
    runs: Sequence[Run],
    tasks: Tasks,
    switches: Sequence[TaskSwitch],
) -> Iterator[Absence]:
    """Yield when the thread's own group might not run; `switches` are of its CPU."""
    changes = list(_changes(runs, tasks))
    for absence in absences if changes else ():
        arrived = switch_to(absence.end_ns, switches)
        if absence.wait not in _MAY_RUN or arrived is None or not arrived.is_ordinary:
            continue
        for since_ns, throttled, unthrottled in _times(absence, changes):
            until_ns = unthrottled.run.begin_ns
            # That the thread wanted to run is as sure as the end of its sleep.
            reason, is_sure = (
                _why_runnable(since_ns, until_ns, throttled, runs),
                absence.is_sure,
            )
            if not reason and _first_after(until_ns, switches) == arrived.task:
                reason, is_sure = "the thread was the next to run", False
            if reason:
                calls = tuple(left_in(throttled.run)) if throttled else (THROTTLE,)
                evidence = tuple(_evidence(throttled, unthrottled, reason))
                times = since_ns, absence.end_ns, until_ns
                yield Absence(
                    *times, Wait.QUOTA, calls, evidence=evidence, is_sure=is_sure
                )


def _changes(runs: Sequence[Run], tasks: Tasks) -> Iterator[_Change]:
    """Yield the calls in order, each once: it goes on behind what it calls."""
    seen: set[Frame] = set()
    for run, of_thread in zip(runs, tasks.measured, strict=True):
        name = plain(run.frame.name)
        if name in (THROTTLE, UNTHROTTLE) and run.frame not in seen:
            seen.add(run.frame)
            yield _Change(run, name == THROTTLE, of_thread)


def _times(
    absence: Absence, changes: Sequence[_Change]
) -> Iterator[tuple[int, _Change | None, _Change]]:
    """Yield from when on, and between which changes, a queue was off the CPU."""
    throttled: _Change | None = None
    is_off = True  # of what was before the path nothing is known
    for change in changes:
        at_ns = change.run.begin_ns
        if change.throttles:
            throttled, is_off = change, True
            continue
        if is_off and absence.runnable_ns < at_ns <= absence.end_ns:
            since_ns = absence.runnable_ns
            yield (
                max(since_ns, throttled.run.begin_ns if throttled else since_ns),
                throttled,
                change,
            )
        throttled, is_off = None, False


def _why_runnable(
    since_ns: int, until_ns: int, throttled: _Change | None, runs: Sequence[Run]
) -> str:
    """Say what proves that it was the thread's queue; nothing if nothing does."""
    if throttled is not None and throttled.of_thread:
        return "the thread had the CPU then"
    idled = any(
        Role.IDLE in run.frame.within
        and run.end_ns - run.begin_ns - run.executed_ns > PROMPT_NS
        for run in runs
        if since_ns < run.begin_ns and run.end_ns <= until_ns
    )
    return "the CPU was idle then, although the thread wanted to run" if idled else ""


def _first_after(at_ns: int, switches: Sequence[TaskSwitch]) -> int | None:
    """Return the first ordinary task that a CPU switched to; no other is looked for."""
    later = (one for one in switches if one.at_ns > at_ns)
    return next((one.task for one in later if one.is_ordinary), None)


def _evidence(
    throttled: _Change | None, unthrottled: _Change, reason: str
) -> Iterator[str]:
    yield (
        "the thread's control group had used up its CPU time (its cpu.max or that of a "
        f"group above): {reason}"
    )
    if throttled is None:
        yield f"{THROTTLE} took it off this CPU before the path begins"
    yield f"given back by {' < '.join(list(left_in(unthrottled.run))[:_CALLERS])}"
