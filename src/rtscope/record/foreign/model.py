"""
What an importer returns: the numbers of another tool, and the doubts about them.

An importer keeps what the file says, right or wrong; `stats.foreign` finds what does
not add up. What the file does not say stays unknown: None, 0 or empty.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rtscope.record.caveats.catalogue import Caveat, make

UNKNOWN = "unknown"

MORE_RUNS = "its lines are of more than one run, and only the last is read"

NO_END_NS = 1 << 34
"""Where the buckets end of a tool that keeps every value, as those of our agent."""

MAX_BUCKETS = 2_000_000
"""Of all threads of a file that are not empty: a record of them takes 1 GB."""


MAX_GAPS = 4096
"""Distances of rows of which the median is taken."""

MAX_TIMED = 64
"""The longest latencies of a thread whose times are kept, as our agent keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which column of a table is which, as whoever imports it says."""

    column: str = ""
    """Heading or number, from 1; with `:us` and the like for its unit."""
    time_column: str = ""
    count_column: str = ""
    interval_ns: int = 0

    @property
    def is_table(self) -> bool:
        """Whether a column is named, so that the file must be a table."""
        return bool(self.column or self.time_column or self.count_column)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTimes:
    """When the longest latencies of a thread were."""

    worst: tuple[tuple[int, int], ...] = ()
    """(when, latency in ns), longest first: no other latency is longer than these."""
    beyond: tuple[int, ...] = ()
    """When latencies in no bucket were, each of unknown length."""
    in_periods: bool = False
    """Whether `when` counts the periods of the thread, and not ns."""
    step_ns: int = 1
    from_start: bool = True
    """False: the start of the run is unknown; times count from the first of them."""


class Spacing:
    """How far apart the rows of a thread are: no distance below it can be seen."""

    def __init__(self) -> None:
        self._last_ns: int | None = None
        self._gaps: Counter[int] = Counter()

    def add(self, at_ns: int) -> None:
        """Take the time of a row; the first thousands are enough."""
        if self._last_ns is not None and self._gaps.total() < MAX_GAPS:
            self._gaps[max(at_ns - self._last_ns, 0)] += 1
        self._last_ns = at_ns

    @property
    def median_ns(self) -> int:
        """The median distance of two rows, at least 1."""
        gaps = sorted(self._gaps.elements())
        return max(gaps[len(gaps) // 2], 1) if gaps else 1


class Longest:
    """The longest latencies of a thread so far, each with its time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self.bar = -1
        """A latency up to here is not among them."""

    def add(self, latency: int, when: int) -> None:
        """Keep a latency if it is among the longest; of equal ones the first."""
        if latency <= self.bar:
            return
        if len(self._heap) < MAX_TIMED:
            heapq.heappush(self._heap, (latency, -when))
        else:
            heapq.heapreplace(self._heap, (latency, -when))
        if len(self._heap) == MAX_TIMED:
            self.bar = self._heap[0][0]

    def listed(self, step_ns: int, *, since: int = 0) -> tuple[tuple[int, int], ...]:
        """Return (when, latency in ns), longest first."""
        return tuple(
            (-when - since, latency * step_ns)
            for latency, when in sorted(self._heap, reverse=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The unit of the numbers of a file."""

    step_ns: int
    told: str
    """The unit, and who says so; empty: the file itself."""
    assumed: bool = False
    """Neither the file nor a command in it, nor whoever imports it, names the unit."""
    contradicted: str = ""
    """What names another unit; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignThread:
    """One thread, or one CPU, of another tool."""

    samples: int | None
    """None: the file has no count; 0: it says that there was none."""
    min_ns: int | None
    max_ns: int | None
    mean_ns: int | None = None
    """As printed, cut or rounded."""
    step_ns: int
    """Values are multiples of it, cut off."""
    end_ns: int = 0
    """Longer latencies are in no bucket; 0: no histogram."""
    buckets: Mapping[int, int] = field(default_factory=dict)
    """Count by the smallest latency of a bucket."""
    overflow: int = 0
    threshold_ns: int | None = None
    """The tool looks for latencies from here on only; None: it keeps every one."""
    cpu: int | None = None
    """The CPU it was pinned to; None: unknown, or not pinned."""
    tid: int = 0
    priority: int = 0
    interval_ns: int = 0
    missed_periods: int | None = None
    """None: the tool does not count them."""
    times: ForeignTimes | None = None
    """None: the file has no times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """One run of another tool."""

    tool: str
    format: str
    verified: bool
    """Whether outputs of the program itself are among the tests of this importer."""
    measures: str
    """From where to where the latency is."""
    threads: tuple[ForeignThread, ...]
    version: str = ""
    started_at: str = ""
    """ISO 8601; empty: unknown."""
    duration_ns: int = 0
    watched_share: float = 1.0
    """Of its length: in the rest of the time the tool did not look."""
    policy: str = UNKNOWN
    command: str = ""
    arch: str = UNKNOWN
    unit: Unit = Unit(step_ns=1, told="")
    """In which unit a text that does not name it was read."""
    variant: str = ""
    """What tells this run from others of the same file."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """By the names of `rtscope.machine`."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    caveats: tuple[Caveat, ...] = ()


def with_last_bucket_open(
    buckets: Mapping[int, int], *, step_ns: int, max_ns: int | None, end_ns: int
) -> tuple[dict[int, int], int, int]:
    """
    Return buckets, overflow and end of a tool that adds all longer ones to the last.

    `end_ns` is where that bucket ends; it has an end if the maximum is in it.
    """
    kept = dict(buckets)
    last_ns = end_ns - step_ns
    if max_ns is None or max_ns < end_ns or last_ns not in kept:
        return kept, 0, end_ns
    return kept, kept.pop(last_ns), last_ns


# --- threads that a listing leaves out: unknown, and not quiet ------------------------


def threads_left_out(
    numbers: Collection[int], *, known: int = 0, step: int = 1
) -> Iterator[Caveat]:
    """
    Yield the doubt about threads whose numbers are missing in a listing.

    Numbers count from 0 in steps of `step`; `known` is how many threads the file says
    that there were.
    """
    places = {number // step for number in numbers}
    count = max(known, max(places, default=-1) + 1)
    missing = sorted(set(range(min(count, 1 << 16))) - places)
    if missing:
        shown = ", ".join(str(place * step) for place in missing[:8])
        more = ", ..." if len(missing) > 8 else ""
        yield make(
            "import_left_out",
            f"{len(places)} of at least {count} threads are in it; not in it: "
            f"{shown}{more}",
        )
