"""Events of the kernel's trace around an answer to an event, made by hand.

The sender runs on CPU 1 and reads the clock at time 0; the thread waits on CPU 0.
"""

from collections.abc import Iterable

from fakes.events import (
    DUE,
    FIFO_99,
    KNOWN,
    LOADING,
    THREAD,
    event,
    switch,
    thread,
    told,
    window,
)
from rtscope.explain.events.eventway import explain_event
from rtscope.explain.events.threadstates import MachineTraits, State, TracedWakeup
from rtscope.explain.model import Explanation, Since
from rtscope.record.events.events import Event, Flag, Loss

Task = tuple[int, str, int]
"""PID, name and priority."""

SENDER: Task = (300, "rtscope-ev/1", 1)
WORKER: Task = (400, "kworker/1:2", 120)
HOG: Task = (500, "hog", 0)
IDLE_1: Task = (0, "swapper/1", 120)
SEEN = KNOWN | {"ipi_send_cpu", "softirq_raise", "workqueue_queue_work"}
DELIVERED_NS = 2_000
METAL = MachineTraits(guest=False, preemptible=True, release=(6, 12))


def by(
    task: Task, at_ns: int, name: str, /, cpu: int = 1, flags: Flag = Flag.IRQS_OFF
) -> Event:
    """Return an event that a task wrote."""
    return event(at_ns, name, pid=task[0], comm=task[1], cpu=cpu, flags=flags)


def of_fields(event: Event, **fields: int | str) -> Event:
    """Return an event with fields, one of which may be called as the event's own."""
    return Event(
        event.at_ns,
        event.cpu,
        event.name,
        event.pid,
        event.comm,
        event.flags,
        event.preempt_depth,
        fields,
    )


def wakes(
    at_ns: int,
    who: Task,
    whom: Task,
    *,
    cpu: int = 1,
    to: int = 1,
    flags: Flag = Flag.IRQS_OFF,
    call: str = "",
) -> list[Event]:
    """
    Return a call that wakes a task: 2 us.

    It tells another CPU after 1 us. `call` is the function that the stack shows.
    """
    of: dict[str, int | str] = {
        "pid": whom[0],
        "comm": whom[1],
        "prio": whom[2],
        "target_cpu": to,
    }
    found = [of_fields(by(who, at_ns, "sched_waking", cpu, flags), **of)]
    if call:
        stack = by(who, at_ns + 500, "kernel_stack", cpu, flags)
        found.append(of_fields(stack, stack=f"try_to_wake_up < {call} < entry"))
    if to != cpu:
        sent = by(who, at_ns + 1_000, "ipi_send_cpu", cpu, flags)
        found.append(of_fields(sent, cpu=to))
    end = by(who, at_ns + 2_000, "sched_wakeup", cpu, flags)
    return [*found, of_fields(end, **of)]


def hears(at_ns: int, below: Task = LOADING, *, cpu: int = 0) -> list[Event]:
    """Return the interrupt by which a CPU hears of it: 500 ns."""
    flags = Flag.IRQS_OFF | Flag.HARDIRQ | Flag.NEED_RESCHED
    entry = of_fields(by(below, at_ns, "reschedule_entry", cpu, flags), vector=253)
    end = of_fields(by(below, at_ns + 500, "reschedule_exit", cpu, flags), vector=253)
    return [entry, end]


def begins(priority: int = FIFO_99, *, beside: Task = LOADING) -> list[Event]:
    """Return what was before: the thread sleeps, and the sender got its CPU."""
    return [
        switch(-180_000, thread(priority), beside, state="S"),
        switch(-2_000, IDLE_1, SENDER, cpu=1),
    ]


def answers(at_ns: int, priority: int = FIFO_99, *, after: Task = LOADING) -> Event:
    """Return the switch to the thread."""
    return switch(at_ns, after, thread(priority))


def answered(
    events: Iterable[Event],
    *,
    late_ns: int,
    machine: MachineTraits = METAL,
    losses: Iterable[Loss] = (),
    state: State = State.SLEEPING,
) -> Explanation:
    """Explain an answer; whatever the events are, its parts add up."""
    wakeup = TracedWakeup(
        THREAD, "rtscope/0", 0, DUE, DUE + late_ns, sequence=1, asleep=state
    )
    around = window(events, losses=tuple(losses), known=SEEN)
    found = explain_event(around, wakeup, machine=machine, sender=SENDER[0])
    assert found.residual_ns == 0
    ends = [0, *(one.end_ns for one in found.segments)]
    assert ends == [*(one.begin_ns for one in found.segments), late_ns]
    assert found.since is Since.SENT
    return found


def parts(found: Explanation) -> list[tuple[str, int, str, str]]:
    """Return part, duration, cause and name of each segment."""
    return [
        (part.value, duration_ns, cause.name, name)
        for part, _, duration_ns, cause, name in told(found)
    ]
