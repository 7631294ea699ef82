"""
Does a run count? One answer for every comparison, effect, ranking, search and rate.

A run whose load died looks too good, and one that ended early shows less: the column
`counts` of `caveats.toml` tells these from the others. A run that does not count is
shown with its caveats, and named with the reason wherever it is left out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtscope.host.units import plural
from rtscope.record.caveats.catalogue import Caveat, kind_of, uncounted
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats
from rtscope.stats.summary import threshold_of

NOT_MEASURED = "no wake-up was measured"
NO_LATENCY = "it found nothing above its threshold, so there is nothing to compare"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that does not count."""

    run: str
    """Its name."""
    why: str


def why_left_out(record: RunRecord, raised: Iterable[Caveat] | None = None) -> str:
    """
    Return why a run does not count; empty if it does.

    `raised` are its caveats if more are known than those that it raises by itself.
    """
    threads = record.result.threads
    if all(thread.max_ns is None for thread in threads):
        return NOT_MEASURED if threshold_of(threads) is None else NO_LATENCY
    caveat = uncounted(all_caveats(record) if raised is None else raised)
    return kind_of(caveat).message if caveat else ""


def parted(
    records: Sequence[RunRecord], raised: Iterable[Sequence[Caveat]] | None = None
) -> tuple[tuple[RunRecord, ...], tuple[LeftOut, ...]]:
    """Return the runs that count, and those that do not; `raised` are as above."""
    caveats = map(all_caveats, records) if raised is None else raised
    counting, left_out = [], []
    for record, of_record in zip(records, caveats, strict=True):
        if why := why_left_out(record, of_record):
            left_out.append(LeftOut(record.run.id, why))
        else:
            counting.append(record)
    return tuple(counting), tuple(left_out)


def left_out_words(left_out: Sequence[LeftOut], *, of: int, whose: str = "") -> str:
    """Say how many of so many runs do not count, and why; empty if all count."""
    if not left_out:
        return ""
    whys = Counter(one.why for one in left_out)
    reasons = "; ".join(
        f"{why} ({plural(number, 'run')})" if len(whys) > 1 else why
        for why, number in whys.most_common()
    )
    return (
        f"{len(left_out)} of {plural(of, 'run')}{f' of {whose}' if whose else ''} "
        f"{'does' if len(left_out) == 1 else 'do'} not count: {reasons}"
    )
