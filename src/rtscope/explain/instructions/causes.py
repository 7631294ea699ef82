"""
The part and the cause of each run of a path. Pure.

Parts follow from the milestones, causes from the calls of a run, the interrupt flag
and the tasks that competed. Neighbouring runs of one kind become a segment.

What a probe or a tracer adds to a function is the probe's time, whatever that function
is part of.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from rtscope.explain.instructions.absences import Absence, Wait, spin_of
from rtscope.explain.instructions.calls import Frame, Run, plain, role_of
from rtscope.explain.instructions.contexts import (
    THREAD,
    Context,
    IrqsOff,
    callback_of,
    irqs_off_in,
)
from rtscope.explain.instructions.holders import InPlace, longest_in_place
from rtscope.explain.instructions.milestones import is_one_delivery
from rtscope.explain.instructions.othercpus import (
    WAITS,
    gaps_in_loops,
    loops_by_hand,
    polls,
)
from rtscope.explain.instructions.path import WakeupPath
from rtscope.explain.instructions.requested import FLUSHES_CALLS
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import sleeps_in_fault
from rtscope.explain.model import COMPETING_TASKS, HELD_BACK, Cause, Part
from rtscope.record.instructions.symbols import USER

CONTENDED_NS = 200
"""More than any of the lock functions takes if the lock is free."""
_TAKE_PACKETS = frozenset(
    {
        *("bpf_prog_run_generic_xdp", "bpf_dispatcher_xdp_func", "packet_rcv"),
        *("tpacket_rcv", "sk_filter_trim_cap", "cls_bpf_classify", "tcf_classify"),
    }
)
"""They call programs of BPF that are part of a packet's way, and no probes."""
_PROBED = COMPETING_TASKS | HELD_BACK | WAITS
"""Causes that stay what they are where a probe is at work."""
_STAY = (
    COMPETING_TASKS
    | HELD_BACK
    | {
        *(Cause.LOCK, Cause.TICK, Cause.PUT_OFF, Cause.LATE_TIMER),
    }
)
"""What a loop is part of, where another task waits in it, or for a lock."""
_RUNNABLE = frozenset({Wait.QUOTA, Wait.MOVED})
_OWN = frozenset({Cause.RETURN, Cause.OWN_CODE, Cause.SYSTEM_CALL})
_ONE = HELD_BACK | _OWN | {Cause.PAGE_FAULT}


@dataclass(frozen=True, slots=True)
class Kind:
    """What neighbouring runs of one segment have in common."""

    part: Part
    cause: Cause
    context: Context
    """The interrupt that they belong to."""
    held: Absence | None = field(default=None, compare=False)
    """The absence that the first was in while the thread was not runnable."""
    in_place: InPlace | None = None
    """Who ran meanwhile in the place of the holder of the lock that it waited for."""


def kinds_of(path: WakeupPath) -> Sequence[Kind]:
    """Return part, cause and context of each run, from the expiry on."""
    first = path.milestones.first
    known: dict[tuple[Part, Cause, Context], Kind] = {}
    kinds = [_kind(path, i, known) for i in range(first, len(path.runs))]
    gaps = gaps_in_loops(
        path.runs,
        path.contexts,
        [kind.cause for kind in kinds],
        first=first,
        spins=path.spins,
    )
    by_hand = loops_by_hand(path.runs, path.contexts, first=first)
    for gap in [*gaps, *by_hand]:
        own = path.runs[gap.first].frame
        if gap.cause is Cause.OTHER_CPU and {own, own.caller} & path.countdowns:
            continue
        for at in range(gap.first - first, gap.last - first):
            if kinds[at].cause not in _STAY:
                kinds[at] = replace(kinds[at], cause=gap.cause)
    return kinds


