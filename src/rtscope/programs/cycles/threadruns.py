"""The runs of a thread: from a wake-up to the next sleep, as the agent has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rtscope.contract import CycleRuns

RELATIVE, NO_SLEEP, CUT, GAP, BETWEEN, WITHIN = 1, 2, 4, 8, 16, 32
"""Flags of a run: agent/cycles/cycles.h."""
_WAIT = 256
"""Times the number of the wait in which it slept."""


@dataclass(frozen=True, slots=True)
class Run:
    """From a wake-up to the next sleep; times of CLOCK_MONOTONIC in ns."""

    tid: int
    cpu: int
    armed_ns: int
    """When its timer was set; 0 if no timer of the process woke it."""
    due_ns: int
    """What it was set to; 0 as above."""
    woken_ns: int
    in_ns: int
    out_ns: int
    ran_ns: int
    preempted: int
    flags: int

    @property
    def begin_ns(self) -> int:
        """When its timer was due; without one, when it was woken."""
        return self.due_ns or self.woken_ns

    @property
    def wait(self) -> int:
        """In which of its waits for several things it slept; 0: in none of these."""
        return self.flags // _WAIT


def runs_in(lines: Iterable[CycleRuns]) -> Mapping[int, list[Run]]:
    """Return the runs of each thread, by TID, in the order of their ends."""
    runs: dict[int, list[Run]] = {}
    for line in lines:
        for row in line.runs:
            runs.setdefault(row[0], []).append(Run(*row))
    return runs
