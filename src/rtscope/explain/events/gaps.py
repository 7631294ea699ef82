"""
Times without any event where the kernel executes straight on. Pure.

The timer's interrupt, the switch and the way back are short, and have events. Where
none comes for long, something else has the CPU: a hypervisor or hardware, or a lock is
waited for. That is cut out, so that what belongs to every wake-up is not blamed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rtscope.explain.events.preemption import STRAIGHT_NS
from rtscope.explain.events.threadstates import Machine
from rtscope.explain.model import Cause, Confidence, Stretch
from rtscope.ftrace.events import Event

_STRAIGHT = frozenset({Cause.TIMER_INTERRUPT, Cause.SCHEDULER, Cause.RETURN})


def pauses_apart(
    stretches: Iterable[Stretch],
    events: Sequence[Event],
    *,
    due_ns: int,
    machine: Machine,
) -> Iterator[Stretch]:
    """Cut long times without an event out; `events` are those of the CPU, in order."""
    for stretch in stretches:
        if stretch.cause not in _STRAIGHT or stretch.duration_ns <= STRAIGHT_NS:
            yield stretch
            continue
        begin, end = stretch.begin_ns, stretch.end_ns
        inside = [
            (event.at_ns - due_ns, event.name)
            for event in events
            if begin <= event.at_ns - due_ns <= end
        ]
        marks = [(begin, "its begin"), *inside, (end, "its end")]
        yield from _pieces(stretch, marks, machine)


def _pieces(
    stretch: Stretch, marks: Sequence[tuple[int, str]], machine: Machine
) -> Iterator[Stretch]:
    at = stretch.begin_ns
    for (since, first), (until, second) in pairwise(marks):
        if until - since <= STRAIGHT_NS:
            continue
        if since > at:
            yield replace(stretch, begin_ns=at, end_ns=since)
        yield _pause(stretch, since, until, machine, f"from {first} to {second}")
        at = until
    if at < stretch.end_ns:
        yield replace(stretch, begin_ns=at)


def _pause(
    stretch: Stretch, begin_ns: int, end_ns: int, machine: Machine, between: str
) -> Stretch:
    evidence = [f"{(end_ns - begin_ns) / 1000:,.3f} us without an event, {between}"]
    if machine.guest:
        cause, name = Cause.HARDWARE, f"during {stretch.cause}"
        evidence.append("guessed: this is a guest: the host can take a CPU away")
    else:
        cause, name = Cause.UNKNOWN, f"a lock or hardware, during {stretch.cause}"
    return replace(
        stretch,
        begin_ns=begin_ns,
        end_ns=end_ns,
        cause=cause,
        name=name,
        evidence=tuple(evidence),
        confidence=Confidence.GUESSED,
    )
