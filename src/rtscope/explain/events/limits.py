"""
Limits of a thread's time: it was ready, and the scheduler was not to choose it. Pure.

Real-time throttling and the fair server give ordinary tasks a share of each second; a
control group and a SCHED_DEADLINE thread have a runtime of their own. No event tells
any of them: they follow from whom the scheduler chose. The choice may lie before the
wake-up: a ready real-time thread gave its CPU to an ordinary task, and none ran since.
"""

from collections.abc import Collection

from rtscope.explain.events.eventlists import EventList, is_behind
from rtscope.explain.events.histories import MAX_RT_PRIO, priority_words
from rtscope.explain.events.spans import AWAKE, IDLE_PID, Span
from rtscope.explain.events.threadstates import (
    STRAIGHT_NS,
    State,
    Waiting,
    segment_of,
    sleep_state,
)
from rtscope.explain.model import Cause, Confidence, Part, Segment
from rtscope.host.units import NS_PER_MS
from rtscope.record.events.events import Event, Flag

_PERIOD_END_NS = 1_000_000
"""The timer that ends throttling expires just before the thread runs."""
_CPU_MAX = "cpu.max of its control group"
_RUNTIME = "its runtime (sched_setattr)"
_RT_GROUP = "cpu.rt_runtime_us of its control group"
_QUOTA_TIMERS = frozenset({"sched_cfs_period_timer", "sched_cfs_slack_timer"})
_PERIOD_TIMERS = frozenset({"sched_rt_period_timer"})
_SERVER_TIMERS = frozenset({"dl_task_timer", "dl_server_timer"})
_RUNTIME_TIMERS = frozenset({"dl_task_timer", "inactive_task_timer"})
"""Of a SCHED_DEADLINE thread."""
SHARE_NS = 50_000_000
"""What both limits leave to ordinary tasks of each second, unless they were changed."""
_ABOUT = 5_000_000


def limit_in_idle(span: Span, waiting: Waiting) -> Segment | None:
    """Explain an idle CPU beside a ready thread by a limit; None if none shows."""
    ours = waiting.facts.at(waiting.pid, span.begin_ns).urgent
    chosen = _switched_to(span, waiting)
    quota = _quota_of(ours)
    if quota is not None:
        passed_by = chosen or _idles_on(span, waiting)
        return _over_quota(span, waiting, quota) if passed_by else None
    chosen = chosen or _gave_way(span, waiting, span.end_ns)
    return (
        None if chosen is None else _throttled(span, waiting, "the idle task", chosen)
    )


def limit_in_task(span: Span, waiting: Waiting, label: str) -> Segment | None:
    """Explain a less urgent task beside a ready thread by a limit; None without one."""
    chosen = (
        _gave_way(span, waiting, waiting.since_ns)
        or _switched_to(span, waiting)
        or _passed_over(span, waiting)
        or _gave_way(span, waiting, span.end_ns)
    )
    ours = waiting.facts.at(waiting.pid, span.begin_ns).urgent
    if chosen is None and ours is not None and ours < 0:
        chosen = quota_ended(span, waiting, _RUNTIME_TIMERS)
    if chosen is None:
        return None
    if ours is None or ours >= 0:
        return _throttled(span, waiting, label, chosen)
    ready = f"the thread was ready ({priority_words(ours)}); {chosen}"
    return segment_of(
        *(span, waiting, Part.D, Cause.CPU_QUOTA, _RUNTIME),
        *(ready, f"{span.task.numbered} ran instead: only {_RUNTIME} does that"),
        confidence=Confidence.INFERRED,
    )


def _idles_on(span: Span, waiting: Waiting) -> bool:
    """Tell whether a CPU that is in an idle state entered it behind the wake-up."""
    last = waiting.events.named("cpu_idle").last_before(span.end_ns)
    if last is None or last.numbers.get("state") == AWAKE:
        return False
    return last.at_ns > waiting.queued_ns


def _quota_of(priority: int | None) -> str | None:
    """Return what limits the time of a thread; None of a real-time one: throttling."""
    if priority is None or 0 <= priority < MAX_RT_PRIO:
        return None
    return _RUNTIME if priority < 0 else _CPU_MAX


