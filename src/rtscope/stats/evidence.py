"""
What runs of one condition show about a deadline, in numbers, and the word that follows.

Without a claim one miss is NO. A claim allows misses: it is HELD where the upper limit
of the rate of episodes supports it, NO where the lower limit is above the claimed rate,
and NOT SHOWN between. The limits printed are of the rate during these runs; a claim is
about all such runs, so it must also survive a rate that varies from run to run.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rtscope.host.units import (
    NS_PER_MIN,
    NS_PER_S,
    format_duration,
    format_number,
    format_us,
)
from rtscope.record.caveats.catalogue import Caveat, kind_of
from rtscope.record.model import TIMER
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

    @property
    def exit_status(self) -> int:
        """Of a command that was asked for it: 0 if the deadline was held."""
        return {Verdict.NO: 1, Verdict.INVALID: 3, Verdict.NOT_SHOWN: 4}.get(self, 0)


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
    event: str
    """What woke the threads."""
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
    def under(self) -> str:
        """The load in words, with what woke the threads if it was no timer."""
        return self.load if self.event == TIMER else f"{self.load}, event {self.event}"

    @property
    def event_option(self) -> str:
        """What to type behind the load to measure again."""
        return "" if self.event == TIMER else f" --event {self.event}"

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


# --- the sentence of a verdict on one load, and what to run or do next ----------------


def put_in_words(evidence: Evidence) -> tuple[str, str]:
    """Return the sentence on a load, and what to run or do next ("" for nothing)."""
    return _SAYS[evidence.verdict](evidence)


def _say_invalid(e: Evidence) -> tuple[str, str]:
    if not e.invalid:
        return f"no valid measurement under {e.under}: a run has no samples", (
            "measure again"
        )
    first = e.invalid[0]
    detail = f" ({first.detail})" if first.detail else ""
    others = f"; and {len(e.invalid) - 1} more" if len(e.invalid) > 1 else ""
    return (
        f"no valid measurement under {e.under}: {kind_of(first).message}{detail}"
        f"{others}",
        kind_of(first).remedy,
    )


def _say_no(e: Evidence) -> tuple[str, str]:
    said = f"{_misses(e)}{_more_than_claimed(e)}"
    if any(caveat.id in _FOREIGN for caveat in e.limits):
        return said, "rtscope run --explain measures again, and finds the causes"
    return (
        said,
        "rtscope explain shows the delays of the worst wake-ups (a machine needs "
        "rtscope run --explain)",
    )


_FOREIGN = frozenset(
    {
        *("import_load_unknown", "import_load_stated", "import_missed_periods"),
        *("import_no_histogram", "import_beyond_histogram", "import_unverified"),
    }
)
"""Caveats of another tool's result, which has no traces to explain."""


def _misses(e: Evidence) -> str:
    about = "" if e.exact else "at least "
    skipped = sum(m.missed_periods for m in e.misses)
    of_them = f" ({skipped} of them missed periods)" if skipped else ""
    at_least = "" if all(m.exact for m in e.misses) else "at least "
    return (
        f"{at_least}{_counted(e.total, 'miss', 'misses')} of "
        f"{format_duration(e.deadline_ns)}{of_them} in "
        f"{_watched(e)} under {e.under} "
        f"({about}{_counted(e.episodes, 'episode', 'episodes')}, worst "
        f"{format_us(e.worst_ns)} us): {_rates(e)}"
    )


def _rates(e: Evidence) -> str:
    if not e.length_known:
        return "no rate, because the length is unknown"
    low, high = e.rate_per_hour
    rates = (
        f"at least {format_number(low)} episodes per hour (95 %), and no upper limit, "
        "because not every late wake-up has its time in the record"
        if high is None
        else f"at least {format_number(low)} and at most {format_number(high)} "
        "episodes per hour (each limit 95 %)"
    )
    return f"{rates}{_clustered(e)}"


def _clustered(e: Evidence) -> str:
    if not e.dispersion.significant:
        return ""
    return (
        f"; the episodes cluster, {format_number(e.dispersion.factor)} times as much "
        "as by chance, and the limits are widened by that"
    )


def _more_than_claimed(e: Evidence) -> str:
    return "" if e.claim is None else f"; more than the claim allows ({e.claim})"


def _observed(e: Evidence) -> str:
    return _misses(e) if e.total else _no_miss(e)


def _say_not_shown(e: Evidence) -> tuple[str, str]:
    reasons, todo = [], []
    for reason, advice in (
        *_lacking_time(e),
        *_below_threshold(e),
        *_lacking_wakeups(e),
        *_lacking_boots(e),
        *((_no_more_than(limit), kind_of(limit).remedy) for limit in e.limits),
    ):
        reasons.append(reason)
        todo.append(advice)
    return "; ".join((_observed(e), *reasons)), "; ".join(dict.fromkeys(todo))


