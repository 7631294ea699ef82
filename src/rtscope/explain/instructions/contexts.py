"""
The interrupt, softirq or callback of each run of a CPU; interrupts off. Pure.

An interrupt that preempts calls the scheduler from inside, and from there on it is the
scheduler's time.

The plugin records each change at the begin of the block behind the one that made it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.stretches import NAMELESS
from rtscope.record.instructions.section import RecordKind, TraceSection

RUN_TIMERS = "__hrtimer_run_queues"
"""It calls the callbacks of the timers that are due."""
# What the kernel does between two callbacks of timers.
_OF_TIMERS = (
    *("_raw_spin", "timerqueue_", "rb_", "__remove_hrtimer"),
    *("enqueue_hrtimer", "__hrtimer_"),
)
_INNERMOST = frozenset(
    {Role.INTERRUPT, Role.SOFTIRQ, Role.SCHEDULE, Role.PREEMPT, Role.SWITCH}
)
_ACTIONS = frozenset(
    {
        *("net_rx_action", "net_tx_action", "run_timer_softirq", "hrtimer_run_softirq"),
        *("tasklet_action", "tasklet_hi_action", "rcu_core_si", "blk_done_softirq"),
    }
)
"""Only a softirq calls them: it is one also where the path begins within."""
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
        is_action = plain(frame.name) in _ACTIONS
        context = Context(Role.SOFTIRQ, frame) if is_action else THREAD
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
        if plain(frame.name) == RUN_TIMERS:
            return inner if inner and not inner.startswith(_OF_TIMERS) else None
        inner = frame.name
    return None


# --- where interrupts were off on a CPU, by whom, and its preemption counts -----------


@dataclass(frozen=True, slots=True)
class IrqsOff:
    """Interrupts were off: from when, until when, by whom."""

    since_ns: int
    """Virtual time; of the begin of the path, if they were off there."""
    off: Run | None
    """Who switched them off; None if that was before the path."""
    until_ns: int | None
    on: Run | None


@dataclass(frozen=True, slots=True)
class IrqFlags:
    """Changes of the CPU's interrupt flag, in order."""

    at_ns: Sequence[int]
    on: Sequence[bool]

    def off_in(self, begin_ns: int, end_ns: int) -> int:
        """Return how long interrupts were off between two times, in ns."""
        first = max(0, bisect_right(self.at_ns, begin_ns) - 1)
        last = bisect_left(self.at_ns, end_ns)
        edges = [*self.at_ns[first:last], end_ns]
        states = self.on[first:last]
        return sum(
            max(0, until - max(since, begin_ns))
            for (since, until), on in zip(pairwise(edges), states, strict=True)
            if not on
        )


@dataclass(frozen=True, slots=True)
class PreemptCounts:
    """The preemption count of what each interrupt interrupted, in order."""

    at_ns: Sequence[int]
    counts: Sequence[int]

    def before(self, at_ns: int, since_ns: int) -> int | None:
        """Return the last of them until a time; None if there is none since another."""
        last = bisect_right(self.at_ns, at_ns) - 1
        return self.counts[last] if last >= 0 and self.at_ns[last] >= since_ns else None

    def first_in(self, begin_ns: int, end_ns: int) -> int | None:
        """Return the first of them between two times; None if there is none."""
        first = bisect_left(self.at_ns, begin_ns)
        inside = first < len(self.at_ns) and self.at_ns[first] <= end_ns
        return self.counts[first] if inside else None


def irq_flags_of(section: TraceSection) -> IrqFlags:
    """Return the interrupt flags of the CPU that the wake-up was on."""
    mine = (section.kinds == RecordKind.INTERRUPTS) & (section.cpus == section.cpu)
    return IrqFlags(section.at_ns[mine].tolist(), (section.values[mine] != 0).tolist())


def preempt_counts_of(section: TraceSection) -> PreemptCounts:
    """Return the preemption counts that interrupts found on the CPU of a wake-up."""
    mine = (section.kinds == RecordKind.PREEMPT) & (section.cpus == section.cpu)
    return PreemptCounts(section.at_ns[mine].tolist(), section.values[mine].tolist())


def irqs_off_at(flags: IrqFlags, runs: Sequence[Run], expiry_ns: int) -> IrqsOff | None:
    """Return the call that had interrupts off at the expiry; None if they were on."""
    before = bisect_right(flags.at_ns, expiry_ns) - 1
    if before < 0 or flags.on[before] or not runs:
        return None

    def run_before(at_ns: int) -> Run:
        # A change is recorded at the block behind the one that made it.
        return runs[max(0, begun(runs, at_ns) - 1)]

    until_ns = flags.at_ns[before + 1] if before + 1 < len(flags.at_ns) else None
    return IrqsOff(
        since_ns=flags.at_ns[before],
        off=run_before(flags.at_ns[before]) if before > 0 else None,
        until_ns=until_ns,
        on=None if until_ns is None else run_before(until_ns),
    )


def irqs_off_in(
    flags: IrqFlags, runs: Sequence[Run], begin_ns: int, end_ns: int
) -> IrqsOff | None:
    """Return the call that had interrupts off for longest between two times, if any."""
    first, last = bisect_right(flags.at_ns, begin_ns), bisect_left(flags.at_ns, end_ns)
    switched = (flags.at_ns[at] for at in range(first, last) if not flags.on[at])
    found = (irqs_off_at(flags, runs, at_ns) for at_ns in (begin_ns, *switched))

    def inside_ns(one: IrqsOff) -> int:
        until_ns = end_ns if one.until_ns is None else min(one.until_ns, end_ns)
        return until_ns - max(one.since_ns, begin_ns)

    return max((one for one in found if one), key=inside_ns, default=None)
