"""What limits an explanation from events, or who else was late. Pure."""

from collections.abc import Iterator

from rtscope.explain.events.context import ExplainContext
from rtscope.explain.events.scheduling import MAX_RT_PRIO, priority_words
from rtscope.explain.events.spans import Doing
from rtscope.explain.events.threadstates import State
from rtscope.explain.model import TIMER_ELSEWHERE_REMEDY

_NEEDED = ("sched_switch", "sched_waking")


def notes(context: ExplainContext) -> Iterator[str]:
    """Return the limits of an explanation from these events."""
    priority = context.priority
    if priority is not None and priority >= MAX_RT_PRIO:
        yield (
            f"the thread is {priority_words(priority)}: any other thread may delay it"
        )
    missing = [name for name in _NEEDED if name not in context.window.known]
    if missing:
        yield f"the trace has no {' and no '.join(missing)} events"
    if not context.has_interrupts:
        yield (
            "the trace has no entries of interrupts: they are seen only from the first "
            "event inside"
        )
    if not context.wakeup.programmed:
        yield (
            "the expiry of the timer is unknown: the path begins where the thread was "
            "woken"
        )
    if context.wakeup.to_the_switch:
        yield "the path ends at the switch to the thread: its own code has no event"
    if context.window.resolution_ns > 1:
        yield (
            f"the resolution of the trace is {context.window.resolution_ns} ns: "
            "shorter segments cannot be distinguished"
        )
    yield from _timer_elsewhere(context)
    moved = {
        interval.cpu
        for interval in context.intervals
        if interval.state is State.RUNNABLE
    }
    cpus = sorted(cpu for cpu in moved if cpu is not None)
    if len(cpus) > 1:
        yield f"the thread migrated: it waited on CPUs {', '.join(map(str, cpus))}"


def _timer_elsewhere(context: ExplainContext) -> Iterator[str]:
    """Say that a timer did not expire on the CPU on which its thread went to sleep."""
    woken = context.woken
    began = next((one.began for one in context.intervals if one.end is woken), None)
    if woken is None or began is None or began.cpu == woken.cpu:
        return
    if any(one.doing is Doing.CALLBACK for one in context.frames_at(woken)):
        yield (
            f"the timer expired on CPU {woken.cpu}: until the thread was woken, that "
            f"CPU delayed it; {TIMER_ELSEWHERE_REMEDY}"
        )
