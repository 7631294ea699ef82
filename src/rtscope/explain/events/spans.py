"""
The activity of a CPU over time, from the events of its trace. Pure.

Interrupts, softirqs and callbacks of timers nest over a task. Where events are missing
(an interrupt whose entry is no event, a trace that begins inside one), the flags that
every event carries show them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from rtscope.explain.events.eventlists import EventList
from rtscope.explain.events.histories import RENAMES, Histories, new_name, renamed
from rtscope.record.events.events import Event, Flag, Loss, Window

IDLE_PID = 0
AWAKE = 0xFFFFFFFF
"""`cpu_idle` with this state: the CPU left idle (PWR_EVENT_EXIT)."""
UNNAMED = "not recorded"
_ONE_UNNAMED_NS = 500_000
"""Two events in interrupts that are farther apart are of two: a tick comes each ms."""
_EXIT_MISSING = "an interrupt ended without an event"
_SWITCH_MISSING = "another task ran without a sched_switch event"
SOFTIRQS = (
    "HI",
    "TIMER",
    "NET_TX",
    "NET_RX",
    "BLOCK",
    "IRQ_POLL",
    "TASKLET",
    "SCHED",
    "HRTIMER",
    "RCU",
)
"""include/linux/interrupt.h; the order is part of the kernel's interface to tools."""
_ENTRIES = {"irq_handler_entry": "irq_handler_exit", "ipi_entry": "ipi_exit"}
_CALLBACKS = {
    "hrtimer_expire_entry": "hrtimer_expire_exit",
    "timer_expire_entry": "timer_expire_exit",
    "csd_function_entry": "csd_function_exit",
}
_ENTRY_FRAME = re.compile(
    r"asm_(sysvec|common_interrupt|spurious)|el[01]\w*_(irq|interrupt)|__irq_(svc|usr)"
    r"|handle_exception$|ret_from_exception$|do_irq$"
)
"""The functions that x86, arm64, 32-bit ARM and RISC-V enter an interrupt by."""


BEFORE_ALL_NS = -(1 << 62)
"""When an interrupt was entered in which a trace begins."""


class Doing(StrEnum):
    """The innermost thing that a CPU did."""

    TASK = "task"
    IDLE = "idle"
    SOFTIRQ = "softirq"
    INTERRUPT = "interrupt"
    CALLBACK = "callback"
    LOST = "lost"
    """Events were lost here: nothing is known."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Something that nests over a task."""

    doing: Doing
    name: str
    entered_ns: int | None
    """None if it was entered before the trace begins, or without an event."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task, as far as events show it."""

    pid: int
    comm: str
    """At the time that it ran."""

    label: str = field(init=False)
    """Its name; its number where the trace has no name."""
    numbered: str = field(init=False)
    """Name and number, as traces write them."""

    def __post_init__(self) -> None:
        """Name it, once for all that mention it."""
        label = "idle" if self.pid == IDLE_PID else self.comm or f"thread {self.pid}"
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "numbered", f"{self.comm or '<...>'}-{self.pid}")


@dataclass(frozen=True, slots=True)
class Span:
    """A CPU did one thing from `begin_ns` to `end_ns`."""

    begin_ns: int
    end_ns: int
    doing: Doing
    name: str
    task: Task
    """The task below, or itself."""
    frames: tuple[Frame, ...] = ()
    """What nests over the task, outermost first."""
    loss: Loss | None = None
    count: int = 1
    """Of how many it was made: callbacks of many timers become one."""

    @property
    def interrupt(self) -> Frame | None:
        """The outermost interrupt that it is in."""
        return next((f for f in self.frames if f.doing is Doing.INTERRUPT), None)

    def is_callback(self, entered_ns: int | None) -> bool:
        """Tell whether it is the callback that an event says was entered then."""
        return (
            self.doing is Doing.CALLBACK
            and entered_ns is not None
            and self.frames[-1].entered_ns == entered_ns
        )

    def clipped(self, begin_ns: int, end_ns: int) -> "Span":
        """Return what of it lies in a time."""
        return replace(
            self,
            begin_ns=max(self.begin_ns, begin_ns),
            end_ns=min(self.end_ns, end_ns),
        )


