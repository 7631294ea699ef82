"""
From the events around a wake-up to an explanation, and what limits it. Pure.

The explanation joins the segments of all intervals of the thread (`intervals.py`). Its
notes say what the events do not show, or who else was late.
"""

from collections.abc import Iterator

from rtscope.explain.events.histories import (
    MAX_RT_PRIO,
    Priority,
    histories_of,
)
from rtscope.explain.events.intervals import ExplainContext, segments_of
from rtscope.explain.events.irqdelay import event_gaps_apart
from rtscope.explain.events.noise import explain_noise, is_of_noise
from rtscope.explain.events.proofs import broken_invariants
from rtscope.explain.events.spans import Doing
from rtscope.explain.events.threadstates import (
    MachineTraits,
    State,
    TracedWakeup,
    thread_states,
)
from rtscope.explain.model import TIMER_ELSEWHERE_REMEDY, Explanation, joined
from rtscope.record.events.events import Window

_SLIGHT_NS = 1_000
_NEEDED = ("sched_switch", "sched_waking")


def explain_events(
    window: Window, wakeup: TracedWakeup, *, machine: MachineTraits
) -> Explanation:
    """Explain a wake-up from the events around it."""
    if "sched_switch" not in window.known and is_of_noise(window, wakeup):
        return explain_noise(window, wakeup)
    due_ns, latency_ns = wakeup.expiry_ns, wakeup.latency_ns
    intervals = thread_states(window, wakeup)
    ended = (
        one.end for one in intervals if one.state in (State.SLEEPING, State.STOPPED)
    )
    woken = next((event for event in ended if event is not None), None)
    facts = histories_of(window)
    waits = [one.end_ns for one in intervals if one.state is State.RUNNABLE]
    priority = facts.at(wakeup.pid, max(waits, default=wakeup.wake_ns))
    context = ExplainContext(window, wakeup, machine, {}, intervals, woken, facts)
    segments = [s for interval in intervals for s in segments_of(context, interval)]
    events, limits = context.events_of(context.cpu), tuple(_notes(context, priority))
    apart = joined(
        list(event_gaps_apart(segments, events, due_ns=due_ns, machine=machine))
    )
    return Explanation(
        cpu=context.cpu,
        sequence=wakeup.sequence,
        latency_ns=latency_ns,
        notes=limits,
        segments=apart,
        broken=broken_invariants(window, wakeup, intervals, apart, facts=facts),
    )


def _notes(context: ExplainContext, priority: Priority) -> Iterator[str]:
    """Return the limits of an explanation from these events."""
    if priority.values and max(priority.values) >= MAX_RT_PRIO:
        yield f"the thread is {priority.words}: any other thread may delay it"
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
    yield from _started_late(context)
    yield from _timer_elsewhere(context)
    moved = {
        interval.cpu
        for interval in context.intervals
        if interval.state is State.RUNNABLE
    }
    cpus = sorted(cpu for cpu in moved if cpu is not None)
    if len(cpus) > 1:
        yield f"the thread migrated: it waited on CPUs {', '.join(map(str, cpus))}"


def _started_late(context: ExplainContext) -> Iterator[str]:
    """Say that a thread asked for its timer only when it was due already."""
    wakeup = context.wakeup
    for event in context.window.events:
        if event.name != "hrtimer_start" or event.pid != wakeup.pid:
            continue
        due_ns = event.numbers.get("softexpires", event.at_ns)
        late_ns = event.at_ns - due_ns
        if due_ns == wakeup.expiry_ns and late_ns > _SLIGHT_NS:
            yield (
                f"the thread started its timer {late_ns / 1000:,.3f} us after it was "
                "due: until then it did something else"
            )


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
