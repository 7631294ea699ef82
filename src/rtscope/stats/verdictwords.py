"""The sentence of a verdict on one load, and what to run or do next."""

import math
from collections.abc import Callable, Iterator, Mapping

from rtscope.host.units import (
    NS_PER_MIN,
    NS_PER_S,
    format_duration,
    format_number,
    format_us,
)
from rtscope.record.caveats.catalogue import Caveat, kind_of
from rtscope.stats.evidence import Evidence, Verdict
from rtscope.stats.exposure import MIN_WAKEUPS


def put_in_words(evidence: Evidence) -> tuple[str, str]:
    """Return the sentence on a load, and what to run or do next ("" for nothing)."""
    return _SAYS[evidence.verdict](evidence)


def _say_invalid(e: Evidence) -> tuple[str, str]:
    if not e.invalid:
        return f"no valid measurement under {e.load}: a run has no samples", (
            "measure again"
        )
    first = e.invalid[0]
    detail = f" ({first.detail})" if first.detail else ""
    others = f"; and {len(e.invalid) - 1} more" if len(e.invalid) > 1 else ""
    return (
        f"no valid measurement under {e.load}: {kind_of(first).message}{detail}"
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
        f"{_watched(e)} under {e.load} "
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
        f"rtscope run --load {e.load} --duration {length_ns // NS_PER_MIN}m{repeated}",
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
        f"rtscope run --load {e.load} --duration {seconds}s",
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
        f"no miss of {format_duration(e.deadline_ns)} in {_watched(e)} under {e.load}"
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