@dataclass(slots=True)
class _Cpu:
    """The state of a CPU between two events."""

    task: Task
    frames: list[Frame] = field(default_factory=list)
    idle_state: int | None = None
    put_aside: dict[int, list[Frame]] = field(default_factory=dict)
    """Softirqs of tasks that were switched away, as PREEMPT_RT does."""


def spans_of(window: Window, cpu: int, facts: Histories) -> tuple[Span, ...]:
    """
    Return what a CPU did, without gaps, from the begin of the window to its end.

    `facts` are those of the same window: they have the names of tasks.
    """
    events = [event for event in window.events if event.cpu == cpu]
    losses = [loss for loss in window.losses if loss.cpu == cpu]
    behind: dict[int, Loss] = {}
    for one in losses:
        if one.after_ns < one.before_ns:
            behind.setdefault(one.after_ns, one)
    if not events:
        why = losses[0] if losses else None
        return (_lost(window.begin_ns, window.end_ns, why),)
    state = _state_before(events[0], facts)
    spans = [_known_before(window, cpu, events[0], losses, state)]
    for event, following in zip(events, (*events[1:], None), strict=True):
        _apply(state, event)
        end = window.end_ns if following is None else following.at_ns
        if following is not None:
            _end_unnamed(state, event, following)
        # Several events may have the time of the last one before the loss.
        loss = behind.get(event.at_ns)
        if loss is None and following is not None and _switch_missing(state, following):
            loss = Loss(cpu, event.at_ns, end, None, _SWITCH_MISSING)
        if loss is None and following is not None and _exit_missing(state, following):
            loss = Loss(cpu, event.at_ns, end, None, _EXIT_MISSING)
        ended = following is None and end > window.last_ns.get(cpu, end)
        if loss is None and not ended:
            spans.append(_span(state, event.at_ns, end))
            continue
        spans.append(_lost(event.at_ns, end, loss))
        if following is not None:
            put_aside = state.put_aside
            state = _state_before(following, facts)
            state.put_aside = put_aside
    elsewhere = [e for e in window.events if e.cpu != cpu and e.name in RENAMES]
    named = spans if not elsewhere else _renamed(spans, elsewhere, facts)
    return tuple(_merged(span for span in named if span.end_ns > span.begin_ns))


def _renamed(
    spans: Sequence[Span], elsewhere: Sequence[Event], facts: Histories
) -> Iterator[Span]:
    """Yield spans, with the names that tasks got from another CPU."""
    pids = {renamed(event) for event in elsewhere}
    for span in spans:
        if span.task.pid not in pids:
            yield span
            continue
        inside = (e.at_ns for e in elsewhere if span.begin_ns < e.at_ns < span.end_ns)
        for begin_ns, end_ns in pairwise([span.begin_ns, *inside, span.end_ns]):
            name = facts.name(span.task.pid, begin_ns)
            task = Task(span.task.pid, name or span.task.comm)
            doing = task.label if span.doing is Doing.TASK else span.name
            yield replace(span, begin_ns=begin_ns, end_ns=end_ns, name=doing, task=task)


def callbacks_together(
    spans: Sequence[Span], *, waking_ns: int | None = None
) -> list[Span]:
    """
    Make one span of the callbacks of timers with the same function, one after another.

    What the interrupt does between two of them is done for the next one. The callback
    that was entered at `waking_ns` stays as it is.
    """
    together: list[Span] = []
    for at, span in enumerate(spans):
        following = spans[at + 1] if at + 1 < len(spans) else None
        last = together[-1] if together else None
        ours = any(s is not None and s.is_callback(waking_ns) for s in (last, span))
        if last is None or ours or last.doing is not Doing.CALLBACK:
            together.append(span)
        elif _same_callback(last, span):
            count = last.count + span.count
            together[-1] = replace(last, end_ns=span.end_ns, count=count)
        elif not (
            following is not None
            and span.frames == last.frames[:-1]
            and _same_callback(last, following)
            and not following.is_callback(waking_ns)
        ):
            together.append(span)
    return together


def _same_callback(a: Span, b: Span) -> bool:
    return (a.doing, a.name, a.frames[:-1]) == (b.doing, b.name, b.frames[:-1])


