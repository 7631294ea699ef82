"""
Loops in which a CPU waits until another is done, with all that they call. Pure.

Each turn of a loop may call helpers: to tell a watchdog, or RCU, that the CPU is alive.
They are part of the wait, also where a helper has interrupts off for some instructions.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.explain.instructions.calls import Context, Frame, Run, plain
from rtscope.explain.model import Cause

SHORT_NS = 200
"""A turn of a loop takes less; what takes longer is no helper of it."""

WAITS = frozenset({Cause.LOCK, Cause.OTHER_CPU})


@dataclass(frozen=True, slots=True)
class Gap:
    """Runs between two turns of one loop: from the first to before the last."""

    first: int
    last: int
    cause: Cause
    """What the loop waits for."""


def gaps_in_loops(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    causes: Sequence[Cause],
    *,
    first: int,
    spins: Collection[str],
) -> Iterator[Gap]:
    """
    Yield the runs that belong to a loop by their callers only; indices of `runs`.

    `causes` are those of the runs from `first` on, `spins` the functions that wait in a
    loop. A call between two turns belongs to the loop if the function that waits has
    called it, directly or not, it was short, and no interrupt.
    """
    waiting = [first + at for at, cause in enumerate(causes) if cause in WAITS]
    for before, after in pairwise(waiting):
        cause = causes[before - first]
        if after == before + 1 or causes[after - first] is not cause:
            continue
        if runs[after].begin_ns - runs[before].end_ns > SHORT_NS:
            continue
        loops = _spinning(runs[before], spins) & _spinning(runs[after], spins)
        between = range(before + 1, after)
        of_loop = all(loops & set(runs[i].frame.chain()) for i in between)
        if of_loop and all(contexts[i] == contexts[before] for i in between):
            yield Gap(before + 1, after, cause)


def _spinning(run: Run, spins: Collection[str]) -> set[Frame]:
    return {frame for frame in run.frame.chain() if plain(frame.name) in spins}
