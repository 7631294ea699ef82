"""What an agent tells of its histograms while it measures."""

from collections.abc import Sequence

from fakes.faketarget import Script
from fakes.measurements import SECOND_NS, record, thread
from fakes.targets import HELLO
from rtscope.contract import (
    CpuGrowth,
    Growth,
    Line,
    Started,
    ThreadResult,
    ThreadStarted,
    Tick,
    TickCpu,
    WorstSoFar,
    require,
)


def started(threads: Sequence[ThreadResult]) -> Started:
    """Return what is said of these threads when they are let go."""
    result = record(threads).result
    return Started(
        start_ns=result.start_ns,
        locked_kb=require(result.locked_kb),
        dma_latency_us=result.dma_latency_us,
        dma_latency_held=bool(result.dma_latency_held),
        housekeeping_cpu=result.housekeeping_cpu,
        kernel_log=result.kernel_log,
        threads=tuple(
            ThreadStarted(
                **{name: getattr(t, name) for name in ThreadStarted.__slots__}
            )
            for t in threads
        ),
    )


def growth(so_far: ThreadResult, before: ThreadResult | None = None) -> CpuGrowth:
    """Return what a thread has grown by since another moment of the same run."""
    had = dict(before.histogram) if before else {}
    grown = ((low, n - had.get(low, 0)) for low, n in so_far.histogram)
    return CpuGrowth(
        cpu=so_far.cpu,
        missed_periods=require(so_far.missed_periods),
        early=so_far.early,
        overflow=so_far.overflow,
        max_ns=so_far.max_ns or 0,
        histogram=tuple((low, n) for low, n in grown if n),
    )


def telling(latencies_ns: Sequence[int], *, seconds: int) -> Script:
    """Return what an agent says that tells its histogram, and never its result."""
    each = len(latencies_ns) // seconds
    moments = [
        thread(latencies_ns[: n * each], interval_ns=SECOND_NS // each)
        for n in range(1, seconds + 1)
    ]
    batches: list[Sequence[Line]] = [[HELLO], [started(moments[-1:])]]
    before = None
    for n, now in enumerate(moments, 1):
        newest = [WorstSoFar(now.worst[0])] if before != now.worst[0] else []
        tick = TickCpu(0, now.own.samples, require(now.missed_periods), now.max_ns or 0)
        previous = moments[n - 2] if n > 1 else None
        grown = Growth((growth(now, previous),))
        batches.append([*newest, grown, Tick(n * SECOND_NS, (tick,), {}, {})])
        before = now.worst[0]
    return batches
