"""
What a thread of SCHED_DEADLINE does by `sched_yield`: it ends its cycle. Pure.

The kernel then gives the CPU to others until its next period begins, and the thread
could run all the time, as one that is preempted or has no runtime left.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rtscope.contract import EventCount, WatchedThread
from rtscope.machine.tasks.model import Thread
from rtscope.verbs.app.model import EventStack

DEADLINE = "deadline"
YIELD = "sched_yield"
UNSEEN = "a thread ends its cycles by sched_yield: no wake-up begins one"
"""Why they have no times: the kernel tells nobody when the next one may begin."""
_SWITCHES = ("set_aside", "preempted")
"""As which the end of a cycle is counted; in most of them no real-time thread waits."""


_UNDER_WAY = 1
"""The yield at the end of the watching, which had not returned, is no timed call."""


def yields_of(watched: WatchedThread) -> int:
    """Return how often the thread ended a cycle so."""
    return sum(one.times.count for one in watched.calls if one.name == YIELD)


def ended_by_yields(
    judged: Iterable[Thread],
    watched: Sequence[WatchedThread],
    cycles: Mapping[int, int],
) -> set[int]:
    """
    Return the threads that end most of their cycles so, from the numbers of those that
    wake-ups begin: these are then no cycles.
    """
    yields: Counter[int] = Counter()
    for one in watched:
        yields[one.tid] += yields_of(one)
    return {
        tid
        for one in judged
        if one.line.policy == DEADLINE
        and yields[tid := one.line.tid]
        and yields[tid] >= cycles.get(tid, 0)
    }


def without_yields(watched: WatchedThread) -> WatchedThread:
    """Return what a thread of SCHED_DEADLINE did but for the ends of its cycles."""
    yields = yields_of(watched)
    if not yields:
        return watched
    yields += _UNDER_WAY
    events = dict(watched.events)
    for kind in _SWITCHES:
        if (one := events.get(kind)) is None:
            continue
        of_yields = min(yields, one.count)
        yields -= of_yields
        # Which of them the longest is of is not known.
        events[kind] = EventCount(one.count - of_yields, one.sampled)
    calls = tuple(one for one in watched.calls if one.name != YIELD)
    return replace(watched, events=events, calls=calls)


def apart_from_yields(stacks: Iterable[EventStack]) -> tuple[EventStack, ...]:
    """Return the stacks of switches that no `sched_yield` led to."""
    return tuple(
        one
        for one in stacks
        if not any(YIELD in frame.function for frame in one.stack.frames)
    )
