"""What the other CPUs did while one waited for a lock: one of them holds it. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rtscope.exectrace.format import Kind, Section
from rtscope.exectrace.symbols import SymbolTable
from rtscope.explain.instructions.calls import Run, main_frame, runs_of, spent_in
from rtscope.explain.instructions.functions import plain
from rtscope.explain.model import Meanwhile

A_HALF = 0.5


@dataclass(frozen=True, slots=True)
class OtherCpus:
    """All CPUs of a section but the one of its wake-up."""

    cpus: tuple[int, ...]
    section: Section
    symbols: SymbolTable
    arch: str
    shift: int
    """2^`shift` ns pass with each instruction."""
    _runs: dict[int, list[Run]] = field(default_factory=dict)
    """By CPU; filled when it is first asked for: few paths wait for a lock."""

    def between(self, begin: int, end: int) -> Iterator[Meanwhile]:
        """Tell what each that ran between two instruction counts did most."""
        for cpu in self.cpus:
            inside = overlapping(self._runs_of(cpu), begin, end)
            total = sum(run.own for run in inside)
            if total:
                name, own = _mostly(inside)
                share = own / total
                yield Meanwhile(cpu, plain(name), share, total << self.shift)

    def calling(self, function: str) -> Sequence[Run]:
        """Return the runs of all those that called a function; without one, nothing."""
        if function not in self.symbols.names:
            return ()
        begin = self.symbols.starts[self.symbols.names.index(function)]
        called = (self.section.kinds == Kind.BLOCK) & (self.section.values == begin)
        cpus = set(np.unique(self.section.cpus[called]).tolist())
        return [r for cpu in self.cpus if cpu in cpus for r in self._runs_of(cpu)]

    def _runs_of(self, cpu: int) -> list[Run]:
        if cpu not in self._runs:
            self._runs[cpu] = runs_of(
                self.section, self.symbols, arch=self.arch, cpu=cpu
            )
        return self._runs[cpu]


def other_cpus(
    section: Section, symbols: SymbolTable, *, arch: str, shift: int
) -> OtherCpus:
    """Find which CPUs executed something besides that of the wake-up."""
    there = np.unique(section.cpus[section.kinds == Kind.BLOCK]).tolist()
    others = tuple(cpu for cpu in there if cpu != section.cpu)
    return OtherCpus(others, section, symbols, arch, shift)


def overlapping(runs: Sequence[Run], begin: int, end: int) -> Sequence[Run]:
    """
    Return the runs of one CPU that were partly between two instruction counts.

    Each ends where the next begins, so both are in order: a path may wait for a lock
    some 10,000 times, and looking at every run each time took minutes.
    """
    first = bisect_right(runs, begin, key=lambda run: run.end)
    return runs[first : bisect_left(runs, end, lo=first, key=lambda run: run.begin)]


def _mostly(runs: Sequence[Run]) -> tuple[str, int]:
    """Return the innermost call that took more than half, or else the function."""
    frame = main_frame(runs, share=A_HALF)
    if frame is None:
        return spent_in(runs)[0]
    own = sum(run.own for run in runs if frame in run.frame.chain())
    return frame.name, own
