"""Export records in a format that another tool reads."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import log, put
from rtscope.cli.foreign import open_ours
from rtscope.host.errors import UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.units import parse_duration
from rtscope.record.pack import unpacking
from rtscope.record.samples import find_samples
from rtscope.verbs.exchange.writers import LACKS, WRITERS, ExportOptions


class ExportFormat(StrEnum):
    """A format to write."""

    CYCLICTEST_TEXT = "cyclictest-text"
    CYCLICTEST_JSON = "cyclictest-json"
    JITTERDEBUGGER_JSON = "jitterdebugger-json"
    RTLA_TEXT = "rtla-text"
    JUNIT = "junit"
    KTAP = "ktap"
    LAVA = "lava"
    KCIDB = "kcidb"
    OPENMETRICS = "openmetrics"
    CSV = "csv"
    SAMPLES_CSV = "samples-csv"
    OTAVA_CSV = "otava-csv"
    INFLUX = "influx"
    BENCHMARK_ACTION = "benchmark-action"
    BENCHER = "bencher"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The arguments and options of `rtscope export`."""

    record: Annotated[list[Path], typer.Argument()]
    """
    Result directories, archives of rtscope pack, or the directory of one run; formats
    of other meters have room for one run.
    """
    to: Annotated[ExportFormat, typer.Option()]
    """Format to write."""
    out: Path | None = None
    """File to write (default: standard output), e.g. result.xml."""
    deadline: str | None = None
    """Deadline for junit, ktap, lava and kcidb: a case fails that missed it."""
    origin: str = "rtscope"
    """Name under which kcidb knows who reports (default: rtscope)."""


def export(request: ExportRequest) -> int:
    """
    Export records in a format that another tool reads.

    Standard error says what the format cannot hold.
    """
    if not re.fullmatch(r"[a-z0-9_]{1,60}", request.origin):
        raise UsageError(f"--origin {request.origin}: write small letters, digits, _")
    if request.out is not None:
        refuse_unwritable(request.out)
    with unpacking() as opened:
        paths = [opened(path) for path in request.record]
        records = [one for path in paths for one in open_ours(path)]
        is_wanted = request.to is ExportFormat.SAMPLES_CSV
        samples = find_samples(paths, records, log=log) if is_wanted else {}
    deadline_ns = parse_duration(request.deadline) if request.deadline else None
    options = ExportOptions(
        deadline_ns=deadline_ns, origin=request.origin, samples=samples
    )
    text = WRITERS[request.to](records, options)
    log(f"{request.to}: {LACKS[request.to]}")
    if request.out is None:
        put(text)
    else:
        write_atomically(request.out, text.encode())
    return 0
