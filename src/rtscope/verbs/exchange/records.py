"""
Make records of foreign runs: with all that is known, and nothing that is not.

A time that only follows from others is a lower limit: every sample took one period, so
samples times interval is the least that a thread was watched.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtscope.contract import (
    AgentResult,
    ForeignBuckets,
    Hello,
    ThreadResult,
    Wakeup,
    result_digest,
)
from rtscope.host.version import __version__
from rtscope.machine.facts import FactValue
from rtscope.machine.kernelidentity import realtime_by_version
from rtscope.record.caveats.catalogue import Caveat, caveats_from, gravest_first, make
from rtscope.record.foreign.model import (
    MAX_BUCKETS,
    NO_END_NS,
    UNKNOWN,
    ForeignRun,
    ForeignThread,
)
from rtscope.record.foreign.source import Source
from rtscope.record.foreign.unit import unit_doubts
from rtscope.record.model import (
    Imported,
    LoadRecord,
    Run,
    RunRecord,
    record_from_json,
    record_to_json,
)

_NAMED = "named by whoever imported the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What whoever imports a file says of its run; it goes before the file."""

    load: str = ""
    interval_ns: int = 0
    duration_ns: int = 0
    policy: str = ""
    priority: int = 0
    machine: str = ""
    kernel: str = ""
    """The release."""
    preempt_rt: str = ""
    """`yes`, `no` or empty."""

    @property
    def by_option(self) -> Mapping[str, str]:
        """What the user said by options of `rtscope import`."""
        said = {
            "load": self.load,
            "interval": str(self.interval_ns or ""),
            "duration": str(self.duration_ns or ""),
            "policy": self.policy,
            "priority": str(self.priority or ""),
            "machine": self.machine,
            "kernel": self.kernel,
            "preempt-rt": self.preempt_rt,
        }
        return {name: text for name, text in said.items() if text}


def record_of(
    run: ForeignRun,
    source: Source,
    stated: Stated,
    *,
    run_id: str,
    repetition: int,
    command: Sequence[str],
) -> RunRecord:
    """Return the record of a run; RecordError if a number in it is out of bounds."""
    _refuse_unfit(run, source)
    imported_run = _imported_run(run, stated, run_id=run_id, repetition=repetition)
    threads = tuple(_thread(one, run, imported_run) for one in run.threads)
    facts = _facts(run, source, stated)
    version = f" {run.version}" if run.version else ""
    record = RunRecord(
        schema=2,
        rtscope=__version__,
        run=imported_run,
        command=tuple(command),
        campaign={},
        started_at=run.started_at,
        host_duration_s=None,
        facts_before=facts,
        facts_after=facts,
        hello=Hello(schema=2, agent=f"{run.tool}{version}", arch=run.arch, options={}),
        ticks=(),
        result=AgentResult(
            start_ns=0,
            end_ns=max(t.end_ns for t in threads),
            stopped=None,
            locked_kb=None,
            dma_latency_us=None,
            dma_latency_held=None,
            housekeeping_cpu=None,
            kernel_log_lost=None,
            kernel_log=UNKNOWN,
            threads=threads,
            machine=None,
        ),
        load=LoadRecord(
            name=imported_run.load,
            argv=(),
            version=None,
            ticks=(),
            end=None,
            throughput={},
        ),
        kernel_log=(),
        caveats=(),
        result_digest=result_digest(threads),
        imported=Imported(
            tool=run.tool,
            version=run.version,
            format=run.format,
            verified=run.verified,
            file=source.name,
            sha256=source.sha256,
            measures=run.measures,
            command=run.command,
            stated=stated.by_option,
            told=run.metadata,
        ),
    )
    caveats = _caveats(run, imported_run, facts, stated)
    record = replace(record, caveats=gravest_first(caveats))
    # What a reader would refuse is refused here, before it is written.
    return record_from_json(record_to_json(record), name=str(source.path))


def _caveats(
    run: ForeignRun,
    imported_run: Run,
    facts: Mapping[str, FactValue],
    stated: Stated,
) -> list[Caveat]:
    """Return those of the other tool, of facts, of the unit and of a stated load."""
    caveats = [*run.caveats, *caveats_from(facts, facts, cpus=())]
    if stated.load and stated.load != "idle":
        caveats.append(make("import_load_stated", stated.load))
    unit = unit_doubts(
        run, interval_ns=imported_run.interval_ns, length_ns=imported_run.duration_ns
    )
    return [
        *(*caveats, *unit),
        *(*_stepped_out(run), *_without_interval(run, imported_run)),
    ]


def _refuse_unfit(run: ForeignRun, source: Source) -> None:
    """Raise RecordError for a run without threads, or with too many buckets."""
    if not run.threads:
        raise source.damaged("no thread in it")
    if sum(len(one.buckets) for one in run.threads) > MAX_BUCKETS:
        raise source.damaged(f"over {MAX_BUCKETS:,} buckets that are not empty")


