"""
Write numbers for databases: CSV, OpenMetrics text, KernelCI's kcidb v5.3.

A number that is not known is left out; none is written as 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from rtscope.contract import ThreadResult
from rtscope.host.errors import UsageError
from rtscope.host.files.csvtext import csv_text
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_S
from rtscope.record.model import RunRecord
from rtscope.record.samples import NONE, ThreadSamples
from rtscope.stats.figures import columns
from rtscope.stats.summary import summarize
from rtscope.stats.wakeparts import Part, parts_seen
from rtscope.verbs.exchange.writers.verdicts import Case, cases


def parts_in(record: RunRecord) -> tuple[Part, ...]:
    """Return the parts of all wake-ups of a run; empty if there are none."""
    seen = parts_seen([record])
    return seen.parts if seen else ()


EDGES_NS = tuple(
    digit * 10**power for power in range(3, 10) for digit in (1, 2, 5) if power < 10
)
"""1, 2, 5, 10, … us up to 5 s: few enough for a time series each."""


def tidy_csv(records: Sequence[RunRecord]) -> str:
    """
    Return one row for each bucket; an empty `high_ns` is one without an end.

    With the parts of all wake-ups each of them has its own rows, and a column names it.
    """
    names = ("run", "target", "kernel", "load", "cpu", "low_ns", "high_ns", "count")
    rows = [row for record in records for row in _buckets(record)]
    if any(parts_seen([record]) for record in records):
        of_parts = (
            (part.kind.key, row)
            for record in records
            for part in parts_in(record)
            for row in _buckets(record, part.threads)
        )
        named = [*(("latency", row) for row in rows), *of_parts]
        return csv_text([(*names, "of"), *((*row, part) for part, row in named)])
    return csv_text([names, *rows])


def _buckets(
    record: RunRecord, threads: Sequence[ThreadResult] | None = None
) -> Iterator[tuple[object, ...]]:
    run = record.run
    for number, t in enumerate(record.result.threads if threads is None else threads):
        cpu = f"thread {number}" if t.cpu is None else t.cpu
        about = (run.id, run.target, _kernel(record), run.load, cpu)
        yield from ((*about, *bucket) for bucket in t.buckets)
        if t.overflow:
            yield (*about, t.overflow_low_ns, "", t.overflow)


def csv_of_each(
    records: Sequence[RunRecord], samples: Mapping[str, Sequence[ThreadSamples]]
) -> str:
    """
    Return a row for each period: since the start of its run, and its latency, in ns.

    A missed period has an empty latency. Raises UsageError if no run kept any.
    """
    kept = [one for one in records if one.result_digest in samples]
    if not kept:
        raise UsageError(
            "no run kept each wake-up: measure with rtscope run --keep-samples"
        )
    names = ("run", "cpu", "due_ns", "latency_ns")
    rows = (row for one in kept for row in _periods(one, samples[one.result_digest]))
    return csv_text([names, *rows])


def _periods(
    record: RunRecord, threads: Sequence[ThreadSamples]
) -> Iterator[tuple[object, ...]]:
    for thread in threads:
        due_ns = (thread.due_ns - record.result.start_ns).tolist()
        for at_ns, latency in zip(due_ns, thread.latency_ns.tolist(), strict=True):
            yield record.run.id, thread.cpu, at_ns, "" if latency == NONE else latency


def openmetrics(records: Sequence[RunRecord]) -> str:
    """
    Return OpenMetrics text, for the textfile collector of node_exporter.

    A bucket that an edge divides counts above it: what is said to be within, is.
    """
    of = [
        (_labels(record, number, t), t)
        for record in records
        for number, t in enumerate(record.result.threads)
    ]
    parts = [
        (f'{_labels(record, number, t)},part="{part.kind.key}"', t)
        for record in records
        for part in parts_in(record)
        for number, t in enumerate(part.threads)
    ]
    lines = (*_gauges(of), *_missed(of), *_histogram("rtscope_latency_seconds", of))
    if parts:
        lines += tuple(_histogram("rtscope_wakeup_part_seconds", parts))
    return "".join(f"{line}\n" for line in (*lines, "# EOF"))


Labelled = Sequence[tuple[str, ThreadResult]]


def _gauges(of: Labelled) -> Iterator[str]:
    measured = [(labels, summarize([t])) for labels, t in of if t.max_ns is not None]
    for figure in columns("export"):
        name = f"rtscope_latency_{figure.names.get('export', figure.key)}_seconds"
        yield from (f"# TYPE {name} gauge", f"# UNIT {name} seconds")
        yield f"# HELP {name} {figure.help}"
        for labels, summary in measured:
            if (ns := figure.of_summary(summary)) is not None:
                yield f"{name}{{{labels}}} {_seconds(ns)}"


def _missed(of: Labelled) -> Iterator[str]:
    name = "rtscope_missed_periods"
    yield from (f"# TYPE {name} gauge", f"# HELP {name} Periods without a wake-up.")
    for labels, t in of:
        if t.missed_periods is not None:
            yield f"{name}{{{labels}}} {t.missed_periods}"


_HELP = {
    "rtscope_latency_seconds": "Wake-up latencies.",
    "rtscope_wakeup_part_seconds": "Parts of all wake-ups.",
}


def _histogram(name: str, of: Labelled) -> Iterator[str]:
    yield from (f"# TYPE {name} histogram", f"# UNIT {name} seconds")
    yield f"# HELP {name} {_HELP[name]}"
    for labels, t in of:
        counted = t.counted
        if counted is None:
            continue
        buckets = t.buckets
        for edge_ns in EDGES_NS:
            within = sum(n for _, high_ns, n in buckets if high_ns - 1 <= edge_ns)
            yield f'{name}_bucket{{{labels},le="{_seconds(edge_ns)}"}} {within}'
        yield f'{name}_bucket{{{labels},le="+Inf"}} {counted}'
        if t.sum_ns is not None:  # there is no count without a sum
            yield f"{name}_count{{{labels}}} {counted}"
            yield f"{name}_sum{{{labels}}} {_seconds(t.sum_ns)}"


def _labels(record: RunRecord, number: int, t: ThreadResult) -> str:
    named = {
        "run": record.run.id,
        "target": record.run.target,
        "kernel": _kernel(record),
        "load": record.run.load,
        "cpu": f"thread {number}" if t.cpu is None else str(t.cpu),
    }
    return ",".join(f'{name}="{_quoted(value)}"' for name, value in named.items())


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _seconds(ns: float) -> str:
    """Write an exact decimal: 5e-6 as a float times 1 reads 4.9999999999999996e-06."""
    exact = Decimal(str(round(ns, 3))) / NS_PER_S
    return f"{exact.normalize():f}"


def kcidb(records: Sequence[RunRecord], deadline_ns: int | None, *, origin: str) -> str:
    """Return a report of kcidb v5.3: a test for each CPU, with its maximum."""
    checkout = f"{origin}:unknown"
    kernels = {_kernel(record) for record in records}
    document = {
        "version": {"major": 5, "minor": 3},
        "checkouts": [{"id": checkout, "origin": origin}],
        "builds": [
            {
                "id": f"{origin}:{kernel}",
                "origin": origin,
                "checkout_id": checkout,
                "comment": f"kernel {kernel}",
            }
            for kernel in sorted(kernels)
        ],
        "tests": [
            _kcidb_test(case, origin, judged=deadline_ns is not None)
            for case in cases(records, deadline_ns)
        ],
    }
    return json_text(document, indent=1)


_STATUS = {"pass": "PASS", "fail": "FAIL", "unknown": "ERROR"}


def _kcidb_test(case: Case, origin: str, *, judged: bool) -> dict[str, object]:
    record, t = case.run, case.thread
    load = "".join(c if c.isalnum() or c in "_-" else "_" for c in record.run.load)
    status = _STATUS[case.result]
    made: dict[str, object] = {
        "id": f"{origin}:{record.result_digest[:16]}-{case.id}",
        "build_id": f"{origin}:{_kernel(record)}",
        "origin": origin,
        "path": f"rt.wakeup.{load}.max",
        "comment": f"longest wake-up latency of {case.name}"[:200],
        "status": "DONE" if status == "PASS" and not judged else status,
        "environment": {"comment": record.run.target[:200]},
        "misc": dict(case.figures),
    }
    if t.max_ns is not None:
        made["number"] = {
            "value": float(_seconds(t.max_ns)),
            "unit": "s",
            "prefix": "metric",
        }
    if t.end_ns > t.start_ns:
        made["duration"] = (t.end_ns - t.start_ns) / NS_PER_S
    if record.started_at.endswith("Z"):
        made["start_time"] = record.started_at
    return made


def _kernel(record: RunRecord) -> str:
    return record.run.kernel or record.release or "unknown"
