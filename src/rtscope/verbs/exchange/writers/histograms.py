"""
Write a run as another tool would have: cyclictest, jitterdebugger, rtla.

These formats have buckets of a microsecond, and none of what else a record knows. A
bucket of our agent that spans two microseconds counts in the lower one, but for the
maximum: 0.1 % at most.
"""

from collections.abc import Collection, Sequence

from rtscope.contract import ThreadResult
from rtscope.host.errors import UsageError
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.present.formats import cyclictest
from rtscope.present.formats.cyclictest import (
    mean_ns,
    microseconds_of,
    sysinfo,
    whole_us,
)
from rtscope.record.model import RunRecord
from rtscope.stats.summary import observed_ns

RTLA_COLUMNS = {"irq": "IRQ", "user": "Usr"}
"""By the variant of an imported run of timerlat; all others are of threads."""


def cyclictest_text(records: Sequence[RunRecord]) -> str:
    """Return what cyclictest -q -h prints since 2.7."""
    return cyclictest.histogram_text(_threads(records))


def cyclictest_json(records: Sequence[RunRecord]) -> str:
    """Return what cyclictest --json writes."""
    return cyclictest.json_of(_one(records), _threads(records))


def jitterdebugger_json(records: Sequence[RunRecord]) -> str:
    """Return results.json of jitterdebugger; it has 1000 buckets."""
    cpus = {}
    for number, t in enumerate(_threads(records)):
        kept, _ = microseconds_of(t)
        cpus[str(number)] = {
            "histogram": {str(us): n for us, n in kept.items() if us < 1000},
            "count": t.counted,
            "min": whole_us(t.min_ns),
            "max": whole_us(t.max_ns),
            "avg": round(mean_ns(t) / NS_PER_US, 2),
        }
    about = {**sysinfo(_one(records)), "cpus_online": len(cpus)}
    document = {
        "version": 3,
        "sysinfo": {**about, "resolution_in_ns": NS_PER_US},
        "cpu": cpus,
    }
    return json_text(document)


def rtla_text(records: Sequence[RunRecord]) -> str:
    """Return what rtla timerlat hist prints, with one of its three latencies."""
    threads = _threads(records, also=RTLA_COLUMNS)
    record = _one(records)
    kind = RTLA_COLUMNS.get(record.run.variant or "") if record.imported else None
    rows = [microseconds_of(t) for t in threads]
    numbers = [n if t.cpu is None else t.cpu for n, t in enumerate(threads)]
    length_ns = observed_ns(threads)
    seconds = None if length_ns is None else length_ns // NS_PER_S
    lines = [
        "# RTLA timerlat histogram",
        "# Time unit is microseconds (us)",
        *([] if seconds is None else [_rtla_duration(seconds)]),
        "Index" + "".join(f"   {kind or 'Thr'}-{number:03}" for number in numbers),
    ]
    for us in sorted({us for one, _ in rows for us in one}):
        lines.append(f"{us:<6}" + "".join(f"{one[us]:9} " for one, _ in rows))
    for name, values in (
        ("over: ", [beyond for _, beyond in rows]),
        ("count:", [t.counted for t in threads]),
        ("min:  ", [whole_us(t.min_ns) for t in threads]),
        ("avg:  ", [int(mean_ns(t) // NS_PER_US) for t in threads]),
        ("max:  ", [whole_us(t.max_ns) for t in threads]),
    ):
        lines.append(name + "".join(f"{value:9} " for value in values))
    return "\n".join([*lines, ""])


def _rtla_duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    return f"# Duration: {days:3} {hours % 24:02}:{minutes % 60:02}:{seconds % 60:02}"


def _one(records: Sequence[RunRecord]) -> RunRecord:
    if len(records) != 1:
        raise UsageError(
            f"this format has room for one run, and here are {len(records)}: name the "
            "directory of one, e.g. results/runs/001-idle"
        )
    return records[0]


def _threads(
    records: Sequence[RunRecord], *, also: Collection[str] = ()
) -> Sequence[ThreadResult]:
    """Return the threads of the one run, which is of wake-ups or of these variants."""
    record = _one(records)
    threads = record.result.threads
    other = [c.detail for c in record.caveats if c.id == "import_other_quantity"]
    if other and record.run.variant not in also:
        raise UsageError(f"this format is of wake-ups, and here is {other[0]}")
    for t in threads:
        if t.min_ns is None or t.max_ns is None:
            raise UsageError(
                "a thread has no sample, which this format cannot express: choose "
                "another --to, e.g. csv"
            )
        if t.counted is None:
            raise UsageError(
                "a thread has no count of samples, which this format cannot express: "
                "choose another --to, e.g. csv"
            )
        if t.foreign is not None and t.foreign.step_ns > NS_PER_US:
            raise UsageError(
                "buckets of more than 1 us do not fit this format: choose another "
                "--to, e.g. csv"
            )
    return threads