def _over_quota(span: Span, waiting: Waiting, quota: str) -> Segment:
    """Explain an idle CPU beside a thread that is ready: it may not run."""
    own = waiting.facts.at(waiting.pid, span.begin_ns).words
    evidence = [
        f"the thread was ready ({own}), and the CPU idle: only {quota} does that"
    ]
    ended = quota_ended(span, waiting)
    return segment_of(
        *(span, waiting, Part.D, Cause.CPU_QUOTA, quota),
        *(*evidence, *([ended] if ended else [])),
        confidence=Confidence.INFERRED,
    )


def quota_ended(
    span: Span, waiting: Waiting, timers: Collection[str] = _QUOTA_TIMERS
) -> str | None:
    """Return the timer that gives groups their time again, if it expired at the end."""
    until = span.end_ns + _PERIOD_END_NS
    expired = _expired(waiting, timers)
    event = expired.first_from(max(span.begin_ns, waiting.since_ns))
    if event is None or event.at_ns >= until:
        return None
    at = (event.at_ns - waiting.expiry_ns) / 1000
    return f"{_timer(event)}, which ends throttled time, expired at {at:+,.3f} us"


def _expired(waiting: Waiting, timers: Collection[str]) -> EventList:
    """Return the events of timers of these names that expired on this CPU."""
    expired = waiting.events.named("hrtimer_expire_entry")
    return expired.of_kind(frozenset(timers), lambda event: _timer(event) in timers)


def _timer(event: Event) -> str:
    return event.text("function").partition("/")[0]


def _throttled(span: Span, waiting: Waiting, label: str, why: str) -> Segment:
    cause, limit, sure = _which_limit(span, waiting)
    own = waiting.facts.at(waiting.pid, span.begin_ns).words
    ready = f"the thread was ready ({own}); {why}"
    return segment_of(
        span, waiting, Part.D, cause, label, ready, limit, confidence=sure
    )


def _which_limit(span: Span, waiting: Waiting) -> tuple[Cause, str, Confidence]:
    """Distinguish throttling and fair server by timers or the kernel's version."""
    if span.task.pid == 0:
        why = "the CPU was idle instead: only throttling does that"
        return Cause.THROTTLED, why, Confidence.INFERRED
    theirs = waiting.facts.at(span.task.pid, span.begin_ns).least
    if theirs is not None and theirs < MAX_RT_PRIO:
        why = f"a real-time task ran instead: only {_RT_GROUP} does that"
        return Cause.THROTTLED, why, Confidence.INFERRED
    ends = _expired(waiting, _PERIOD_TIMERS).first_from(waiting.since_ns)
    if ends is not None and ends.at_ns < span.end_ns + _PERIOD_END_NS:
        why = "sched_rt_period_timer, which ends throttling, expired then"
        return Cause.THROTTLED, why, Confidence.INFERRED
    release = waiting.machine.release
    if release is not None and release >= (6, 12):
        why = "this kernel has a fair server, which runs tasks that are not real-time"
        return Cause.FAIR_SERVER, why, Confidence.INFERRED
    if release is not None:
        why = "this kernel throttles real-time threads"
        return Cause.THROTTLED, why, Confidence.INFERRED
    if _server_began(span, waiting):
        why = "a timer of SCHED_DEADLINE expired before: the fair server has one"
        return Cause.FAIR_SERVER, why, Confidence.INFERRED
    why = (
        "real-time throttling, or since Linux 6.12 the fair server, which does the "
        "same: the trace does not name its kernel"
    )
    return Cause.THROTTLED, why, Confidence.INFERRED


def _server_began(span: Span, waiting: Waiting) -> bool:
    """Tell whether the last switch to an ordinary task follows a deadline timer."""
    switches = waiting.events.named("sched_switch").of_kind("gives way", gives_way)
    gave = switches.last_until(span.begin_ns)
    gave_ns = span.begin_ns if gave is None else gave.at_ns
    began = _expired(waiting, _SERVER_TIMERS).last_until(gave_ns)
    return began is not None and gave_ns - _PERIOD_END_NS <= began.at_ns


def _switched_to(span: Span, waiting: Waiting) -> str | None:
    """Return how the scheduler chose a task of lower priority before the thread."""
    if span.begin_ns <= waiting.queued_ns:
        return None
    switches = waiting.events.named("sched_switch")
    at_begin = switches[switches.before(span.begin_ns) : switches.until(span.begin_ns)]
    if all(event.numbers.get("next_pid") != span.task.pid for event in at_begin):
        return None
    late_ns = span.begin_ns - waiting.since_ns
    return f"{late_ns} ns later the scheduler switched to a lower priority task"