def _kind(
    path: WakeupPath, i: int, known: dict[tuple[Part, Cause, Context], Kind]
) -> Kind:
    run = path.runs[i]
    probe = _probe_of(run)
    held = _held_in(path, run) if path.absences else None
    part, cause = _part_and_cause(path, i, held)
    in_place = None
    if held is not None and held.holder is not None:
        begin_ns = max(run.begin_ns, path.expiry_ns)
        in_place = longest_in_place(path.in_place, begin_ns, run.end_ns)
    if in_place is not None:
        return Kind(part, Cause.IN_PLACE_OF_HOLDER, THREAD, held, in_place)
    context = path.contexts[i]
    if probe is not None and held is None and cause not in _PROBED:
        cause, context = Cause.PROBE, Context(Role.PROBE, probe)
    # On the return the scheduler's last steps and the thread's own are one, and so
    # are a fault and the sleep in it.
    is_one = cause in _ONE or (
        cause in COMPETING_TASKS and context.role is Role.SCHEDULE
    )
    one = THREAD if is_one else context
    if held is not None:
        return Kind(part, cause, one, held)
    # One object for all alike, of which there are hundreds of thousands.
    key = part, cause, one
    kind = known.get(key)
    if kind is None:
        kind = known[key] = Kind(part, cause, one)
    return kind


def _probe_of(run: Run) -> Frame | None:
    """Return the outermost call for a probe that a run is in, behind no interrupt."""
    found: Frame | None = None
    if Role.PROBE not in run.frame.within:
        return found
    for frame in run.frame.chain():
        if frame.role is Role.INTERRUPT:
            break
        if plain(frame.name) in _TAKE_PACKETS:
            return None
        if frame.role is Role.PROBE:
            found = frame
    return found


def _part_and_cause(
    path: WakeupPath, i: int, held: Absence | None
) -> tuple[Part, Cause]:
    context = path.contexts[i]
    if held is not None:
        is_first = held.begin_ns <= path.expiry_ns
        later = Part.D if held.wait in _RUNNABLE else Part.E
        return Part.A if is_first else later, held.cause or Cause.RETURN
    part = _part(path, i)
    waited = _waited(path, i)
    if waited is not None:
        return part, waited
    if context.role is Role.INTERRUPT:
        return part, _interrupt_cause(path, i)
    of_softirq = _softirq_cause(path, i, part)
    if of_softirq is not None:
        return part, of_softirq
    if part is Part.A:
        return part, _delay_cause(path, i)
    if part is Part.E:
        return part, _late_cause(path, i)
    if context.role is Role.SCHEDULE and not _goes_on_itself(path, i):
        return part, Cause.SCHEDULER
    return part, _cause_behind_wake_up(path, i, part)


def _cause_behind_wake_up(path: WakeupPath, i: int, part: Part) -> Cause:
    """Return the cause of what the CPU did between the wake-up and the switch."""
    run = path.runs[i]
    if part is Part.D or path.competing.goes_on or run.frame.name == USER:
        return _competing_cause(path, i)
    if _is_call_while_idle(run):
        return Cause.OTHER_INTERRUPT
    is_idle = Role.IDLE in run.frame.within
    return Cause.IDLE_EXIT if is_idle else Cause.PREEMPTION_OFF


def _softirq_cause(path: WakeupPath, i: int, part: Part) -> Cause | None:
    """Return the cause of a run of a softirq; None of all else, and of a thread's."""
    if path.contexts[i].role is not Role.SOFTIRQ or _is_late(path, i):
        return None
    if _is_masked_softirq(path, path.runs[i], part):
        return Cause.INTERRUPTS_OFF
    # PREEMPT_RT runs softirqs in threads, which are preempted.
    return Cause.SOFTIRQ if part is Part.A or not path.is_rt else None


def _goes_on_itself(path: WakeupPath, i: int) -> bool:
    """Tell whether a task called the scheduler itself, and got its CPU again."""
    frame = path.contexts[i].frame
    return (
        frame is not None
        and Role.SYSCALL in frame.within
        and Role.PREEMPT not in frame.within
        and frame not in path.switching
    )


def _competing_cause(path: WakeupPath, i: int, left: Run | None = None) -> Cause:
    """Return the cause of a run of another task: the idle one competes with none."""
    cause = path.competing.cause(i, left=left)
    is_idle = Role.IDLE in path.runs[i].frame.within
    return Cause.IDLE_EXIT if is_idle and cause is not Cause.THROTTLED else cause


