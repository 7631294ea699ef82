"""
What runs of one condition show about a deadline, in numbers, and the word that follows.

Without a claim one miss is NO. A claim allows misses: it is HELD where the upper limit
of the rate of episodes supports it, NO where the lower limit is above the claimed rate,
and NOT SHOWN between. The limits printed are of the rate during these runs; a claim is
about all such runs, so it must also survive a rate that varies from run to run.
"""

from dataclasses import dataclass
from enum import StrEnum

from rtscope.host.units import NS_PER_MIN, format_duration
from rtscope.record.caveats.catalogue import Caveat
from rtscope.stats.episodes import Misses
from rtscope.stats.exposure import (
    MIN_WAKEUPS,
    Dispersion,
    Watched,
    effective_runs,
    limits_over_runs,
    rate_limits_per_hour,
    supported_interval_ns,
)


class Verdict(StrEnum):
    """What may be said about a deadline, the one that decides a set of loads first."""

    INVALID = "INVALID"
    NO = "NO"
    NOT_SHOWN = "NOT SHOWN"
    HELD_IN_TEST = "HELD IN TEST"
    HELD_AND_EXPLAINED = "HELD AND EXPLAINED"


@dataclass(frozen=True, slots=True)
class Claim:
    """Fewer than `events` misses per `per_ns` of wall-clock time."""

    events: int
    per_ns: int

    @property
    def interval_ns(self) -> float:
        """The time per miss that must be supported."""
        return self.per_ns / self.events

    def __str__(self) -> str:
        count = "one" if self.events == 1 else str(self.events)
        return f"{count} per {format_duration(self.per_ns)}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sentences of a finding are made of."""

    load: str
    deadline_ns: int
    claim: Claim | None
    min_boots: int
    boots: int
    bound_ns: int | None
    """From observed critical sections; None if a run has none."""
    interval_ns: int
    watched: Watched
    worst_ns: int | None
    threshold_ns: int | None
    """No run found a latency from here on: its tool looks for no shorter one."""
    misses: tuple[Misses, ...]
    """Of every run."""
    not_counted: str
    """How many runs do not count, and why; empty if all do."""
    counted: tuple[Misses, ...]
    """Of the independent runs that count or have misses; their episodes add up."""
    lengths_ns: tuple[int, ...]
    """Time that each of these runs watched every CPU."""
    dispersion: Dispersion
    invalid: tuple[Caveat, ...]
    limits: tuple[Caveat, ...]

    @property
    def observed_ns(self) -> int:
        """Time that each CPU was watched at least."""
        return self.watched.least_ns

    @property
    def length_known(self) -> bool:
        """Whether the time watched is known of every run: else there is no rate."""
        return self.observed_ns > 0 and all(self.lengths_ns)

    @property
    def unseen_ns(self) -> int | None:
        """The threshold of the tool if the deadline is below it: misses hide."""
        if self.threshold_ns is None or self.threshold_ns <= self.deadline_ns:
            return None
        return self.threshold_ns

    @property
    def too_few(self) -> bool:
        """Whether a CPU has fewer wake-ups than a verdict needs, or unknown ones."""
        return (
            self.threshold_ns is None
            and (self.watched.fewest_wakeups or 0) < MIN_WAKEUPS
        )

    @property
    def total(self) -> int:
        """All misses of all runs."""
        return sum(m.total for m in self.misses)

    @property
    def episodes(self) -> int:
        """All episodes of the independent runs."""
        return sum(m.episodes for m in self.counted)

    @property
    def exact(self) -> bool:
        """Whether all episodes were counted; if not, there were at least so many."""
        return all(m.episodes_exact for m in self.misses)

    @property
    def rate_per_hour(self) -> tuple[float, float | None]:
        """
        Limits of the rate of episodes in these runs, each one-sided at 95 %.

        The lower one over the longest time that a CPU was watched, the upper one over
        the shortest, and only if all episodes were counted.
        """
        low, high = (
            rate_limits_per_hour(
                self.episodes, time_ns, dispersion=self.dispersion.factor
            )
            for time_ns in (self.watched.longest_ns, self.watched.least_ns)
        )
        return low[0], high[1] if self.exact else None

    @property
    def supported_interval_ns(self) -> int:
        """Fewer than one episode per this time in these runs; 0 if not all counted."""
        if not self.exact:
            return 0
        return supported_interval_ns(
            self.episodes, self.observed_ns, dispersion=self.dispersion.factor
        )

    @property
    def supports(self) -> bool:
        """Whether the claim, if any, is supported for runs like these."""
        return self.exact and self._supports(self.lengths_ns)

    @property
    def supports_in_these(self) -> bool:
        """Whether the claim would be supported if all runs had one rate."""
        return (
            self.claim is None or self.supported_interval_ns >= self.claim.interval_ns
        )

    @property
    def contradicts(self) -> bool:
        """Whether there were more episodes than claimed; any miss without a claim."""
        if self.claim is None or not self.length_known:
            return self.claim is None and self.total > 0
        low, _ = self._limits(self.lengths_ns)
        return low * self.claim.interval_ns > self.watched.longest_ns

    @property
    def more(self) -> tuple[int, int]:
        """
        How many runs, and of which length (ns), would support the claim without a miss.

        One, or five if one takes over a tenth longer in all. (0, 0) if nothing lacks.
        """
        if self.supports or not self.exact or not self.length_known:
            return 0, 0
        one_ns, five_ns = (self._length_of(runs) for runs in (1, 5))
        return (1, one_ns) if one_ns <= 5.5 * five_ns else (5, five_ns)

    @property
    def more_ns(self) -> int:
        """How much longer to watch, without a further miss, to support the claim."""
        runs, length_ns = self.more
        return runs * length_ns

    def _length_of(self, runs: int) -> int:
        """Return the whole minutes that each of so many further runs must last."""
        low, high = 0, 1
        while not self._supports((*self.lengths_ns, *[high * NS_PER_MIN] * runs)):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self._supports((*self.lengths_ns, *[middle * NS_PER_MIN] * runs)):
                high = middle
            else:
                low = middle
        return high * NS_PER_MIN

    def _supports(self, lengths_ns: tuple[int, ...]) -> bool:
        if self.claim is None:
            return True
        if not self.length_known:
            return False
        _, high = self._limits(lengths_ns)
        further_ns = sum(lengths_ns) - sum(self.lengths_ns)
        return high * self.claim.interval_ns <= self.observed_ns + further_ns

    def _limits(self, lengths_ns: tuple[int, ...]) -> tuple[float, float]:
        return limits_over_runs(
            self.episodes,
            runs=effective_runs(lengths_ns),
            dispersion=self.dispersion.factor,
        )

    @property
    def verdict(self) -> Verdict:
        """What may be said: the first of these that is true."""
        if self.invalid or (self.worst_ns is None and self.threshold_ns is None):
            return Verdict.INVALID
        if self.contradicts:
            return Verdict.NO
        lacks = self.too_few or not self.supports or self.boots < self.min_boots
        if self.limits or lacks or self.unseen_ns is not None:
            return Verdict.NOT_SHOWN
        explained = self.bound_ns is not None and self.bound_ns <= self.deadline_ns
        if explained and not self.total:
            return Verdict.HELD_AND_EXPLAINED
        return Verdict.HELD_IN_TEST
