"""
The verdict in words: one plain sentence with its figures, and what to do next.
"""

import math
from collections.abc import Callable, Mapping

from rtscope.caveats.catalogue import kind_of
from rtscope.stats.evidence import Evidence, Verdict
from rtscope.stats.exposure import rate_limits_per_hour, supported_interval_ns
from rtscope.units import NS_PER_MIN, format_duration, format_number, format_us


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
        f"no valid measurement under {e.load}: {kind_of(first).says}{detail}{others}",
        kind_of(first).remedy,
    )


def _say_no(e: Evidence) -> tuple[str, str]:
    about = "" if all(m.episodes_exact for m in e.misses) else "about "
    low, high = rate_limits_per_hour(e.episodes, e.observed_ns)
    skipped = sum(m.skipped for m in e.misses)
    of_them = f" ({skipped} of them skipped activations)" if skipped else ""
    return (
        f"{_counted(e.total, 'miss', 'misses')} of "
        f"{format_duration(e.deadline_ns)}{of_them} in "
        f"{format_duration(e.observed_ns)} under {e.load} "
        f"({about}{_counted(e.episodes, 'episode', 'episodes')}, worst "
        f"{format_us(e.worst_ns)} us): at least {format_number(low)} and at "
        f"most {format_number(high)} episodes per hour (each limit 95 %)",
        "rtscope explain says what delayed the worst wake-ups, of a machine if it was "
        "measured with rtscope run --explain",
    )


def _say_not_shown(e: Evidence) -> tuple[str, str]:
    reasons, todo = [], []
    if e.claim is not None and e.more_ns:
        more = format_duration(_whole_minutes(e.more_ns))
        reasons.append(f"for {e.claim} run another {more}")
        minutes = _whole_minutes(e.more_ns) // NS_PER_MIN
        todo.append(f"rtscope run --load {e.load} --duration {minutes}m")
    if e.boots < e.min_boots:
        reasons.append(f"{e.boots} of the {e.min_boots} boots asked for were seen")
        todo.append("reboot and run again")
    for cap in e.caps:
        reasons.append(f"no more can be shown: {kind_of(cap).says}")
        todo.append(kind_of(cap).remedy)
    return "; ".join((_no_miss(e), *reasons)), "; ".join(dict.fromkeys(todo))


def _say_held(e: Evidence) -> tuple[str, str]:
    if e.claim is None:
        return _no_miss(e), (
            "state what you promise (--claim 1/1h) to learn how long to run for it"
        )
    return f"{_no_miss(e)}, and so the claim of fewer than {e.claim}", ""


def _say_explained(e: Evidence) -> tuple[str, str]:
    sentence, run_next = _say_held(e)
    return (
        f"{sentence}; the sections seen could combine to {format_us(e.bound_ns)} us, "
        "which is no proof",
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
    supported_ns = supported_interval_ns(0, e.observed_ns)
    return (
        f"no miss of {format_duration(e.deadline_ns)} in "
        f"{format_duration(e.observed_ns)} under {e.load}: supports fewer than one "
        f"miss per {format_duration(supported_ns)} (95 %)"
    )


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _whole_minutes(ns: int) -> int:
    """Round up, so that following the advice is enough."""
    return math.ceil(ns / NS_PER_MIN) * NS_PER_MIN
