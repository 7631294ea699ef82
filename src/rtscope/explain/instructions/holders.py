"""
Who ran in the place of a lock's holder while the measured thread waited for it. Pure.

The task that ended the wait had the lock. If this holder was not running, it was
blocked (perhaps on another lock) or preempted by another task.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.absences import (
    Absence,
    EndOfWait,
    Wait,
    known_wait,
    left_in,
    returned_to,
    wait_of,
)
from rtscope.explain.instructions.calls import Run
from rtscope.explain.instructions.roles import Role
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

    def sleep_of_holder(self, absence: Absence) -> tuple[Wait, int] | None:
        """Return for what and how long the holder slept, if for half of it or more."""
        if absence.holder is None:
            return None
        begin, end = absence.begin_ns, absence.runnable_ns
        spent: Counter[Wait] = Counter()
        for left, back in self._away(absence.holder.task, begin, end):
            since = begin if left is None else max(begin, left.at_ns)
            wait = wait_of(self._waits_in(left, back))
            spent[wait] += min(end, back.at_ns) - since
        del spent[Wait.CPU]
        wait, ns = max(spent.items(), key=lambda row: row[1], default=(Wait.CPU, 0))
        if 2 * ns < max(1, end - begin):
            return None
        return wait, ns

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
    wait, ns = absence.asleep
    name = absence.holder.name or "an unknown task"
    return f"its holder {name} {_DID.get(wait, 'slept')} for {format_us(ns)} µs"


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
