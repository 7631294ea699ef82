"""
From the recorded path of a virtual board to an explanation. Pure.

The path has every block that was executed from well before the expiry until the mark:
nothing is sampled, and nothing guessed but the meaning of functions' names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rtscope.explain.instructions.absences import Absence, Wait, known_wait
from rtscope.explain.instructions.calls import (
    Frame,
    Run,
    is_primitive,
    jumped_to,
    main_chain,
    plain,
    shortened,
    spent_in,
    title_frame,
)
from rtscope.explain.instructions.causes import Kind, kinds_of
from rtscope.explain.instructions.contexts import (
    IrqsOff,
    irqs_off_at,
    irqs_off_in,
    shown,
)
from rtscope.explain.instructions.holders import InPlace, of_idle_cpus, of_sleep
from rtscope.explain.instructions.milestones import (
    TICK,
    put_off_evidence,
    tick_evidence,
)
from rtscope.explain.instructions.othercpus import WAITS, with_pauses
from rtscope.explain.instructions.path import WakeupPath, wakeup_path
from rtscope.explain.instructions.proofs import broken_invariants, without_preemption
from rtscope.explain.instructions.reports import (
    Report,
    report_of,
    told_of_report,
)
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.stretches import (
    FIRMWARE,
    MOST_STRETCHES,
    SHORT_NS,
)
from rtscope.explain.instructions.titles import (
    ASLEEP,
    Named,
    Piece,
    SegmentEnd,
    in_faults,
    name_of,
    pieces_of,
    pieces_of_path,
    told_in_fewer,
)
from rtscope.explain.instructions.told import policy_changes, told_of, with_crowd
from rtscope.explain.joining import joined
from rtscope.explain.model import (
    COMPETING_TASKS,
    Cause,
    Confidence,
    Explanation,
    Part,
    Segment,
)
from rtscope.record.instructions.section import TaskSwitch, TraceSection
from rtscope.record.instructions.symbols import SymbolTable

NAMES_KEPT = 5
PIECES_KEPT = 8
CHAIN_SHOWN = 6
NEARLY_ALL = 0.9
"""Of a segment: executed in the call that it is named after, and what that called."""
OF_A_TASK = COMPETING_TASKS | {
    *(Cause.INTERRUPTS_OFF, Cause.PREEMPTION_OFF, Cause.LOCK, Cause.DELIVERY),
    *(Cause.LATE_TIMER, Cause.OTHER_CPU, Cause.NOT_PREEMPTED),
}
"""Causes whose code belongs to a task: it is named."""

OF_A_CALL = frozenset(
    {
        *(Cause.INTERRUPTS_OFF, Cause.PREEMPTION_OFF, Cause.NOT_PREEMPTED),
        *(Cause.SOFTIRQ, Cause.EARLIER_INTERRUPT, Cause.OTHER_INTERRUPT),
        Cause.TIMER_CALLBACK,
    }
)
"""Causes that a call is to be blamed for: it is named."""

FOR_ANOTHER_CPU = frozenset(
    {
        *(Cause.LOCK, Cause.OTHER_CPU, Cause.GRACE_PERIOD, Cause.BLOCKED),
        Cause.TIMER_ELSEWHERE,
    }
)
"""Causes that another CPU may end: the evidence says what it did."""


def explain_path(
    section: TraceSection,
    symbols: SymbolTable,
    *,
    arch: str,
    preemptible: bool | None = None,
    to_the_end: bool = False,
) -> Explanation:
    """
    Explain one of the worst wake-ups; `preemptible`: the kernel's own code is.

    A path `to_the_end` has also what the thread did behind its wake-up.
    """
    path = wakeup_path(section, symbols, arch=arch, to_the_end=to_the_end)
    return explanation_of(path, preemptible=preemptible)


def explanation_of(path: WakeupPath, *, preemptible: bool | None) -> Explanation:
    """Return what explains a path; `preemptible`: see `explain_path`."""
    section, kinds = path.section, kinds_of(path)
    pieces = _pieces(path, kinds)
    notes = (*_notes(path), *told_in_fewer(pieces))
    segments = tuple(
        _with_other_cpus(path, one) if one.cause in FOR_ANOTHER_CPU else one
        for one in joined([*_unrecorded(path), *_segments(path, pieces)])
    )
    segments = with_crowd(path, segments)
    if preemptible is False:
        segments = tuple(without_preemption(path, one) for one in segments)
    return Explanation(
        section.cpu,
        section.sequence,
        section.latency_ns,
        segments,
        notes,
        broken_invariants(path, kinds, segments),
        unread_ns=path.unread_ns,
    )


def _notes(path: WakeupPath) -> Iterator[str]:
    milestones, section, at = path.milestones, path.section, range(len(path.runs))
    if section.cut:
        yield (
            "the begin of the path was not recorded: the ring was too short; record it "
            "whole: rtscope board trace RESULT --replay"
        )
    if not path.runs:
        yield (
            "no memory was left for the path of this wake-up: record it with rtscope "
            "board trace --replay"
            if section.left_out
            else "no path was recorded for this wake-up"
        )
    elif milestones.woken is None and path.held is None and path.is_timed:
        yield "this CPU did not execute the callback that wakes a sleeping thread"
    armed = at[milestones.first : milestones.woken] if path.held is None else ()
    if any(_armed_overdue(path, i) for i in armed):
        yield "the thread itself was late: it armed its timer after the expiry"
    if path.competing.is_ordinary:
        yield from policy_changes(path)
    if not path.tasks.names and path.competing.goes_on:
        yield (
            "the task that ran is unknown: the kernel's symbols were missing when this "
            "was recorded; record it with rtscope board trace --replay"
        )
    if path.own.is_merged:
        yield (
            f"this path has more than {MOST_STRETCHES:,} calls and returns: those of "
            f"at most {SHORT_NS} ns are part of the functions that called them"
        )
    if milestones.late_timer:
        yield (
            "the timer expired in a softirq: the thread was not real-time when it "
            "went to sleep"
        )


def _armed_overdue(path: WakeupPath, i: int) -> bool:
    """Tell whether the thread armed its timer in a run after that was due."""
    frame = path.runs[i].frame
    is_late = frame.role is Role.OVERDUE and Role.SLEEP in frame.within
    return is_late and path.tasks.measured[i]


def _unrecorded(path: WakeupPath) -> Iterator[Segment]:
    """Return the time before the first recorded block of this CPU."""
    if not path.runs or path.runs[0].begin_ns <= path.expiry_ns:
        return
    end_ns = _ns(path, path.runs[0].begin_ns)
    if path.section.cut or path.section.first_ns > path.expiry_ns:
        yield Segment(Part.A, 0, end_ns, Cause.UNKNOWN, "not recorded")
        return
    if path.held is not None:
        yield from _asleep_while_held(path, path.held, end_ns)
        return
    if path.ticked is not None:
        evidence = ("this CPU slept", *tick_evidence())
        yield Segment(Part.A, 0, end_ns, Cause.TICK, TICK, 0, evidence)
        return
    # The path begins before the expiry: a CPU that executed nothing slept. The timer of
    # a thread that is not real-time may expire later: until another one wakes the CPU.
    is_ordinary = path.competing.is_ordinary
    cause = Cause.TIMER_SLACK if is_ordinary else Cause.IDLE_EXIT
    yield _asleep(0, end_ns, cause)


def _asleep_while_held(
    path: WakeupPath, held: Absence, end_ns: int
) -> Iterator[Segment]:
    """Return what held the thread back, and the sleep that went on behind that."""
    until_ns = _ns(path, held.runnable_ns) if held.is_end_exact else end_ns
    until_ns = max(0, min(until_ns, end_ns))
    if until_ns and held.cause is not None:
        name, chain = _held_name(held)
        yield Segment(
            Part.A,
            0,
            until_ns,
            held.cause,
            name,
            executed_ns=0,
            evidence=tuple(_held_evidence(held)),
            confidence=Confidence.SEEN if held.is_sure else Confidence.INFERRED,
            callers=tuple(chain),
            holder=told_of(path, held),
        )
    if until_ns < end_ns:
        yield _asleep(until_ns, end_ns, Cause.IDLE_EXIT)


def _asleep(begin_ns: int, end_ns: int, cause: Cause) -> Segment:
    return Segment(
        Part.A,
        begin_ns,
        end_ns,
        cause,
        ASLEEP,
        executed_ns=0,
        evidence=("this CPU slept",),
        confidence=Confidence.INFERRED,
    )


def _ns(path: WakeupPath, at_ns: int) -> int:
    """Return virtual time since the expiry."""
    return at_ns - path.expiry_ns


def _pieces(path: WakeupPath, kinds: Sequence[Kind]) -> Sequence[Piece]:
    """Cut the path where part or cause change."""
    first, policies = path.milestones.first, path.tasks.policies

    def policy(at: int) -> str:
        # A task that gets another policy while it runs is another from there on.
        competes = policies and kinds[at - first].cause in COMPETING_TASKS
        return policies[at] if competes else ""

    begin_ns = path.expiry_ns
    return pieces_of_path(kinds, path.runs, begin_ns=begin_ns, first=first, also=policy)


def _segments(path: WakeupPath, pieces: Sequence[Piece]) -> Iterator[Segment]:
    for piece in pieces:
        one = _segment(path, piece.kind, piece.runs)
        if piece.moved is not None:
            begin_ns, end_ns = (_ns(path, at_ns) for at_ns in piece.moved)
            one = replace(one, begin_ns=begin_ns, end_ns=end_ns)
        yield one


def _with_other_cpus(path: WakeupPath, segment: Segment) -> Segment:
    """Tell what the other CPUs did while this one, or the thread, waited for them."""
    readers = path.readers if segment.cause is Cause.GRACE_PERIOD else ""
    seen = path.others.attached_to(segment, path.expiry_ns, readers=readers)
    if segment.cause is not Cause.LOCK:
        return seen
    begin_ns, end_ns = (
        segment.begin_ns + path.expiry_ns,
        segment.end_ns + path.expiry_ns,
    )
    waited = (one for one in path.absences if one.wait is Wait.LOCK)
    inside = (one for one in waited if one.begin_ns < end_ns and begin_ns < one.end_ns)
    held = next(inside, None)
    if held is None:
        return seen
    if held.holder is None:
        did, executed_ns = seen.other_cpus, segment.executed_ns or 0
        return replace(seen, holder=of_idle_cpus(did, executed_ns, segment.duration_ns))
    if held.asleep is not None and held.asleep[0] is not Wait.LOCK:
        seen = replace(seen, other_cpus=())  # who slept did nothing there
    return replace(seen, holder=of_sleep(held) or segment.holder)


def _after(run: Run, expiry_ns: int) -> Run:
    """Return what of a run was after the expiry."""
    if run.begin_ns >= expiry_ns:
        return run
    # A CPU that pauses does so at the end of a run.
    executed_ns = max(0, run.begin_ns + run.executed_ns - expiry_ns)
    return replace(run, begin_ns=expiry_ns, executed_ns=executed_ns)


def _segment(path: WakeupPath, kind: Kind, at: Sequence[int]) -> Segment:
    part, cause, held = kind.part, kind.cause, kind.held
    runs = [_after(path.runs[i], path.expiry_ns) for i in at]
    by_function, timed = spent_in(runs), [*map(with_pauses, runs)]
    named = in_faults(timed) if cause is Cause.PAGE_FAULT else timed
    inside = main_chain(named, share=NEARLY_ALL)
    irqs_off = None
    if cause is Cause.INTERRUPTS_OFF:
        begin_ns, end_ns = runs[0].begin_ns, runs[-1].end_ns
        irqs_off = irqs_off_at(path.flags, path.runs, begin_ns)
        if part is not Part.A:  # it began behind the interrupt, with interrupts on
            irqs_off = irqs_off_in(path.flags, path.runs, begin_ns, end_ns)
    report = report_of(kind, runs, inside, share=NEARLY_ALL)
    if report is not None:
        name, chain = report.name, report.calls
    elif held is not None:
        name, chain = _held_name(held)
    else:
        end = SegmentEnd(path, at[-1], irqs_off)
        name, chain = _name(path, kind, named, inside, end)
    calls = chain if report is None else [*map(shown, inside)]
    pieces = pieces_of(cause, timed)
    # Until a timer expires elsewhere, what this CPU executes delays nobody.
    delays_nobody = cause in (Cause.TIMER_ELSEWHERE, Cause.PUT_OFF)
    by_function = [] if delays_nobody else by_function
    spent = [(plain(name), ns) for name, ns in by_function if ns]
    longest = at[max(range(len(runs)), key=lambda i: timed[i].executed_ns)]
    of_a_task = cause in OF_A_TASK and path.tasks.names and held is None
    task = path.tasks.names[longest] if of_a_task else ""
    policy = path.tasks.policies[longest] if task else ""
    task = "" if path.tasks.measured[longest] else task
    if kind.in_place is not None:
        task, policy = kind.in_place.runner.name, kind.in_place.runner.policy
    if held is not None and held.runner is not None:
        task, policy = held.runner.name, held.runner.policy
    is_sure = cause is not Cause.DELIVERY and (held is None or held.is_sure)
    jump = jumped_to(inside, name, path.delays) if cause in OF_A_CALL else ""
    return Segment(
        part,
        _ns(path, runs[0].begin_ns),
        _ns(path, runs[-1].end_ns),
        cause,
        name,
        sum(run.executed_ns for run in runs),
        (
            *_evidence(path, kind, calls, runs, irqs_off),
            *(_held_evidence(held) if held else ()),
            *(_in_place_evidence(kind.in_place) if kind.in_place else ()),
            *(_jump_evidence(jump) if jump else ()),
            *_names_evidence(path, runs),
        ),
        Confidence.SEEN if is_sure and not jump else Confidence.INFERRED,
        tuple(spent[:NAMES_KEPT]),
        tuple(chain),
        (),
        task,
        policy=policy,
        jumped_to=jump,
        holder=_holder(path, kind, report),
        pieces=tuple(pieces[:PIECES_KEPT]),
    )


def _name(
    path: WakeupPath,
    kind: Kind,
    runs: Sequence[Run],
    inside: Sequence[Frame],
    end: SegmentEnd,
) -> Named:
    # A CPU that waits in a loop reads a clock meanwhile: that is no delay helper.
    delays = frozenset[Frame]() if kind.cause in WAITS else path.delays
    return name_of(kind, runs, inside, title_frame(inside, delays), end=end)


def _holder(path: WakeupPath, kind: Kind, report: Report | None) -> str:
    if report is not None:
        late = path.runs[path.milestones.first :]
        return told_of_report(report, [_after(run, path.expiry_ns) for run in late])
    if kind.held is None or kind.in_place:
        return ""
    return told_of(path, kind.held)


def _names_evidence(path: WakeupPath, runs: Sequence[Run]) -> Iterator[str]:
    for before, now in pairwise(path.own.switches):
        inside = runs[0].begin_ns < now.at_ns < runs[-1].end_ns
        if inside and now.changed and before.name != now.name:
            yield f"{before.name} got the name {now.name}"


def _jump_evidence(function: str) -> Iterator[str]:
    yield (
        f"{function} was called before the path begins: a function that jumped to it "
        "instead of calling it left no trace"
    )


_BEHIND_A_CALL = frozenset(
    {Wait.LOCK, Wait.GRACE_PERIOD, Wait.THREAD, Wait.INTERRUPT, Wait.SLEEP}
)
"""Waits in a function that many call: who called it says more."""


def _held_name(held: Absence) -> tuple[str, Sequence[str]]:
    """Return the function that the thread itself waited in, and its callers."""
    if held.wait is Wait.TIMER_ELSEWHERE or not held.calls:
        return held.ended_by or ASLEEP, ()
    calls = held.calls
    at = calls.index(held.waited_in) if held.waited_in else 0
    if held.wait in _BEHIND_A_CALL:
        steps = (Wait.THREAD, Wait.TIMER) if held.wait is Wait.SLEEP else (Wait.THREAD,)
        wanting = (
            i
            for i in range(at, len(calls))
            if known_wait(calls[i]) not in (held.wait, *steps)
            and not is_primitive(calls[i])
        )
        at = next(wanting, at)
    return calls[at], calls[at:]


def _held_evidence(held: Absence) -> Iterator[str]:
    if held.cause is None:
        yield "the thread slept again, for a timer that was already due"
        return
    yield from held.evidence
    if held.evidence:
        return
    if held.waited_in:
        yield f"the thread was not runnable: it waited in {held.waited_in}"
    if held.ended_by:
        yield f"made runnable again by {held.ended_by}"


def _in_place_evidence(in_place: InPlace) -> Iterator[str]:
    holder, runner = in_place.holder, in_place.runner
    yield (
        f"{_task_text(holder)} held the lock, and was runnable on CPU {runner.cpu}: "
        f"{_task_text(runner)} ran there"
    )


def _task_text(one: TaskSwitch) -> str:
    name = one.name or "an unknown task"
    return f"{name} ({one.policy})" if one.policy else name


def _evidence(
    path: WakeupPath,
    kind: Kind,
    chain: Sequence[str],
    runs: list[Run],
    irqs_off: IrqsOff | None,
) -> Iterator[str]:
    part, cause = kind.part, kind.cause
    if len(chain) > 1:
        yield called(chain)
    if cause is Cause.TICK:
        yield from tick_evidence()
    if cause is Cause.PUT_OFF and path.put_off is not None:
        yield from put_off_evidence(path.put_off)
    is_competing = cause in COMPETING_TASKS - {Cause.IN_PLACE_OF_HOLDER}
    if part is Part.E and is_competing:
        yield "the scheduler had already switched to the thread, and preempted it again"
    if any(run.frame.name == FIRMWARE for run in runs):
        yield "the firmware ran (a call of SBI)"
    if irqs_off is not None:
        yield from _irqs_off_evidence(path, irqs_off)


def _irqs_off_evidence(path: WakeupPath, irqs_off: IrqsOff) -> Iterator[str]:
    since_ns = _ns(path, irqs_off.since_ns)
    order = "after" if since_ns > 0 else "before"
    when = f"{abs(since_ns)} ns {order} {path.begins_with}"
    if irqs_off.off is None and since_ns > 0:
        yield f"interrupts off where the recorded path begins, {when}"
    elif irqs_off.off is None:
        yield f"interrupts off since more than {when}"
    else:
        yield f"interrupts off since {when} ({called_in(irqs_off.off.frame)})"
    if irqs_off.on is not None and irqs_off.until_ns is not None:
        where = called_in(irqs_off.on.frame)
        yield f"on again {_ns(path, irqs_off.until_ns)} ns after it ({where})"


def called(chain: Sequence[str]) -> str:
    """Write who called whom, innermost first."""
    return f"callers: {shortened(chain, shown=CHAIN_SHOWN)}"


def called_in(frame: Frame) -> str:
    """Write the same for a call."""
    return called([plain(f.name) for f in frame.chain()])
