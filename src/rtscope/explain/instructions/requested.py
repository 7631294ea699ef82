"""
Which request an interrupt answers: of which CPU's instruction, or of a device. Pure.

A board's device asks for an interrupt in the store by which a CPU uses it, or later, by
a timer of its own: it moderates its interrupts, or takes its time.
"""

from collections.abc import Callable, Sequence

from rtscope.explain.instructions.calls import Run, begun
from rtscope.explain.instructions.roles import Role
from rtscope.record.instructions.section import Asked, TraceSection, requests_of

BETWEEN_CPUS = "ipi"
"""In the name of each function that sends an interrupt to another CPU."""


def asked_in(runs: Sequence[Run], asked: Asked) -> int | None:
    """Return the run whose instruction asked; None: none. Its time is behind that."""
    at = begun(runs, asked.at_ns) - 1
    return at if at >= 0 and asked.at_ns <= runs[at].end_ns else None


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
    up to a quantum later. None before `since_ns` counts, and none that a CPU makes of
    another's interrupt controller, or of its own in an interrupt: that one tells of
    what was asked for before.
    """
    found = None
    for one in requests_of(section):
        is_others = one.by not in (None, cpu)
        until_ns = entered_ns + (section.quantum_ns if is_others else 0)
        if one.cpu != cpu or not since_ns <= one.at_ns <= until_ns:
            continue
        if one.by is None or _is_of_device(one, one.by, runs_on(one.by)):
            found = one
    return found


def _is_of_device(one: Asked, by: int, runs: Sequence[Run]) -> bool:
    at = asked_in(runs, one)
    if at is None:
        return by != one.cpu
    if by == one.cpu and Role.INTERRUPT in runs[at].frame.within:
        return False
    return not any(BETWEEN_CPUS in f.name.lower() for f in runs[at].frame.chain())
