"""Import results of other tools: rt-tests, rtla, jitterdebugger, Xenomai."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import put, typed_words
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.opening import at_hand
from rtscope.host.units import format_duration, parse_duration
from rtscope.record.directory.place import make_directory, refuse_used
from rtscope.record.directory.records import ResultDir
from rtscope.record.foreign import read
from rtscope.record.foreign.model import UNKNOWN, Asked, ForeignRun
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.summary import threshold_of, total_of
from rtscope.verbs.exchange.records import Stated, record_of


class Unit(StrEnum):
    """Of the latencies in a file that does not name it."""

    US = "us"
    NS = "ns"
    MS = "ms"
    S = "s"


class Policy(StrEnum):
    """A scheduling policy, by its name in rtscope."""

    FIFO = "fifo"
    RR = "rr"
    OTHER = "other"
    BATCH = "batch"
    IDLE = "idle"
    DEADLINE = "deadline"


class YesNo(StrEnum):
    """An answer."""

    YES = "yes"
    NO = "no"


MAX_FILE_BYTES = 16 << 30
"""A day of cyclictest -v has half of it."""

UNIT_NS = {Unit.US: 1000, Unit.NS: 1, Unit.MS: 1_000_000, Unit.S: 1_000_000_000}

STATED = "What the file may not say"
TABLE = "Columns of a table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The arguments and options of `rtscope import`."""

    file: Annotated[list[Path], typer.Argument(metavar="FILE...")]
    """
    Outputs of other tools, each a run: text, histograms and JSON of cyclictest and the
    other rt-tests, hwlatdetect, rtla timerlat and osnoise, results.json of
    jitterdebugger, summary.xml of rteval, a column or table of latencies; unverified,
    as no output of the program was tried: rtla hwnoise, latency of Xenomai.
    """
    out: Path | None = None
    """Directory of the records (default: the first file's name and -imported)."""
    load: Annotated[str | None, typer.Option(rich_help_panel=STATED)] = None
    """Load that ran meanwhile, e.g. idle or memory; unless named it is unknown."""
    interval: Annotated[str | None, typer.Option(rich_help_panel=STATED)] = None
    """Time between two wake-ups of a thread, e.g. 200us."""
    duration: Annotated[str | None, typer.Option(rich_help_panel=STATED)] = None
    """Length of each run, e.g. 10m."""
    policy: Annotated[Policy | None, typer.Option(rich_help_panel=STATED)] = None
    """Scheduling policy of the threads, e.g. fifo."""
    priority: Annotated[
        int | None, typer.Option(min=0, max=99, rich_help_panel=STATED)
    ] = None
    """Priority of the threads, e.g. 98."""
    machine: Annotated[str | None, typer.Option(rich_help_panel=STATED)] = None
    """Name of the machine, e.g. visionfive2 (default: the host's name, if known)."""
    kernel: Annotated[str | None, typer.Option(rich_help_panel=STATED)] = None
    """Release of the kernel, e.g. 6.1.59-rt16."""
    preempt_rt: Annotated[YesNo | None, typer.Option(rich_help_panel=STATED)] = None
    """Whether the kernel is PREEMPT_RT: yes or no; compare --published needs it."""
    unit: Annotated[Unit | None, typer.Option(rich_help_panel=STATED)] = None
    """
    Unit of the latencies in a text: us, ns, ms or s (default: us; cyclictest -N: ns).
    """
    column: Annotated[str | None, typer.Option(rich_help_panel=TABLE)] = None
    """Column of latencies, by heading or number, e.g. latency_us or 2."""
    time_column: Annotated[str | None, typer.Option(rich_help_panel=TABLE)] = None
    """Column of time stamps and its unit, e.g. time:s; alone: jitter from it."""
    count_column: Annotated[str | None, typer.Option(rich_help_panel=TABLE)] = None
    """Column that counts how often each latency was seen, e.g. count."""


def import_(request: ImportRequest) -> int:
    """
    Import results of other tools: rt-tests, rtla, jitterdebugger, Xenomai.

    The records work with report and compare. What the tool does not tell stays unknown,
    and caveats say what follows from that. Formats are recognised by their content.
    """
    with ExitStack() as held:
        places = [
            held.enter_context(at_hand(path, kind="result", limit=MAX_FILE_BYTES))
            for path in request.file
        ]
        return _import(places, request)


