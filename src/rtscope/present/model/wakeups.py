"""
What the picture of each wake-up draws: strokes over the time of a run.

As many wake-ups as fit are drawn each; of more, a stroke reaches from the least to the
greatest latency of those that share its place, so that none is hidden. All times in ns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rtscope.present.model.overtime import cpu_label
from rtscope.record.samples import ThreadSamples

MAX_STROKES = 24_000
"""Of all CPUs: about 350 kB of a page."""

MAX_MISSED = 2_000


@dataclass(frozen=True, slots=True)
class Strokes:
    """One CPU's wake-ups; `colour` is its place in the palette."""

    label: str
    colour: int
    places: tuple[int, ...]
    """Of `WakeupsOverTime.columns`, ascending."""
    least_ns: tuple[int, ...]
    greatest_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WakeupsOverTime:
    """Each wake-up of a run, from its start to its end."""

    run: str
    span_ns: int
    columns: int
    cpus: tuple[Strokes, ...]
    cpus_left_out: int
    most_in_stroke: int
    """Wake-ups that share a stroke; 1: each has its own."""
    wakeups: int
    missed: tuple[int, ...]
    """Places with a period that no CPU woke up for."""
    missed_periods: int
    low_ns: int
    high_ns: int
    """Of what is drawn, the limit too."""
    limit_ns: int
    limit: str
    """What it is: the deadline, or the interval."""


def wakeups_over_time(
    run: str,
    threads: Sequence[ThreadSamples],
    colours: Mapping[int | None, int],
    *,
    deadline_ns: int | None,
) -> WakeupsOverTime | None:
    """Return the picture of one run; None without a wake-up."""
    drawn = [t for t in threads if t.cpu in colours and t.woken.any()]
    if not drawn:
        return None
    start_ns = min(thread.start_ns for thread in drawn)
    end_ns = max(int(thread.due_ns[-1]) for thread in drawn)
    span_ns = end_ns - start_ns + max(thread.interval_ns for thread in drawn)
    columns = MAX_STROKES // len(drawn)
    made = [_strokes(t, colours, start_ns, span_ns, columns) for t in drawn]
    strokes = tuple(one for one, _, _ in made)
    missed = sorted({int(place) for _, places, _ in made for place in places})
    limit_ns = deadline_ns or min(thread.interval_ns for thread in drawn)
    greatest = max(max(one.greatest_ns) for one in strokes)
    return WakeupsOverTime(
        run=run,
        span_ns=span_ns,
        columns=columns,
        cpus=strokes,
        cpus_left_out=len(threads) - len(drawn),
        most_in_stroke=max(most for _, _, most in made),
        wakeups=sum(int(thread.woken.sum()) for thread in drawn),
        missed=tuple(missed[:MAX_MISSED]),
        missed_periods=sum(int((~thread.woken).sum()) for thread in drawn),
        low_ns=max(1, min(min(one.least_ns) for one in strokes)),
        high_ns=max(greatest, limit_ns),
        limit_ns=limit_ns,
        limit="deadline" if deadline_ns else "interval",
    )


def _strokes(
    thread: ThreadSamples,
    colours: Mapping[int | None, int],
    start_ns: int,
    span_ns: int,
    columns: int,
) -> tuple[Strokes, Sequence[int], int]:
    """Return a CPU's strokes, places of missed periods, and the most in a stroke."""
    # As floats: 100 hours in ns times 24,000 places would leave 64 bits.
    share = (thread.due_ns - start_ns).astype(np.float64) / span_ns
    places = (share * columns).astype(np.int64)
    woken = thread.woken
    at, latencies = places[woken], thread.latency_ns[woken]
    firsts = np.flatnonzero(np.diff(at, prepend=-1))
    sizes = np.diff(firsts, append=len(at))
    strokes = Strokes(
        cpu_label(thread.cpu),
        colours[thread.cpu],
        places=tuple(at[firsts].tolist()),
        least_ns=tuple(np.minimum.reduceat(latencies, firsts).tolist()),
        greatest_ns=tuple(np.maximum.reduceat(latencies, firsts).tolist()),
    )
    return strokes, np.unique(places[~woken]).tolist(), int(sizes.max())
