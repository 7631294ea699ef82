"""How long each part of all wake-ups took, as a virtual board has seen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from rtscope.contract import Count, Text
from rtscope.host.errors import BoardError
from rtscope.host.files import first_mistake

Word = Annotated[int, Field(ge=0, lt=2**64, strict=True)]

PARTS = ("before", "interrupt", "preemption", "scheduler", "return")
"""In the order of `enum part` of plugin/wakeuptimes.h, in which they pass."""


@dataclass(frozen=True, slots=True)
class PartHistogram:
    """One part of the wake-ups of a thread; buckets as those of its latencies."""

    overflow: Count
    """Of 2^34 ns or more, in no bucket."""
    min_ns: Count
    max_ns: Count
    sum_ns: Count
    sum_sq_ns2: tuple[Word, Word]
    """The high and the low 64 bits."""
    histogram: tuple[tuple[Count, Count], ...]
    """(low_ns, count), ascending."""

    @property
    def samples(self) -> int:
        """The wake-ups with this part; of some it took 0 ns."""
        return self.overflow + sum(count for _, count in self.histogram)


@dataclass(frozen=True, slots=True)
class ThreadParts:
    """The parts of the wake-ups of a measuring thread."""

    tid: Count
    checked: Count
    """Wake-ups whose parts were compared with the latency that the agent measured."""
    wrong: Count
    """Those of them whose parts did not add up to it."""
    most_wrong_ns: Count
    """The largest difference of all that were compared."""
    parts: Annotated[tuple[PartHistogram, ...], Field(min_length=5, max_length=5)]
    """In the order of PARTS."""


@dataclass(frozen=True, slots=True)
class WakeupParts:
    """The parts of all wake-ups of a run."""

    tolerance_ns: Count
    """By which the parts of a wake-up may differ from its latency: two readings of the
    guest's counter, each rounded."""
    unknown: Text
    """The function of the kernel that was not understood; empty: all were."""
    threads: tuple[ThreadParts, ...]


@cache
def _shape() -> TypeAdapter[WakeupParts]:
    return TypeAdapter(WakeupParts)


def wakeup_parts(counts: Mapping[str, Any], tids: Iterable[int]) -> WakeupParts | None:
    """
    Return the parts in the summary of the plugin, of these threads.

    None if they were not asked for. Raises BoardError for a summary that is no good.
    """
    if "parts" not in counts:
        return None
    known = set(tids)
    try:
        parts = _shape().validate_python(
            {
                "tolerance_ns": counts.get("parts_tolerance_ns"),
                "unknown": counts.get("parts_unknown"),
                "threads": counts["parts"],
            },
            strict=False,
        )
    except ValidationError as error:
        mistake = first_mistake(error, whole="the summary")
        raise BoardError(f"the plugin's parts of wake-ups: {mistake}") from error
    return WakeupParts(
        parts.tolerance_ns,
        parts.unknown,
        tuple(one for one in parts.threads if one.tid in known),
    )