def _held_in(path: WakeupPath, run: Run) -> Absence | None:
    """
    Return the absence that a run was in while the thread itself was not runnable.

    Not the sleep that the wake-up ends, and none in a page fault: they have causes by
    what the CPU did meanwhile.
    """
    begin_ns = max(run.begin_ns, path.expiry_ns)
    for one in path.absences:
        if one.begin_ns <= begin_ns < one.runnable_ns:
            again = one.wait is Wait.TIMER and one is not path.absences[0]
            return one if one.cause or again else None
    return None


def _part(path: WakeupPath, i: int) -> Part:
    milestones, role = path.milestones, path.contexts[i].role
    # If nothing woke the thread here, all is before the interrupt but its own end.
    entered = milestones.switched if milestones.entered is None else milestones.entered
    if entered is None or i < entered:
        return Part.A
    if role is Role.INTERRUPT:
        return Part.B
    if milestones.switched is not None and i >= milestones.switched:
        return Part.E
    if milestones.scheduled is None or i < milestones.scheduled:
        return Part.D if path.competing.was_chosen(i) else Part.C
    return Part.D


def _interrupt_cause(path: WakeupPath, i: int) -> Cause:
    milestones, entry = path.milestones, path.contexts[i].frame
    if milestones.entered is None or i < milestones.entered:
        return Cause.EARLIER_INTERRUPT
    # An NMI may interrupt the timer's interrupt.
    inside = takewhile(lambda frame: frame is not entry, path.runs[i].frame.chain())
    if Role.TIMER not in {frame.role for frame in inside}:
        ours = path.contexts[i].frame is path.contexts[milestones.entered].frame
        # Else no timer of this CPU woke it.
        if not ours or path.held is not None or milestones.woken is None:
            return Cause.OTHER_INTERRUPT
        is_one = is_one_delivery(path.runs[i], path.runs[milestones.woken])
        return Cause.TIMER_INTERRUPT if is_one else Cause.OTHER_INTERRUPT
    callback = callback_of(path.runs[i])
    if callback is None:
        return Cause.TIMER_INTERRUPT
    is_other = role_of(callback) is not Role.WAKE or _wakes_another(path, i)
    return Cause.TIMER_CALLBACK if is_other else Cause.TIMER_INTERRUPT


def _wakes_another(path: WakeupPath, i: int) -> bool:
    """
    Tell whether a callback that wakes a thread is not the one that woke this thread.

    Of several the path does not show which one was: one of them counts as its own.
    """
    woken = path.milestones.woken
    if woken is None:
        return False
    return wake_call(path.runs[i]) is not wake_call(path.runs[woken])


def wake_call(run: Run) -> Frame | None:
    """Return the callback that wakes a sleeping thread, of a run in one; else None."""
    if Role.WAKE not in run.frame.within:
        return None
    calls = (one for one in run.frame.chain() if one.role is Role.WAKE)
    return next(calls, None)


def _delay_cause(path: WakeupPath, i: int) -> Cause:
    run = path.runs[i]
    if _is_late(path, i):
        return Cause.LATE_TIMER
    cause = _waiting_cause(path, run)
    if path.held is not None:
        return cause
    if cause in (Cause.IDLE_EXIT, Cause.DELIVERY) and path.competing.is_ordinary:
        return Cause.TIMER_SLACK
    if cause is Cause.DELIVERY and path.milestones.woken is None:
        # Whether and when the interrupt came is not known: something else ran.
        return Cause.OTHER_TASK if path.milestones.switched is not None else cause
    return cause


def _waiting_cause(path: WakeupPath, run: Run) -> Cause:
    if _is_call_while_idle(run):
        return Cause.EARLIER_INTERRUPT
    if Role.IDLE in run.frame.within:
        return Cause.IDLE_EXIT
    return Cause.INTERRUPTS_OFF if _has_irqs_off(path, run) else Cause.DELIVERY