def _no_more_than(limit: Caveat) -> str:
    return f"no more can be shown: {kind_of(limit).message}"


def _lacking_time(e: Evidence) -> Iterator[tuple[str, str]]:
    if e.claim is None or e.supports:
        return
    if not e.length_known:
        yield (
            f"the claim of fewer than {e.claim} needs the length of the run",
            "name the length with rtscope import --duration",
        )
        return
    if not e.exact:
        yield (
            f"so the claim of fewer than {e.claim} is not supported",
            "keep more of the worst wake-ups (--worst 64)",
        )
        return
    runs, length_ns = e.more
    why = (
        f"{_counted(len(e.lengths_ns), 'run says', 'runs say')} little of how the rate "
        "varies from run to run; "
        if e.supports_in_these
        else ""
    )
    more = format_duration(e.more_ns)
    split = f" in {runs} runs" if runs > 1 else ""
    repeated = f" --repetitions {runs}" if runs > 1 else ""
    yield (
        f"{why}for {e.claim} run another {more}{split}",
        f"rtscope run --load {e.load}{e.event_option} "
        f"--duration {length_ns // NS_PER_MIN}m{repeated}",
    )


def _lacking_wakeups(e: Evidence) -> Iterator[tuple[str, str]]:
    if not e.too_few:
        return
    fewest = e.watched.fewest_wakeups
    if fewest is None or not e.interval_ns:
        counted = (
            "an unknown number of wake-ups"
            if fewest is None
            else f"only {_counted(fewest, 'wake-up', 'wake-ups')}"
        )
        yield (
            f"{counted} of a CPU, of at least {MIN_WAKEUPS:,} that a verdict needs",
            "let the tool write a histogram, or measure longer",
        )
        return
    seconds = math.ceil((MIN_WAKEUPS - fewest) * e.interval_ns / NS_PER_S) + 1
    yield (
        f"only {_counted(fewest, 'wake-up', 'wake-ups')} of a CPU, of at least "
        f"{MIN_WAKEUPS:,} that a verdict needs",
        f"rtscope run --load {e.load}{e.event_option} --duration {seconds}s",
    )


def _below_threshold(e: Evidence) -> Iterator[tuple[str, str]]:
    if e.unseen_ns is not None:
        yield (
            f"the tool looks for latencies of {format_duration(e.unseen_ns)} or more "
            "only",
            "lower the threshold of the tool",
        )


def _lacking_boots(e: Evidence) -> Iterator[tuple[str, str]]:
    if e.boots < e.min_boots:
        yield (
            f"only {e.boots} of the {e.min_boots} requested boots were measured",
            "reboot and run again",
        )


def _say_held(e: Evidence) -> tuple[str, str]:
    if e.claim is None:
        return _no_miss(e), (
            "add a claim such as --claim 1/1h to get the run time that it needs"
        )
    return f"{_observed(e)}, which supports the claim of fewer than {e.claim}", ""


def _say_explained(e: Evidence) -> tuple[str, str]:
    sentence, run_next = _say_held(e)
    return (
        f"{sentence}; latency bound from observed critical sections: "
        f"{format_us(e.bound_ns)} us, which is no proof",
        run_next,
    )


_SAYS: Mapping[Verdict, Callable[[Evidence], tuple[str, str]]] = {
    Verdict.INVALID: _say_invalid,
    Verdict.NO: _say_no,
    Verdict.NOT_SHOWN: _say_not_shown,
    Verdict.HELD_IN_TEST: _say_held,
    Verdict.HELD_AND_EXPLAINED: _say_explained,
}


def _no_miss(e: Evidence) -> str:
    said = (
        f"no miss of {format_duration(e.deadline_ns)} in {_watched(e)} under {e.under}"
    )
    if not e.length_known:
        return f"{said}: no rate, because the length is unknown"
    return (
        f"{said}: supports fewer than one "
        f"miss per {format_duration(e.supported_interval_ns)} (95 %)"
    )


def _watched(e: Evidence) -> str:
    """Say how long; and that it is the CPU's watched least, if another was longer."""
    if not e.length_known:
        return "a run" if len(e.misses) == 1 else f"{len(e.misses)} runs"
    least = format_duration(e.watched.least_ns)
    longest = format_duration(e.watched.longest_ns)
    if least != longest:
        least += f" (one CPU, others up to {longest})"
    runs, counted = len(e.misses), len(e.counted)
    if e.not_counted:
        least += f" ({e.not_counted})"
    elif counted < runs:
        least += f" ({runs} seeds, but only {counted} independent: others share the "
        least += "worst wake-ups)"
    return least


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
