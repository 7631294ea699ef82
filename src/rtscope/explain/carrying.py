"""What the time of who carries an event to the thread is called. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rtscope.explain.model import INHERENT, Cause, Part, Segment

OWN = frozenset({Cause.RETURN, Cause.OWN_CODE, Cause.SYSTEM_CALL})
UNKNOWN_WAY = (
    "who woke the thread was not recorded: measure again, to know the way of the event"
)


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who has an event, for a time."""

    cause: Cause
    """Of what it does of its own: it sends or carries, or is the interrupt."""
    name: str
    cpu: int
    policy: str = ""
    begins_ns: int | None = None
    """When an interrupt begins, by the time of the segments; None: with the first."""


def of_others(segment: Segment) -> Segment:
    """Return a segment; the interrupt of a timer has nothing to do with an event."""
    if segment.cause is Cause.TIMER_INTERRUPT:
        return replace(segment, cause=Cause.OTHER_INTERRUPT)
    return segment


def parts_of_the_way(
    bearer: Bearer, segments: Sequence[Segment], place: str
) -> list[Segment]:
    """Return segments of a bearer as parts of the way; `place` is what it does."""
    cause, name = bearer.cause, bearer.name
    waited = f"{name} on CPU {bearer.cpu} was to carry the event"
    found = []
    for segment in segments:
        part = replace(of_others(segment), part=Part.A)
        is_begun = bearer.begins_ns is None or segment.begin_ns >= bearer.begins_ns
        is_interrupt = cause is Cause.EVENT_INTERRUPT and is_begun
        if is_interrupt or segment.cause in OWN:
            part = replace(part, cause=cause, name=place, task="", policy="")
            if cause is Cause.CARRIER:
                part = replace(part, task=name, policy=bearer.policy)
        elif segment.cause not in INHERENT and not segment.holder:
            part = replace(part, holder=waited)
        found.append(part)
    return found
