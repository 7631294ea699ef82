"""What a machine's agent tried there: the trial that `watch.py` makes on this one."""

import errno
from collections.abc import Iterable
from dataclasses import dataclass

from rtscope.audit.scene import Trial
from rtscope.audit.watch import TRIAL_PRIORITY
from rtscope.contract import AgentError, AgentResult, Line

TRIAL_NS = 20_000_000
"""Some wake-ups of the agent, which reads back the policy that it got."""

ASKED = f"SCHED_FIFO {TRIAL_PRIORITY}, by the agent"

TRIAL_ARGS = (
    *("measure", "--priority", str(TRIAL_PRIORITY)),
    *("--duration-ns", str(TRIAL_NS)),
)

_REFUSED = ("capability", "rlimit", "cgroup")
"""Causes of the contract for which sched_setscheduler(2) says EPERM."""


@dataclass(frozen=True, slots=True)
class Tried:
    """How it went."""

    trial: Trial | None
    """None if the agent said nothing."""
    clock_cost_ns: int | None
    """Median of a reading of the clock; None if nothing was measured."""


def tried(lines: Iterable[Line]) -> Tried:
    """Return what an agent said that was started with TRIAL_ARGS."""
    for line in lines:
        if isinstance(line, AgentError):
            error = errno.EPERM if line.cause in _REFUSED else errno.EIO
            return Tried(Trial(ASKED, error, line.message), None)
        if isinstance(line, AgentResult):
            costs = [thread.clock_before.p50_ns for thread in line.threads]
            return Tried(Trial(ASKED, None), max(costs, default=None))
    return Tried(None, None)
