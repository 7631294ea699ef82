"""
Build results and records from a list of latencies, exactly as the agent would.

    t = thread([3_000, 4_000, 1_500_000], cpu=2)     # the last one skips an activation
    r = record([t], load="memory", boot_id="b1")

What these functions have no argument for is changed with `dataclasses.replace`.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

from rtscope import __version__
from rtscope.contract import (
    HIST_MAX_BITS,
    AgentResult,
    ClockCost,
    CpuTime,
    Hello,
    Machine,
    ThreadResult,
    Tick,
    TickCpu,
    Wakeup,
    bucket_width_ns,
    result_digest,
)
from rtscope.machine.facts import FactValue
from rtscope.measure.assemble import LoadSeen, Measured
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loads import LoadCommand
from rtscope.measure.observe import Observation
from rtscope.record.caveats.catalogue import Caveat
from rtscope.record.model import LoadRecord, Run, RunRecord, VirtualRun

SECOND_NS = 1_000_000_000

GOOD_CLOCK = ClockCost(
    reads=10_000, min_ns=18, p50_ns=20, p999_ns=40, max_ns=900, granularity_ns=1
)

FACTS: Mapping[str, str | int | bool] = {
    "boot_id": "00000000-0000-4000-8000-000000000001",
    "guest": False,
    "preempt_rt": True,
    "preemption_model": "PREEMPT_RT",
    "kernel_release": "6.12.43+deb13-rt-amd64",
    "kernel_version": "#1 SMP PREEMPT_RT Debian 6.12.43-1 (2025-08-27)",
    "machine_model": "Example Board",
    "cpu_model": "Example CPU",
    "cpus_online": "0-3",
    "clocksource": "tsc",
    "governor": "performance",
}


def thread(
    latencies_ns: Sequence[int],
    *,
    cpu: int | None = 0,
    interval_ns: int = 1_000_000,
    start_ns: int = 1_000 * SECOND_NS,
    activations: int | None = None,
    policy: str = "fifo",
    priority: int = 99,
    worst_kept: int = 1024,
) -> ThreadResult:
    """
    Return what the agent reports for wake-ups of these latencies, in this order.

    A negative latency is an early wake-up. The grid is just long enough for all of
    them, or `activations` long: then a skip at its end is cut off there.
    """
    seqs = _sequence(latencies_ns, interval_ns)
    if activations is None:
        activations = sum(x // interval_ns for x in latencies_ns if x >= interval_ns)
        activations += len(latencies_ns)
    end_ns = start_ns + activations * interval_ns
    assert not seqs or seqs[-1] <= activations, "the grid is too short"

    def wakeup(at: int) -> Wakeup:
        expiry_ns = start_ns + seqs[at] * interval_ns
        return Wakeup(cpu, seqs[at], expiry_ns, expiry_ns + latencies_ns[at])

    late = [at for at, x in enumerate(latencies_ns) if x >= interval_ns]
    skips = [
        skip
        for at in late
        for skip in _skipped_ns(wakeup(at), interval_ns, end_ns=end_ns)
    ]
    # Most wake-ups are as late as others: what each latency adds is counted once.
    timely = Counter(x for x in latencies_ns if x >= 0)
    counts: Counter[int] = Counter()
    for x, times in timely.items():
        if not x >> HIST_MAX_BITS:
            counts[x - x % bucket_width_ns(x)] += times
    latest = sorted(
        range(len(latencies_ns)), key=latencies_ns.__getitem__, reverse=True
    )
    return ThreadResult(
        cpu=cpu,
        tid=1000 + (cpu or 0),
        policy=policy,
        priority=priority,
        affinity="0-3" if cpu is None else str(cpu),
        timer_slack_ns=1,
        interval_ns=interval_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        samples=len(latencies_ns),
        missed_periods=len(skips),
        overruns=len(late),
        early=len(latencies_ns) - timely.total(),
        overflow=timely.total() - counts.total(),
        interrupted_sleeps=0,
        min_ns=min(timely, default=None),
        max_ns=max(timely, default=None),
        sum_ns=sum(x * times for x, times in timely.items()),
        sum_sq_ns2=sum(x * x * times for x, times in timely.items()),
        missed_periods_sum_ns=sum(skips),
        histogram=tuple(sorted(counts.items())),
        worst=tuple(map(wakeup, latest[: min(worst_kept, timely.total())])),
        minor_faults=0,
        major_faults=0,
        voluntary_switches=len(latencies_ns),
        involuntary_switches=0,
        migrations=0,
        cpu_time_ns=len(latencies_ns) * 2_000,
        clock_before=GOOD_CLOCK,
        clock_after=GOOD_CLOCK,
    )


def _sequence(latencies_ns: Sequence[int], interval_ns: int) -> Sequence[int]:
    """Return which activation of the grid each wake-up belongs to."""
    if not latencies_ns or max(latencies_ns) < interval_ns:
        return range(1, len(latencies_ns) + 1)
    steps = (1 + max(x, 0) // interval_ns for x in latencies_ns[:-1])
    return tuple(accumulate(steps, initial=1))


def _skipped_ns(wakeup: Wakeup, interval_ns: int, *, end_ns: int) -> list[int]:
    """Return the lateness that the activations swallowed by a wake-up would have."""
    inside = min(
        wakeup.latency_ns // interval_ns, (end_ns - wakeup.expiry_ns) // interval_ns
    )
    return [wakeup.latency_ns - j * interval_ns for j in range(1, inside + 1)]


def ticks_of(
    threads: Sequence[ThreadResult],
    *,
    freq_khz: Mapping[int, int] | None = None,
    temp_mc: Mapping[str, int] | None = None,
) -> tuple[Tick, ...]:
    """
    Return the ticks of threads whose `worst` holds every sample, one a second.

    A wake-up belongs to the second in which it happened.
    """
    assert all(len(t.worst) == t.own.samples - t.early for t in threads)
    start_ns = min(t.start_ns for t in threads)
    seconds = (max(t.end_ns for t in threads) - start_ns) // SECOND_NS
    in_time = [sorted(t.worst, key=attrgetter("wake_ns")) for t in threads]
    return tuple(
        Tick(
            t_ns=second * SECOND_NS,
            cpus=tuple(
                _tick_cpu(t, wakeups, start_ns + second * SECOND_NS)
                for t, wakeups in zip(threads, in_time, strict=True)
            ),
            freq_khz=freq_khz or {},
            temp_mc=temp_mc or {},
        )
        for second in range(1, seconds + 1)
    )


def _tick_cpu(thread: ThreadResult, in_time: Sequence[Wakeup], now_ns: int) -> TickCpu:
    begun, ended = (
        bisect_right(in_time, ns, key=attrgetter("wake_ns"))
        for ns in (now_ns - SECOND_NS, now_ns)
    )
    done = in_time[:ended]
    recent = [w.latency_ns for w in in_time[begun:ended]]
    skipped = sum(
        len(_skipped_ns(w, thread.interval_ns, end_ns=thread.end_ns))
        for w in done
        if w.latency_ns >= thread.interval_ns
    )
    return TickCpu(thread.cpu, len(done), skipped, max(recent, default=0))


def machine(cpus: Iterable[int] = range(4)) -> Machine:
    """Return the counters of a machine on which nothing remarkable happened."""
    return Machine(
        interrupts=(),
        softirqs=(),
        cpu_times=tuple(
            CpuTime(
                cpu=cpu,
                steal_ns=0,
                irq_ns=0,
                softirq_ns=0,
                user_ns=0,
                system_ns=0,
                idle_ns=0,
            )
            for cpu in cpus
        ),
        kernel_threads=(),
        kernel_threads_left_out=0,
        kernel_threads_left_out_ns=0,
        throttle_counts={},
        smi_count=0,
        realtime_step_ns=0,
        suspended_ns=0,
    )


def record(
    threads: Sequence[ThreadResult],
    load: str = "idle",
    *,
    target: str = "local",
    kernel: str | None = None,
    repetition: int = 1,
    boot_id: str | None = None,
    facts: Mapping[str, str | int | bool | None] | None = None,
    ticks: Sequence[Tick] = (),
    caveats: Sequence[Caveat] = (),
    started: str = "2026-01-02T03:04:05Z",
) -> RunRecord:
    """Return the record of a run that got what it asked for and went well."""
    values = {**FACTS, **(facts or {})}
    if boot_id is not None:
        values["boot_id"] = boot_id
    known = {
        name: FactValue(
            value, "a test", reason="" if value is not None else "not readable"
        )
        for name, value in values.items()
    }
    first = threads[0]
    start_ns = min(t.start_ns for t in threads)
    end_ns = max(t.end_ns for t in threads)
    cpus = tuple(t.cpu for t in threads if t.cpu is not None)
    run = Run(
        id=f"{repetition:03}-{load}",
        target=target,
        kernel=kernel,
        load=load,
        repetition=repetition,
        policy=first.policy,
        priority=first.priority,
        interval_ns=first.interval_ns,
        duration_ns=max(end_ns - start_ns, 1),
        cpus=cpus if len(cpus) == len(threads) else None,
    )
    return RunRecord(
        schema=2,
        rtscope=__version__,
        run=run,
        command=("rtscope", "run", "--load", load),
        campaign={"load": [load]},
        started_at=started,
        host_duration_s=(end_ns - start_ns) / SECOND_NS + 2,
        facts_before=known,
        facts_after=known,
        hello=Hello(schema=2, agent="0.1.0", arch="x86_64", options={}),
        ticks=tuple(ticks),
        result=AgentResult(
            start_ns=start_ns,
            end_ns=end_ns,
            stopped=None,
            locked_kb=4096,
            dma_latency_us=None,
            dma_latency_held=False,
            housekeeping_cpu=3,
            kernel_log_lost=0,
            kernel_log="watched",
            threads=tuple(threads),
            machine=machine(),
        ),
        load=LoadRecord(
            name=load, argv=(), version=None, ticks=(), end=None, throughput={}
        ),
        kernel_log=(),
        caveats=tuple(caveats),
        result_digest=result_digest(threads),
    )


def on_board(
    given: RunRecord, *, seed: int = 1, kernel_digest: str = "a" * 64, **others: Any
) -> RunRecord:
    """Return the record as one of a virtual board, whose inputs these are."""
    name = given.run.kernel or "debian-6.12-rt"
    run = replace(given.run, target="virtual:pc", kernel=name)
    virtual = VirtualRun(
        board="pc",
        cpus=2,
        mips=500.0,
        quantum_instructions=2500,
        seed=seed,
        kernel=name,
        kernel_digest=kernel_digest,
        initrd_digest="b" * 64,
        qemu_digest="c" * 64,
        plugin_digest="d" * 64,
    )
    return replace(given, run=run, virtual=replace(virtual, **others))


def measured(
    given: RunRecord, attachments: Mapping[str, bytes | None] | None = None
) -> Measured:
    """Return what a runner hands over of a run that becomes this record."""
    seen = Observation(hello=given.hello, result=given.result)
    for tick in given.ticks:
        seen.ticks.append(tick)
    return Measured(
        run=given.run,
        campaign=Campaign(),
        command=given.command,
        started=given.started_at,
        host_seconds=given.host_duration_s or 0.0,
        facts_before=given.facts_before,
        facts_after=given.facts_after,
        seen=seen,
        load=LoadSeen(LoadCommand((), None, ()), None, metrics="", log=""),
        cpus=(),
        attachments=attachments or {},
        caveats=given.caveats,
        kernel_digest=given.kernel_digest,
        virtual=given.virtual,
    )
