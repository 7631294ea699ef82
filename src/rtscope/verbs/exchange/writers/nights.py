"""
Write a run as the point of a series, for tools that watch numbers over time.

Otava wants a row for each run; its test takes values for normal, so that its columns
are logarithms. The others take one value with a name. Latencies are in ns, and a
figure that is not known is left out.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rtscope.host.errors import UsageError
from rtscope.host.files.csvtext import csv_text
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_S
from rtscope.record.model import RunRecord
from rtscope.stats.figures import columns
from rtscope.stats.summary import summary_of

_ESCAPED = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ ", "\\": "/", "\n": r"\ "})


def otava_csv(records: Sequence[RunRecord]) -> str:
    """Return a row for each run, the oldest first, with logarithms of its figures."""
    rows = [(record, _figures(record)) for record in records]
    names = list(dict.fromkeys(name for _, known in rows for name in known))
    head = ("time", "run", "target", "kernel", "load", *(f"log_{one}" for one in names))
    body = (
        (
            *(_started(record).isoformat(), record.run.id, record.run.target),
            *(_kernel(record), record.run.load),
            *(f"{math.log1p(known[one]):.6f}" if one in known else "" for one in names),
        )
        for record, known in sorted(rows, key=lambda row: row[0].started_at)
    )
    return csv_text([head, *body])


def influx(records: Sequence[RunRecord]) -> str:
    """Return Influx line protocol: a point for each run, its time in ns."""
    points = ((record, _figures(record)) for record in records)
    return "".join(f"{_point(record, known)}\n" for record, known in points if known)


def _point(record: RunRecord, known: Mapping[str, float]) -> str:
    run = record.run
    tags = {
        "run": run.id,
        "target": run.target,
        "kernel": _kernel(record),
        "load": run.load,
    }
    named = ",".join(f"{name}={_tag(value)}" for name, value in tags.items())
    fields = ",".join(
        f"{name}={value}i" if isinstance(value, int) else f"{name}={value!r}"
        for name, value in known.items()
    )
    at_ns = round(_started(record).timestamp()) * NS_PER_S
    return f"rtscope,{named} {fields} {at_ns}"


def _tag(text: str) -> str:
    return text.translate(_ESCAPED) or "unknown"


def benchmark_action(records: Sequence[RunRecord]) -> str:
    """Return customSmallerIsBetter of github-action-benchmark."""
    values = [
        {
            "name": f"{_name(record)} {figure}",
            "unit": "ns" if figure.endswith("_ns") else "count",
            "value": value,
        }
        for record in records
        for figure, value in _figures(record).items()
    ]
    return json_text(values)


def bencher(records: Sequence[RunRecord]) -> str:
    """Return Bencher's metric format (BMF): measures of each benchmark by its name."""
    names = [_name(record) for record in records]
    if len(set(names)) < len(names):
        names = [f"{_name(record)} {record.run.id}" for record in records]
    if len(set(names)) < len(names):
        raise UsageError(
            "bencher: two runs have one name, which this format cannot express: export "
            "one result directory at a time"
        )
    return json_text(
        {
            name: {one: {"value": value} for one, value in _figures(record).items()}
            for name, record in zip(names, records, strict=True)
        }
    )


def _figures(record: RunRecord) -> dict[str, float]:
    """Return latencies (ns) and missed periods, of all CPUs together."""
    return dict(_known(record))


def _known(record: RunRecord) -> Iterator[tuple[str, float]]:
    summary = summary_of(record.result.threads)
    if summary is None:
        return
    for one in columns("export"):
        if (ns := one.of_summary(summary)) is not None:
            yield f"{one.key}_ns", ns
    if summary.missed_periods is not None:
        yield "missed_periods", summary.missed_periods


def _name(record: RunRecord) -> str:
    run = record.run
    words = (run.target, run.load, run.variant or "", run.kernel or "")
    return " ".join(word for word in words if word)


def _kernel(record: RunRecord) -> str:
    return record.run.kernel or record.release or "unknown"


def _started(record: RunRecord) -> datetime:
    try:
        return datetime.fromisoformat(record.started_at)
    except ValueError:
        raise UsageError(
            f"run {record.run.id} has no date, which this format needs: choose another "
            "--to, e.g. csv"
        ) from None
