"""Findings about waits: how long they last, who ends them, inverted priorities."""

from collections.abc import Iterator

from rtscope.contract import EventTimes, Waker, WatchedThread
from rtscope.contract.watching import Party
from rtscope.host.units import NS_PER_S
from rtscope.verbs.app.model import EventStack, Finding, Watch, Worst

_LOWEST_REAL_TIME = 99
"""Of the kernel's priorities: those of ordinary threads are above."""


def worst_of(watch: Watch, times: EventTimes | None) -> Worst | None:
    """Return the longest; None if none was seen from begin to end."""
    if times is None:
        return None
    return Worst(
        lasted_ns=times.worst_ns,
        after_ns=max(0, times.worst_at_ns - watch.begin.from_ns),
        where=times.worst_in,
        timed=times.count,
        total_ns=times.total_ns,
    )


def inversions(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find locks whose owners could not run, as a thread that is less urgent did."""
    for one in watched.inversions:
        yield Finding(
            "RA11",
            f"{_named(one.owner)} had the lock, {_named(one.by)} had its CPU",
            tid=watched.tid,
            thread=watched.name,
            count=one.times.count,
            rate_per_s=rate_of(one.times.count, watched),
            stacks=_lock_stacks(watch, watched),
            worst=worst_of(watch, one.times),
        )


def _lock_stacks(watch: Watch, watched: WatchedThread) -> tuple[EventStack, ...]:
    return watch.stacks.get((watched.tid, "lock_wait"), ())


def wakers(watch: Watch, watched: WatchedThread) -> Iterator[Finding]:
    """Find wake-ups of a real-time thread that depend on a less urgent one."""
    if not watched.wakers:
        return
    by = sorted(watched.wakers, key=lambda one: -one.count)
    total = sum(one.count for one in by) + watched.other_wakers
    words = [_waker(one) for one in by[:3]]
    if len(by) > len(words) or watched.other_wakers:
        words.append("and others")
    yield Finding(
        "RA12",
        ", ".join(words),
        tid=watched.tid,
        thread=watched.name,
        count=total,
        rate_per_s=rate_of(total, watched),
    )


def _waker(one: Waker) -> str:
    if one.softirq:
        return f"by a softirq in {one.by.name} {one.count:,}"
    return f"by {_named(one.by)} {one.count:,}"


def _named(party: Party) -> str:
    """Return thread and priority as chrt and ps give them."""
    if party.priority > _LOWEST_REAL_TIME:
        return f"{party.name} ({party.tid}, not real-time)"
    if party.priority < 0:
        return f"{party.name} ({party.tid}, deadline)"
    return f"{party.name} ({party.tid}, priority {99 - party.priority})"


def rate_of(count: int, watched: WatchedThread) -> float | None:
    """Return how often a second; None if the thread was watched for no time."""
    lasted_ns = watched.to_ns - watched.from_ns
    return count * NS_PER_S / lasted_ns if lasted_ns > 0 else None
