"""
Episodes of late wake-ups: of misses of a deadline, and beyond another's maximum.

A miss is a wake-up later than the deadline, or an activation that such a wake-up
skipped, whatever lateness it would have had. An activation skipped by a wake-up that is
known to be in time is none: it would have been less late than that one. Wake-ups are
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
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from rtscope.contract import ThreadResult, Tick, Wakeup
from rtscope.record.model import RunRecord
from rtscope.stats.exposure import lower_limit, supported_interval_ns

GAP_INTERVALS = 10
GAP_NS = 10_000_000
"""Misses closer than ten intervals or 10 ms, on any CPU, likely have one cause."""


@dataclass(frozen=True, slots=True)
class Misses:
    """How often a deadline was missed in one run."""

    late_samples: int
    """Wake-ups later than the deadline, the ambiguous ones included."""
    missed_periods: int
    """Activations skipped by a late wake-up, or by one that may have been late."""
    ambiguous: int
    """
    Misses that may be none: wake-ups in the deadline's own bucket, and activations
    skipped by wake-ups that may have been in time.
    """
    episodes: int
    episodes_exact: bool
    """False if there were at least so many: not every late wake-up has its time."""
    starts_ns: tuple[int, ...] = field(default=(), compare=False)
    """When the episodes of known wake-ups began, since the start of the run."""
    exact: bool = True
    """False if there were at least so many: a tool printed no count of wake-ups."""

    @property
    def total(self) -> int:
        """All misses."""
        return self.late_samples + self.missed_periods


def misses_of(record: RunRecord, deadline_ns: int) -> Misses:
    """Count the misses of one run."""
    threads = record.result.threads
    counts = [late_samples(t, deadline_ns) for t in threads]
    late = [count for count, _ in counts]
    known = [_late(t, deadline_ns) for t in threads]
    skipped = [
        _missed_periods(t, deadline_ns, known=known_of_t, late=late_of_t)
        for t, known_of_t, late_of_t in zip(threads, known, late, strict=True)
    ]
    unknown = sum(late) - sum(map(len, known))
    missed = sum(count for count, _ in skipped)
    gap_ns = max(GAP_NS, *(GAP_INTERVALS * t.interval_ns for t in threads), 0)
    groups = _groups((w for one in known for w in one), gap_ns)
    episodes = len(groups)
    if unknown:
        reach_ns = gap_ns + max(_unlisted_ns(t) for t in threads)
        episodes = max(
            _fewest(groups, gap_ns=gap_ns, reach_ns=reach_ns, unknown=unknown),
            _groups_of_ticks(record.ticks, deadline_ns, gap_ns),
            int(sum(late) + missed > 0),
        )
    never_came = sum(t.missed_periods or 0 for t in threads if t.event)
    if never_came:
        episodes = max(episodes, 1)
    return Misses(
        late_samples=sum(late),
        missed_periods=missed,
        ambiguous=sum(n for _, n in counts) + sum(n for _, n in skipped),
        episodes=episodes,
        episodes_exact=not unknown and not never_came,
        starts_ns=tuple(start - record.result.start_ns for start, _ in groups),
        exact=not any(
            count and thread.samples is None
            for thread, count in zip(threads, late, strict=True)
        ),
    )


def late_samples(thread: ThreadResult, deadline_ns: int) -> tuple[int, int]:
    """
    Return the wake-ups later than the deadline, and how many of them only may be.

    Of a thread without a count they are the one that its maximum proves.
    """
    latest_ns, buckets = thread.latest_ns, thread.buckets
    if thread.min_ns is None or latest_ns is None or latest_ns <= deadline_ns:
        return 0, 0
    if thread.counted is None:
        return 1, int(thread.max_ns is not None and thread.max_ns <= deadline_ns)
    if thread.min_ns > deadline_ns:
        return thread.counted, 0
    above, straddling = 0, (0, 0, 0)
    overflow = (thread.overflow_low_ns, latest_ns + 1, thread.overflow)
    for low_ns, high_ns, count in (*buckets, overflow):
        if low_ns > deadline_ns:
            above += count
        elif high_ns - 1 > deadline_ns:
            straddling = low_ns, high_ns, count
    certain, ambiguous = _split(thread, deadline_ns, bucket=straddling)
    return above + certain + ambiguous, ambiguous


def decluster(wakeups: Iterable[Wakeup], gap_ns: int) -> int:
    """Count groups of wake-ups with at most gap_ns between one's end and the next."""
    return len(_groups(wakeups, gap_ns))


