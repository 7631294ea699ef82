"""
Episodes of late wake-ups: of misses of a deadline, and beyond another's maximum.

A miss is a wake-up later than the deadline, or an activation that was skipped: its
thread was still busy being late, whatever lateness it would have had. Wake-ups are
known to their bucket, the worst ones exactly: an ambiguous sample counts as a miss
and is reported as ambiguous.

A ratio of two maxima shows nothing by itself: of two runs of one kernel one has the
larger maximum. What can be counted is how often the worse side was later than the
better one ever was. The better side has no such episode in its time, the worse side k:
each count has its exact Poisson limit. Episodes are taken to be independent; samples
are not. No p-value follows: two runs of one kernel differ by more than chance within
a run explains, and only a test on runs knows by how much (`stats.compare`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtscope.contract import ThreadResult, Tick, Wakeup, bucket_width_ns
from rtscope.record.model import RunRecord
from rtscope.stats.exposure import lower_limit, supported_interval_ns
from rtscope.stats.summary import BEYOND_LOW_NS

GAP_INTERVALS = 10
GAP_NS = 10_000_000
"""Misses closer than ten intervals or 10 ms, on any CPU, likely have one cause."""


@dataclass(frozen=True, slots=True)
class Misses:
    """How often a deadline was missed in one run."""

    late_samples: int
    """Wake-ups later than the deadline, the ambiguous ones included."""
    missed_periods: int
    """Activations that did not take place."""
    ambiguous: int
    """Wake-ups in the deadline's own bucket that may have been in time."""
    episodes: int
    episodes_exact: bool
    """False if only the seconds with a miss could be counted."""

    @property
    def total(self) -> int:
        """All misses."""
        return self.late_samples + self.missed_periods


def misses_of(record: RunRecord, deadline_ns: int) -> Misses:
    """Count the misses of one run."""
    threads = record.result.threads
    counts = [late_samples(t, deadline_ns) for t in threads]
    late = sum(count for count, _ in counts)
    missed = sum(t.missed_periods for t in threads)
    culprits = [w for t in threads for w in _culprits(t, deadline_ns)]
    exact = all(
        _known(t, deadline_ns) == _to_know(t, deadline_ns, late=count)
        for t, (count, _) in zip(threads, counts, strict=True)
    )
    gap_ns = max(GAP_NS, *(GAP_INTERVALS * t.interval_ns for t in threads), 0)
    episodes = decluster(culprits, gap_ns)
    if not exact:
        seconds = _seconds_with_a_miss(record.ticks, deadline_ns)
        episodes = max(episodes, seconds, int(late + missed > 0))
    return Misses(
        late_samples=late,
        missed_periods=missed,
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
    yield BEYOND_LOW_NS, max_ns + 1, thread.overflow


def _split(
    thread: ThreadResult, deadline_ns: int, *, bucket: tuple[int, int, int]
) -> tuple[int, int]:
    """Divide the bucket of the deadline into misses and ambiguous samples."""
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
    return late if deadline_ns < thread.interval_ns else thread.overruns


def _seconds_with_a_miss(ticks: Sequence[Tick], deadline_ns: int) -> int:
    seconds = 0
    skipped: Sequence[int] = ()
    for tick in ticks:
        before, skipped = skipped, [c.missed_periods for c in tick.cpus]
        grew = sum(skipped) > sum(before)
        seconds += grew or any(c.max_ns > deadline_ns for c in tick.cpus)
    return seconds


@dataclass(frozen=True, slots=True)
class Excess:
    """How often one side was later than the other's maximum."""

    threshold_ns: int
    """The maximum of the better side."""
    episodes: int
    exact: bool
    """False if there were more: the record does not have the time of each."""
    worse_ns: int
    """Time that the worse side was watched."""
    better_ns: int
    at_least_every_ns: float
    """The worse side is so late at least once in this time (one-sided, 95 %)."""
    less_than_every_ns: int
    """The better side is so late less than once in this time (one-sided, 95 %)."""


def excess(
    worse: Sequence[RunRecord], *, threshold_ns: int, worse_ns: int, better_ns: int
) -> Excess | None:
    """
    Count episodes of the worse side later than the maximum of the better one.

    None without any. The runs are distinct; the times are those watched on each side.
    """
    counted = [_episodes(r, threshold_ns) for r in worse]
    episodes = sum(count for count, _ in counted)
    if not episodes or not worse_ns or not better_ns:
        return None
    return Excess(
        threshold_ns=threshold_ns,
        episodes=episodes,
        exact=all(exact for _, exact in counted),
        worse_ns=worse_ns,
        better_ns=better_ns,
        at_least_every_ns=worse_ns / lower_limit(episodes),
        less_than_every_ns=int(supported_interval_ns(0, better_ns)),
    )


def _episodes(record: RunRecord, threshold_ns: int) -> tuple[int, bool]:
    """
    Count groups of wake-ups later than the threshold; whether the count is exact.

    If not, it is the least that there were: known wake-ups, or seconds with one.
    Not `misses_of`: missed periods are no latency beyond a maximum.
    """
    threads = record.result.threads
    late = sum(late_samples(t, threshold_ns)[0] for t in threads)
    known = [w for t in threads for w in t.worst if w.latency_ns > threshold_ns]
    gap_ns = max(GAP_NS, *(GAP_INTERVALS * t.interval_ns for t in threads), 0)
    episodes = decluster(known, gap_ns)
    if late > len(known):
        seconds = sum(
            any(cpu.max_ns > threshold_ns for cpu in tick.cpus) for tick in record.ticks
        )
        return max(episodes, seconds), False
    return episodes, True