def _is_masked_softirq(path: WakeupPath, run: Run, part: Part) -> bool:
    """
    Tell whether a softirq itself, or on PREEMPT_RT anybody, has interrupts off.

    Behind the interrupt a softirq delays the thread with interrupts on too. There it is
    blamed for them if they were off for most of the latency: a thread of its own, or
    PREEMPT_RT, would not help.
    """
    if not _has_irqs_off(path, run):
        return False
    since_ns = max(run.begin_ns, path.expiry_ns)
    off = irqs_off_in(path.flags, path.runs, since_ns, run.end_ns)
    least_ns = 0 if part is Part.A else path.section.latency_ns // 2
    if off is None or _after_expiry_ns(path, off) <= least_ns:
        return False
    return path.is_rt or (off.off is not None and Role.SOFTIRQ in off.off.frame.within)


def _after_expiry_ns(path: WakeupPath, off: IrqsOff) -> int:
    until_ns = path.section.last_ns if off.until_ns is None else off.until_ns
    return until_ns - max(off.since_ns, path.expiry_ns)


def _has_irqs_off(path: WakeupPath, run: Run) -> bool:
    begin = max(run.begin_ns, path.expiry_ns)
    return 2 * path.flags.off_in(begin, run.end_ns) >= max(1, run.end_ns - begin)


def _late_cause(path: WakeupPath, i: int) -> Cause:
    """Return the cause of what came after the first switch to the thread."""
    if not path.tasks.names or path.tasks.measured[i]:
        return _own_cause(path, i)
    before = bisect_left(path.tasks.departures, i) - 1
    left = path.runs[path.tasks.departures[before]] if before >= 0 else None
    if left is not None and sleeps_in_fault(left):
        return Cause.PAGE_FAULT
    if path.contexts[i].role is Role.SCHEDULE:
        return Cause.SCHEDULER
    return _competing_cause(path, i, left)


def _own_cause(path: WakeupPath, i: int) -> Cause:
    """Return the cause of what the thread itself did."""
    run = path.runs[i]
    if Role.FAULT in run.frame.within:
        return Cause.PAGE_FAULT
    if path.own_from is None or i < path.own_from:
        return Cause.RETURN
    return Cause.OWN_CODE if run.frame.name == USER else Cause.SYSTEM_CALL


def _is_late(path: WakeupPath, i: int) -> bool:
    """Tell whether the thread's timer had been left to a softirq by then."""
    expired = path.milestones.expired
    return expired is not None and i > expired and _part(path, i) is Part.A


def _waited(path: WakeupPath, i: int) -> Cause | None:
    """Return what a CPU waited for, or its timer, whatever it did meanwhile."""
    if path.ticked is not None and i < path.ticked:
        return Cause.TICK
    if path.put_off is not None and path.put_off.begin <= i < path.put_off.until:
        return Cause.PUT_OFF
    return _waits_for_another(path, i)


def _waits_for_another(path: WakeupPath, i: int) -> Cause | None:
    """Return what a CPU waits for that executes a loop until another is done."""
    run = path.runs[i]
    if run.frame.role is Role.LOCK and run.executed_ns > CONTENDED_NS:
        return Cause.LOCK
    spin = spin_of(run.frame)
    # CPUs that share a clock pause wherever another executes.
    counts = run.frame in path.countdowns
    polling = path.section.block_ns > 0 and not counts and polls(path.runs, i)
    if spin is None and not polling:
        return None
    wants_lock = any(
        path.spins.get(plain(frame.name)) is Wait.LOCK for frame in run.frame.chain()
    )
    return Cause.LOCK if wants_lock else Cause.OTHER_CPU


def _is_call_while_idle(run: Run) -> bool:
    """
    Tell whether an idle CPU did what another one asked it to by an interrupt.

    An idle CPU that watches for work is not interrupted: it finds the calls itself.
    """
    return Role.IDLE in run.frame.within and any(
        plain(frame.name) in FLUSHES_CALLS for frame in run.frame.chain()
    )
