"""
The invariants of a wake-up on a virtual board, checked against its records. Pure.

The explanation cuts a path into causes; here the tasks, marks and times that the plugin
recorded beside it are asked whether the story can be true.

The preemption count is recorded where an interrupt comes, of what it interrupted. An
interrupt may come before the last has returned, or in a softirq: the count of the
thread is that of the first. It holds until the thread ends the section that it was in,
as it does by unlocking a spin lock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rtscope.explain.instructions.absences import Tasks, Wait
from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.causes import Kind
from rtscope.explain.instructions.holders import IDLE, PROMPT_NS
from rtscope.explain.instructions.path import WakeupPath
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import (
    COMPETING_TASKS,
    Broken,
    Cause,
    Confidence,
    Invariant,
    Part,
    Segment,
)
from rtscope.record.instructions.section import FIRST_ORDINARY, RecordKind
from rtscope.record.instructions.symbols import USER

SWITCH_NS = 5_000
"""From the switch of the stacks to the record of the new task: some 1,000 ns."""
_NEVER_PAUSE = COMPETING_TASKS - {Cause.THROTTLED, Cause.IN_PLACE_OF_HOLDER} | {
    *(Cause.IDLE_EXIT, Cause.TIMER_INTERRUPT, Cause.OTHER_INTERRUPT, Cause.SOFTIRQ),
    *(Cause.TIMER_CALLBACK, Cause.PREEMPTION_OFF, Cause.SCHEDULER),
    Cause.NOT_PREEMPTED,
}
"""In these a CPU executes: a pause is the idle task's."""
_SLEEPS = frozenset({Wait.TIMER, Wait.TIMER_ELSEWHERE})
SLIGHT_NS = 200
"""Segments end with the function in which something changed, not at the change."""


def broken_invariants(
    path: WakeupPath, kinds: Sequence[Kind], segments: Sequence[Segment]
) -> tuple[Broken, ...]:
    """Return the invariants that this explanation breaks; none is a proof."""
    if not path.runs:
        return ()
    return tuple(
        (
            *_mark(path),
            *_expiry(path, segments),
            *_arrivals(path),
            *_runnable(path, segments),
            *_idle(path, segments),
            *_choice(path, kinds),
            *_keeps(path, kinds),
            *_switches(path),
            *_time(path),
        )
    )


def _whole(path: WakeupPath, invariant: Invariant, **values: int | str) -> Broken:
    return Broken(invariant, 0, path.section.latency_ns, values)


def _mark(path: WakeupPath) -> Iterator[Broken]:
    """The path ends at a mark of this latency, on this CPU."""
    section = path.section
    marks = section.values[
        (section.kinds == RecordKind.MARK) & (section.cpus == section.cpu)
    ]
    if not len(marks) or int(marks[-1]) != section.latency_ns:
        yield _whole(path, Invariant.MARK, latency_ns=section.latency_ns)


def _expiry(path: WakeupPath, segments: Sequence[Segment]) -> Iterator[Broken]:
    """A timer never expires before it is due, and interrupts that are on come."""
    asleep = next((one for one in path.absences if one.wait is Wait.TIMER), None)
    early = asleep is not None and asleep.runnable_ns < path.expiry_ns
    if asleep is not None and early and asleep.begin_ns <= path.expiry_ns:
        late_ns = asleep.runnable_ns - path.expiry_ns
        yield _whole(path, Invariant.EXPIRY, late_ns=late_ns)
    # The timer of a thread that is not real-time has slack, and expires in a softirq.
    if not path.section.block_ns or path.milestones.late_timer:
        return
    for one in segments:
        idle_ns = _paused_ns(one) if one.cause is Cause.IDLE_EXIT else 0
        waited_ns = one.duration_ns if one.cause is Cause.DELIVERY else idle_ns
        if one.part is Part.A and waited_ns > PROMPT_NS:
            values = {"late_ns": one.end_ns}
            yield Broken(Invariant.EXPIRY, one.begin_ns, one.end_ns, values)