def _passed_over(span: Span, waiting: Waiting) -> str | None:
    """Return how the scheduler let a task of lower priority continue.

    It clears need_resched when it runs: an event of the task without it, while the
    thread is ready, shows that the task was preferred.
    """
    theirs = waiting.events.of_task(span.task.pid)
    due = theirs.of_kind("due", is_due)
    first = due.until(waiting.queued_ns)
    if first == len(due):
        return None
    cleared = theirs.of_kind("cleared", _is_cleared)
    at = cleared.first_behind_place(due.places[first])
    if at is None or cleared[at].at_ns > span.end_ns:
        return None
    event = cleared[at]
    left = waiting.events.apart(
        "left", lambda e: e.numbers.get("prev_pid"), span.task.pid
    ).first_from(span.end_ns)
    leaves_ns = span.end_ns if left is None else left.at_ns
    if leaves_ns - event.at_ns <= STRAIGHT_NS:
        return None  # the scheduler has just been called
    at_us = (event.at_ns - waiting.expiry_ns) / 1000
    return (
        f"need_resched was set and cleared by +{at_us:,.3f} us ({event.name}): the "
        "scheduler let a lower priority task continue"
    )


def is_due(event: Event) -> bool:
    """Tell whether an event says that the scheduler is to be called."""
    return event.flags is not None and bool(event.flags & Flag.NEED_RESCHED)


def _is_cleared(event: Event) -> bool:
    """Tell whether the scheduler is not to be called, and has not just been."""
    return (
        event.flags is not None and not is_due(event) and event.name != "sched_switch"
    )


def _gave_way(span: Span, waiting: Waiting, before_ns: int) -> str | None:
    """
    Return how the scheduler took the CPU from a ready real-time thread before a time.

    Since then no real-time thread ran on this CPU: it may run none.
    """
    ours = waiting.facts.at(waiting.pid, span.begin_ns).urgent
    if ours is None or ours < 0 or span.end_ns - waiting.queued_ns <= STRAIGHT_NS:
        return None
    ways = waiting.switches.of_kind("gives way", gives_way)
    urgent = waiting.switches.of_kind("urgent", _is_to_realtime)
    end, urgent_end = ways.until(span.begin_ns), urgent.until(span.begin_ns)
    if not is_behind(ways, end, urgent, urgent_end):
        return None
    gave = ways[end - 1]
    gone = gave.numbers.get("prev_pid", -1)
    if gave.at_ns >= before_ns:
        return None
    if waiting.facts.ran(gone, gave.at_ns, span.begin_ns):
        return None  # it was moved to another CPU
    runs = waiting.switches.first_from(span.end_ns)
    until = span.end_ns if runs is None else runs.at_ns
    return (
        f"at {waiting.since(gave.at_ns)} the scheduler took the CPU from "
        f"{gave.text('prev_comm')}-{gave.numbers.get('prev_pid')} "
        f"({priority_words(gave.numbers.get('prev_prio'))}), which was ready, for "
        f"{gave.text('next_comm')}-{gave.numbers.get('next_pid')}, and no real-time "
        f"thread ran on this CPU until {waiting.since(until)}: "
        f"{_share_words(until - gave.at_ns)}"
    )


def _is_to_realtime(switch: Event) -> bool:
    return switch.numbers.get("next_prio", 0) < MAX_RT_PRIO


def gives_way(switch: Event) -> bool:
    """Tell whether a ready real-time thread gives its CPU to an ordinary task."""
    numbers = switch.numbers
    ready = sleep_state(switch.text("prev_state")) is State.RUNNABLE
    return (
        ready
        and numbers.get("prev_pid", IDLE_PID) != IDLE_PID
        and 0 <= numbers.get("prev_prio", -1) < MAX_RT_PRIO
        and numbers.get("next_prio", 0) >= MAX_RT_PRIO
    )


def _share_words(gap_ns: int) -> str:
    told = f"{gap_ns / NS_PER_MS:,.1f} ms"
    if abs(gap_ns - SHARE_NS) <= _ABOUT:
        return f"{told}, about the 50 ms of each second that real-time threads leave"
    return told
