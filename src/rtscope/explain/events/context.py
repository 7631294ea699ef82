"""The scene of a wake-up: its events, its thread's way, and what limits both. Pure."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from rtscope.explain.events.spans import UNNAMED, Doing, Frame, Span, spans_of
from rtscope.explain.events.threadstates import Leg, Machine, State, Wakeup
from rtscope.explain.events.waiting import NOT_REALTIME, priority_words
from rtscope.ftrace.events import Event, Flag, Window

_NEEDED = ("sched_switch", "sched_waking")


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a stretch is judged by; `spans` is filled when it is asked for."""

    window: Window
    wakeup: Wakeup
    machine: Machine
    spans: dict[int, tuple[Span, ...]]
    legs: tuple[Leg, ...]
    woken: Event | None
    """What ended the sleep that the timer was armed for."""
    priority: int | None
    """Of the thread, as events tell it."""

    def spans_between(self, cpu: int, begin_ns: int, end_ns: int) -> list[Span]:
        """Return what a CPU did in a time."""
        return [
            span.clipped(begin_ns, end_ns)
            for span in self._spans_of(cpu)
            if span.end_ns > begin_ns and span.begin_ns < end_ns
        ]

    def events_of(self, cpu: int) -> list[Event]:
        """Return the events of a CPU."""
        return [event for event in self.window.events if event.cpu == cpu]

    def frames_at(self, event: Event) -> tuple[Frame, ...]:
        """Return what the event's CPU was in when it was written."""
        spans = self._spans_of(event.cpu)
        begins = [span.begin_ns for span in spans]
        at = max(0, bisect_left(begins, event.at_ns) - 1)
        here = [s for s in spans[at : at + 2] if s.begin_ns <= event.at_ns]
        inside = [s for s in here if s.frames]
        found = inside[-1].frames if inside else ()
        in_interrupt = any(frame.doing is Doing.INTERRUPT for frame in found)
        if event.flags is not None and event.flags & Flag.HARDIRQ and not in_interrupt:
            return (*found, Frame(Doing.INTERRUPT, UNNAMED, event.at_ns))
        return found

    def depth_at(self, cpu: int, entered_ns: int | None) -> int | None:
        """Return how often preemption was off where an interrupt came."""
        return next(
            (e.preempt_depth for e in self.events_of(cpu) if e.at_ns == entered_ns),
            None,
        )

    @property
    def has_interrupts(self) -> bool:
        """Whether entries of interrupts were recorded at all."""
        return any(name.endswith("_entry") for name in self.window.known)

    @property
    def cpu(self) -> int:
        """The CPU it was measured on, or else the last one the thread was on."""
        known = [self.wakeup.cpu, *(leg.cpu for leg in reversed(self.legs))]
        return next((cpu for cpu in known if cpu is not None), 0)

    def _spans_of(self, cpu: int) -> tuple[Span, ...]:
        if cpu not in self.spans:
            self.spans[cpu] = spans_of(self.window, cpu)
        return self.spans[cpu]


def priority_of(window: Window, pid: int) -> int | None:
    """Return a thread's priority as events tell it; None if none does."""
    for event in window.events:
        if event.name == "sched_switch":
            for side in ("next", "prev"):
                if event.number(f"{side}_pid", -1) == pid:
                    return event.number(f"{side}_prio")
        elif event.number("pid", -1) == pid and "prio" in event.fields:
            return event.number("prio")
    return None


def notes(scene: Scene) -> Iterator[str]:
    """Say what limits an explanation from these events."""
    priority = scene.priority
    if priority is not None and priority >= NOT_REALTIME:
        yield (
            f"the thread is not real-time ({priority_words(priority)}): every thread "
            "may make it wait"
        )
    missing = [name for name in _NEEDED if name not in scene.window.known]
    if missing:
        yield f"the trace has no {' and no '.join(missing)} events"
    if not scene.has_interrupts:
        yield (
            "the trace has no entries of interrupts: where they begin is known only "
            "from the first event inside"
        )
    if not scene.wakeup.programmed:
        yield (
            "when the timer was due is not known: the way begins where the thread "
            "was woken"
        )
    if scene.wakeup.to_the_switch:
        yield "the way ends at the switch to the thread: no mark tells of its own code"
    if scene.window.resolution_ns > 1:
        yield (
            f"the trace's times are whole {scene.window.resolution_ns} ns: shorter "
            "stretches cannot be told apart"
        )
    moved = {leg.cpu for leg in scene.legs if leg.state is State.RUNNABLE}
    cpus = sorted(cpu for cpu in moved if cpu is not None)
    if len(cpus) > 1:
        yield f"the thread waited on CPUs {', '.join(map(str, cpus))}: it was moved"
