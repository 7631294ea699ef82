"""Wake-ups explained from events as a trace for Perfetto: what every CPU did. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rtscope.explain.events.spans import Doing, Span, spans_of
from rtscope.explain.events.threadstates import Wakeup
from rtscope.explain.model import Explanation
from rtscope.explain.perfettofile import BEGIN, END, event, parts, tracks, whole
from rtscope.ftrace.events import Window


@dataclass(frozen=True, slots=True)
class ExplainedWindow:
    """A wake-up with the events that explain it."""

    title: str
    window: Window
    wakeup: Wakeup
    explanation: Explanation


def perfetto_of_events(explained: Iterable[ExplainedWindow]) -> bytes:
    """Return a file that ui.perfetto.dev opens: one group of tracks per wake-up."""
    packets: list[bytes] = []
    uuid = 1
    for one in explained:
        cpus = sorted({e.cpu for e in one.window.events})
        packets += tracks(one.title, uuid, [f"CPU {cpu}" for cpu in cpus])
        packets += parts(one.explanation, one.wakeup.expiry_ns, track=uuid + 1)
        for at, cpu in enumerate(cpus):
            packets += _slices(spans_of(one.window, cpu), uuid + 2 + at)
        uuid += 2 + len(cpus)
    return whole(packets)


def _slices(spans: Iterable[Span], track: int) -> Iterator[bytes]:
    """Return nested slices: the task, and over it interrupts and callbacks."""
    open_names: list[str] = []
    last_ns = 0
    for span in spans:
        names = _names(span)
        same = 0
        while same < min(len(names), len(open_names)):
            if names[same] != open_names[same]:
                break
            same += 1
        for _ in open_names[same:]:
            yield event(span.begin_ns, track, END)
        for name in names[same:]:
            yield event(span.begin_ns, track, BEGIN, name)
        open_names, last_ns = names, span.end_ns
    for _ in open_names:
        yield event(last_ns, track, END)


def _names(span: Span) -> list[str]:
    if span.doing is Doing.LOST:
        return ["events are missing"]
    below = span.task.label if span.frames or span.task.pid else span.name
    return [below, *(f"{frame.doing} {frame.name}" for frame in span.frames)]