def _imported_run(
    run: ForeignRun, stated: Stated, *, run_id: str, repetition: int
) -> Run:
    intervals = {t.interval_ns for t in run.threads}
    priorities = {t.priority for t in run.threads}
    named_ns = intervals.pop() if len(intervals) == 1 else 0
    return Run(
        id=run_id,
        target=stated.machine or run.facts.get("hostname", "") or UNKNOWN,
        kernel=None,
        load=stated.load or UNKNOWN,
        repetition=repetition,
        policy=stated.policy or run.policy,
        priority=stated.priority or (priorities.pop() if len(priorities) == 1 else 0),
        interval_ns=stated.interval_ns or named_ns,
        duration_ns=stated.duration_ns or run.duration_ns,
        cpus=None,
        variant=run.variant or None,
    )


def _thread(one: ForeignThread, run: ForeignRun, imported_run: Run) -> ThreadResult:
    interval_ns = imported_run.interval_ns or one.interval_ns
    kept = {low: n for low, n in one.buckets.items() if low < NO_END_NS}
    overflow = one.overflow + sum(one.buckets.values()) - sum(kept.values())
    latest_ns = None if one.max_ns is None else one.max_ns + one.step_ns - 1
    # The tool goes on with the next period after this wake-up: it can have left one
    # out only after a latency of a whole interval.
    none_missed = latest_ns is not None and latest_ns < interval_ns
    missed = 0 if none_missed else one.missed_periods
    whole = bool(kept) and not overflow and sum(kept.values()) == one.samples
    return ThreadResult(
        cpu=one.cpu,
        tid=one.tid,
        policy=imported_run.policy,
        priority=imported_run.priority or one.priority,
        affinity="" if one.cpu is None else str(one.cpu),
        timer_slack_ns=None,
        interval_ns=interval_ns,
        start_ns=0,
        end_ns=_watched_ns(
            (one.samples or 0) * interval_ns,
            int(imported_run.duration_ns * run.watched_share),
        ),
        samples=one.samples,
        missed_periods=missed,
        overruns=0 if none_missed else None,
        early=0,
        overflow=overflow,
        interrupted_sleeps=None,
        min_ns=one.min_ns,
        max_ns=one.max_ns,
        sum_ns=sum(low * n for low, n in kept.items()) if whole else None,
        sum_sq_ns2=sum(low * low * n for low, n in kept.items()) if whole else None,
        missed_periods_sum_ns=None if missed else missed,
        histogram=tuple(kept.items()),
        worst=_worst(one, interval_ns),
        minor_faults=None,
        major_faults=None,
        voluntary_switches=None,
        involuntary_switches=None,
        migrations=None,
        cpu_time_ns=None,
        clock_before=None,
        clock_after=None,
        foreign=ForeignBuckets(
            step_ns=one.step_ns,
            end_ns=min(one.end_ns, NO_END_NS),
            mean_ns=one.mean_ns,
            threshold_ns=one.threshold_ns,
            **_times(one, interval_ns),
        ),
    )


def _worst(one: ForeignThread, interval_ns: int) -> tuple[Wakeup, ...]:
    """Return the longest latencies whose times are known."""
    if one.times is None:
        return ()
    in_periods = one.times.in_periods
    unit_ns = interval_ns if in_periods else 1
    return tuple(
        Wakeup(
            cpu=one.cpu,
            seq=when if in_periods else 0,
            expiry_ns=when * unit_ns,
            wake_ns=when * unit_ns + latency_ns,
        )
        for when, latency_ns in one.times.worst
        if unit_ns
    )


def _times(one: ForeignThread, interval_ns: int) -> dict[str, Any]:
    """Return what is known of the times of a thread."""
    if one.times is None:
        return {}
    times = one.times
    unit_ns = interval_ns if times.in_periods else 1
    return {
        "beyond_at_ns": tuple(when * unit_ns for when in times.beyond if unit_ns),
        "time_step_ns": max(unit_ns, times.step_ns),
        "times_from_start": times.from_start,
    }


def _without_interval(run: ForeignRun, imported_run: Run) -> Iterator[Caveat]:
    """Yield a caveat where late samples have a number, and no interval a time."""
    numbered = [t for t in run.threads if t.times is not None and t.times.in_periods]
    if any(not (imported_run.interval_ns or t.interval_ns) for t in numbered):
        yield make("import_times_unknown")


def _watched_ns(counted_ns: int, length_ns: int) -> int:
    """Return how long a thread was watched at least; 0: unknown."""
    known = [ns for ns in (counted_ns, length_ns) if ns]
    return min(known, default=0)


def _facts(run: ForeignRun, source: Source, stated: Stated) -> dict[str, FactValue]:
    facts = {
        name: FactValue(value=text, source=source.name)
        for name, text in run.facts.items()
    }
    if "kernel_version" in run.facts:
        realtime = realtime_by_version(run.facts["kernel_version"])
        if realtime is not None:
            facts["preempt_rt"] = FactValue(value=realtime, source="uname -v")
    if stated.kernel:
        facts["kernel_release"] = FactValue(value=stated.kernel, source=_NAMED)
    if stated.preempt_rt:
        facts["preempt_rt"] = FactValue(value=stated.preempt_rt == "yes", source=_NAMED)
    return facts


def _stepped_out(run: ForeignRun) -> list[Caveat]:
    """Return a doubt where buckets lie between the steps that the tool can write."""
    for thread in run.threads:
        odd = next((low for low in thread.buckets if low % thread.step_ns), None)
        if odd is not None:
            return [make("import_contradicts", f"a bucket at {odd} ns")]
    return []
