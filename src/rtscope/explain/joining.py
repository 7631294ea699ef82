"""Neighbouring segments of one cause as one. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rtscope.explain.model import Confidence, Segment


def joined(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Join neighbours of the same part, cause and name."""
    alike: list[list[Segment]] = []
    for segment in segments:
        if alike and _same(alike[-1][-1], segment):
            alike[-1].append(segment)
        elif segment.duration_ns > 0:
            alike.append([segment])
    return tuple(_sum(some) if len(some) > 1 else some[0] for some in alike)


def _same(a: Segment, b: Segment) -> bool:
    mine = a.part, a.cause, a.name, a.task, a.policy
    return mine == (b.part, b.cause, b.name, b.task, b.policy) and (
        a.end_ns == b.begin_ns
    )


def _sum(some: Sequence[Segment]) -> Segment:
    first, executed = some[0], [one.executed_ns for one in some]
    known = [ns for ns in executed if ns is not None]
    return replace(
        first,
        end_ns=some[-1].end_ns,
        executed_ns=sum(known) if len(known) == len(executed) else None,
        evidence=tuple(dict.fromkeys(line for one in some for line in one.evidence)),
        confidence=max((one.confidence for one in some), key=list(Confidence).index),
        functions=_added(one.functions for one in some),
        pieces=_added(one.pieces for one in some),
        callers=next((one.callers for one in some if one.callers), ()),
        other_cpus=tuple(cpu for one in some for cpu in one.other_cpus),
    )


def _added(times: Iterable[tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
    """Return the sum of times by name, most first."""
    sums: Counter[str] = Counter()
    for one in filter(None, times):
        sums = Counter(dict((sums + Counter(dict(one))).most_common()))
    return tuple(sums.items())
