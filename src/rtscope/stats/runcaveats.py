"""
Every caveat that a record has, the cost of tracing, and whether a run counts.

Every record gets the same checks, whatever version wrote it. The record's own caveats
hold the rest, which only the running host could see: the load died, a setting changed.

A run whose load died looks too good, and one that ended early shows less: the column
`counts` of `caveats.toml` tells these from the others. A run that does not count is
shown with its caveats, and named with the reason wherever it is left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rtscope.contract import (
    FIXED_PRIORITY,
    LOST,
    REAL_TIME,
    AgentResult,
    ClockCost,
    ThreadResult,
    Tick,
    Tracing,
)
from rtscope.host.errors import UsageError
from rtscope.host.units import format_duration, format_us, plural
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.record.caveats.catalogue import (
    Caveat,
    caveats_from,
    gravest_first,
    kind_of,
    make,
    uncounted,
)
from rtscope.record.model import Run, RunRecord
from rtscope.stats.eventcaveats import event_caveats
from rtscope.stats.figures import Figure, columns
from rtscope.stats.integrity import check_import, check_thread, name_of
from rtscope.stats.summary import (
    Summary,
    counted_of,
    observed_ns,
    summarize,
    threshold_of,
    total_of,
)

# --- cost of tracing a run, and the caveats of its trace ------------------------------


@dataclass(frozen=True, slots=True)
class TraceCost:
    """The same numbers with tracing and without; of the same load, minutes apart."""

    untraced: Summary
    traced: Summary
    untraced_ns: tuple[int, ...]
    """How long each run without tracing was; one before and one after."""


def was_traced(record: RunRecord) -> bool:
    """Whether the kernel recorded its events, which makes every wake-up later."""
    if record.result.stopped == LOST:
        return record.hello.options.get("trace") is True
    return record.result.tracing is not None and record.result.tracing.enabled


def trace_cost(record: RunRecord) -> TraceCost | None:
    """
    Compare a traced run with those around it; None if nothing was measured there.

    Raises RecordError for a damaged record, MeasurementError without samples.
    """
    runs = record.untraced_runs
    without: Sequence[ThreadResult] = [thread for run in runs for thread in run]
    # A run shorter than its interval has none.
    if not any(thread.counted for thread in without):
        return None
    return TraceCost(
        untraced=summarize(without),
        traced=summarize(record.result.threads),
        untraced_ns=tuple(observed_ns(run) or 0 for run in runs),
    )


def check_tracing(record: RunRecord) -> Iterator[Caveat]:
    """Yield the caveats of a requested trace."""
    tracing = record.result.tracing
    if tracing is None:
        return
    if not tracing.enabled:
        yield make("trace_refused", _refused_words(tracing))
        return
    yield make("traced", _cost_words(trace_cost(record)))
    if lost := _lost_words(tracing):
        yield make("trace_incomplete", lost)


def _refused_words(tracing: Tracing) -> str:
    words = [tracing.reason, tracing.remedy]
    if tracing.candidates_lost:
        words.append(_too_fast(tracing))
    return "; ".join(words)


def _too_fast(tracing: Tracing) -> str:
    return f"{tracing.candidates_lost} late wake-ups came too fast to keep"


def _cost_words(cost: TraceCost | None) -> str:
    if cost is None:
        return "its cost was not measured"
    each = ", ".join(_pair_words(one, cost) for one in columns("traced"))
    times = " and ".join(format_duration(ns) for ns in cost.untraced_ns)
    # A run that was interrupted has none after it.
    when = "before and after" if len(cost.untraced_ns) > 1 else "before"
    return (
        f"{each}; untraced for {times} {when}, under the same load, "
        f"{cost.untraced.samples or 0} against {cost.traced.samples or 0} samples"
    )


def _pair_words(figure: Figure, cost: TraceCost) -> str:
    name = figure.name_in("traced")
    before, after = figure.of_summary(cost.untraced), figure.of_summary(cost.traced)
    if before is None or after is None:
        return f"{name}: too few samples"
    return f"{name} {figure.show(before)} us untraced, {figure.show(after)} us traced"


def _lost_words(tracing: Tracing) -> str:
    kept = tracing.kept
    holes = sum(one.overwritten or one.truncated for one in kept)
    overrun = sum(max(0, cpu.overrun) for cpu in tracing.cpus)
    words = []
    if overrun:
        words.append(f"the kernel overwrote {overrun} events before they were read")
    if dropped := sum(max(0, cpu.dropped) for cpu in tracing.cpus):
        words.append(f"its buffer had no space for {dropped} more")
    if damaged := sum(cpu.damaged for cpu in tracing.cpus):
        words.append(f"{damaged} pages are damaged")
    if tracing.candidates_lost:
        words.append(_too_fast(tracing))
    if holes:
        words.append(f"{holes} of {len(kept)} kept wake-ups have a gap")
    return "; ".join(words)


# --- every caveat that a record's samples and counters raise, and all that it has -----

SLOW_READ_P999_NS = 1_000
SLOW_READ_MAX_NS = 10_000
REALTIME_STEP_NS = 1_000_000
SHORT_RUN_NS = 60_000_000_000
FREQUENCY_SPREAD = 0.02
HOG_SHARE = 0.10


def lint(record: RunRecord) -> tuple[Caveat, ...]:
    """Return every caveat that samples and counters raise."""
    result = record.result
    return tuple(
        caveat
        for caveats in (
            *(check_thread(t) for t in result.threads),
            *(_thread(t, name_of(t)) for t in result.threads),
            _skipped(result.threads),
            event_caveats(record),
            # Nothing says what another tool was asked for.
            () if record.imported else _setting_differences(record.run, result.threads),
            # On a virtual board a read's cost belongs to the model, and to no clock.
            () if record.virtual else _clock_cost(result.threads),
            _agent(result) if record.imported is None else check_import(record),
            _machine(result),
            _hogs(result),
            _frequency(record.ticks, result.threads),
            _link(record),
            check_tracing(record),
        )
        for caveat in caveats
    )


def all_caveats(record: RunRecord) -> tuple[Caveat, ...]:
    """
    Return the record's own caveats, those of `lint` and those of its facts.

    The gravest come first. Where several raise the same one, the host's stands: it
    knew more.
    """
    raised = {caveat.id for caveat in record.caveats}
    pinned = tuple(t.cpu for t in record.result.threads if t.cpu is not None)
    others = (
        *lint(record),
        *caveats_from(
            record.facts_before,
            record.facts_after,
            cpus=pinned or record.run.cpus or (),
            virtual=record.virtual is not None,
        ),
    )
    return gravest_first(
        (*record.caveats, *(caveat for caveat in others if caveat.id not in raised))
    )


def clock_coarse(record: RunRecord, deadline_ns: int) -> tuple[Caveat, ...]:
    """Return `clock_coarse` if the clock's step exceeds a twentieth of the deadline."""
    steps = [
        (cost.granularity_ns, name_of(t))
        for t in record.result.threads
        for _, cost in _clock_costs(t)
    ]
    steps += [
        (t.foreign.step_ns, name_of(t)) for t in record.result.threads if t.foreign
    ]
    step_ns, name = max(steps, default=(0, ""))
    if step_ns * 20 <= deadline_ns:
        return ()
    return (
        make(
            "clock_coarse",
            f"{name}: the clock moves in steps of {format_duration(step_ns)}, "
            f"the deadline is {format_duration(deadline_ns)}",
        ),
    )


