"""What a report says about one load: its charts, its CPUs, its worst, its proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.contract import CounterDelta, KernelMessage, ThreadResult
from rtscope.host.units import NS_PER_S, plural
from rtscope.present.model.charts import Chart, charts_of
from rtscope.present.model.findings import kernel_thread_share
from rtscope.present.model.overtime import cpu_label
from rtscope.present.model.rows import Row
from rtscope.present.model.softchart import soft_chart
from rtscope.present.model.steadiness import Steadiness
from rtscope.present.model.wakeparts import parts_chart
from rtscope.present.model.wakeups import WakeupsOverTime, wakeups_over_time
from rtscope.present.model.workers import LoadRow, load_row
from rtscope.present.words import command_line, cut, duration, enumeration
from rtscope.record.model import LoadRecord, RunRecord
from rtscope.record.samples import ThreadSamples
from rtscope.stats.meters import METERS, meters_of, sensors_over_time
from rtscope.stats.summary import Summary, summary_of
from rtscope.stats.utility import Utility

WORST_SHOWN = 6
COUNTERS_SHOWN = 8
LOG_SHOWN = 40


@dataclass(frozen=True, slots=True)
class CpuRow:
    """One CPU under one load, its repetitions merged."""

    cpu: str
    summary: Summary | None


@dataclass(frozen=True, slots=True)
class WorstRow:
    """One of the worst wake-ups."""

    into_run_ns: int
    cpu: str
    latency_ns: int
    run: str


@dataclass(frozen=True, slots=True)
class CounterRow:
    """How often something happened during the run, the busiest CPU named."""

    name: str
    total: int
    per_second: float
    busiest: str
    busiest_share: float


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """CPU time of a kernel or interrupt thread."""

    name: str
    kind: str
    cpu: str
    share: float


@dataclass(frozen=True, slots=True)
class MeterRow:
    """What a meter or a sensor read during a run."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class LoadSection:
    """Everything about one load on one machine, kernel and setting."""

    row: Row
    charts: tuple[Chart, ...]
    wakeups: WakeupsOverTime | None
    """Each wake-up of the worst run that kept them; None if none did."""
    late: Steadiness | None
    """When its latest wake-ups were; None with too few known times."""
    worst_run_id: str
    """The run with the maximum, whose time line and counters stand here."""
    cpus: tuple[CpuRow, ...]
    disturbed: str
    """Disturbances of the measuring threads; empty without any."""
    worst: tuple[WorstRow, ...]
    worst_since: str
    """From when on their times count."""
    command: str
    version: str
    alive: str
    load: LoadRow | None
    """Its workers; None if they were not watched."""
    interrupts: tuple[CounterRow, ...]
    softirqs: tuple[CounterRow, ...]
    kernel_threads: tuple[ThreadRow, ...]
    meters: tuple[MeterRow, ...]
    """Power, heat, clock and memory of the worst run, and each sensor."""
    kernel_log: tuple[KernelMessage, ...]
    """Logged during the runs, the first of them."""
    kernel_log_left_out: int


def section_of(
    row: Row,
    colours: Mapping[int | None, int],
    *,
    deadline_ns: int | None,
    late: Steadiness | None,
    utility: Utility | None = None,
    samples: Mapping[str, Sequence[ThreadSamples]] | None = None,
) -> LoadSection:
    """Gather everything about a row; counters are of its worst run."""
    parts = parts_chart(row)
    soft = utility and soft_chart(row, utility, deadline_ns=deadline_ns)
    record = row.worst_run
    machine = record.result.machine
    log = [line for r in row.counted for line in r.kernel_log]
    return LoadSection(
        row=row,
        charts=(
            *((soft,) if soft else ()),
            *charts_of(row, colours, deadline_ns=deadline_ns),
            *((parts,) if parts else ()),
            *(() if late is None else (late.chart,)),
        ),
        wakeups=_wakeups(row, colours, samples or {}, deadline_ns=deadline_ns),
        late=late,
        worst_run_id=record.run.id if row.runs > 1 else "",
        cpus=_cpu_rows(row.threads),
        disturbed=_disturbed(row),
        worst=_worst_rows(row),
        worst_since="into the run" if _from_start(row) else "since the first",
        command=command_line(record.load.argv),
        version=record.load.version or "",
        alive=alive_sentence(record.load),
        load=load_row(row),
        interrupts=_counters(machine.interrupts if machine else (), record),
        softirqs=_counters(machine.softirqs if machine else (), record),
        kernel_threads=_thread_rows(record),
        meters=_meter_rows(record),
        kernel_log=tuple(log[:LOG_SHOWN]),
        kernel_log_left_out=max(0, len(log) - LOG_SHOWN),
    )


def _wakeups(
    row: Row,
    colours: Mapping[int | None, int],
    samples: Mapping[str, Sequence[ThreadSamples]],
    *,
    deadline_ns: int | None,
) -> WakeupsOverTime | None:
    kept = [one for one in row.counted if one.result_digest in samples]
    if not kept:
        return None
    worst = max(kept, key=lambda one: one.max_ns or 0)
    return wakeups_over_time(
        worst.run.id, samples[worst.result_digest], colours, deadline_ns=deadline_ns
    )


