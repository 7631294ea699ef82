"""
The caveats of a run that follow from the event which wakes its threads.

Events that are no samples, a loop that never sleeps, and holes that nobody reported.
"""

from collections.abc import Iterator, Sequence

from rtscope.contract import FIXED_PRIORITY, ThreadResult
from rtscope.host.units import NS_PER_S, format_duration, format_us
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import POLL, RunRecord


def event_caveats(record: RunRecord) -> Iterator[Caveat]:
    """Yield all of them."""
    yield from _events(record.result.threads)
    yield from _interrupted(record.result.threads)
    yield from _polled(record)
    yield from _unreported(record.result.threads)
    if any(t.timerlat is not None for t in record.result.threads):
        yield make("timerlat_thread", "priority 95, without the return to a program")


def _events(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    """Yield what became of events that are no samples, or came in another order."""
    events = [t.event for t in threads if t.event is not None]
    sent = sum(event.sent for event in events)
    for caveat, kind in _EVENTS.items():
        count = sum(getattr(event, kind) for event in events)
        if count:
            late_ns = max(event.stimulus_late_ns for event in events)
            beside = f", the latest {format_us(late_ns)} us" if kind == "unsent" else ""
            merge = kind == "lost" and all(event.name in _MERGE for event in events)
            caveat = "events_merged" if merge else caveat
            yield make(caveat, f"{count} beside {sent} sent{beside}")


def _interrupted(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    """Yield for how long nothing came, unless the thread itself was as late."""
    longest_ns = max((_silence_ns(thread) for thread in threads), default=0)
    if longest_ns:
        yield make("events_interrupted", f"{format_duration(longest_ns)} at most")


def _silence_ns(thread: ThreadResult) -> int:
    """Return 0 where events came, or waited for a thread that did not run."""
    if thread.event is None or thread.event.name in _MERGE:
        return 0
    silence_ns = max(thread.event.stuck_ns or 0, thread.event.silent_ns or 0)
    patience_ns = _SILENCE_NS + _SILENT_PERIODS * thread.interval_ns
    return silence_ns if silence_ns > patience_ns + (thread.max_ns or 0) else 0


def _polled(record: RunRecord) -> Iterator[Caveat]:
    """Yield that the kernel's own rule ends the loop of each second."""
    throttling = record.facts_before.get("rt_throttling")
    is_on = throttling is not None and throttling.value is True
    if record.run.event == POLL and record.run.policy in FIXED_PRIORITY and is_on:
        yield make("poll_throttled", f"policy {record.run.policy}")


def _unreported(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    """Yield what the kernel's tracer hwlat does not tell."""
    hwlat = [t.hwlat for t in threads if t.hwlat is not None]
    if not hwlat:
        return
    silent = sum(one.silent for one in hwlat)
    width = hwlat[0].width_ns / threads[0].interval_ns
    yield make(
        "hwlat_unreported",
        f"none above {format_duration(hwlat[0].threshold_ns)} in {silent} of "
        f"{silent + sum(t.samples or 0 for t in threads)} intervals; it looks for at "
        f"most {width:.0%} of each",
    )


_SILENCE_NS, _SILENT_PERIODS = NS_PER_S, 10
"""As `eventway_settle` of the agent has them, of a way that is silent at its end."""

_MERGE = ("uio",)
"""Events that wake a thread once for several of them: none gets lost."""

_EVENTS = {
    "events_lost": "lost",
    "events_full": "full",
    "events_doubled": "doubled",
    "events_reordered": "reordered",
    "events_unsent": "unsent",
}
"""Caveats, and the count of the agent that raises each."""
