"""
Why another thread ran although the measured one was awake. Pure.

What the kernel executed tells: which queue it put the thread into, whether it told the
running one to give way, and what chose the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.explain.calls import USER, Run
from rtscope.explain.model import Cause
from rtscope.explain.names import Role, role_of
from rtscope.explain.way import Way

_SAYS_SO = "resched_curr"


@dataclass(frozen=True, slots=True)
class Rivals:
    """What ran between the wake-up of the thread and the switch to it."""

    is_ordinary: bool
    """The thread was queued as one that is not real-time."""
    goes_on: bool
    """The running thread was not to give way, or another was chosen before ours."""
    served: int | None
    """The run in which the fair server first chose; None if it did not."""
    throttled: int | None
    """The run in which real-time threads got time again; None: they had it."""

    def cause(self, i: int) -> Cause:
        """Return why a run of another thread was before ours."""
        if self.is_ordinary:
            return Cause.ORDINARY
        if self.throttled is not None and i <= self.throttled:
            return Cause.THROTTLED
        if self.served is not None and i >= self.served:
            return Cause.FAIR_SERVER
        return Cause.OTHER_TASK


def rivals_of(runs: Sequence[Run], way: Way, names: Sequence[str | None]) -> Rivals:
    """Find what tells; `names` are those of all functions that the kernel has."""
    if way.switched is None:
        return Rivals(False, False, None, None)
    begin = way.first if way.woken is None else way.woken
    end = way.switched
    scheduled = end if way.scheduled is None else way.scheduled
    return Rivals(
        is_ordinary=_is_ordinary(runs[begin:end]),
        goes_on=_goes_on(runs[begin:scheduled], names),
        served=_first(runs, begin, end, Role.FAIR_SERVER),
        throttled=_unthrottled(runs, begin, end),
    )


def _is_ordinary(runs: Sequence[Run]) -> bool:
    queued = {
        role
        for run in runs
        if (role := role_of(run.frame.name)) in (Role.ENQUEUE, Role.ENQUEUE_FAIR)
        and _is_waking(run)
    }
    return queued == {Role.ENQUEUE_FAIR}


def _is_waking(run: Run) -> bool:
    return any(role_of(frame.name) is Role.WAKE for frame in run.frame.chain())


def _goes_on(runs: Sequence[Run], names: Sequence[str | None]) -> bool:
    """
    Tell whether what ran on after the interrupt need not give way.

    On its way to a program the kernel calls the scheduler if it has to: so a program
    that goes on was not to give way.
    """
    if any(run.frame.name == USER for run in runs):
        return True
    said = any(
        role_of(run.frame.name) is Role.RESCHEDULE and _is_waking(run) for run in runs
    )
    return not said and _SAYS_SO in names


def _unthrottled(runs: Sequence[Run], begin: int, end: int) -> int | None:
    for i in range(end - 1, begin - 1, -1):
        if role_of(runs[i].frame.name) is Role.RESCHEDULE and any(
            role_of(frame.name) is Role.UNTHROTTLE for frame in runs[i].frame.chain()
        ):
            return i
    return None


def _first(runs: Sequence[Run], begin: int, end: int, role: Role) -> int | None:
    return next(
        (i for i in range(begin, end) if role_of(runs[i].frame.name) is role), None
    )