def is_entry(event: Event) -> bool:
    """Tell whether an event is the entry of an interrupt."""
    return event.name in _ENTRIES or (
        event.name.endswith("_entry") and "vector" in event.fields
    )


def is_exit(event: Event) -> bool:
    """Tell whether an event is the end of an interrupt."""
    return event.name in _ENTRIES.values() or (
        event.name.endswith("_exit") and "vector" in event.fields
    )


def _lost(begin_ns: int, end_ns: int, loss: Loss | None) -> Span:
    return Span(begin_ns, end_ns, Doing.LOST, "", Task(-1, ""), loss=loss)


def _end_unnamed(state: _Cpu, last: Event, following: Event) -> None:
    """End an interrupt that only flags show, after its last event."""
    outer = next((f for f in state.frames if f.doing is Doing.INTERRUPT), None)
    if outer is None or outer.name != UNNAMED:
        return
    apart = following.at_ns - last.at_ns > _ONE_UNNAMED_NS
    if _is_outside(following) or (apart and following.name != "kernel_stack"):
        _pop(state, Doing.INTERRUPT)


def _exit_missing(state: _Cpu, following: Event) -> bool:
    """Tell whether an interrupt is over by now, and its end was not recorded."""
    inside = any(frame.doing is Doing.INTERRUPT for frame in state.frames)
    return inside and _is_outside(following) and not is_exit(following)


def _is_outside(event: Event) -> bool:
    """Tell whether an event says that it was written in no interrupt."""
    return event.flags is not None and not event.flags & (Flag.HARDIRQ | Flag.NMI)


def _switch_missing(state: _Cpu, following: Event) -> bool:
    """Tell whether another task runs now without an event of a switch."""
    known = following.pid >= 0 and state.task.pid >= 0
    return known and following.pid != state.task.pid


def _known_before(
    window: Window, cpu: int, first: Event, losses: Sequence[Loss], state: _Cpu
) -> Span:
    """Return the span before the first event of the window."""
    lost = next((one for one in losses if one.before_ns == first.at_ns), None)
    if lost is not None and lost.after_ns < first.at_ns:
        return _lost(window.begin_ns, first.at_ns, lost)
    if window.first_ns.get(cpu, first.at_ns) >= first.at_ns:
        return _lost(window.begin_ns, first.at_ns, lost)
    return _span(state, window.begin_ns, first.at_ns)


def _state_before(event: Event, facts: Histories) -> _Cpu:
    """Return the state before an event, as the event itself shows it."""
    switched = event.name == "sched_switch"
    pid = event.numbers.get("prev_pid", 0) if switched else event.pid
    if switched:
        name = str(event.fields.get("prev_comm", ""))
    else:
        name = facts.name(pid, event.at_ns)
    state = _Cpu(Task(pid, name or event.comm))
    if is_exit(event):
        state.frames = [Frame(Doing.INTERRUPT, _interrupt_name(event), None)]
    elif event.name == "softirq_exit":
        state.frames = [Frame(Doing.SOFTIRQ, _softirq(event), None)]
    elif not is_entry(event):
        _follow_flags(state, event, at_ns=None)
    return state


def _apply(state: _Cpu, event: Event) -> None:
    if is_entry(event):
        name = _interrupt_name(event)
        state.frames.append(Frame(Doing.INTERRUPT, name, event.at_ns))
    elif is_exit(event):
        _pop(state, Doing.INTERRUPT)
    else:
        _follow_flags(state, event, at_ns=event.at_ns)
        _apply_inner(state, event)


def _apply_inner(state: _Cpu, event: Event) -> None:
    if event.name == "softirq_entry":
        state.frames.append(Frame(Doing.SOFTIRQ, _softirq(event), event.at_ns))
    elif event.name == "softirq_exit":
        _pop(state, Doing.SOFTIRQ)
    elif event.name in _CALLBACKS and state.frames:
        # A task may call what is meant for other CPUs on its own, too.
        name = event.text("function") or event.text("func") or UNNAMED
        name = name.removesuffix("/0x0")  # trace-cmd adds the offset
        state.frames.append(Frame(Doing.CALLBACK, name, event.at_ns))
    elif event.name in _CALLBACKS.values():
        _pop(state, Doing.CALLBACK)
    elif event.name == "sched_switch":
        _switch(state, event)
    elif event.name in RENAMES and renamed(event) == state.task.pid:
        state.task = Task(state.task.pid, new_name(event) or state.task.comm)
    elif event.name == "cpu_idle":
        idle = event.numbers.get("state", 0)
        state.idle_state = None if idle == AWAKE else idle