def _import(places: Sequence[Path], request: ImportRequest) -> int:
    stated = _stated(request)
    unit_ns = UNIT_NS[request.unit] if request.unit else None
    sources = [Source(path) for path in places]
    out = request.out or Path(f"{sources[0].path.stem}-imported")
    refuse_used(out)
    asked = Asked(
        column=request.column or "",
        time_column=request.time_column or "",
        count_column=request.count_column or "",
        interval_ns=stated.interval_ns,
    )
    runs = [
        (one, run) for one in sources for run in read(one, unit_ns=unit_ns, asked=asked)
    ]
    _refuse_copies(sources)  # what has no format may have no end either
    records = list(_records(runs, stated))
    _save(records, out)
    put("".join(f"{line}\n" for line in _said(records, out)))
    return 0


def _save(records: Sequence[RunRecord], out: Path) -> None:
    """Write the records; RecordError says how many of them are kept."""
    make_directory(out)
    store = ResultDir(out)
    for number, record in enumerate(records):
        try:
            store.save(record)
        except RecordError as error:
            of = f"{number} of {len(records)} records are in {out}"
            if not out.is_dir():
                raise
            raise RecordError(
                f"{error}; {of}: remove it, then import all files again"
            ) from error


def _refuse_copies(sources: Sequence[Source]) -> None:
    """Raise UsageError if two files are one: the run would count twice."""
    seen: dict[str, Source] = {}
    for source in sources:
        other = seen.setdefault(source.sha256, source)
        if other is not source:
            raise UsageError(
                f"{other.path} and {source.path} are the same, byte for byte: leave "
                "one out"
            )


def _stated(request: ImportRequest) -> Stated:
    return Stated(
        load=request.load or "",
        interval_ns=parse_duration(request.interval) if request.interval else 0,
        duration_ns=parse_duration(request.duration) if request.duration else 0,
        policy=str(request.policy or ""),
        priority=request.priority or 0,
        machine=request.machine or "",
        kernel=request.kernel or "",
        preempt_rt=str(request.preempt_rt or ""),
    )


def _records(
    runs: Sequence[tuple[Source, ForeignRun]], stated: Stated
) -> Iterator[RunRecord]:
    seen: Counter[tuple[str, str]] = Counter()
    for number, (source, run) in enumerate(runs, 1):
        # Loads that nobody names are not the same one: only what is may repeat.
        kind = run.variant, "" if stated.load else str(source.path)
        seen[kind] += 1
        parts = (run.tool, run.variant)
        words = "-".join(part for part in parts if part).lower()
        name = re.sub(r"[^a-z0-9.+-]+", "-", words).strip("-")[:100]
        yield record_of(
            run,
            source,
            stated,
            run_id=f"{number:03}-{name}",
            repetition=seen[kind],
            command=typed_words(),
        )


_NOT_IN_NUMBERS = ("import_rows_left_out", "import_left_out")
"""Caveats of lines that are in the file and in no number of its record."""


def _said(records: Sequence[RunRecord], out: Path) -> Iterator[str]:
    for record in records:
        imported = record.imported
        assert imported is not None
        samples = total_of(t.samples for t in record.result.threads)
        version = f" {imported.version}" if imported.version else ""
        threads = len(record.result.threads)
        yield (
            f"{imported.file}: {imported.tool}{version}, {threads} "
            f"{'thread' if threads == 1 else 'threads'}, {_counted(record, samples)}"
        )
        for caveat in record.caveats:
            if caveat.id in _NOT_IN_NUMBERS:
                yield f"{imported.file}: {caveat.detail}"
    unknown = {
        r.imported.file for r in records if r.imported and r.load.name == UNKNOWN
    }
    if len(unknown) > 1:
        yield (
            f"unknown under which loads: a row for each of {len(unknown)} files; if "
            "one load ran in all of them, import them again with --load NAME"
        )
    yield f"report: rtscope report {shlex.quote(str(out))}"


def _counted(record: RunRecord, samples: int | None) -> str:
    threshold_ns = threshold_of(record.result.threads)
    if threshold_ns is not None:
        return f"nothing of {format_duration(threshold_ns)} or more"
    return "no count of samples" if samples is None else f"{samples:,} samples"
