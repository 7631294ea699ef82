"""
The parts of all wake-ups: what each of them took, where they add up. Pure.

A part is measured as a latency is, in the same buckets: as a thread whose latencies are
this part of its wake-ups it has the same figures, charts and exports.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.contract import ThreadResult, TimerlatPart
from rtscope.host.units import count, plural
from rtscope.record.model import TIMER, RunRecord
from rtscope.record.wakeparts import PARTS, PartHistogram, ThreadParts, WakeupParts
from rtscope.stats.summary import Summary, summarize


@dataclass(frozen=True, slots=True)
class PartKind:
    """A part of a wake-up, in words."""

    key: str
    title: str
    until: str
    """Where it ends; it begins where the one before it does."""


_BEFORE = "before"
_OF_EVENT = PartKind(_BEFORE, "event's way", "where the event wakes the thread")
_BY_TRACER = (
    PartKind(
        "timerlat_before", "before the interrupt", "where the timer's handler begins"
    ),
    PartKind("timerlat_thread", "to the thread", "where the kernel's thread runs"),
)
"""Of the kernel's tracer timerlat."""
_WORD = (1 << 64) - 1
KINDS = (
    PartKind(_BEFORE, "before the interrupt", "where the timer's interrupt is handled"),
    PartKind("interrupt", "hard interrupt", "where its CPU's interrupt handlers end"),
    PartKind("preemption", "preemption off", "where this CPU calls the scheduler"),
    PartKind("scheduler", "scheduler", "where it has switched to the thread"),
    PartKind("return", "return", "where the thread has read the clock"),
)
"""In the order of `PARTS`."""
assert tuple(kind.key for kind in KINDS) == PARTS


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the wake-ups of some runs."""

    kind: PartKind
    threads: tuple[ThreadResult, ...]
    """The measuring threads, with this part in place of their latencies."""

    @property
    def summary(self) -> Summary:
        """Its numbers."""
        return summarize(self.threads)


@dataclass(frozen=True, slots=True)
class PartsSeen:
    """The parts of the wake-ups of some runs."""

    parts: tuple[Part, ...]
    """Empty if they are withdrawn."""
    checked: int
    """Wake-ups that were compared one by one with the agent's own latency."""
    unknown: int
    """Wake-ups that are in no part."""
    withdrawn: str
    """Why the parts are no good; empty: they add up."""
    by_tracer: bool = False
    """They are of the kernel's own thread, and its tracer timerlat measured them."""


def parts_seen(records: Sequence[RunRecord]) -> PartsSeen | None:
    """Return the parts of the wake-ups of some runs; None if no run has any."""
    records = [one for one in records if _parts_of(one) is not None]
    if not records:
        return None
    pairs = [pair for record in records for pair in threads_with_parts(record)]
    withdrawn = next((why for one in records if (why := _why_withdrawn(one))), "")
    seen = sum(one.parts[0].samples for _, one in pairs)
    made = sum(t.samples or 0 for record in records for t in record.result.threads)
    kinds = kinds_of(records)
    return PartsSeen(
        parts=tuple(
            Part(kind, tuple(as_thread(t, one.parts[i]) for t, one in pairs))
            for i, kind in enumerate(kinds)
            if pairs and not withdrawn
        ),
        checked=sum(one.checked for _, one in pairs),
        unknown=max(0, made - seen),
        withdrawn=withdrawn or ("" if pairs else "no wake-up was seen"),
        by_tracer=all(map(_is_by_tracer, records)),
    )


def _is_by_tracer(record: RunRecord) -> bool:
    return any(t.timerlat is not None for t in record.result.threads)


def _parts_of(record: RunRecord) -> WakeupParts | None:
    """Return the parts that a virtual board saw, or else the kernel's own tracer."""
    if record.parts is not None:
        return record.parts
    threads = tuple(
        ThreadParts(t.tid, 0, 0, 0, tuple(map(_histogram, t.timerlat)))
        for t in record.result.threads
        if t.timerlat is not None and t.samples
    )
    return WakeupParts(0, "", threads) if threads else None


def _histogram(part: TimerlatPart) -> PartHistogram:
    square = part.sum_sq_ns2
    return PartHistogram(
        *(part.overflow, part.min_ns or 0, part.max_ns or 0, part.sum_ns),
        (square >> 64, square & _WORD),
        part.histogram,
    )


def kinds_of(records: Iterable[RunRecord]) -> tuple[PartKind, ...]:
    """Return the parts in words: of an event, the first one is another."""
    records = [*records]
    if all(map(_is_by_tracer, records)):
        return _BY_TRACER
    is_timer = all(record.run.event == TIMER for record in records)
    return KINDS if is_timer else (_OF_EVENT, *KINDS[1:])


def threads_with_parts(
    record: RunRecord,
) -> Iterator[tuple[ThreadResult, ThreadParts]]:
    """Yield each measuring thread that has parts, and those."""
    parts = _parts_of(record)
    if parts is None:
        return
    by_tid = {one.tid: one for one in parts.threads}
    for thread in record.result.threads:
        if thread.tid in by_tid:
            yield thread, by_tid[thread.tid]


def as_thread(thread: ThreadResult, part: PartHistogram) -> ThreadResult:
    """Return a thread whose latencies are this part of its wake-ups."""
    high, low = part.sum_sq_ns2
    return replace(
        thread,
        samples=part.samples,
        missed_periods=0,
        overruns=0,
        early=0,
        overflow=part.overflow,
        min_ns=part.min_ns,
        max_ns=part.max_ns,
        sum_ns=part.sum_ns,
        sum_sq_ns2=(high << 64) + low,
        missed_periods_sum_ns=0,
        histogram=part.histogram,
        worst=(),
    )


def _why_withdrawn(record: RunRecord) -> str:
    """Return why the parts of a run are no good; empty if they add up."""
    parts = _parts_of(record)
    assert parts is not None
    if parts.unknown:
        return f"{record.run.id}: {parts.unknown} of this kernel was not understood"
    for thread, one in threads_with_parts(record):
        if one.wrong:
            return (
                f"{record.run.id}: the parts of {count(one.wrong)} of "
                f"{plural(one.checked, 'wake-up')} do not add up to the latency: they "
                f"differ by up to {count(one.most_wrong_ns)} ns"
            )
        samples = {part.samples for part in one.parts}
        total_ns = sum(part.sum_ns for part in one.parts)
        differ_ns = abs(total_ns - (thread.sum_ns or 0))
        all_seen = samples == {(thread.samples or 0) - thread.early}
        if len(samples) > 1 or (
            all_seen and differ_ns > parts.tolerance_ns * (thread.samples or 0)
        ):
            return (
                f"{record.run.id}: the parts of all wake-ups together differ from "
                f"their latencies by {count(differ_ns)} ns"
            )
    return ""
