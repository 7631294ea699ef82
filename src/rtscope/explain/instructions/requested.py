"""
Which request an interrupt answers: of which CPU's instruction, or of a device. Pure.

A board's device asks for an interrupt in the store by which a CPU uses it, or later, by
a timer of its own: it moderates its interrupts, or takes its time.
"""

from collections.abc import Callable, Sequence

from rtscope.explain.instructions.calls import Run
from rtscope.record.instructions.section import Asked, TraceSection, requests_of

_BETWEEN_CPUS = "ipi"
"""In the name of each function that sends an interrupt to another CPU."""


def at_time(runs: Sequence[Run], at_ns: int) -> int | None:
    """Return the run in which a time lies; None if there is none."""
    return next(
        (i for i, run in enumerate(runs) if run.begin_ns <= at_ns < run.end_ns), None
    )


def request_of(
    section: TraceSection,
    runs_on: Callable[[int], Sequence[Run]],
    *,
    cpu: int,
    entered_ns: int,
    since_ns: int,
) -> Asked | None:
    """
    Return the request that an interrupt of a device answers; None if none was seen.

    That is the last one for its CPU before it began; one of another CPU may have a time
    up to a quantum later. None before `since_ns` counts.
    """
    found = None
    for one in requests_of(section):
        late_ns = section.quantum_ns if one.by not in (None, cpu) else 0
        if one.cpu != cpu or not since_ns <= one.at_ns <= entered_ns + late_ns:
            continue
        if not _is_between_cpus(one, runs_on):
            found = one
    return found


def _is_between_cpus(one: Asked, runs_on: Callable[[int], Sequence[Run]]) -> bool:
    if one.by is None:
        return False
    runs = runs_on(one.by)
    at = at_time(runs, one.at_ns)
    if at is None:
        return False
    return any(_BETWEEN_CPUS in f.name.lower() for f in runs[at].frame.chain())
