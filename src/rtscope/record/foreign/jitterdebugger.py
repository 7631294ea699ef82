"""
Read results.json of jitterdebugger.

Source: dump_stats of jitterdebugger (045a274), and outputs of 0.3.1. The key of a
thread is its number, and no CPU. A latency beyond the histogram is in no bucket. After
a long wake-up the late activations follow at once, each a sample of its own: no period
is missed, and the average counts one stall many times.
"""

import re

from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign.model import (
    NO_END_NS,
    UNKNOWN,
    ForeignRun,
    ForeignThread,
    Unit,
)
from rtscope.record.foreign.rttests import count, facts_of, histogram, nanoseconds
from rtscope.record.foreign.source import Source

NAME = "jitterdebugger-json"

LINE = re.compile(r'\s*"(?:resolution_in_ns|cpus_online|sysinfo)"\s*:|\s*[{}],?\s*$')
NEEDS = "'resolution_in_ns' and 'cpus_online' near its begin"

BUCKETS = {1000: 1000, 1: 1_000_000}
"""Number of buckets by their width in ns."""

MAX_THREADS = 4096


def recognises(head: str) -> bool:
    """Whether this is a result of jitterdebugger."""
    start = head[:2000]
    return '"resolution_in_ns"' in start and '"cpus_online"' in start


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if it is damaged."""
    document = source.json()
    about, threads = document.get("sysinfo"), document.get("cpu")
    if not isinstance(about, dict) or not isinstance(threads, dict):
        raise source.damaged("no sysinfo or no cpu in it")
    own_ns = about.get("resolution_in_ns")
    step_ns = unit_ns or own_ns
    if step_ns not in BUCKETS or len(threads) > MAX_THREADS:
        raise source.damaged("its resolution is neither 1 nor 1000 ns")
    results = tuple(_thread(source, one, step_ns) for one in threads.values())
    return [
        ForeignRun(
            tool="jitterdebugger",
            format=NAME,
            verified=True,
            measures="from the expiry of a timer to the thread in user space",
            threads=results,
            policy="fifo",
            unit=Unit(
                step_ns=step_ns,
                told="" if unit_ns is None else f"{unit_ns} ns (named)",
                contradicted="" if own_ns in (step_ns, None) else "resolution_in_ns",
            ),
            arch=str(about.get("machine", UNKNOWN))[:80],
            facts=facts_of(about),
            metadata={"version of the file": str(document.get("version"))[:40]},
            caveats=(make("import_stalls_repeated"),),
        )
    ]


def _thread(source: Source, one: object, step_ns: int) -> ForeignThread:
    if not isinstance(one, dict):
        raise source.damaged("a thread that is no object")
    samples = count(source, one.get("count"), "count")
    buckets = histogram(source, one.get("histogram"), step_ns=step_ns)

    def time(key: str) -> int | None:
        if not samples:
            return None
        return nanoseconds(source, one.get(key), step_ns, key)

    return ForeignThread(
        samples=samples,
        min_ns=time("min"),
        max_ns=time("max"),
        mean_ns=time("avg"),
        step_ns=step_ns,
        end_ns=min(BUCKETS[step_ns] * step_ns, NO_END_NS),
        buckets=buckets,
        overflow=max(samples - sum(buckets.values()), 0),
        missed_periods=0,
    )