def _paused_ns(segment: Segment) -> int:
    executed_ns = segment.executed_ns
    return 0 if executed_ns is None else segment.duration_ns - executed_ns


def _arrivals(path: WakeupPath) -> Iterator[Broken]:
    sleeps = sum(one.wait in _SLEEPS for one in path.absences)
    if sleeps > 1:
        yield _whole(path, Invariant.ARRIVAL, sleeps=sleeps)


def _runnable(path: WakeupPath, segments: Sequence[Segment]) -> Iterator[Broken]:
    """Where another task is blamed, the thread waited for nothing but its CPU."""
    for one in segments:
        # There the thread waits, and the holder of its lock is runnable.
        if one.cause not in COMPETING_TASKS - {Cause.IN_PLACE_OF_HOLDER}:
            continue
        begin, end = one.begin_ns + path.expiry_ns, one.end_ns + path.expiry_ns
        for absence in path.absences:
            since, until = max(begin, absence.begin_ns), min(end, absence.runnable_ns)
            runnable = absence.wait in (Wait.CPU, Wait.MOVED)
            if not runnable and until - since > SLIGHT_NS:
                yield Broken(
                    Invariant.RUNNABLE,
                    since - path.expiry_ns,
                    until - path.expiry_ns,
                    {"task": one.task or one.name},
                )


def _idle(path: WakeupPath, segments: Sequence[Segment]) -> Iterator[Broken]:
    """The idle task is no competitor, and does not pause beside a runnable thread."""
    for one in segments:
        if _is_moved(path, one):  # it is idle here, and the other task is elsewhere
            continue
        blamed = one.cause in COMPETING_TASKS and _is_idle(one)
        paused = (
            one.part is not Part.A
            and one.cause in _NEVER_PAUSE
            and path.section.block_ns > 0
            and _longest_pause_ns(path, one) > PROMPT_NS
        )
        if blamed or paused:
            values = {"task": one.task or one.name}
            yield Broken(Invariant.IDLE, one.begin_ns, one.end_ns, values)


def _is_moved(path: WakeupPath, segment: Segment) -> bool:
    at_ns = segment.begin_ns + path.expiry_ns
    return any(
        one.begin_ns <= at_ns < one.runnable_ns
        for one in path.absences
        if one.wait is Wait.MOVED and segment.cause is Cause.OTHER_TASK
    )


def _longest_pause_ns(path: WakeupPath, segment: Segment) -> int:
    """
    Return the longest time in which a segment executed nothing.

    A CPU that yields while it waits in a loop, or delays in one, ends its turn: many
    short pauses, none longer than a quantum. Of the idle loop all pauses count.
    """
    paused_ns = _paused_ns(segment)
    if paused_ns <= PROMPT_NS or segment.cause is Cause.IDLE_EXIT:
        return paused_ns
    begin, end = segment.begin_ns + path.expiry_ns, segment.end_ns + path.expiry_ns
    executed = path.own.executed
    since_ns = executed.at_ns + executed.own_ns
    pauses_ns = np.minimum(executed.until_ns, end) - np.maximum(since_ns, begin)
    return max(0, int(pauses_ns.max(initial=0)))


def _is_idle(segment: Segment) -> bool:
    return segment.task.startswith(IDLE) or "do_idle" in segment.callers


def _choice(path: WakeupPath, kinds: Sequence[Kind]) -> Iterator[Broken]:
    """A real-time thread that is queued is chosen before every ordinary task."""
    first, competing = path.milestones.first, path.competing
    queued = competing.queued
    if competing.is_ordinary or queued is None:
        return
    for at, kind in enumerate(kinds, first):
        decision = competing.decision_before(at)
        if kind.cause is not Cause.OTHER_TASK or decision is None or kind.held:
            continue
        if decision.chooser is Role.PICK_FAIR and decision.at > queued:
            run = path.runs[at]
            yield Broken(
                Invariant.CHOICE,
                run.begin_ns - path.expiry_ns,
                run.end_ns - path.expiry_ns,
                {"task": path.tasks.names[at] if path.tasks.names else "a task"},
            )


