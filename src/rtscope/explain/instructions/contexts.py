"""
The interrupt, softirq, scheduling or callback that each run of a CPU belongs to. Pure.

An interrupt that preempts calls the scheduler from inside, and from there on it is the
scheduler's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.calls import Frame, Run, plain
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.stretches import NAMELESS

# What the kernel does between two callbacks of timers.
_OF_TIMERS = (
    *("_raw_spin", "timerqueue_", "rb_", "__remove_hrtimer"),
    *("enqueue_hrtimer", "__hrtimer_"),
)
_INNERMOST = frozenset(
    {Role.INTERRUPT, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT, Role.SWITCH}
)
_SCHEDULING = frozenset({Role.SCHEDULE, Role.PREEMPT, Role.SWITCH})


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The interrupt, softirq or scheduling that a run belongs to."""

    role: Role
    """INTERRUPT, SOFTIRQ, SCHEDULE, or OTHER for a thread's own code."""
    frame: Frame | None
    """The call that makes it so."""


THREAD = Context(Role.OTHER, None)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Calls whose meaning only the whole path shows."""

    traps: set[Frame]
    """Entries of traps that turned out to be interrupts."""
    idle: set[Frame]
    """Calls of preempt_schedule that came back at once: preemption was off."""


def contexts_of(runs: Sequence[Run]) -> list[Context]:
    """Return the context of each run."""
    marks = _Marks(_interrupting_traps(runs), _idle_preemptions(runs))
    known: dict[Frame, Context] = {}
    return [_context(run.frame, marks, known) for run in runs]


def _interrupting_traps(runs: Sequence[Run]) -> set[Frame]:
    """Return the entries of traps that turned out to be interrupts."""
    traps: set[Frame] = set()
    for run in runs:
        # Nothing is an interrupt in most runs, which is known without their callers.
        if Role.INTERRUPT not in run.frame.within:
            continue
        for frame in run.frame.chain():
            caller = frame.caller
            if frame.role is Role.INTERRUPT and caller and caller.role is Role.TRAP:
                traps.add(caller)
    return traps


def _idle_preemptions(runs: Sequence[Run]) -> set[Frame]:
    preemptions: set[Frame] = set()
    scheduling: set[Frame] = set()
    for run in runs:
        role = run.frame.role
        if role is Role.PREEMPT:
            preemptions.add(run.frame)
        elif role in (Role.SCHEDULE, Role.SWITCH):
            scheduling.update(run.frame.chain())
    return preemptions - scheduling


def _context(frame: Frame, marks: _Marks, known: dict[Frame, Context]) -> Context:
    if frame in known:
        return known[frame]
    role = frame.role
    if frame in marks.traps:
        context = Context(Role.INTERRUPT, frame)
    elif role is Role.INTERRUPT and frame.caller and frame.caller in marks.traps:
        context = _context(frame.caller, marks, known)
    elif role in _INNERMOST and frame not in marks.idle:
        context = Context(Role.SCHEDULE if role in _SCHEDULING else role, frame)
    elif frame.caller is None:
        context = THREAD
    else:
        context = _context(frame.caller, marks, known)
    if context.role is Role.SCHEDULE and frame.caller is not None:
        context = _outermost_call(context, frame, marks, known)
    known[frame] = context
    return context


def _outermost_call(
    context: Context, frame: Frame, marks: _Marks, known: dict[Frame, Context]
) -> Context:
    """Let __schedule belong to the preempt_schedule that called it."""
    above = _context(frame.caller, marks, known) if frame.caller else THREAD
    return above if above.role is Role.SCHEDULE else context


BPF = "(BPF program)"
INIT = "(freed init function)"
_RUN_BPF = ("bpf_", "__bpf_", "trace_call_bpf", "kprobe_multi_link_prog_run")
_RUN_INIT = ("do_one_initcall", "do_init_module", "do_mod_ctors", "async_run_entry_fn")
_ENDS_INIT = frozenset({Role.INTERRUPT, Role.SOFTIRQ, Role.TRAP})


def shown(frame: Frame) -> str:
    """Return the name of a call; of one without a symbol what it is by its caller."""
    name, caller = plain(frame.name), frame.caller
    if name != NAMELESS or caller is None:
        return name
    if caller.name.startswith(_RUN_BPF):
        return BPF
    return INIT if _is_of_init(frame) else name


def _is_of_init(frame: Frame) -> bool:
    """Tell whether the kernel called it to initialise, directly or not."""
    for one in frame.chain():
        if one.role in _ENDS_INIT:
            return False
        if one.name.startswith(_RUN_INIT):
            return True
    return False


def callback_of(run: Run) -> str | None:
    """Return the timer's function in which a run is; None outside of all."""
    inner = None
    for frame in run.frame.chain():
        if frame.role is Role.INTERRUPT:
            return None  # what interrupts a callback is not of it
        if plain(frame.name) == "__hrtimer_run_queues":
            return inner if inner and not inner.startswith(_OF_TIMERS) else None
        inner = frame.name
    return None
