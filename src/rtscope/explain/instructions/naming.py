"""
What a stretch is called: the function, handler or callback that most of it went to.

Pure. A name says where to look: not the bookkeeping that leads to a handler, and not
the lock that is waited for, but who waits.
"""

from collections.abc import Sequence

from rtscope.explain.instructions.calls import Frame, Run, main_frame, spent_in
from rtscope.explain.instructions.functions import Role, plain, role_of
from rtscope.explain.instructions.milestones import Context
from rtscope.explain.model import Cause

CALLED_FROM_IDLE = frozenset(
    {"flush_smp_call_function_queue", "__flush_smp_call_function_queue"}
)
"""What looks for the calls of other CPUs without an interrupt."""
NEARLY_ALL = 0.9
"""Of a stretch: executed in the call that it is named after, and what that called."""
CHAIN_SHOWN = 6
ASLEEP = "(asleep)"
# An idle CPU finds the calls of others by itself, without an interrupt.
_ENTRY = frozenset({Role.INTERRUPT, Role.TRAP, Role.IDLE})
_SOFTIRQ = frozenset({Role.SOFTIRQ})
_OF_TIMERS = (
    *("_raw_spin", "timerqueue_", "rb_", "__remove_hrtimer"),
    *("enqueue_hrtimer", "__hrtimer_"),
)
_LED_TO = frozenset({Role.INTERRUPT, Role.TRAP, Role.DISPATCH, Role.SOFTIRQ})


def name_of(
    cause: Cause, context: Context, runs: Sequence[Run]
) -> tuple[str, Sequence[str]]:
    """Return the name of a stretch, and the calls that nearly all of it happened in."""
    if cause in (Cause.EARLIER_INTERRUPT, Cause.OTHER_INTERRUPT):
        return _handler(runs, _ENTRY), ()
    if cause is Cause.TIMER_CALLBACK:
        return plain(callback_of(runs[0]) or ""), ()
    if cause is Cause.TIMER_INTERRUPT:
        return "hrtimer_interrupt", ()
    if cause is Cause.SCHEDULER and context.frame is not None:
        return plain(context.frame.name), ()
    if cause is Cause.PAGE_FAULT:
        runs = [run for run in runs if is_any(run, Role.FAULT)]
        if not runs:  # another ran while the thread slept in it
            return ASLEEP, ()
    frame = main_frame(runs, share=NEARLY_ALL)
    chain = [plain(f.name) for f in frame.chain()] if frame else []
    if cause is Cause.SOFTIRQ:
        return _of_softirq(chain, runs)
    if cause is Cause.LOCK:
        waiting = (name for name in chain if role_of(name) is not Role.LOCK)
        return next(waiting, chain[0] if chain else _most(runs)), chain
    return (chain[0] if chain else _most(runs)), chain


def is_any(run: Run, role: Role) -> bool:
    """Tell whether a run is in a call of this role."""
    return any(role_of(frame.name) is role for frame in run.frame.chain())


def is_call_while_idle(run: Run) -> bool:
    """
    Tell whether an idle CPU did what another one asked it to by an interrupt.

    An idle CPU that watches for work is not interrupted: it finds the calls itself.
    """
    return is_any(run, Role.IDLE) and any(
        plain(frame.name) in CALLED_FROM_IDLE for frame in run.frame.chain()
    )


def callback_of(run: Run) -> str | None:
    """Return the timer's function in which a run is; None outside of all."""
    inner = None
    for frame in run.frame.chain():
        if plain(frame.name) == "__hrtimer_run_queues":
            return inner if inner and not _is_of_timers(inner) else None
        inner = frame.name
    return None


def called(chain: Sequence[str]) -> str:
    """Write who called whom, innermost first."""
    shown = " < ".join(chain[:CHAIN_SHOWN])
    return f"callers: {shown}{' < …' if len(chain) > CHAIN_SHOWN else ''}"


def called_in(frame: Frame) -> str:
    """Write the same for a call."""
    return called([plain(f.name) for f in frame.chain()])


def _most(runs: Sequence[Run]) -> str:
    return plain(spent_in(runs)[0][0])


def _of_softirq(chain: Sequence[str], runs: Sequence[Run]) -> tuple[str, Sequence[str]]:
    name = _handler(runs, _SOFTIRQ)
    if name in chain:
        return name, chain[chain.index(name) :]
    outside = [at for at, one in enumerate(chain) if role_of(one) in _LED_TO]
    return name, (name, *chain[outside[0] :]) if outside else (name,)


def _is_of_timers(name: str) -> bool:
    return name.startswith(_OF_TIMERS)


def _handler(runs: Sequence[Run], entry: frozenset[Role]) -> str:
    """Name an interrupt by its handler: where most went, behind the entry code."""
    spent: dict[str, int] = {}
    for run in runs:
        name = _handled_in(run, entry)
        if name is not None:
            spent[name] = spent.get(name, 0) + run.own
    if spent:
        return max(spent, key=lambda name: spent[name])
    led_to = [f for f in runs[0].frame.chain() if role_of(f.name) in entry]
    return plain((led_to[0] if led_to else runs[0].frame).name).removeprefix("asm_")


def _handled_in(run: Run, entry: frozenset[Role]) -> str | None:
    """Return the function that the innermost entry led to."""
    found = None
    for frame in run.frame.chain():
        role = role_of(frame.name)
        if role in entry:
            return found
        if role not in _LED_TO:
            found = plain(frame.name)
    return None