def _keeps(path: WakeupPath, kinds: Sequence[Kind]) -> Iterator[Broken]:
    """No program keeps its CPU from a thread that goes before it."""
    tasks, first = path.tasks, path.milestones.first
    ours = next((p for p, own in _last_first(tasks) if own), None)
    if ours is None or ours >= FIRST_ORDINARY or path.competing.is_ordinary:
        return
    kept: list[int] = []
    for at, kind in enumerate(kinds, first):
        prio = tasks.prios[at]
        if kind.cause is not Cause.OTHER_TASK or kind.part is Part.A or kind.held:
            continue
        if prio is not None and prio > ours and path.runs[at].frame.name == USER:
            kept.append(at)
    ns = sum(path.runs[at].end_ns - path.runs[at].begin_ns for at in kept)
    if ns > PROMPT_NS:
        yield Broken(
            Invariant.CHOICE,
            path.runs[kept[0]].begin_ns - path.expiry_ns,
            path.runs[kept[-1]].end_ns - path.expiry_ns,
            {"task": f"{tasks.names[kept[0]]} ({tasks.policies[kept[0]]})"},
        )


def _last_first(tasks: Tasks) -> Iterator[tuple[int | None, bool]]:
    """Yield each run's priority, and whether the measured thread did it."""
    yield from zip(reversed(tasks.prios), reversed(tasks.measured), strict=False)


def _switches(path: WakeupPath) -> Iterator[Broken]:
    """Each record of a task has a switch before it, and each switch such a record."""
    records = [one.at_ns for one in path.own.switches if not one.changed]
    if not records:
        return
    executed = list(_executed_switches(path))
    recorded = (
        [at_ns for at_ns in records[1:] if at_ns >= executed[0]] if executed else []
    )
    unshown = sum(
        1
        for at_ns in recorded
        if not any(0 <= at_ns - end_ns <= SWITCH_NS for end_ns in executed)
    )
    unrecorded = sum(
        1
        for end_ns in executed
        if not any(0 <= at_ns - end_ns <= SWITCH_NS for at_ns in records)
    )
    if unshown or unrecorded or (not executed and len(records) > 1):
        yield _whole(
            path, Invariant.SWITCHES, switches=len(records) - 1, shown=len(executed)
        )


def _executed_switches(path: WakeupPath) -> Iterator[int]:
    """
    Yield the ends of the switches that functions show; one is of several pieces.

    A switch in which the path ends, as that of a carrier may, has none: its task is
    told later.
    """
    last_ns: int | None = None
    pieces: set[Frame] = set()
    for run in path.runs:
        if run.frame.role is not Role.SWITCH:
            continue
        is_apart = last_ns is not None and run.begin_ns - last_ns > SWITCH_NS // 4
        # An NMI may interrupt a switch, which goes on behind it.
        if last_ns is not None and is_apart and run.frame not in pieces:
            yield last_ns
            pieces.clear()
        pieces.add(run.frame)
        last_ns = run.end_ns
    if last_ns is not None and path.runs[-1].frame not in pieces:
        yield last_ns


def _time(path: WakeupPath) -> Iterator[Broken]:
    """No block of instructions takes longer than the longest that QEMU makes."""
    section = path.section
    if not section.block_ns:
        return
    at_ns, own_ns = path.own.executed.at_ns, path.own.executed.own_ns
    for at in (own_ns > section.block_ns).nonzero()[0].tolist():
        begin_ns = int(at_ns[at]) - path.expiry_ns
        end_ns = begin_ns + int(own_ns[at])
        if end_ns > 0:
            values = {"block_ns": int(own_ns[at]), "most_ns": section.block_ns}
            yield Broken(Invariant.TIME, max(0, begin_ns), end_ns, values)


# Whether preemption was off while a kernel went on that does not preempt its own code.

