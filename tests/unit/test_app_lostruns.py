"""Periods of loops of which the kernel lost events: shorter ones, or none."""

from itertools import pairwise

import pytest

from rtscope.programs.cycles.threadruns import GAP, Run
from rtscope.verbs.app.cycles import ThreadCycles, cycles_of

MS = 1_000_000
TID = 7


def run(due_ns: int, *, armed: int, flags: int) -> Run:
    return Run(
        TID, 0, armed, due_ns, due_ns + 10, due_ns + 20, due_ns + 120, 100, 0, flags
    )


def woken(at_ns: int, *, flags: int) -> Run:
    return Run(TID, 0, 0, 0, at_ns, at_ns + 5, at_ns + 55, 50, 0, flags)


def cycles(runs: list[Run]) -> ThreadCycles:
    found = cycles_of(runs)
    assert found is not None
    return found


LOSSY = (0, 4, 8, 9, 13, 17, 18, 19, 23, 27, 28, 32, 36, 37, 41)
"""Periods of which runs came, where the kernel lost the events of the others."""


def lossy(*, timed: bool) -> list[Run]:
    """Loops of 5 ms: a run that does not follow the one before says that some lack."""
    every = 5 * MS
    runs = []
    for before, number in pairwise((-2, *LOSSY)):
        flags = 0 if number == before + 1 else GAP
        at = (number + 1) * every
        runs.append(
            run(at, armed=at - every, flags=flags) if timed else woken(at, flags=flags)
        )
    return runs


@pytest.mark.parametrize("timed", [True, False])
def test_runs_whose_events_were_lost_make_no_period_longer(timed: bool) -> None:
    period = cycles(lossy(timed=timed)).period

    assert period is not None
    assert period.period_ns == 5 * MS
    assert period.missed == 0


def test_a_thread_of_which_every_second_run_was_lost_has_no_period() -> None:
    runs = [woken(n * 10 * MS, flags=GAP) for n in range(1, 40)]
    timed = [run(n * 10 * MS, armed=n * 10 * MS - MS, flags=GAP) for n in range(1, 40)]

    assert cycles(runs).period is None
    assert cycles(timed).period is None
