"""
Timers that wait for the tick: high-resolution timers are off. Pure.

Without them no interrupt comes when a timer is due. The kernel looks at its timers at
each tick, so a thread waits until the next one, whatever its CPU does meanwhile.
"""

from collections.abc import Iterator, Sequence

from rtscope.explain.instructions.calls import Role, Run
from rtscope.explain.instructions.contexts import Context
from rtscope.explain.instructions.flags import IrqFlags
from rtscope.explain.instructions.milestones import Milestones, first_of
from rtscope.explain.model import TICK_REMEDY

TICK = "hrtimer_run_queues"
"""What looks at the timers at each tick."""


def ticked_at(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    milestones: Milestones,
    flags: IrqFlags,
) -> int | None:
    """
    Return the run until which a timer waited for the tick; None if it did not.

    That is the tick that found it, or what kept interrupts off, or an interrupt,
    directly before that: it may have delayed the tick.
    """
    looked = milestones.expired if milestones.late_timer else milestones.woken
    if looked is None or Role.TICK not in runs[looked].frame.within:
        return None
    at = first_of(runs, contexts, looked)
    while at > milestones.first and _may_delay(runs[at - 1], contexts[at - 1], flags):
        at -= 1
    return at


def _may_delay(run: Run, context: Context, flags: IrqFlags) -> bool:
    if Role.IDLE in run.frame.within:
        return False
    off_ns = flags.off_in(run.begin_ns, run.end_ns)
    return context.role is Role.INTERRUPT or 2 * off_ns > run.end_ns - run.begin_ns


def tick_evidence() -> Iterator[str]:
    """Tell what shows the cause, and what to do about it."""
    yield f"the tick found the timer ({TICK}): high-resolution timers are off"
    yield TICK_REMEDY
