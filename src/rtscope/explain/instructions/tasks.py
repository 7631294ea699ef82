"""
Which tasks the CPU of a wake-up ran on the way to it. Pure.

Known if the plugin was told where the kernel switches; the task at the mark is the one
that is measured.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rtscope.exectrace.format import Section, TaskSwitch, task_switches
from rtscope.explain.instructions.calls import Run
from rtscope.explain.instructions.functions import Role, role_of


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one CPU, from when on each; empty if they were not told."""

    switches: Sequence[TaskSwitch]

    @property
    def known(self) -> bool:
        """Whether tasks were told at all."""
        return bool(self.switches)

    def at(self, run: Run) -> TaskSwitch | None:
        """Return the task of a run."""
        before = bisect_right(self.switches, run.begin, key=lambda one: one.at) - 1
        return self.switches[before] if before >= 0 else None

    def is_measured(self, run: Run) -> bool:
        """Tell whether the thread that is measured did it; False if unknown."""
        task = self.at(run)
        return task is not None and task.task == self.switches[-1].task

    def departures(self, runs: Sequence[Run]) -> Sequence[int]:
        """Return in which of the runs the measured thread left the CPU, in order."""
        return tuple(
            i
            for i, run in enumerate(runs)
            if role_of(run.frame.name) is Role.SWITCH and self.is_measured(run)
        )

    def arrival(self, after: int) -> int | None:
        """Return when the CPU first switched to the measured thread, after a count."""
        measured = self.switches[-1].task if self.switches else None
        return next(
            (s.at for s in self.switches if s.task == measured and s.at > after), None
        )


def tasks_of(section: Section, runs: Sequence[Run]) -> Tasks:
    """Return the tasks of the CPU that the section's wake-up was on, and its runs."""
    ends = [run.end for run in runs if role_of(run.frame.name) is Role.SWITCH]
    told = [one for one in task_switches(section) if one.cpu == section.cpu]
    return Tasks([replace(one, at=_switched(one.at, ends)) for one in told])


def _switched(told: int, ends: Sequence[int]) -> int:
    """A task is told a few instructions behind the switch to it."""
    before = bisect_right(ends, told) - 1
    return ends[before] if before >= 0 else told