def alive_sentence(load: LoadRecord) -> str:
    """Return the evidence that the load ran, or its absence, in words."""
    if not load.argv:
        return "No load to check."
    if not load.ticks:
        return "No evidence that the load ran."
    used = [0, *(tick.cpu_ns for tick in load.ticks)]
    busy = sum(after > before for before, after in pairwise(used))
    most = max(tick.processes for tick in load.ticks)
    whole_ns = load.ticks[-1].t_ns - load.ticks[0].t_ns
    each = round(whole_ns / NS_PER_S / max(1, len(load.ticks) - 1))
    pace = f"one in {each} s" if each > 1 else "one per second"
    sentence = (
        f"Its CPU time grew in {busy:,} of {len(load.ticks):,} checks, {pace}, "
        f"with up to {most:,} {'process' if most == 1 else 'processes'}"
    )
    if load.end is None:
        return f"{sentence}. Its end was not recorded."
    sentence += f", {duration(load.end.cpu_ns)} of CPU time in all"
    return f"{sentence}. " + (
        "It ran until rtscope stopped it."
        if load.end.stop_requested
        else "It ended by itself before rtscope stopped it."
    )


def _cpu_rows(threads: Sequence[ThreadResult]) -> tuple[CpuRow, ...]:
    by_cpu: dict[int | None, list[ThreadResult]] = {}
    for thread in threads:
        by_cpu.setdefault(thread.cpu, []).append(thread)
    return tuple(
        CpuRow(cpu_label(cpu), summary_of(same))
        for cpu, same in sorted(
            by_cpu.items(), key=lambda item: -1 if item[0] is None else item[0]
        )
    )


def _disturbed(row: Row) -> str:
    switches = sum(t.involuntary_switches or 0 for t in row.threads)
    faults = sum((t.minor_faults or 0) + (t.major_faults or 0) for t in row.threads)
    machines = [r.result.machine for r in row.counted if r.result.machine]
    steal_ns = sum(times.steal_ns for one in machines for times in one.cpu_times)
    counts = [
        plural(switches, "preemption") if switches else "",
        f"{plural(faults, 'page fault')}" if faults else "",
        f"{duration(steal_ns)} of CPU time stolen by the hypervisor"
        if steal_ns
        else "",
    ]
    happened = enumeration([text for text in counts if text])
    return f"Disturbances of the measuring threads: {happened}." if happened else ""


def _worst_rows(row: Row) -> tuple[WorstRow, ...]:
    rows = [
        WorstRow(
            into_run_ns=wakeup.expiry_ns - record.result.start_ns,
            cpu=cpu_label(wakeup.cpu),
            latency_ns=wakeup.latency_ns,
            run=record.run.id,
        )
        for record in row.counted
        for thread in record.result.threads
        for wakeup in thread.worst[:WORST_SHOWN]
    ]
    return tuple(sorted(rows, key=lambda w: -w.latency_ns)[:WORST_SHOWN])


def _from_start(row: Row) -> bool:
    foreign = [t.foreign for t in row.threads if t.worst and t.foreign is not None]
    return all(one.times_from_start for one in foreign)


def _meter_rows(record: RunRecord) -> tuple[MeterRow, ...]:
    rows = [
        MeterRow(METERS[key].heading, METERS[key].show(value))
        for key, value in meters_of(record).items()
    ]
    sensors = sensors_over_time(record.ticks) if rows else ()
    return (
        *rows,
        *(
            MeterRow(cut(name, 60), f"{low:.1f} to {high:.1f} °C")
            for name, low, high in sensors
        ),
    )


def _counters(
    deltas: Sequence[CounterDelta], record: RunRecord
) -> tuple[CounterRow, ...]:
    seconds = max(record.result.end_ns - record.result.start_ns, 1) / NS_PER_S
    rows = []
    for delta in deltas:
        total = sum(delta.per_cpu.values())
        if total:
            busiest = max(delta.per_cpu, key=lambda cpu: delta.per_cpu[cpu])
            name = f"{delta.id} {delta.name}" if delta.name else delta.id
            rows.append(
                CounterRow(
                    name=cut(name, 80),
                    total=total,
                    per_second=total / seconds,
                    busiest=str(busiest),
                    busiest_share=delta.per_cpu[busiest] / total,
                )
            )
    return tuple(sorted(rows, key=lambda r: -r.total)[:COUNTERS_SHOWN])


def _thread_rows(record: RunRecord) -> tuple[ThreadRow, ...]:
    machine = record.result.machine
    all_threads = machine.kernel_threads if machine else ()
    threads = sorted(all_threads, key=lambda t: -t.cpu_time_ns)[:COUNTERS_SHOWN]
    return tuple(
        ThreadRow(
            name=cut(t.name, 80),
            kind="interrupt" if t.kind == "irq" else "kernel",
            cpu=str(t.cpu),
            share=kernel_thread_share(t, record),
        )
        for t in threads
        if t.cpu_time_ns
    )
