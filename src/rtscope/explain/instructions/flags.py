"""
Where interrupts were off on a CPU, by whom, and its preemption counts. Pure.

The plugin records each change at the begin of the block behind the one that made it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.explain.instructions.calls import Run, begun
from rtscope.record.instructions.section import RecordKind, TraceSection


@dataclass(frozen=True, slots=True)
class IrqsOff:
    """Interrupts were off: from when, until when, by whom."""

    since_ns: int
    """Virtual time; of the begin of the path, if they were off there."""
    off: Run | None
    """Who switched them off; None if that was before the path."""
    until_ns: int | None
    on: Run | None


@dataclass(frozen=True, slots=True)
class IrqFlags:
    """Changes of the CPU's interrupt flag, in order."""

    at_ns: Sequence[int]
    on: Sequence[bool]

    def off_in(self, begin_ns: int, end_ns: int) -> int:
        """Return how long interrupts were off between two times, in ns."""
        first = max(0, bisect_right(self.at_ns, begin_ns) - 1)
        last = bisect_left(self.at_ns, end_ns)
        edges = [*self.at_ns[first:last], end_ns]
        states = self.on[first:last]
        return sum(
            max(0, until - max(since, begin_ns))
            for (since, until), on in zip(pairwise(edges), states, strict=True)
            if not on
        )


@dataclass(frozen=True, slots=True)
class PreemptCounts:
    """The preemption count of what each interrupt interrupted, in order."""

    at_ns: Sequence[int]
    counts: Sequence[int]

    def before(self, at_ns: int, since_ns: int) -> int | None:
        """Return the last of them until a time; None if there is none since another."""
        last = bisect_right(self.at_ns, at_ns) - 1
        return self.counts[last] if last >= 0 and self.at_ns[last] >= since_ns else None

    def first_in(self, begin_ns: int, end_ns: int) -> int | None:
        """Return the first of them between two times; None if there is none."""
        first = bisect_left(self.at_ns, begin_ns)
        inside = first < len(self.at_ns) and self.at_ns[first] <= end_ns
        return self.counts[first] if inside else None


def irq_flags_of(section: TraceSection) -> IrqFlags:
    """Return the interrupt flags of the CPU that the wake-up was on."""
    mine = (section.kinds == RecordKind.INTERRUPTS) & (section.cpus == section.cpu)
    return IrqFlags(section.at_ns[mine].tolist(), (section.values[mine] != 0).tolist())


def preempt_counts_of(section: TraceSection) -> PreemptCounts:
    """Return the preemption counts that interrupts found on the CPU of a wake-up."""
    mine = (section.kinds == RecordKind.PREEMPT) & (section.cpus == section.cpu)
    return PreemptCounts(section.at_ns[mine].tolist(), section.values[mine].tolist())


def irqs_off_at(flags: IrqFlags, runs: Sequence[Run], expiry_ns: int) -> IrqsOff | None:
    """Return the call that had interrupts off at the expiry; None if they were on."""
    before = bisect_right(flags.at_ns, expiry_ns) - 1
    if before < 0 or flags.on[before] or not runs:
        return None

    def run_before(at_ns: int) -> Run:
        # A change is recorded at the block behind the one that made it.
        return runs[max(0, begun(runs, at_ns) - 1)]

    until_ns = flags.at_ns[before + 1] if before + 1 < len(flags.at_ns) else None
    return IrqsOff(
        since_ns=flags.at_ns[before],
        off=run_before(flags.at_ns[before]) if before > 0 else None,
        until_ns=until_ns,
        on=None if until_ns is None else run_before(until_ns),
    )


def irqs_off_in(
    flags: IrqFlags, runs: Sequence[Run], begin_ns: int, end_ns: int
) -> IrqsOff | None:
    """Return the call that had interrupts off for longest between two times, if any."""
    first, last = bisect_right(flags.at_ns, begin_ns), bisect_left(flags.at_ns, end_ns)
    switched = (flags.at_ns[at] for at in range(first, last) if not flags.on[at])
    found = (irqs_off_at(flags, runs, at_ns) for at_ns in (begin_ns, *switched))

    def inside_ns(one: IrqsOff) -> int:
        until_ns = end_ns if one.until_ns is None else min(one.until_ns, end_ns)
        return until_ns - max(one.since_ns, begin_ns)

    return max((one for one in found if one), key=inside_ns, default=None)