NOT_PREEMPTED = (
    "this kernel does not preempt its own code: nobody needs to have turned preemption "
    "off there"
)
EARLY_NS = 60
"""A board's timer interrupt comes up to 35 ns before its expiry: clocks are rounded."""
OFF_BITS = 0xFFFF
"""Of the preemption count: preemption and softirqs (`include/linux/preempt.h`)."""
_SOFTIRQS = 0xFF00
_NESTED = frozenset({Role.INTERRUPT, Role.SOFTIRQ})
_LOCKS = ("_raw_spin_lock", "_raw_read_lock", "_raw_write_lock")
_UNLOCKS = ("_raw_spin_unlock", "_raw_read_unlock", "_raw_write_unlock")
_OFF_INSIDE = ("migrate_disable", "migrate_enable")
"""They turn preemption off, and on again before they return."""


def without_preemption(path: WakeupPath, segment: Segment) -> Segment:
    """Tell whether preemption was off where a kernel does not preempt its own code."""
    if segment.cause is not Cause.PREEMPTION_OFF:
        return segment
    count, evidence = _count_of(path, segment), segment.evidence
    if count is None:
        return replace(segment, evidence=(*evidence, NOT_PREEMPTED))
    sentence = f"the preemption count was {count:#x} when the interrupt came"
    if not count:
        why = f"{sentence}: nobody had turned preemption off"
        return replace(segment, cause=Cause.NOT_PREEMPTED, evidence=(*evidence, why))
    by, off_ns = _off_ns(path, segment, count)
    if 2 * off_ns >= segment.duration_ns:
        return replace(segment, evidence=(*evidence, sentence))
    return replace(
        segment,
        cause=Cause.NOT_PREEMPTED,
        evidence=(*evidence, f"{sentence}, and 0 after {off_ns} ns, behind {by}"),
        confidence=Confidence.INFERRED,
    )


def _count_of(path: WakeupPath, segment: Segment) -> int | None:
    """Return the count that the thread had before the segment; None if unknown."""
    begin_ns, counts = segment.begin_ns + path.expiry_ns, path.own.counts
    last = begun(path.runs, begin_ns + 1) - 2
    while last >= 0 and path.contexts[last].role in _NESTED:
        last -= 1
    if last >= 0:
        first = counts.first_in(path.runs[last].end_ns, begin_ns)
        if first is not None:
            return first & OFF_BITS
    found = counts.before(begin_ns, path.expiry_ns - EARLY_NS)
    return None if found is None else found & OFF_BITS


def _off_ns(path: WakeupPath, segment: Segment, count: int) -> tuple[str, int]:
    """Return who ended the section that the thread was in, and how long it was off."""
    begin_ns, end_ns = (
        segment.begin_ns + path.expiry_ns,
        segment.end_ns + path.expiry_ns,
    )
    if count & _SOFTIRQS:
        return "", segment.duration_ns
    off_ns, since_ns, by = 0, begin_ns, ""
    for at_ns, name, step in _steps(path, begin_ns, end_ns):
        before, count = count, max(0, count + step)
        if before and not count:
            off_ns += at_ns - since_ns
            by = by or name
        elif count and not before:
            since_ns = at_ns
    if count:
        off_ns += end_ns - since_ns
    return by, off_ns


def _steps(
    path: WakeupPath, begin_ns: int, end_ns: int
) -> Iterator[tuple[int, str, int]]:
    """Yield when a call of the thread changed the count, its name, and by how much."""
    first, last = begun(path.runs, begin_ns + 1) - 1, begun(path.runs, end_ns)
    seen: set[Frame] = set()
    for i in range(max(0, first), last):
        run = path.runs[i]
        if path.contexts[i].role in _NESTED or run.frame in seen:
            continue
        seen.add(run.frame)
        yield from _step(run, is_entered=i > first)


def _step(run: Run, *, is_entered: bool) -> Iterator[tuple[int, str, int]]:
    name = plain(run.frame.name)
    if name.startswith(_UNLOCKS):
        yield run.end_ns, name, -1
    elif name.startswith(_LOCKS) and is_entered:
        yield run.begin_ns, name, 1
    elif name in _OFF_INSIDE and not is_entered:
        yield run.end_ns, name, -1
