"""
From the wake-ups of a thread to stretches, each of which may begin a cycle. Pure.

A wake-up is one, and more where the thread goes on at once because a time had passed:
that of a sleep which was none, or that of a cycle while it served another's wake-up.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.programs.cycles.periods import Beginnings
from rtscope.programs.cycles.threadruns import NO_SLEEP, RELATIVE, Run
from rtscope.programs.outside.clocks import Clock
from rtscope.programs.outside.wakeups import TIMER_ABSTIME, Call, Wakeup

_ABSOLUTE = ("clock_nanosleep", "clock_nanosleep_time64")
_MONOTONIC = 1
"""CLOCK_MONOTONIC."""
_WAY_NS = 1_000
"""From a call to where the kernel sets its timer: it differs by less."""
_FUTEXES = ("futex", "futex_wait", "futex_waitv")
_WORD = ~7
"""A condition of glibc has two words beside each other, which it uses in turn."""

Idle = tuple[str, int]
"""A call, and the word or the place in the program that it is at."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A wake-up, or what follows within it since a time that passed."""

    at: int
    """The number of its wake-up."""
    run: Run
    wakeup: Wakeup
    begin_ns: int
    timed: bool
    first_ns: int
    call: Call | None
    """The sleep that was none, with which it began, or an empty call at the time that
    came within; None: it began with the wake-up."""

    @property
    def slept(self) -> bool:
        """Whether it began with the wake-up."""
        return self.call is None

    @property
    def before(self) -> tuple[int, int]:
        """Time on a CPU in ns, and own instructions, of the wake-up until it began."""
        if self.call is None:
            return 0, 0
        return self.call.on_cpu_before_ns, self.call.user_before


def stretches_of(at: int, wakeup: Wakeup, clock: Clock) -> Iterator[Stretch]:
    """Yield a wake-up in parts: it goes on at once where its time had passed."""
    if wakeup.first_ns is None:
        return
    asleep = wakeup.after
    relative = asleep is not None and _is_relative(asleep)
    begin_ns, due_ns = wakeup.woken_ns, 0
    if wakeup.release_ns is not None and wakeup.expires_ns is not None:
        begin_ns, due_ns = wakeup.release_ns, clock.on_grid(wakeup.expires_ns)
    armed_ns = 0 if asleep is None else asleep.began_ns
    if relative and asleep is not None and asleep.asked_ns is not None and due_ns:
        armed_ns = due_ns - asleep.asked_ns
    flags = RELATIVE if relative else 0
    run = _run(wakeup, due_ns, armed_ns, wakeup.woken_ns, flags)
    yield Stretch(at, run, wakeup, begin_ns, due_ns != 0, wakeup.first_ns, None)
    for call in wakeup.calls:
        if not _passed(call) or call.ended_ns is None:
            continue
        asked_ns = call.asked_ns if call.arguments[0] == _MONOTONIC else None
        due = None if asked_ns is None else clock.of_board(asked_ns)
        at_ns = call.ended_ns if due is None else min(due, call.ended_ns)
        grid_ns = at_ns if asked_ns is None else clock.on_grid(asked_ns)
        run = _run(wakeup, grid_ns, call.began_ns, call.ended_ns, NO_SLEEP)
        yield Stretch(at, run, wakeup, at_ns, due is not None, call.ended_ns, call)


