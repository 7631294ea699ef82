"""
Whether preemption was off while a kernel went on that does not preempt its own code.

The preemption count is recorded where an interrupt comes, of what it interrupted. An
interrupt may come before the last has returned, or in a softirq: the count of the
thread is that of the first. It holds until the thread ends the section that it was in,
as it does by unlocking a spin lock. Pure.
"""

from collections.abc import Iterator
from dataclasses import replace

from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.path import WakeupPath
from rtscope.explain.instructions.roles import Role
from rtscope.explain.model import Cause, Confidence, Segment

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