def _switch(state: _Cpu, event: Event) -> None:
    prev, following = event.numbers.get("prev_pid", 0), event.numbers.get("next_pid", 0)
    state.put_aside[prev] = [f for f in state.frames if f.doing is not Doing.INTERRUPT]
    state.frames = state.put_aside.pop(following, [])
    state.task = Task(following, str(event.fields.get("next_comm", "")))
    state.idle_state = None


def _follow_flags(state: _Cpu, event: Event, *, at_ns: int | None) -> None:
    """Believe the flags of an event where they contradict what was seen so far."""
    if event.flags is None or event.flags & Flag.NMI:
        return
    inside = any(f.doing is Doing.INTERRUPT for f in state.frames)
    if event.flags & Flag.HARDIRQ and not inside:
        state.frames.append(Frame(Doing.INTERRUPT, UNNAMED, at_ns))
    elif inside and not event.flags & Flag.HARDIRQ:
        _pop(state, Doing.INTERRUPT)
    serving = any(f.doing is Doing.SOFTIRQ for f in state.frames)
    if serving and not event.flags & (Flag.SOFTIRQ | Flag.HARDIRQ):
        _pop(state, Doing.SOFTIRQ)


def _pop(state: _Cpu, doing: Doing) -> None:
    """End the innermost frame of a kind, and what it holds."""
    for at in range(len(state.frames) - 1, -1, -1):
        if state.frames[at].doing is doing:
            del state.frames[at:]
            return


def _interrupt_name(event: Event) -> str:
    if event.name.startswith("irq_handler_"):
        name = event.text("name")
        number = f"irq {event.numbers.get('irq', 0)}"
        return f"{name} ({number})" if name else number
    if event.name.startswith("ipi_"):
        return event.text("reason") or "IPI"
    return event.name.removesuffix("_entry").removesuffix("_exit")


def _softirq(event: Event) -> str:
    number = event.numbers.get("vec", -1)
    return SOFTIRQS[number] if 0 <= number < len(SOFTIRQS) else f"softirq {number}"


def _span(state: _Cpu, begin_ns: int, end_ns: int) -> Span:
    frames = tuple(state.frames)
    if frames:
        doing, name = frames[-1].doing, frames[-1].name
    elif state.task.pid == IDLE_PID:
        deep = state.idle_state
        doing = Doing.IDLE
        name = "idle" if deep is None else f"idle state {deep}"
    else:
        doing, name = Doing.TASK, state.task.label
    return Span(begin_ns, end_ns, doing, name, state.task, frames)


def _merged(spans: Iterator[Span]) -> Iterator[Span]:
    last: Span | None = None
    for span in spans:
        if last is not None and _same(last, span):
            last = replace(last, end_ns=span.end_ns)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _same(a: Span, b: Span) -> bool:
    return a == replace(b, begin_ns=a.begin_ns, end_ns=a.end_ns)


def stack_under(events: EventList, entered_ns: int) -> list[str] | None:
    """
    Return the functions that an interrupt found, innermost first; [] in user space.

    None if no stack was recorded in the interrupt that was entered then. `events` are
    those of one CPU.
    """
    either = events.of_kind("stack or exit", _is_stack_or_exit)
    event = either.first_from(entered_ns)
    if event is None or event.name != "kernel_stack":
        return None
    return below_the_interrupt(event.text("stack").split(" < "))


def _is_stack_or_exit(event: Event) -> bool:
    return event.name == "kernel_stack" or is_exit(event)


def below_the_interrupt(functions: Sequence[str]) -> list[str] | None:
    """Return what of a stack an interrupt found; None if there is none in it."""
    entered = [bool(_ENTRY_FRAME.match(name)) for name in functions]
    if True not in entered:
        return None
    first = entered.index(True)
    after = entered.index(False, first) if False in entered[first:] else len(entered)
    return [name for name in functions[after:] if name]
