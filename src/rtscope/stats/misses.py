"""
Misses of a deadline in one run, and the episodes that they form.

A miss is a wake-up later than the deadline, or an activation that was skipped: its
thread was still busy being late, whatever lateness it would have had. Wake-ups are
known to their bucket, the worst ones exactly: what cannot be told counts as a miss
and is reported as ambiguous.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtscope.contract import ThreadResult, Tick, Wakeup, bucket_width_ns
from rtscope.record.model import RunRecord
from rtscope.stats.summary import BEYOND_LOW_NS

GAP_INTERVALS = 10
GAP_NS = 10_000_000
"""Misses closer than ten intervals or 10 ms, on any CPU, likely have one cause."""


@dataclass(frozen=True, slots=True)
class Misses:
    """How often a deadline was missed in one run."""

    late_samples: int
    """Wake-ups later than the deadline, the ambiguous ones included."""
    skipped: int
    """Activations that did not take place."""
    ambiguous: int
    """Wake-ups in the deadline's own bucket that may have been in time."""
    episodes: int
    episodes_exact: bool
    """False if only the seconds with a miss could be counted."""

    @property
    def total(self) -> int:
        """All misses."""
        return self.late_samples + self.skipped


def misses_of(record: RunRecord, deadline_ns: int) -> Misses:
    """Count the misses of one run."""
    threads = record.result.threads
    counts = [late_samples(t, deadline_ns) for t in threads]
    late = sum(count for count, _ in counts)
    skipped = sum(t.skipped for t in threads)
    culprits = [w for t in threads for w in _culprits(t, deadline_ns)]
    exact = all(
        _known(t, deadline_ns) == _to_know(t, deadline_ns, late=count)
        for t, (count, _) in zip(threads, counts, strict=True)
    )
    gap_ns = max(GAP_NS, *(GAP_INTERVALS * t.interval_ns for t in threads), 0)
    episodes = decluster(culprits, gap_ns)
    if not exact:
        seconds = _seconds_with_a_miss(record.ticks, deadline_ns)
        episodes = max(episodes, seconds, int(late + skipped > 0))
    return Misses(
        late_samples=late,
        skipped=skipped,
        ambiguous=sum(ambiguous for _, ambiguous in counts),
        episodes=episodes,
        episodes_exact=exact,
    )


def late_samples(thread: ThreadResult, deadline_ns: int) -> tuple[int, int]:
    """Return the wake-ups later than the deadline, and how many of them only may be."""
    if thread.min_ns is None or thread.max_ns is None or thread.max_ns <= deadline_ns:
        return 0, 0
    if thread.min_ns > deadline_ns:
        return thread.samples - thread.early, 0
    above, straddling = 0, (0, 0, 0)
    for low_ns, high_ns, count in _buckets(thread, max_ns=thread.max_ns):
        if low_ns > deadline_ns:
            above += count
        elif high_ns - 1 > deadline_ns:
            straddling = low_ns, high_ns, count
    certain, ambiguous = _split(thread, deadline_ns, bucket=straddling)
    return above + certain + ambiguous, ambiguous


def decluster(wakeups: Iterable[Wakeup], gap_ns: int) -> int:
    """Count groups of wake-ups with at most gap_ns between one's end and the next."""
    episodes, end_ns = 0, None
    for wakeup in sorted(wakeups, key=lambda w: (w.expiry_ns, w.wake_ns)):
        if end_ns is None or wakeup.expiry_ns > end_ns + gap_ns:
            episodes += 1
        end_ns = max(end_ns or 0, wakeup.wake_ns)
    return episodes


def _buckets(thread: ThreadResult, *, max_ns: int) -> Iterable[tuple[int, int, int]]:
    for low_ns, count in thread.histogram:
        yield low_ns, low_ns + bucket_width_ns(low_ns), count
    yield BEYOND_LOW_NS, max_ns + 1, thread.beyond


def _split(
    thread: ThreadResult, deadline_ns: int, *, bucket: tuple[int, int, int]
) -> tuple[int, int]:
    """Divide the deadline's bucket into misses and what cannot be told."""
    low_ns, high_ns, count = bucket
    inside = [x for w in thread.worst if low_ns <= (x := w.latency_ns) < high_ns]
    certain = sum(x > deadline_ns for x in inside)
    # `worst` holds the largest: if it reaches down to the deadline, it holds them all.
    if thread.worst and thread.worst[-1].latency_ns <= deadline_ns:
        return certain, 0
    return certain, max(count - len(inside), 0)


def _swallowed(wakeup: Wakeup, thread: ThreadResult) -> bool:
    """Whether a wake-up came so late that at least one activation was skipped."""
    next_ns = wakeup.expiry_ns + thread.interval_ns
    return next_ns <= min(wakeup.wake_ns, thread.end_ns)


def _culprits(thread: ThreadResult, deadline_ns: int) -> list[Wakeup]:
    """Return the known wake-ups that missed the deadline or made others miss it."""
    return [
        w for w in thread.worst if w.latency_ns > deadline_ns or _swallowed(w, thread)
    ]


def _known(thread: ThreadResult, deadline_ns: int) -> int:
    bar_ns = min(deadline_ns + 1, thread.interval_ns)
    return sum(w.latency_ns >= bar_ns for w in thread.worst)


def _to_know(thread: ThreadResult, deadline_ns: int, *, late: int) -> int:
    """How many wake-ups `worst` must hold for every miss to have its time."""
    return late if deadline_ns < thread.interval_ns else thread.late


def _seconds_with_a_miss(ticks: Sequence[Tick], deadline_ns: int) -> int:
    seconds = 0
    skipped: Sequence[int] = ()
    for tick in ticks:
        before, skipped = skipped, [c.skipped for c in tick.cpus]
        grew = sum(skipped) > sum(before)
        seconds += grew or any(c.max_ns > deadline_ns for c in tick.cpus)
    return seconds
