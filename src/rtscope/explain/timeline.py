"""
What every CPU did during a wake-up, as slices that can be drawn. Pure.

A path has tens of thousands of calls, a page has room for some hundred: the longest
are kept, and the others are counted. The task and the outermost calls come first, of
the CPU that was late deeper ones than of the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.activity import (
    ExplainedWindow,
    Open,
    Recording,
    States,
    activity_of,
    common,
)

MOST_SLICES = 900
MOST_LEVELS, LEVELS_OF_OTHERS = 16, 4
LEAD_SHARE = 0.25
"""Of the latency, also shown before the timer was due: what began then goes on."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Something was open on a CPU; times in ns since the timer was due."""

    level: int
    """0 is the outermost."""
    begin_ns: int
    end_ns: int
    name: str

    @property
    def length_ns(self) -> int:
        """How long it was open."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Track:
    """What one CPU did."""

    cpu: int
    slices: tuple[Slice, ...]
    """In the order of their begins, the outer before the inner."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What all CPUs that had a part did; times in ns since the timer was due."""

    begin_ns: int
    end_ns: int
    tracks: tuple[Track, ...]
    """The CPU that was late first."""
    left_out: int
    """Slices that there was no room for."""
    longest_left_out_ns: int


def timeline_of(one: Recording | ExplainedWindow) -> Timeline:
    """Return the timeline of a wake-up, with its longest slices."""
    due_ns, activity = activity_of(one)
    late, end_ns = one.explanation.cpu, max(1, one.explanation.latency_ns)
    begin_ns = -int(end_ns * LEAD_SHARE)
    slices: list[tuple[int, Slice]] = []
    for cpu, states in activity.items():
        for piece in _slices(states, due_ns):
            if piece.end_ns > begin_ns and piece.begin_ns < end_ns:
                slices.append((cpu, _clipped(piece, begin_ns, end_ns)))
    order = sorted(slices, key=lambda row: _rank(*row, late=late))
    kept, gone = order[:MOST_SLICES], order[MOST_SLICES:]
    by_cpu: dict[int, list[Slice]] = {}
    for cpu, piece in kept:
        by_cpu.setdefault(cpu, []).append(piece)
    return Timeline(
        begin_ns=min((p.begin_ns for _, p in kept), default=0),
        end_ns=end_ns,
        tracks=tuple(
            Track(cpu, tuple(sorted(by_cpu[cpu], key=lambda p: (p.begin_ns, p.level))))
            for cpu in sorted(by_cpu, key=lambda cpu: (cpu != late, cpu))
        ),
        left_out=len(gone),
        longest_left_out_ns=max((p.length_ns for _, p in gone), default=0),
    )


def _rank(cpu: int, piece: Slice, *, late: int) -> tuple[bool, int, int]:
    """Return what comes first where there is not room for all."""
    most = MOST_LEVELS if cpu == late else LEVELS_OF_OTHERS
    return piece.level >= most, -piece.length_ns, piece.begin_ns


def _slices(states: States, due_ns: int) -> Iterator[Slice]:
    opened: Sequence[Open] = ()
    begins_ns: list[int] = []
    for at_ns, now in states:
        same = common(opened, now)
        for level in range(same, len(opened)):
            begin_ns, name = begins_ns[level], opened[level][1]
            if at_ns > begin_ns:
                yield Slice(level, begin_ns - due_ns, at_ns - due_ns, name)
        begins_ns[same:] = [at_ns] * (len(now) - same)
        opened = now


def _clipped(piece: Slice, begin_ns: int, end_ns: int) -> Slice:
    return Slice(
        piece.level,
        max(begin_ns, piece.begin_ns),
        min(end_ns, piece.end_ns),
        piece.name,
    )
