"""
Who held the thread back, who let it go on, and what that task did meanwhile. Pure.

A task is named with its CPU, and with the time of its call since the expiry.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from rtscope.explain.instructions.absences import (
    SETS_POLICY,
    Absence,
    Wait,
    calls_of,
    task_at,
)
from rtscope.explain.instructions.calls import (
    Frame,
    Run,
    delay_helpers,
    main_chain,
    plain,
    shortened,
    title_frame,
)
from rtscope.explain.instructions.causes import wake_call
from rtscope.explain.instructions.contexts import shown
from rtscope.explain.instructions.path import WakeupPath
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.titles import handled_in
from rtscope.explain.instructions.wakers import NOBODY, Deed
from rtscope.explain.model import Segment
from rtscope.host.units import format_us

_HALF = 0.5
_WAKING = ("hrtimer_wakeup",)
_KINDS = {Role.ENQUEUE: ", all real-time", Role.ENQUEUE_FAIR: ", none real-time"}
_BEGAN = {
    Wait.STOPPED: "sent a signal",
    Wait.FROZEN: "froze threads",
    Wait.TRACED: "called ptrace",
}
_WORK_NAMED = 4
_LEAST = 20
"""A work item that took less than one in so many parts of a wait is not named."""


def told_of(path: WakeupPath, held: Absence) -> str:
    """Write who held a thread back in an absence, or let it go on; or nothing."""
    if held.wait is Wait.MOVED and held.runner is not None:
        return (
            f"on CPU {held.runner.cpu}, where the thread was queued until "
            f"{held.ended_by} moved it here, {_when(path, held.runnable_ns)}"
        )
    awaited = path.awaited.get(held.begin_ns, NOBODY)
    if held.wait is Wait.LOCK:
        return _of_holder(path, held, awaited.ran)
    begin, end = awaited.begin, awaited.end
    if held.wait in _BEGAN or held.wait is Wait.HALTED:
        return _of_stop(path, held, begin, end)
    if end is None or held.wait is Wait.SLEEP:
        return ""
    if held.wait is Wait.INTERRUPT:
        return f"{_handler(end)} on CPU {end.task.cpu} ended the wait"
    who = f"{_name(end, None)} on CPU {end.task.cpu} ended the wait"
    ns = held.end_ns - held.begin_ns
    work = [
        f"{name} ({format_us(n)} µs)" for name, n in awaited.work if _LEAST * n > ns
    ]
    if work:
        return f"{who}, and ran {', '.join(work[:_WORK_NAMED])} before"
    where, spent_ns = _place(awaited.ran)
    long = where and _is_long(spent_ns, ns)
    return f"{who}, and ran {where} ({format_us(spent_ns)} µs) before" if long else who


def _is_long(part_ns: int, of_ns: int) -> bool:
    return _LEAST * part_ns > of_ns


def policy_changes(path: WakeupPath) -> Iterator[str]:
    """Yield who changed a policy in the path, and when: whose is not recorded."""
    section, others = path.section, path.others
    for at_ns, cpu in islice(calls_of(section, others.symbols, SETS_POLICY), 2):
        name = task_at(at_ns, cpu, others.switches).name or "an unknown task"
        when = _when(path, at_ns)
        yield f"{name} on CPU {cpu} changed the policy of a thread {when}"


def with_crowd(path: WakeupPath, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments, and of wake-ups of others how many there were, and whom."""
    text = _of_crowd(path)
    if not text:
        return tuple(segments)
    return tuple(
        replace(one, holder=text) if one.name in _WAKING else one for one in segments
    )


def _of_crowd(path: WakeupPath) -> str:
    """Write how many threads the timer's interrupt woke beside the measured one."""
    woken = path.milestones.woken
    if woken is None or path.milestones.switched is None:
        return ""
    queued: dict[Frame, Role] = {}
    own = wake_call(path.runs[woken])
    for run in path.runs[path.milestones.first : path.milestones.switched]:
        call = wake_call(run)
        if call is None or call is own or Role.TIMER not in run.frame.within:
            continue
        queued.setdefault(call, Role.OTHER)
        if run.frame.role in _KINDS:
            queued[call] = run.frame.role
    number = len(queued)
    if not number:
        return ""
    what = "1 other thread" if number == 1 else f"{number:,} other threads"
    kinds = set(queued.values())
    kind = _KINDS.get(kinds.pop(), "") if len(kinds) == 1 else ""
    return f"{what} woken before this one ran{kind}"


def _of_stop(
    path: WakeupPath, held: Absence, begin: Deed | None, end: Deed | None
) -> str:
    again = f"let it go on {_when(path, held.runnable_ns)}" if held.ended_by else ""
    who = held.ended_by
    if end is not None:
        who = f"{_name(end, None)} on CPU {end.task.cpu}"
        again = f"let it go on {_when(path, end.at_ns)}"
    if begin is None:
        return f"{who} {again}" if again else ""
    first = f"{_name(begin, end)} on CPU {begin.task.cpu}"
    did = f"{first} {_BEGAN[held.wait]} {_when(path, begin.at_ns)}"
    if not again:
        return did
    return f"{did}, and {again}" if first == who else f"{did}; {who} {again}"


def _name(one: Deed, later: Deed | None) -> str:
    """Return the name of a task: the last one, as it may have taken that meanwhile."""
    if later is not None and later.task.task == one.task.task:
        return later.task.name or "an unknown task"
    return one.task.name or "an unknown task"


def _when(path: WakeupPath, at_ns: int) -> str:
    since_ns = at_ns - path.expiry_ns
    order = "before" if since_ns < 0 else "after"
    return f"{format_us(abs(since_ns))} µs {order} {path.begins_with}"


def _handler(one: Deed) -> str:
    """Name what the interrupt called, or the softirq, or the thread of one."""
    at = Run(one.frame, one.at_ns, one.at_ns, 0)
    return handled_in(at) or plain(one.frame.name)


def _of_holder(path: WakeupPath, held: Absence, ran: Sequence[Run]) -> str:
    """Write where the holder of a lock was that ran on the thread's own CPU."""
    holder, cpu = held.holder, path.section.cpu
    if holder is None or holder.cpu != cpu:
        return ""
    where, spent_ns = _place(ran)
    if not where or spent_ns < _HALF * (held.runnable_ns - held.begin_ns):
        return ""
    name = holder.name or "an unknown task"
    return f"its holder {name} ran here, in {where}: {format_us(spent_ns)} µs"


def _place(runs: Sequence[Run]) -> tuple[str, int]:
    """Return where a task was for more than half of what it ran, and for how long."""
    chain = main_chain(runs, share=_HALF)
    if not chain:
        return "", 0
    names = [shown(one) for one in chain]
    at = title_frame(chain, delay_helpers(runs))
    within = chain[at]
    ns = sum(run.executed_ns for run in runs if within in run.frame.chain())
    return shortened(names[at:]), ns
