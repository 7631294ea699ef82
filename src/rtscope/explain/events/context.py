"""All that the explanation of one wake-up needs from the events around it. Pure."""

from bisect import bisect_left
from dataclasses import dataclass

from rtscope.explain.events.spans import UNNAMED, Doing, Frame, Span, spans_of
from rtscope.explain.events.threadstates import (
    MachineTraits,
    StateInterval,
    TracedWakeup,
)
from rtscope.record.events.events import Event, Flag, Window


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """All that the cause of a segment is found from; `spans` is filled on demand."""

    window: Window
    wakeup: TracedWakeup
    machine: MachineTraits
    spans: dict[int, tuple[Span, ...]]
    intervals: tuple[StateInterval, ...]
    woken: Event | None
    """The event that ended the sleep that the timer was armed for."""
    priority: int | None
    """Of the thread, by its events."""

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
        known = [
            self.wakeup.cpu,
            *(interval.cpu for interval in reversed(self.intervals)),
        ]
        return next((cpu for cpu in known if cpu is not None), 0)

    def _spans_of(self, cpu: int) -> tuple[Span, ...]:
        if cpu not in self.spans:
            self.spans[cpu] = spans_of(self.window, cpu)
        return self.spans[cpu]
