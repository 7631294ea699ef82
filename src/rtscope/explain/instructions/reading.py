"""
Where the program read the clock that its latency is from: there a path ends. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace

from rtscope.explain.instructions.calls import Run, is_clock, plain
from rtscope.explain.instructions.roles import Role
from rtscope.record.instructions.section import TraceSection

_NOT_OF_THE_CALL = frozenset(
    {Role.INTERRUPT, Role.DISPATCH, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT}
)


def read_ns(runs: Sequence[Run]) -> int | None:
    """
    Return when the last system call before the mark read the clock, in virtual ns.

    None if the program read it by itself.
    """
    for run in reversed(runs):
        within = run.frame.within
        if Role.SLEEP in within or Role.SWITCH in within:
            return None
        if Role.READ_CLOCK in within and _reads(run):
            return run.end_ns
    return None


def _reads(run: Run) -> bool:
    if not is_clock(plain(run.frame.name)):
        return False
    for frame in run.frame.chain():
        if frame.role is Role.READ_CLOCK:
            return True
        if frame.role in _NOT_OF_THE_CALL:
            return False
    return False


def until_read(
    section: TraceSection, runs: list[Run]
) -> tuple[TraceSection, list[Run]]:
    """Return the path with its runs, cut off where the clock was read."""
    end_ns = read_ns(runs)
    if end_ns is None:
        return section, runs
    kept = [run for run in runs if run.end_ns <= end_ns]
    return replace(section, last_ns=end_ns), kept
