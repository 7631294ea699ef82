"""
The rows of the main table: one per load on one machine, kernel and setting.

Repetitions of the same cell are merged; how many runs there were is said. An exact
repetition of a virtual run is no further run: it counts once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.contract import ThreadResult
from rtscope.errors import MeasurementError
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.words import duration
from rtscope.stats.determinism import caveats_among, distinct
from rtscope.stats.summary import Summary, observed_ns, summarize

STANDARD_LOADS = ("idle", "cpu", "os", "memory", "storage")
"""StarFive's five, in the order of their Table 5-1; others follow."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The runs that one row is about; an exact repetition is in no figure of it."""

    load: str
    target: str
    kernel: str
    settings: str
    variant: str
    records: tuple[RunRecord, ...]

    @property
    def counted(self) -> tuple[RunRecord, ...]:
        """The runs without exact repetitions."""
        return distinct(self.records)

    @property
    def threads(self) -> tuple[ThreadResult, ...]:
        """The measuring threads of the runs that count."""
        return tuple(t for record in self.counted for t in record.result.threads)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the main table."""

    anchor: str
    load: str
    target: str
    kernel: str
    settings: str
    variant: str
    runs: int
    """Runs merged, exact repetitions of a virtual run left out."""
    repeats: int
    """Exact repetitions that were left out."""
    cpus: int
    observed_ns: int
    """Time the machine was watched, all runs of the row added up."""
    summary: Summary | None
    """None if no thread woke up: nothing was measured."""
    caveats: int
    throughput: Mapping[str, float]
    """Mean over the runs, by stressor."""

    @property
    def name(self) -> str:
        """The load, and what tells it from others of the same load."""
        return f"{self.load} · {self.variant}" if self.variant else self.load

    @property
    def total_throughput(self) -> float | None:
        """Operations per second of all stressors; None if the load tells none."""
        return sum(self.throughput.values()) if self.throughput else None


def kernel_of(record: RunRecord) -> str:
    """Name the kernel: as asked for, else the release that runs."""
    if record.run.kernel:
        return printable(record.run.kernel)
    release = record.facts_before.get("kernel_release")
    if release is None or release.value is None:
        return "unknown kernel"
    return printable(str(release.value))


def settings_of(record: RunRecord) -> str:
    """Name policy, priority and interval."""
    run = record.run
    priority = f" {run.priority}" if run.policy in ("fifo", "rr") else ""
    return f"{printable(run.policy)}{priority} every {duration(run.interval_ns)}"


def cells_of(records: Sequence[RunRecord]) -> tuple[Cell, ...]:
    """Group runs into cells: loads in the order of Table 5-1, variants as they come."""
    keys = [
        (
            printable(r.run.load),
            printable(r.run.target),
            kernel_of(r),
            settings_of(r),
        )
        for r in records
    ]
    varying = [i for i in (1, 2, 3) if len({key[i] for key in keys}) > 1]
    grouped: dict[tuple[str, str, str, str], list[RunRecord]] = {}
    for key, record in zip(keys, records, strict=True):
        grouped.setdefault(key, []).append(record)
    loads = list(dict.fromkeys(key[0] for key in keys))
    variants = list(dict.fromkeys(key[1:] for key in keys))

    def place(key: tuple[str, str, str, str]) -> tuple[int, int, int]:
        standard = (
            STANDARD_LOADS.index(key[0])
            if key[0] in STANDARD_LOADS
            else len(STANDARD_LOADS)
        )
        return standard, loads.index(key[0]), variants.index(key[1:])

    return tuple(
        Cell(*key, variant=" · ".join(key[i] for i in varying), records=tuple(runs))
        for key, runs in sorted(grouped.items(), key=lambda item: place(item[0]))
    )


def variant_kind(records: Sequence[RunRecord]) -> str:
    """Name what tells the rows of one load apart; empty if nothing does."""
    kinds = {
        "target": {r.run.target for r in records},
        "kernel": {kernel_of(r) for r in records},
        "setting": {settings_of(r) for r in records},
    }
    return ", ".join(kind for kind, values in kinds.items() if len(values) > 1)


def row_of(cell: Cell) -> Row:
    """Merge the runs of a cell into its row."""
    return merged_row(cell.records, variant=cell.variant)


def merged_row(records: Sequence[RunRecord], *, variant: str) -> Row:
    """Merge runs of one load into a row; names are those of the first."""
    among = caveats_among(records)
    given, records = len(records), distinct(records)
    threads = [t for r in records for t in r.result.threads]
    try:
        summary = summarize(threads)
    except MeasurementError:
        summary = None
    stressors: dict[str, list[float]] = {}
    for record in records:
        for name, rate in record.load.throughput.items():
            stressors.setdefault(printable(name), []).append(rate)
    first = records[0]
    load = printable(first.run.load)
    return Row(
        anchor=anchor_of(load, variant),
        load=load,
        target=printable(first.run.target),
        kernel=kernel_of(first),
        settings=settings_of(first),
        variant=variant,
        runs=len(records),
        repeats=given - len(records),
        cpus=len({t.cpu for t in threads} - {None})
        or max(len(r.result.threads) for r in records),
        observed_ns=sum(observed_ns(r.result.threads) for r in records),
        summary=summary,
        caveats=len({c.id for raised in among for c in raised}),
        throughput={name: sum(v) / len(v) for name, v in stressors.items()},
    )


def anchor_of(*names: str) -> str:
    """Make a fragment identifier that HTML, CSS and file names all accept."""
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")
    return f"load-{slug[:80]}"
