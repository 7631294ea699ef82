"""
Who carried an event from its sender to the thread, by the kernel's events. Pure.

The event that woke the thread was written by the sender, or by a thread or an interrupt
that had the event before it. Each of them was woken too, or was handed the event by a
softirq that was raised or by work that was queued; and so on, back to the sender. Where
no event tells who did that, the way before it is unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rtscope.explain.events.eventlists import EventList
from rtscope.explain.events.intervals import ExplainContext, unfrozen_by
from rtscope.explain.events.spans import SOFTIRQS, Doing, Frame
from rtscope.explain.events.threadstates import (
    State,
    StateInterval,
    TracedWakeup,
    sleep_state,
    thread_states,
)
from rtscope.explain.instructions.titles import system_call
from rtscope.explain.model import Cause
from rtscope.record.events.events import Event, Window

_MOST_CARRIERS = 8
_OF_SOFTIRQS = ("ksoftirqd/", "ktimers/")
_SENT_BY = frozenset({"ipi_send_cpu", "ipi_raise"})
_BESIDE = frozenset({*_SENT_BY, "kernel_stack"})
"""Written by the call that wakes a thread, between its two events."""
_OWN_PLACE, _ITS_CALL = "its own code", "its call"
"""What a carrier does, or the sender, where no stack and no work tells."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """A task or an interrupt that had the event for a time."""

    cause: Cause
    """Of its own time: it sends the event, carries it, or is its interrupt."""
    pid: int
    """The task; of an interrupt the one below it."""
    name: str
    cpu: int
    """Where it handed the event on."""
    begin_ns: int
    end_ns: int
    """When it handed the event on."""
    place: str
    """What it did of its own."""
    call: Event | None = None
    """The event that handed it on to it; None if there is none."""
    entered_ns: int | None = None
    """Of an interrupt: when it began, as far as that is known."""
    softirq: str = ""
    """Of a task: the softirq that it ran itself to hand the event on."""


@dataclass(frozen=True, slots=True)
class Way:
    """What led to the wake-up of the thread."""

    carriers: tuple[Carrier, ...]
    """In the order of the event."""
    slept: StateInterval | None
    """The sleep that it ended; None if the thread did not sleep."""
    is_known: bool
    """The first of them is the sender."""


class Search:
    """What is asked to find the carriers of the event that woke a thread."""

    def __init__(self, context: ExplainContext, sender: int) -> None:
        """Take the events around the wake-up, and the thread that sends events."""
        self._context = context
        self._sender = sender
        self._sent_ns = context.wakeup.expiry_ns

    def way(self) -> Way:
        """Return who carried the event: to the last sleep that led from the sender."""
        events = self._context.events
        slept = [
            one
            for one in self._context.intervals
            if one.state is State.SLEEPING and unfrozen_by(events, one) is None
        ]
        ways = (self._way(one) for one in reversed(slept))
        last = next(ways, None)
        if last is None:
            return Way((), None, is_known=True)
        return last if last.is_known else next((w for w in ways if w.is_known), last)

    def _way(self, slept: StateInterval) -> Way:
        carriers: list[Carrier] = []
        handed = slept.end
        while handed is not None and len(carriers) < _MOST_CARRIERS:
            if handed.name in ("sched_switch", "sched_wakeup"):
                break  # who woke it was lost
            one = self._by(handed)
            carriers.append(one)
            handed = one.call
        is_known = bool(carriers) and carriers[-1].cause is Cause.SENDING
        return Way(tuple(reversed(carriers)), slept, is_known=is_known)

    def _by(self, handed: Event) -> Carrier:
        """Return who had the event when an event handed it on."""
        frames = self._context.frames_at(handed)
        interrupt = next((f for f in frames if f.doing is Doing.INTERRUPT), None)
        softirq = next((f for f in frames if f.doing is Doing.SOFTIRQ), None)
        if interrupt is not None:
            return self._interrupt(handed, interrupt)
        if softirq is None:
            return self._task(handed, None, place=self._place(handed))
        place = f"softirq {softirq.name}"
        raised = self._raised(handed, softirq)
        if raised is not None and self._is_inline(raised, handed):
            found = self._task(handed, None, place=self._place(handed))
            return replace(found, softirq=softirq.name)
        if raised is None:
            return self._task(handed, None, place=place)
        if handed.comm.startswith(_OF_SOFTIRQS):
            found = self._task(handed, raised, place=place)
            return replace(found, softirq=softirq.name)
        raised_in = self._context.frames_at(raised)
        entry = next((f for f in raised_in if f.doing is Doing.INTERRUPT), None)
        if entry is not None:
            return self._interrupt(handed, entry)
        begin_ns, cause = raised.at_ns, Cause.EVENT_INTERRUPT
        return self._carrier(handed, cause, begin_ns, place, call=raised)

    def _is_inline(self, raised: Event, handed: Event) -> bool:
        """Tell whether a task runs the softirq that it has raised itself."""
        frames = self._context.frames_at(raised)
        return raised.pid == handed.pid and not any(
            frame.doing is Doing.INTERRUPT for frame in frames
        )

    def _interrupt(self, handed: Event, entry: Frame) -> Carrier:
        """Return an interrupt; another CPU may have sent it."""
        entered_ns, sent = entry.entered_ns, None
        if entered_ns is not None:
            sent = self._sent_to(handed.cpu, self._sent_ns, entered_ns)
        begin_ns = self._sent_ns if entered_ns is None else entered_ns
        if sent is not None:
            begin_ns = sent.at_ns
        cause = Cause.EVENT_INTERRUPT
        found = self._carrier(handed, cause, begin_ns, entry.name, call=sent)
        return replace(found, entered_ns=entered_ns)

    def _sent_to(self, cpu: int, from_ns: int, to_ns: int) -> Event | None:
        """Return the event that sent an interrupt to a CPU last, if one is known."""
        sent = (
            self._context.events.named("ipi_send_cpu")
            .apart("target", lambda event: event.numbers.get("cpu"), cpu)
            .last_before(to_ns)
        )
        return sent if sent is not None and sent.at_ns >= from_ns else None

    def _task(self, handed: Event, raised: Event | None, *, place: str) -> Carrier:
        if handed.pid == self._sender:
            place = _ITS_CALL if place == _OWN_PLACE else place
            return self._carrier(handed, Cause.SENDING, self._sent_ns, place)
        queued = raised or self._queued(handed)
        woken = self._woken(handed)
        call = queued or woken
        if queued is not None and woken is not None and woken.at_ns >= queued.at_ns:
            # The same call has queued the work and woken who does it.
            call = woken if woken.pid == queued.pid else queued
        begin_ns = self._sent_ns if call is None else call.at_ns
        return self._carrier(handed, Cause.CARRIER, begin_ns, place, call=call)

    def _carrier(
        self,
        handed: Event,
        cause: Cause,
        begin_ns: int,
        place: str,
        *,
        call: Event | None = None,
    ) -> Carrier:
        facts = self._context.facts
        name = facts.name(handed.pid, handed.at_ns) or handed.comm
        return Carrier(
            cause,
            handed.pid,
            name or f"thread {handed.pid}",
            handed.cpu,
            min(max(begin_ns, self._sent_ns), handed.at_ns),
            handed.at_ns,
            place,
            call,
        )

    def _woken(self, handed: Event) -> Event | None:
        """Return what ended the last sleep of a task before it handed the event on."""
        begin_ns = self._sent_ns
        states = states_of(self._context, handed.pid, begin_ns, handed.at_ns)
        ends = [one.end for one in states if one.state is State.SLEEPING]
        last = ends[-1] if ends else None
        return last if last is not None and last.name == "sched_waking" else None

    def _raised(self, handed: Event, softirq: Frame) -> Event | None:
        """Return what raised the softirq that woke a thread."""
        number = SOFTIRQS.index(softirq.name) if softirq.name in SOFTIRQS else -1
        raised = (
            self._context.events_of(handed.cpu)
            .named("softirq_raise")
            .apart("vec", lambda event: event.numbers.get("vec"), number)
            .last_until(softirq.entered_ns or handed.at_ns)
        )
        return raised if raised is not None and self._is_behind(raised) else None

    def _queued(self, handed: Event) -> Event | None:
        """Return what queued the work that a worker did when it woke a thread."""
        work = self._work(handed)
        if work is None:
            return None
        queued = (
            self._context.events.named("workqueue_queue_work")
            .apart("work", _work_of, _work_of(work))
            .last_until(work.at_ns)
        )
        return queued if queued is not None and self._is_behind(queued) else None

    def _is_behind(self, event: Event) -> bool:
        return event.at_ns >= self._sent_ns

    def _work(self, handed: Event) -> Event | None:
        """Return the begin of the work that a worker is in; None if it is in none."""
        theirs = self._context.events.of_task(handed.pid)
        ends = theirs.named("workqueue_execute_end").last_before(handed.at_ns)
        begun = theirs.named("workqueue_execute_start").last_before(handed.at_ns)
        is_over = begun and ends and ends.at_ns >= begun.at_ns
        return None if is_over else begun

    def _place(self, handed: Event) -> str:
        """Return what a task did when it handed the event on."""
        work = self._work(handed)
        if work is not None:
            return work.text("function") or _OWN_PLACE
        stack = self._context.events_of(handed.cpu).first_from(handed.at_ns + 1)
        if stack is None or stack.name != "kernel_stack":
            return _OWN_PLACE
        functions = stack.text("stack").replace("ksys_", "__se_sys_").split(" < ")
        return next(filter(None, map(system_call, functions)), _OWN_PLACE)


def states_of(
    context: ExplainContext,
    pid: int,
    begin_ns: int,
    end_ns: int,
    asleep: State = State.UNKNOWN,
) -> tuple[StateInterval, ...]:
    """Return the states of any task in a time; an event that it wrote shows it run."""
    if asleep is State.UNKNOWN:
        asleep = _state_before(context.window, pid)
    one = TracedWakeup(pid, "", None, begin_ns, end_ns, asleep=asleep)
    written = context.events.of_task(pid).of_kind("inside", _is_no_switch)
    states = thread_states(context.window, one)
    return tuple(piece for state in states for piece in _with_runs(state, written))


def _with_runs(one: StateInterval, written: EventList) -> Iterator[StateInterval]:
    """Yield a wait, and from an event on that its own task wrote that it ran."""
    ran = written.first_from(one.begin_ns + 1)
    if one.state is not State.RUNNABLE or ran is None or ran.at_ns >= one.end_ns:
        yield one
        return
    yield replace(one, end_ns=ran.at_ns, end=None)
    yield replace(one, state=State.RUNNING, begin_ns=ran.at_ns, cpu=ran.cpu, began=ran)


def _is_no_switch(event: Event) -> bool:
    return event.name != "sched_switch"


def _state_before(window: Window, pid: int) -> State:
    """Return what is known of a task from the switches before a window."""
    state = State.UNKNOWN
    for event in window.earlier:
        if event.numbers.get("next_pid") == pid:
            state = State.RUNNING
        elif event.numbers.get("prev_pid") == pid:
            state = sleep_state(event.text("prev_state"))
    return state


def handed_on_ns(events: EventList, call: Event) -> int:
    """
    Return when the call that woke a thread had put it into a queue.

    It tells the thread's CPU of it then, or writes `sched_wakeup` itself. `events` are
    those of the CPU of the call.
    """
    if call.name != "sched_waking":
        return call.at_ns
    for event in _behind(events, call):
        if event.name in _SENT_BY:
            return event.at_ns
        if event.name == "sched_wakeup":
            same = event.numbers.get("pid") == call.numbers.get("pid")
            return event.at_ns if same else call.at_ns
    return call.at_ns


def tells(events: EventList, call: Event, cpu: int) -> bool:
    """Tell whether the call that woke a thread sent an interrupt to that CPU."""
    return any(
        event.name in _SENT_BY and event.numbers.get("cpu", cpu) == cpu
        for event in _behind(events, call)
    )


def _behind(events: EventList, call: Event) -> Iterator[Event]:
    """Yield what the call itself wrote behind the waking, the end of it included."""
    for event in events[events.before(call.at_ns) :]:
        if event is call or event.at_ns < call.at_ns:
            continue
        if event.pid != call.pid:
            return
        yield event
        if event.name not in _BESIDE:
            return


def _work_of(event: Event) -> int | str:
    return event.fields.get("work", "")
