"""
Records in the formats that others read, by name.

Pure: records in, text out. `LACKS` says what of a record a format cannot hold.

    histograms.py  cyclictest, jitterdebugger, rtla
    numbers.py     CSV, of each wake-up too, OpenMetrics, kcidb
    nights.py      Otava, Influx, github-action-benchmark, Bencher
    verdicts.py    JUnit, KTAP, LAVA
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.record.model import RunRecord
from rtscope.record.samples import ThreadSamples
from rtscope.verbs.exchange.writers import histograms, nights, numbers, verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What else an export may depend on."""

    deadline_ns: int | None = None
    origin: str = "rtscope"
    """Who reports, for kcidb."""
    samples: Mapping[str, Sequence[ThreadSamples]] = field(default_factory=dict)
    """Each wake-up of runs that kept them, by the digests of their results."""


Writer = Callable[[Sequence[RunRecord], ExportOptions], str]

_CUT = "latencies are cut to microseconds; missed periods, worst wake-ups and caveats"

WRITERS: Mapping[str, Writer] = {
    "cyclictest-text": lambda records, _: histograms.cyclictest_text(records),
    "cyclictest-json": lambda records, _: histograms.cyclictest_json(records),
    "jitterdebugger-json": lambda records, _: histograms.jitterdebugger_json(records),
    "rtla-text": lambda records, _: histograms.rtla_text(records),
    "junit": lambda records, options: verdicts.junit(records, options.deadline_ns),
    "ktap": lambda records, options: verdicts.ktap(records, options.deadline_ns),
    "lava": lambda records, options: verdicts.lava(records, options.deadline_ns),
    "kcidb": lambda records, options: numbers.kcidb(
        records, options.deadline_ns, origin=options.origin
    ),
    "openmetrics": lambda records, _: numbers.openmetrics(records),
    "csv": lambda records, _: numbers.tidy_csv(records),
    "samples-csv": lambda records, options: numbers.csv_of_each(
        records, options.samples
    ),
    "otava-csv": lambda records, _: nights.otava_csv(records),
    "influx": lambda records, _: nights.influx(records),
    "benchmark-action": lambda records, _: nights.benchmark_action(records),
    "bencher": lambda records, _: nights.bencher(records),
}

LACKS: Mapping[str, str] = {
    "cyclictest-text": f"{_CUT}, CPUs, interval and load are left out",
    "cyclictest-json": f"{_CUT}, interval and load are left out",
    "jitterdebugger-json": f"{_CUT}, CPUs and latencies above 1 ms are left out",
    "rtla-text": f"{_CUT} and load are left out",
    "junit": "histograms and notes are left out",
    "ktap": "histograms and caveats that do not invalidate are left out",
    "lava": "histograms and caveats are left out",
    "kcidb": "histograms and caveats are left out",
    "openmetrics": "worst wake-ups and caveats are left out",
    "csv": "missed periods, worst wake-ups and caveats are left out",
    "samples-csv": "a missed period has no latency; caveats and load are left out",
    **dict.fromkeys(
        ("otava-csv", "influx", "benchmark-action", "bencher"),
        "histograms, CPUs and caveats are left out",
    ),
}
