"""
Explained wake-ups as a trace for Perfetto: parts, and the calls of every CPU. Pure.

Timestamps are the board's virtual time. Where the whole board slept although the timer
was due, what it did before is set back by that, so that the two do not overlap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtscope.exectrace.format import Section
from rtscope.exectrace.symbols import SymbolTable
from rtscope.explain.instructions.calls import Frame, plain, runs_of
from rtscope.explain.model import Explanation
from rtscope.explain.perfettofile import BEGIN, END, event, parts, tracks, whole


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A wake-up with the path that explains it."""

    title: str
    section: Section
    explanation: Explanation
    symbols: SymbolTable
    arch: str
    shift: int
    """2^shift ns of virtual time pass with each instruction."""


def perfetto_trace(recordings: Iterable[Recording]) -> bytes:
    """Return a file that ui.perfetto.dev opens: one group of tracks per wake-up."""
    packets: list[bytes] = []
    uuid = 1
    for recording in recordings:
        cpus = np.unique(recording.section.cpus).tolist()
        packets += tracks(recording.title, uuid, [f"CPU {cpu}" for cpu in cpus])
        explanation = recording.explanation
        packets += parts(explanation, _due_ns(recording), track=uuid + 1)
        for at, cpu in enumerate(cpus):
            packets += _calls(recording, cpu, track=uuid + 2 + at)
        uuid += 2 + len(cpus)
    return whole(packets)


def _due_ns(recording: Recording) -> int:
    end_ns = recording.section.last << recording.shift
    return end_ns - recording.explanation.latency_ns


def _calls(recording: Recording, cpu: int, *, track: int) -> Iterator[bytes]:
    runs = runs_of(recording.section, recording.symbols, arch=recording.arch, cpu=cpu)
    slept_ns = recording.explanation.slept_ns
    slept = recording.explanation.stretches[0].end_ns if slept_ns else 0
    woke_ns = _due_ns(recording) + slept
    open_calls: list[Frame] = []
    for run in runs:
        now = run.begin << recording.shift
        now -= slept_ns if now < woke_ns else 0
        chain = list(run.frame.chain())[::-1]
        same = _same(open_calls, chain)
        for _ in open_calls[same:]:
            yield event(now, track, END)
        for frame in chain[same:]:
            yield event(now, track, BEGIN, plain(frame.name))
        open_calls = chain
    for _ in open_calls:
        yield event(runs[-1].end << recording.shift, track, END)


def _same(ours: list[Frame], theirs: list[Frame]) -> int:
    """Return how many calls two stacks have in common, from the outermost."""
    pairs = zip(ours, theirs, strict=False)
    return next(
        (at for at, (a, b) in enumerate(pairs) if a is not b),
        min(len(ours), len(theirs)),
    )
