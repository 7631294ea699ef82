"""What took the time of a cycle: its parts in words, the longest first. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rtscope.host.units import plural
from rtscope.programs.outside.model import OutsideCycle, Wait

IDLE_THREADS = "swapper/"
"""The name of the idle threads begins with it."""


def cycle_parts(
    cycle: OutsideCycle, shift: int, where: Callable[[int], str]
) -> Sequence[tuple[int, str]]:
    """
    Return the parts of a response time in ns, with words for each.

    `where` gives the words for a place by its number, empty if it is not known.
    """
    parts = [one for one in _parts(cycle, shift, where) if one[0] > 0]
    return sorted(parts, key=lambda one: -one[0])


def _parts(
    cycle: OutsideCycle, shift: int, where: Callable[[int], str]
) -> Iterator[tuple[int, str]]:
    own_ns = cycle.user_instructions << shift
    late_ns = cycle.late_ns if cycle.slept else cycle.latency_ns
    yield late_ns, "late already, by the cycle before"
    if cycle.slept:
        idle = cycle.behind is None or cycle.behind.name.startswith(IDLE_THREADS)
        behind = "" if cycle.behind is None or idle else f", behind {cycle.behind.name}"
        yield cycle.latency_ns - late_ns, f"until its first own instruction{behind}"
    by: Counter[str] = Counter()
    for push in cycle.preemptions:
        by[push.by.name or f"thread {push.by.tid}"] += push.ended_ns - push.began_ns
    for name, ns in by.items():
        yield ns, f"preempted by {name}"
    waits: Counter[str] = Counter()
    for one in cycle.waits:
        waits[_wait_words(one, where)] += one.lasted_ns
    for what, ns in waits.items():
        yield ns, what
    yield own_ns, "of its own instructions"
    rest_ns = cycle.response_ns - cycle.latency_ns - own_ns
    rest_ns -= cycle.preempted_ns + cycle.waited_ns
    done = {"system call": sum(cycle.calls.values()), "page fault": cycle.faults}
    what = " and ".join(plural(times, noun) for noun, times in done.items() if times)
    yield rest_ns, f"of the kernel{what and f' for {what}'}"


def _wait_words(one: Wait, where: Callable[[int], str]) -> str:
    at = where(one.place)
    ended = f", ended by {one.ended_by.name}" if one.ended_by else ""
    return f"waiting in {one.at.what}{at and f' in {at}'}{ended}"
