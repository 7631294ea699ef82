"""When the interrupts of a CPU were off, and who switched them. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.explain.instructions.calls import Run


@dataclass(frozen=True, slots=True)
class Masked:
    """Interrupts were off: from when, until when, by whom."""

    since: int
    """Instruction count; of the begin of the path, if they were off there."""
    off: Run | None
    """Who switched them off; None if that was before the path."""
    until: int | None
    on: Run | None


@dataclass(frozen=True, slots=True)
class Flags:
    """Changes of the CPU's interrupt flag, in order."""

    at: Sequence[int]
    on: Sequence[bool]

    def off_in(self, begin: int, end: int) -> int:
        """Return how many instructions of the board passed with interrupts off."""
        first = max(0, bisect_right(self.at, begin) - 1)
        last = bisect_left(self.at, end)
        edges = [*self.at[first:last], end]
        states = self.on[first:last]
        return sum(
            max(0, until - max(since, begin))
            for (since, until), on in zip(pairwise(edges), states, strict=True)
            if not on
        )


def masked_by(flags: Flags, runs: Sequence[Run], expiry: int) -> Masked | None:
    """Return who had switched interrupts off at the expiry; None if they were on."""
    before = bisect_right(flags.at, expiry) - 1
    if before < 0 or flags.on[before] or not runs:
        return None
    begins = [run.begin for run in runs]

    def run_before(count: int) -> Run:
        # A change is told at the block behind the one that made it.
        return runs[max(0, bisect_left(begins, count) - 1)]

    until = flags.at[before + 1] if before + 1 < len(flags.at) else None
    return Masked(
        since=flags.at[before],
        off=run_before(flags.at[before]) if before > 0 else None,
        until=until,
        on=None if until is None else run_before(until),
    )
