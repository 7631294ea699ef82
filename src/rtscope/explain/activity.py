"""
What every CPU did around a wake-up: what was open at each time, outermost first. Pure.

On a virtual board that is the task and its calls; on a machine the task, and over it
the interrupts and callbacks that the kernel's events tell of.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from rtscope.explain.events.histories import Histories, histories_of
from rtscope.explain.events.spans import Doing, Span, spans_of
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.explain.instructions.absences import tasks_of
from rtscope.explain.instructions.calls import plain, runs_of
from rtscope.explain.model import Explanation
from rtscope.record.events.events import Window
from rtscope.record.instructions.section import (
    TraceSection,
    blocks_of,
    cpus_of,
    task_switches,
)
from rtscope.record.instructions.symbols import SymbolTable

Open = tuple[object, str]
"""What makes something open the same as before, and its name."""
States = Iterator[tuple[int, Sequence[Open]]]
"""From each time on, what is open on a CPU, outermost first; at the end nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A wake-up with the path that explains it."""

    title: str
    section: TraceSection
    explanation: Explanation
    symbols: SymbolTable
    arch: str


@dataclass(frozen=True, slots=True)
class ExplainedWindow:
    """A wake-up with the events that explain it."""

    title: str
    window: Window
    wakeup: TracedWakeup
    explanation: Explanation


def activity_of(one: Recording | ExplainedWindow) -> tuple[int, Mapping[int, States]]:
    """Return when the timer was due, in ns of the recording, and what each CPU did."""
    if isinstance(one, Recording):
        cpus = cpus_of(one.section.cpus)
        explanation = one.explanation
        read_ns = one.section.last_ns - explanation.unread_ns
        due_ns = read_ns - explanation.latency_ns
        return due_ns, {cpu: _calls(one, cpu) for cpu in cpus}
    cpus = sorted({event.cpu for event in one.window.events})
    facts = histories_of(one.window)
    return one.wakeup.expiry_ns, {cpu: _tasks(one.window, cpu, facts) for cpu in cpus}


def common(before: Sequence[Open], after: Sequence[Open]) -> int:
    """Return how many of what was open, from the outermost on, still is."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _calls(recording: Recording, cpu: int) -> States:
    end_ns = 0
    section, symbols, arch = recording.section, recording.symbols, recording.arch
    runs = runs_of(blocks_of(section, cpu), symbols, arch=arch)
    names = tasks_of(cpu, task_switches(section), runs).names or [""] * len(runs)
    for run, task in zip(runs, names, strict=True):
        below: list[Open] = [(task, task)] if task else []
        calls = [(f, plain(f.name)) for f in run.frame.chain()]
        yield run.begin_ns, [*below, *calls[::-1]]
        end_ns = run.end_ns
    yield end_ns, ()


def _tasks(window: Window, cpu: int, facts: Histories) -> States:
    """Return the task of a CPU, and over it interrupts and callbacks."""
    end_ns = 0
    for span in spans_of(window, cpu, facts):
        yield span.begin_ns, [(name, name) for name in _names(span)]
        end_ns = span.end_ns
    yield end_ns, ()


def _names(span: Span) -> list[str]:
    if span.doing is Doing.LOST:
        return ["events are missing"]
    below = span.task.label if span.frames or span.task.pid else span.name
    return [below, *(f"{frame.doing} {frame.name}" for frame in span.frames)]