def with_served(
    ours: Sequence[Stretch], found: Beginnings
) -> tuple[Sequence[Stretch], Beginnings]:
    """
    Add the cycles that begin within a wake-up by another thread.

    A loop that waits for a time and for others, as an executor of callbacks or an event
    loop, has no sleep before a cycle whose time comes while it serves another wake-up.
    What it did on a CPU since that time is known, its instructions since its last call
    before.
    """
    timed = [ours[at] for at in sorted(found.at) if ours[at].timed]
    waits = Counter(
        wait for one in timed if (wait := idle_of(one.wakeup.after)) is not None
    )
    idle = max(waits, key=lambda one: waits[one], default=None)
    if not found.grid_ns or idle is None:
        return ours, found
    known_ns = [one.begin_ns for one in timed]
    made: list[Stretch] = []
    begins: list[int] = []
    last: Stretch | None = None
    for at, one in enumerate(ours):
        made.append(one)
        if at in found.at:
            begins.append(len(made) - 1)
            last = one if one.timed else last
        elif last is not None and _serves(one, idle):
            periods = -((last.begin_ns - one.begin_ns) // found.grid_ns)
            later_ns = max(1, periods) * found.grid_ns
            due_ns = last.begin_ns + later_ns
            # A time that came as it went to sleep has woken it.
            has_woken = _has_near(known_ns, due_ns, found.grid_ns // 2)
            if due_ns < (one.wakeup.asleep_ns or 0) and not has_woken:
                last = _begun_within(one, last, later_ns)
                made.append(last)
                begins.append(len(made) - 1)
    return made, replace(found, at=frozenset(begins))


def _has_near(times_ns: Sequence[int], at_ns: int, near_ns: int) -> bool:
    """Whether one of some times, in order, is near to another."""
    first = bisect_left(times_ns, at_ns - near_ns)
    return first < len(times_ns) and times_ns[first] <= at_ns + near_ns


def _serves(one: Stretch, idle: Idle) -> bool:
    """Whether another woke it from where it waits for its cycles."""
    by_another = one.wakeup.waker is not None and not one.timed and one.slept
    return by_another and idle_of(one.wakeup.after) == idle


def _begun_within(one: Stretch, last: Stretch, later_ns: int) -> Stretch:
    """Return the cycle that began so much later than the last one."""
    wakeup, due_ns = one.wakeup, last.begin_ns + later_ns
    asleep_ns = wakeup.asleep_ns or due_ns
    lost_ns = sum(
        max(0, push.ended_ns - max(push.began_ns, due_ns))
        for push in wakeup.preemptions
    )
    before = [call for call in wakeup.calls if call.began_ns <= due_ns]
    call = Call(
        *(0, "", (0, 0, 0), due_ns, due_ns),
        user_before=before[-1].user_before if before else 0,
        on_cpu_before_ns=max(0, wakeup.on_cpu_ns - (asleep_ns - due_ns - lost_ns)),
    )
    armed_ns = due_ns if wakeup.after is None else wakeup.after.began_ns
    run = _run(wakeup, last.run.due_ns + later_ns, armed_ns, due_ns, NO_SLEEP)
    return Stretch(one.at, run, wakeup, due_ns, True, due_ns, call)


def with_equal_requests(stretches: Sequence[Stretch]) -> Sequence[Stretch]:
    """
    Take sleeps for an interval as equal that differ by the way into the kernel only.

    Where the call does not tell for how long, it is known from when it began.
    """
    unknown = [
        at
        for at, one in enumerate(stretches)
        if one.run.flags & RELATIVE and one.run.due_ns and not _is_told(one.wakeup)
    ]
    runs = {at: stretches[at].run for at in unknown}
    alike_ns: int | None = None
    for at in sorted(unknown, key=lambda n: runs[n].due_ns - runs[n].armed_ns):
        request_ns = runs[at].due_ns - runs[at].armed_ns
        if alike_ns is None or request_ns - alike_ns > _WAY_NS:
            alike_ns = request_ns
        runs[at] = replace(runs[at], armed_ns=runs[at].due_ns - alike_ns)
    return [replace(one, run=runs.get(at, one.run)) for at, one in enumerate(stretches)]


def _is_told(wakeup: Wakeup) -> bool:
    return wakeup.after is not None and wakeup.after.asked_ns is not None


def _run(wakeup: Wakeup, due_ns: int, armed_ns: int, woken_ns: int, flags: int) -> Run:
    return Run(
        tid=0,
        cpu=wakeup.cpu,
        armed_ns=min(armed_ns, due_ns) if due_ns else 0,
        due_ns=due_ns,
        woken_ns=woken_ns,
        in_ns=wakeup.in_ns,
        out_ns=wakeup.asleep_ns or wakeup.in_ns,
        ran_ns=wakeup.on_cpu_ns,
        preempted=len(wakeup.preemptions),
        flags=flags,
    )


def _is_relative(call: Call) -> bool:
    if call.name in _ABSOLUTE:
        return not call.arguments[1] & TIMER_ABSTIME
    return call.name != "read"  # of a timerfd


def _passed(call: Call) -> bool:
    """Whether a sleep to a time ended at once, since that had passed."""
    is_absolute = call.name in _ABSOLUTE and call.arguments[1] & TIMER_ABSTIME
    return bool(is_absolute) and not call.slept and call.result == 0


def idle_of(call: Call | None) -> Idle | None:
    """
    Return where a thread is idle that sleeps in a call; None if nothing tells.

    That is a word of memory, as of a condition, or a call at one place of the program,
    as of an event loop: there it waits for whatever comes first.
    """
    if call is None:
        return None
    if call.name in _FUTEXES:
        return place_of(call)
    return (call.name, call.place) if call.place else None


def place_of(call: Call) -> tuple[str, int]:
    """Return where a thread sleeps: a call, and the word of memory if it is for one."""
    return call.name, call.arguments[0] & _WORD if call.name in _FUTEXES else 0
