"""
Read a table of extremes and averages, as benchmarks print: a row is a run.

Each row has a name, a minimum, a maximum and an average, by its headings, and may have
a count of samples. Rows without a name are windows of one run, and no runs. Median and
deviation stay in the record as the file says them: no percentile follows from them.
"""

import re
from collections.abc import Iterator, Mapping

from rtscope.host.files.plaintext import plain_file
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import ForeignRun, ForeignThread
from rtscope.record.foreign.source import Source
from rtscope.record.foreign.table import Column, Layout, layout_of, rows_of

NAME = "table of extremes"

LINE = re.compile(r"(?!)")
"""None is a sign of this format, as of a column."""

MAX_RUNS = 1_000

_KINDS: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(rf"(?:^|[\W_])(?:{words})(?:$|[\W_])", re.IGNORECASE)
    for kind, words in (
        ("min", "min|minimum"),
        ("max", "max|maximum|worst"),
        ("mean", "avg|average|mean"),
        ("samples", "samples?|counts?|cycles|iterations|loops|n"),
    )
}


def columns_of(layout: Layout) -> dict[str, Column]:
    """Return the columns of extremes and average; empty without all or a name."""
    found: dict[str, Column] = {}
    for kind, pattern in _KINDS.items():
        alike = [c for c in layout.columns if c.numeric and pattern.search(c.heading)]
        if len(alike) == 1:
            found[kind] = alike[0]
    named = any(not c.numeric for c in layout.columns)
    whole = named and {"min", "max", "mean"} <= found.keys()
    return found if whole and len(set(found.values())) == len(found) else {}


def recognises(head: str) -> bool:
    """Whether these lines are a table of extremes."""
    layout = layout_of(head.splitlines())
    return layout is not None and bool(columns_of(layout))


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return a run of each row; RecordError if there is no unit, or no number."""
    layout = layout_of(next(source.heads(), []))
    assert layout is not None, "it was recognised"
    columns = columns_of(layout)
    unit = unit_ns or columns["max"].unit_ns
    if not unit:
        raise source.damaged(
            f"no unit of column {columns['max'].name!a}: its heading and cells name "
            "none; add --unit us (or ns, ms, s)"
        )
    runs = []
    left_out = 0
    for _, cells in rows_of(plain_file(source.path).lines(), layout):
        run = _run(layout, columns, cells, unit)
        left_out += run is None
        if run is not None:
            runs.append(run)
        if len(runs) > MAX_RUNS:
            raise source.damaged(f"over {MAX_RUNS:,} rows: name a column with --column")
    if not runs or left_out > len(runs):
        raise source.damaged("no row with a minimum, an average and a maximum in it")
    return runs


def _run(
    layout: Layout, columns: Mapping[str, Column], cells: list[str], unit_ns: int
) -> ForeignRun | None:
    if len(cells) < len(layout.columns):
        return None
    numbers = {
        k: layout.number(cells[c.number - 1].strip()) for k, c in columns.items()
    }
    if any(not _is_time(numbers[kind]) for kind in ("min", "max", "mean")):
        return None
    ns = {kind: round((value or 0) * unit_ns) for kind, value in numbers.items()}
    said = numbers.get("samples")
    samples = None if said is None or said < 0 else int(said)
    text = [c for c in layout.columns if not c.numeric]
    label = " ".join(cells[c.number - 1].strip() for c in text).strip()[:60]
    thread = ForeignThread(
        samples=samples,
        min_ns=ns["min"],
        max_ns=ns["max"],
        mean_ns=ns["mean"],
        step_ns=max(unit_ns // 10**layout.decimals, 1),
        overflow=samples or 0,
    )
    measures = f"columns {columns['min'].name}, {columns['mean'].name}, " + (
        columns["max"].name
    )
    return ForeignRun(
        tool="a table",
        format=NAME,
        verified=True,
        measures=measures,
        threads=(thread,),
        variant=label,
        metadata=dict(_others(layout, columns, cells)),
        caveats=(make("import_other_quantity", measures),),
    )


def _is_time(value: float | None) -> bool:
    return value is not None and 0 <= value < 1e15


def _others(
    layout: Layout, columns: Mapping[str, Column], cells: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield what else a row says: median, deviation."""
    for column in layout.columns:
        if column.numeric and column not in columns.values():
            yield column.name, cells[column.number - 1].strip()[:80]