def _thread(t: ThreadResult, name: str) -> Iterator[Caveat]:
    if t.early:
        yield make("early", f"{name}: {t.early} early wake-ups")
    if t.overflow and t.foreign is None:
        yield make("overflow", f"{name}: {t.overflow}, worst {format_us(t.max_ns)} us")
    if t.migrations and t.cpu is not None:
        yield make("migrated", f"{name}: {t.migrations} migrations")
    if t.minor_faults or t.major_faults:
        yield make(
            "page_faults",
            f"{name}: {t.minor_faults} minor, {t.major_faults} major",
        )


def _skipped(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    threads = [t for t in threads if t.event is None]
    skipped = total_of(t.missed_periods for t in threads)
    counted = counted_of(threads)
    sum_ns = total_of(t.sum_ns for t in threads)
    if not skipped or not counted or counted < 0 or sum_ns is None:
        return
    missed_sum_ns = total_of(t.missed_periods_sum_ns for t in threads) or 0
    with_skipped_ns = sum_ns + missed_sum_ns
    yield make(
        "missed_periods",
        f"{skipped} missed by {total_of(t.overruns for t in threads) or 0} overruns; "
        f"average {format_us(sum_ns / counted)} us, "
        f"with missed periods {format_us(with_skipped_ns / (counted + skipped))} us",
    )


def _setting_differences(run: Run, threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    for t in threads:
        for what, requested, actual in _settings(run, t):
            if requested != actual:
                yield make(
                    "settings_differ",
                    f"{name_of(t)}: {what} {requested} requested, {actual} actual",
                )
    measured = {t.cpu for t in threads}
    if run.cpus is not None and None not in measured and measured != set(run.cpus):
        got = format_cpulist(cpu for cpu in measured if cpu is not None) or "none"
        yield make(
            "settings_differ",
            f"CPUs {format_cpulist(run.cpus)} requested, {got} measured",
        )


def _settings(run: Run, t: ThreadResult) -> Iterator[tuple[str, object, object]]:
    yield "policy", run.policy.lower(), t.policy.lower()
    if run.policy.lower() in FIXED_PRIORITY:
        yield "priority", run.priority, t.priority
    yield "interval", f"{run.interval_ns} ns", f"{t.interval_ns} ns"
    if t.cpu is not None:
        yield "affinity", str(t.cpu), _canonical(t.affinity)


def _canonical(cpulist: str) -> str:
    try:
        return format_cpulist(parse_cpulist(cpulist))
    except UsageError:
        return cpulist


def _clock_costs(t: ThreadResult) -> Iterator[tuple[str, ClockCost]]:
    if t.clock_before is not None:
        yield "before", t.clock_before
    if t.clock_after is not None:
        yield "after", t.clock_after


def _clock_cost(threads: Iterable[ThreadResult]) -> Iterator[Caveat]:
    slow = [
        (cost.max_ns, cost.p999_ns, name_of(t), when)
        for t in threads
        for when, cost in _clock_costs(t)
        if cost.p999_ns > SLOW_READ_P999_NS or cost.max_ns > SLOW_READ_MAX_NS
    ]
    if slow:
        max_ns, p999_ns, name, when = max(slow)
        yield make(
            "clock_slow",
            f"{name}, {when} the run: 99.9 % of the reads within "
            f"{format_us(p999_ns)} us, the slowest {format_us(max_ns)} us",
        )


def _agent(result: AgentResult) -> Iterator[Caveat]:
    watched_ns = observed_ns(result.threads) or 0
    measured = {t.cpu for t in result.threads}
    if result.stopped is not None:
        yield make(
            "stopped_early", f"{result.stopped}, after {format_duration(watched_ns)}"
        )
    if watched_ns < SHORT_RUN_NS:
        yield make("short_run", format_duration(watched_ns))
    if result.locked_kb == 0:
        yield make("memory_not_locked")
    if result.dma_latency_held:
        yield make("cpu_held_awake")
    if result.housekeeping_cpu is None or result.housekeeping_cpu in measured:
        ours = {t.policy for t in result.threads if t.timerlat is None}
        ordinary = ours - REAL_TIME
        yield make("agent_competes" if ordinary else "no_housekeeping_cpu")
    if result.kernel_log != "watched":
        yield make("kernel_log_unwatched", result.kernel_log)
    if result.kernel_log_lost:
        yield make("kernel_log_lost", f"{result.kernel_log_lost} messages")
    if result.ticks_lost:
        yield make("ticks_lost", f"{result.ticks_lost} ticks")


def _machine(result: AgentResult) -> Iterator[Caveat]:
    machine = result.machine
    if machine is None:
        return
    if machine.realtime_step_ns > REALTIME_STEP_NS:
        yield make("clock_stepped", f"by {format_duration(machine.realtime_step_ns)}")
    if machine.suspended_ns:
        yield make("suspended", f"for {format_duration(machine.suspended_ns)}")
    steal = {c.cpu: c.steal_ns for c in machine.cpu_times if c.steal_ns}
    if steal:
        worst = max(steal, key=lambda cpu: steal[cpu])
        yield make(
            "steal",
            f"{format_duration(sum(steal.values()))} in all, most of it "
            f"on CPU {worst}: {format_duration(steal[worst])}",
        )
    throttled = {c: n for c, n in (machine.throttle_counts or {}).items() if n}
    if throttled:
        yield make(
            "cpu_throttled",
            f"{sum(throttled.values())} times, CPUs {format_cpulist(throttled)}",
        )
    if machine.smi_count:
        yield make("smi", f"{machine.smi_count} times")


def _hogs(result: AgentResult) -> Iterator[Caveat]:
    """Interrupt threads only: under load, kernel workers are the load at work."""
    run_ns = max(result.end_ns - result.start_ns, 1)
    for thread in result.machine.kernel_threads if result.machine else ():
        share = thread.cpu_time_ns / run_ns
        if thread.kind == "irq" and share > HOG_SHARE:
            yield make(
                "interrupt_thread_hog",
                f"{thread.name} used {share:.0%} of a CPU, last on CPU {thread.cpu}",
            )


def _frequency(
    ticks: Sequence[Tick], threads: Sequence[ThreadResult]
) -> Iterator[Caveat]:
    pinned = {t.cpu for t in threads}
    ranges: dict[int, tuple[int, int]] = {}
    for tick in ticks:
        for cpu, khz in tick.freq_khz.items():
            low, high = ranges.get(cpu, (khz, khz))
            ranges[cpu] = min(low, khz), max(high, khz)
    varied = {
        cpu: (low, high)
        for cpu, (low, high) in ranges.items()
        if high - low > FREQUENCY_SPREAD * high and (cpu in pinned or None in pinned)
    }
    if varied:
        low = min(low for low, _ in varied.values())
        high = max(high for _, high in varied.values())
        yield make(
            "frequency_varied",
            f"CPUs {format_cpulist(varied)}: {low / 1000:.0f} to {high / 1000:.0f} MHz",
        )


def _link(record: RunRecord) -> Iterator[Caveat]:
    """A board that gets heartbeats is one at the end of a network."""
    if record.hello.options.get("heartbeat") is True:
        yield make("remote_link")


# Does a run count? One answer for every comparison, effect, ranking, search and rate.

NOT_MEASURED = "no wake-up was measured"
NO_LATENCY = "it found nothing above its threshold, so there is nothing to compare"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that does not count."""

    run: str
    """Its name."""
    why: str


def why_left_out(record: RunRecord, raised: Iterable[Caveat] | None = None) -> str:
    """
    Return why a run does not count; empty if it does.

    `raised` are its caveats if more are known than those that it raises by itself.
    """
    threads = record.result.threads
    if all(thread.max_ns is None for thread in threads):
        return NOT_MEASURED if threshold_of(threads) is None else NO_LATENCY
    caveat = uncounted(all_caveats(record) if raised is None else raised)
    return kind_of(caveat).message if caveat else ""


def parted(
    records: Sequence[RunRecord], raised: Iterable[Sequence[Caveat]] | None = None
) -> tuple[tuple[RunRecord, ...], tuple[LeftOut, ...]]:
    """Return the runs that count, and those that do not; `raised` are as above."""
    caveats = map(all_caveats, records) if raised is None else raised
    counting, left_out = [], []
    for record, of_record in zip(records, caveats, strict=True):
        if why := why_left_out(record, of_record):
            left_out.append(LeftOut(record.run.id, why))
        else:
            counting.append(record)
    return tuple(counting), tuple(left_out)


def left_out_words(left_out: Sequence[LeftOut], *, of: int, whose: str = "") -> str:
    """Say how many of so many runs do not count, and why; empty if all count."""
    if not left_out:
        return ""
    whys = Counter(one.why for one in left_out)
    reasons = "; ".join(
        f"{why} ({plural(number, 'run')})" if len(whys) > 1 else why
        for why, number in whys.most_common()
    )
    return (
        f"{len(left_out)} of {plural(of, 'run')}{f' of {whose}' if whose else ''} "
        f"{'does' if len(left_out) == 1 else 'do'} not count: {reasons}"
    )
