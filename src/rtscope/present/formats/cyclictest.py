"""
Write runs as cyclictest does: its table, its histogram, its JSON.

It has buckets of a microsecond, and none of what else a record knows. A bucket of our
agent that spans two microseconds counts in the lower one, but for the maximum: 0.1 %
at most.
"""

from collections import Counter
from collections.abc import Sequence

from rtscope.contract import ThreadResult
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_US
from rtscope.record.model import RunRecord
from rtscope.stats.summary import summarize

MAX_ROWS = 1_000_000
"""The longest histogram of cyclictest: 1 s."""

MAX_CELLS = 1_000_000
"""Some 7 MB."""

OVERFLOWS_LISTED = "# Histogram Overflow at cycle number:"


def table_text(record: RunRecord, *, nanoseconds: bool = False) -> str:
    """
    Return the line of each thread that cyclictest ends with.

    `Act`, its last latency, is not kept: it is the largest of the last second with a
    wake-up instead.
    """
    unit_ns, digits, wide = (1, 8, 8) if nanoseconds else (NS_PER_US, 5, 5)
    seen = (one for tick in record.ticks for one in tick.cpus if one.max_ns)
    last = {one.cpu: one.max_ns for one in seen}
    lines = []
    for number, t in enumerate(record.result.threads):
        least, most = (0 if v is None else v // unit_ns for v in (t.min_ns, t.max_ns))
        actual = last.get(t.cpu, t.max_ns or 0) // unit_ns
        lines.append(
            f"T:{number:2} ({t.tid:5}) P:{t.priority:2} I:{t.interval_ns // NS_PER_US} "
            f"C:{t.samples or 0:7} Min:{least:7} Act:{actual:{digits}} "
            f"Avg:{int(mean_ns(t) // unit_ns):{wide}} Max:{most:8}"
        )
    return "\n".join([*lines, ""])


def histogram_text(
    threads: Sequence[ThreadResult], *, rows: int | None = None, summed: bool = False
) -> str:
    """
    Return the histogram of cyclictest -h since 2.7.

    `rows` is its limit in microseconds: each row up to there, those beyond counted as
    overflows. None: each row up to the longest latency, at most 1 s; of a million cells
    and more only rows that are not empty. `summed`: with the sums of -H.
    Raises ValueError for a thread without a sample.
    """
    columns = [microseconds_of(t, rows or MAX_ROWS) for t in threads]
    used = sorted({us for one, _ in columns for us in one})
    lines = ["# Histogram"]
    whole = range(rows if rows is not None else max(used, default=-1) + 1)
    few = rows is not None or len(whole) * len(columns) <= MAX_CELLS
    for us in whole if few else used:
        counts = [one[us] for one, _ in columns]
        cells = [*counts, *([sum(counts)] if summed else [])]
        lines.append(f"{us:06} " + "\t".join(f"{n:06}" for n in cells))
    if rows is not None:
        totals = [sum(one.values()) for one, _ in columns]
        totals += [sum(totals)] if summed else []
        lines.append("# Total: " + " ".join(f"{n:09}" for n in totals))
    most = [whole_us(t.max_ns) for t in threads]
    beyond = [n for _, n in columns]
    for name, values in (
        ("Min Latencies", [whole_us(t.min_ns) for t in threads]),
        ("Avg Latencies", [int(mean_ns(t) // NS_PER_US) for t in threads]),
        ("Max Latencies", [*most, *([max(most)] if summed else [])]),
        ("Histogram Overflows", [*beyond, *([sum(beyond)] if summed else [])]),
    ):
        lines.append(f"# {name}: " + " ".join(f"{v:05}" for v in values))
    lines.append(OVERFLOWS_LISTED)
    lines += [f"# Thread {n}:" for n in range(len(threads))]
    return "\n".join([*lines, "", ""])


def json_of(
    record: RunRecord,
    threads: Sequence[ThreadResult],
    *,
    command: str | None = None,
    rows: int | None = MAX_ROWS,
) -> str:
    """
    Return what cyclictest --json writes; its two odd keys are its own.

    `rows` is the limit of its histograms in microseconds; None: it has none.
    """
    document = {
        "file_version": 1,
        "cmdline:": command or _command(record),
        "rt_test_version:": record.imported.version if record.imported else "",
        "return_code": 0,
        "sysinfo": sysinfo(record),
        "num_threads": len(threads),
        "resolution_in_ns": 0,
        "thread": {str(n): _thread(t, rows) for n, t in enumerate(threads)},
    }
    return json_text(document)


def _command(record: RunRecord) -> str:
    return record.imported.command if record.imported else "rtscope run"


def _thread(t: ThreadResult, rows: int | None) -> dict[str, object]:
    kept, _ = microseconds_of(t, rows) if rows else (Counter[int](), 0)
    return {
        **({"histogram": {str(us): n for us, n in kept.items()}} if kept else {}),
        "cycles": t.counted,
        "min": whole_us(t.min_ns),
        "max": whole_us(t.max_ns),
        "avg": round(mean_ns(t) / NS_PER_US, 2),
        "cpu": -1 if t.cpu is None else t.cpu,
        "node": -1,
    }


def microseconds_of(t: ThreadResult, rows: int = MAX_ROWS) -> tuple[Counter[int], int]:
    """Return counts by microsecond, and how many are beyond the last row."""
    counts: Counter[int] = Counter()
    least_us, most_us = whole_us(t.min_ns), whole_us(t.max_ns)
    for low_ns, _, count in t.buckets:
        # The bucket of an extreme may begin in the microsecond before it.
        us = min(max(low_ns // NS_PER_US, least_us), most_us)
        counts[us] += count
    if counts and not t.overflow and (last_us := max(counts)) < most_us:
        counts[last_us] -= 1  # the maximum itself is known better than its bucket
        counts[most_us] = 1
    kept = Counter({us: n for us, n in counts.items() if n and us < rows})
    return kept, t.overflow + counts.total() - kept.total()


def whole_us(ns: int | None) -> int:
    """Return whole microseconds, as cyclictest cuts them; 0 for none."""
    return (ns or 0) // NS_PER_US


def mean_ns(t: ThreadResult) -> float:
    """Return the average of a thread in ns; 0 if it has no sample."""
    return summarize([t]).mean_ns or t.min_ns or 0


def sysinfo(record: RunRecord) -> dict[str, object]:
    """Return what uname tells about the machine of a run."""
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
