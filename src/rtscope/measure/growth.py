"""
A result that is rebuilt from the agent's growth lines, where no other came. Pure.

The agent adds up the same counts: the sum of all growth lines is its final histogram.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rtscope.contract import (
    LOST,
    AgentResult,
    CpuGrowth,
    Growth,
    Started,
    ThreadEvent,
    ThreadResult,
    ThreadStarted,
    Wakeup,
    WorstSoFar,
    bucket_low_ns,
)
from rtscope.host.errors import ContractError
from rtscope.stats.summary import BEYOND_LOW_NS


@dataclass(slots=True)
class GrowthSum:
    """The sum of the growth lines so far."""

    started: Started | None = None
    totals: tuple[CpuGrowth, ...] = ()
    counts: list[Counter[int]] = field(default_factory=list)
    maxima: list[Wakeup] = field(default_factory=list)
    """The last maximum of each CPU."""

    def take(self, line: Started | Growth | WorstSoFar) -> None:
        """Add a line; raise ContractError if it is of other threads than before."""
        match line:
            case Started():
                self.started = line
                self.counts = [Counter() for _ in line.threads]
            case Growth():
                self._add(line)
            case WorstSoFar():
                others = (w for w in self.maxima if w.cpu != line.wakeup.cpu)
                self.maxima = [*others, line.wakeup]

    def _add(self, line: Growth) -> None:
        if len(line.cpus) != len(self.counts):
            raise ContractError(
                f"the agent told of {len(line.cpus)} histograms, and of "
                f"{len(self.counts)} threads"
            )
        self.totals = line.cpus
        for counts, cpu in zip(self.counts, line.cpus, strict=True):
            counts.update(dict(cpu.histogram))

    def result(self) -> AgentResult | None:
        """Return the result up to the last growth line; None without one."""
        begun = self.started
        if begun is None or not self.totals:
            return None
        threads = tuple(
            _thread(thread, total, _with_maximum(counts, total), self.maxima)
            for thread, total, counts in zip(
                begun.threads, self.totals, self.counts, strict=True
            )
        )
        return AgentResult(
            start_ns=begun.start_ns,
            end_ns=max((t.end_ns for t in threads), default=begun.start_ns),
            stopped=LOST,
            locked_kb=begun.locked_kb,
            dma_latency_us=begun.dma_latency_us,
            dma_latency_held=begun.dma_latency_held,
            housekeeping_cpu=begun.housekeeping_cpu,
            kernel_log_lost=None,
            kernel_log=begun.kernel_log,
            threads=threads,
            machine=None,
        )

    def contradiction(self, result: AgentResult) -> str:
        """
        Return how a result contradicts the growth lines; empty if it does not.

        No bucket may hold less than their sum, nor more if every line was read.
        """
        for thread, counts in zip(result.threads, self.counts, strict=False):
            final = Counter(dict(thread.histogram))
            for low_ns in sorted({*counts, *final}):
                grown, has = counts[low_ns], final[low_ns]
                if grown > has or (grown < has and not result.ticks_lost):
                    return (
                        f"CPU {thread.cpu}: {has} samples in the bucket of "
                        f"{low_ns} ns, {grown} told second by second"
                    )
        return ""


def _with_maximum(counts: Counter[int], total: CpuGrowth) -> Counter[int]:
    """Count the maximum, too, where it was read before its bucket."""
    if total.max_ns == 0 or total.max_ns >= BEYOND_LOW_NS:
        return counts
    low_ns = bucket_low_ns(total.max_ns)
    if max(counts, default=-1) >= low_ns:
        return counts
    return counts + Counter({low_ns: 1})


def _thread(
    begun: ThreadStarted,
    total: CpuGrowth,
    counts: Counter[int],
    maxima: Sequence[Wakeup],
) -> ThreadResult:
    if total.max_ns >= BEYOND_LOW_NS and not total.overflow:
        total = replace(total, overflow=1)
    values = _values(counts, total)
    timely = counts.total() + total.overflow
    samples = timely + total.early
    periods = samples + total.missed_periods
    max_ns = max(values, default=None)
    return ThreadResult(
        cpu=begun.cpu,
        tid=begun.tid,
        policy=begun.policy,
        priority=begun.priority,
        affinity=begun.affinity,
        timer_slack_ns=begun.timer_slack_ns,
        interval_ns=begun.interval_ns,
        start_ns=begun.start_ns,
        end_ns=begun.start_ns + periods * begun.interval_ns,
        samples=samples,
        missed_periods=total.missed_periods,
        overruns=sum(n for value, n in values.items() if value >= begun.interval_ns),
        early=total.early,
        overflow=total.overflow,
        interrupted_sleeps=None,
        min_ns=min(values, default=None),
        max_ns=max_ns,
        sum_ns=sum(value * n for value, n in values.items()),
        sum_sq_ns2=sum(value * value * n for value, n in values.items()),
        missed_periods_sum_ns=(
            0  # events that never came waited for no time that is known
            if begun.event
            else _missed_sum_ns(values, begun.interval_ns, missed=total.missed_periods)
        ),
        histogram=tuple(sorted((low, n) for low, n in counts.items() if n)),
        worst=tuple(w for w in maxima if w.cpu == begun.cpu and w.latency_ns == max_ns)[
            :1
        ],
        minor_faults=None,
        major_faults=None,
        voluntary_switches=None,
        involuntary_switches=None,
        migrations=None,
        cpu_time_ns=None,
        clock_before=begun.clock_before,
        clock_after=None,
        event=_event(begun, samples=samples, missed=total.missed_periods),
    )


def _event(begun: ThreadStarted, *, samples: int, missed: int) -> ThreadEvent | None:
    """Return what is known of the events of a run whose result never came."""
    if begun.event is None:
        return None
    return replace(begun.event, sent=samples + missed, lost=missed)


def _values(counts: Counter[int], total: CpuGrowth) -> Counter[int]:
    """Count latencies, each at the start of its bucket but for the maximum."""
    values = +counts
    if total.overflow:
        values[BEYOND_LOW_NS] = total.overflow
    if values:
        top_ns = max(values)
        values[top_ns] -= 1
        values[max(total.max_ns, top_ns)] += 1
    return +values


def _missed_sum_ns(values: Counter[int], interval_ns: int, *, missed: int) -> int:
    """Add up what the missed periods would have waited, those of the latest first."""
    sum_ns = 0
    for value, times in sorted(values.items(), reverse=True):
        each = value // interval_ns
        if not each or missed <= 0:
            break
        times = min(times, -(-missed // each))
        sum_ns += times * (each * value - interval_ns * each * (each + 1) // 2)
        missed -= times * each
    return sum_ns
