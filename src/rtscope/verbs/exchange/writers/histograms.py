"""
Write a run as another tool would have: cyclictest, jitterdebugger, rtla.

These formats have buckets of a microsecond, and none of what else a record knows. A
bucket of our agent that spans two microseconds counts in the lower one: 0.1 % at most.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from rtscope.contract import ThreadResult
from rtscope.host.errors import UsageError
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.model import RunRecord
from rtscope.stats.summary import observed_ns, summarize

MAX_ROWS = 1_000_000
"""The longest histogram of cyclictest: 1 s."""

RTLA_COLUMNS = {"irq": "IRQ", "user": "Usr"}
"""By the variant of an imported run of timerlat; all others are of threads."""

OVERFLOWS_LISTED = "# Histogram Overflow at cycle number:"


def cyclictest_text(records: Sequence[RunRecord]) -> str:
    """Return what cyclictest -q -h prints since 2.7."""
    threads = _threads(records)
    rows = [_rows(t) for t in threads]
    lines = ["# Histogram"]
    for us in sorted({us for one, _ in rows for us in one}):
        lines.append(f"{us:06} " + "\t".join(f"{one[us]:06}" for one, _ in rows))
    for name, values, digits in (
        ("Min Latencies", [_us(t.min_ns) for t in threads], 5),
        ("Avg Latencies", [int(_mean_ns(t) // NS_PER_US) for t in threads], 5),
        ("Max Latencies", [_us(t.max_ns) for t in threads], 5),
        ("Histogram Overflows", [beyond for _, beyond in rows], 5),
    ):
        lines.append(f"# {name}: " + " ".join(f"{v:0{digits}}" for v in values))
    lines.append(OVERFLOWS_LISTED)
    lines += [f"# Thread {n}:" for n in range(len(threads))]
    return "\n".join([*lines, "", ""])


def cyclictest_json(records: Sequence[RunRecord]) -> str:
    """Return what cyclictest --json writes; its two odd keys are its own."""
    record = _one(records)
    threads = {}
    for number, t in enumerate(_threads(records)):
        kept, _ = _rows(t)
        threads[str(number)] = {
            **({"histogram": {str(us): n for us, n in kept.items()}} if kept else {}),
            "cycles": t.counted,
            "min": _us(t.min_ns),
            "max": _us(t.max_ns),
            "avg": round(_mean_ns(t) / NS_PER_US, 2),
            "cpu": -1 if t.cpu is None else t.cpu,
            "node": -1,
        }
    document = {
        "file_version": 1,
        "cmdline:": record.imported.command if record.imported else "rtscope run",
        "rt_test_version:": record.imported.version if record.imported else "",
        "return_code": 0,
        "sysinfo": _sysinfo(record),
        "num_threads": len(threads),
        "resolution_in_ns": 0,
        "thread": threads,
    }
    return json_text(document)


def jitterdebugger_json(records: Sequence[RunRecord]) -> str:
    """Return results.json of jitterdebugger; it has 1000 buckets."""
    cpus = {}
    for number, t in enumerate(_threads(records)):
        kept, _ = _rows(t)
        cpus[str(number)] = {
            "histogram": {str(us): n for us, n in kept.items() if us < 1000},
            "count": t.counted,
            "min": _us(t.min_ns),
            "max": _us(t.max_ns),
            "avg": round(_mean_ns(t) / NS_PER_US, 2),
        }
    about = {**_sysinfo(_one(records)), "cpus_online": len(cpus)}
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
    rows = [_rows(t) for t in threads]
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
        ("min:  ", [_us(t.min_ns) for t in threads]),
        ("avg:  ", [int(_mean_ns(t) // NS_PER_US) for t in threads]),
        ("max:  ", [_us(t.max_ns) for t in threads]),
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


def _rows(t: ThreadResult) -> tuple[Counter[int], int]:
    """Return counts by microsecond, and how many are beyond the last row."""
    kept: Counter[int] = Counter()
    beyond = t.overflow
    for low_ns, _, count in t.buckets:
        us = low_ns // NS_PER_US
        # The bucket of an extreme may begin in the microsecond before it.
        us = min(max(us, _us(t.min_ns)), _us(t.max_ns))
        if us < MAX_ROWS:
            kept[us] += count
        else:
            beyond += count
    return kept, beyond


def _us(ns: int | None) -> int:
    return (ns or 0) // NS_PER_US


def _mean_ns(t: ThreadResult) -> float:
    return summarize([t]).mean_ns or t.min_ns or 0


def _sysinfo(record: RunRecord) -> dict[str, object]:
    facts = record.facts_before
    return {
        "sysname": "Linux",
        **{
            key: str(facts[name].value)
            for key, name in (
                ("nodename", "hostname"),
                ("release", "kernel_release"),
                ("version", "kernel_version"),
            )
            if name in facts and facts[name].value is not None
        },
        "machine": record.hello.arch,
    }