def _groups(wakeups: Iterable[Wakeup], gap_ns: int) -> list[tuple[int, int]]:
    """Return when each group of wake-ups began and ended."""
    groups: list[tuple[int, int]] = []
    for wakeup in sorted(wakeups, key=lambda w: (w.expiry_ns, w.wake_ns)):
        if not groups or wakeup.expiry_ns > groups[-1][1] + gap_ns:
            groups.append((wakeup.expiry_ns, wakeup.wake_ns))
        else:
            start_ns, end_ns = groups[-1]
            groups[-1] = start_ns, max(end_ns, wakeup.wake_ns)
    return groups


def _fewest(
    groups: Sequence[tuple[int, int]], *, gap_ns: int, reach_ns: int, unknown: int
) -> int:
    """
    Return the least number of groups there can be with so many wake-ups unknown.

    They may lie where they join the most groups: a gap g takes (g - gap) / reach of
    them, since each reaches from its own end to the next wake-up of its group.
    """
    gaps = sorted(
        -(-(after - end - gap_ns) // reach_ns)
        for (_, end), (after, _) in pairwise(groups)
    )
    joined = sum(taken <= unknown for taken in accumulate(gaps))
    return len(groups) - joined


def _split(
    thread: ThreadResult, deadline_ns: int, *, bucket: tuple[int, int, int]
) -> tuple[int, int]:
    """Divide the bucket of the deadline into misses and ambiguous samples."""
    low_ns, high_ns, count = bucket
    if thread.foreign is not None and thread.foreign.step_ns > 1:
        return 0, count  # another tool cut its values: none is known exactly
    inside = [x for w in thread.worst if low_ns <= (x := w.latency_ns) < high_ns]
    certain = sum(x > deadline_ns for x in inside)
    # `worst` holds the largest: if it reaches down to the deadline, it holds them all.
    if thread.worst and thread.worst[-1].latency_ns <= deadline_ns:
        return certain, 0
    return certain, max(count - len(inside), 0)


def _late(thread: ThreadResult, deadline_ns: int) -> list[Wakeup]:
    """Return the known wake-ups later than the deadline."""
    return [w for w in thread.worst if w.latency_ns > deadline_ns]


def _missed_periods(
    thread: ThreadResult, deadline_ns: int, *, known: Sequence[Wakeup], late: int
) -> tuple[int, int]:
    """Return the activations skipped by late wake-ups, and how many only may be."""
    missed = thread.missed_periods
    latest_ns = thread.latest_ns
    if missed is not None and thread.event is not None:
        return missed, 0  # an event that never came misses every deadline
    if missed is None or (latest_ns is not None and latest_ns <= deadline_ns):
        return 0, 0  # of another tool: `import_missed_periods` tells
    if not thread.interval_ns:  # of another tool: nobody knows which of them are late
        return missed, missed
    if deadline_ns < thread.interval_ns:
        return missed, 0
    certain = min(sum(_skips(w, thread) for w in known), missed)
    if len(known) >= late:
        return certain, 0
    return missed, missed - certain


def _skips(wakeup: Wakeup, thread: ThreadResult) -> int:
    """Count the activations of the grid that passed before the thread ran."""
    until_ns = min(wakeup.wake_ns, thread.end_ns)
    return max(until_ns - wakeup.expiry_ns, 0) // thread.interval_ns


def _unlisted_ns(thread: ThreadResult) -> int:
    """Return the latest that a wake-up can have been that is not in `worst`."""
    return thread.worst[-1].latency_ns if thread.worst else thread.max_ns or 0


def _groups_of_ticks(ticks: Sequence[Tick], deadline_ns: int, gap_ns: int) -> int:
    """Count groups of seconds with a late wake-up that cannot be one episode."""
    groups, end_ns, tick_before_ns = 0, None, 0
    for tick in ticks:
        max_ns = max((c.max_ns for c in tick.cpus), default=0)
        if max_ns > deadline_ns:
            # The wake-up was due up to its latency before this second began.
            if end_ns is None or tick_before_ns - max_ns - end_ns > gap_ns:
                groups += 1
            end_ns = tick.t_ns
        tick_before_ns = tick.t_ns
    return groups


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
    worse: Sequence[RunRecord],
    *,
    threshold_ns: int,
    worse_ns: int | None,
    better_ns: int | None,
) -> Excess | None:
    """
    Count episodes of the worse side later than the maximum of the better one.

    None without any, and if a time is unknown. The runs are distinct; the times are
    those watched on each side.
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
