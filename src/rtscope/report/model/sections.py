"""What a report says about one load: its charts, its CPUs, its worst, its proof."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.contract import CounterDelta, ThreadResult
from rtscope.errors import MeasurementError
from rtscope.record.model import LoadRecord, RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.findings import kernel_thread_share, worst_run
from rtscope.report.model.rows import Cell, Row
from rtscope.report.model.series import (
    Chart,
    cpu_label,
    histogram_of,
    thinned,
    timeline_of,
)
from rtscope.report.words import (
    command_line,
    count,
    duration,
    enumeration,
    plural,
    us,
    virtual_word,
)
from rtscope.stats.distribution import ccdf, distribution_of, with_skipped
from rtscope.stats.summary import Summary, summarize
from rtscope.units import NS_PER_S

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
    """One of the latest wake-ups."""

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
class LogRow:
    """A line that the kernel logged during the run."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """Everything about one load on one machine, kernel and setting."""

    row: Row
    charts: tuple[Chart, ...]
    shown_run: str
    """The run whose time line and counters are shown: the one with the maximum."""
    cpus: tuple[CpuRow, ...]
    disturbed: str
    """What else happened to the measuring threads; empty if nothing did."""
    worst: tuple[WorstRow, ...]
    command: str
    version: str
    alive: str
    interrupts: tuple[CounterRow, ...]
    softirqs: tuple[CounterRow, ...]
    kernel_threads: tuple[ThreadRow, ...]
    kernel_log: tuple[LogRow, ...]
    kernel_log_left_out: int


_LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")


def section_of(
    cell: Cell,
    row: Row,
    *,
    colours: Mapping[int | None, int],
    deadline_ns: int | None,
) -> Section:
    """Gather what there is to say about a cell; counters are of its worst run."""
    record = worst_run(cell)
    machine = record.result.machine
    log = [line for r in cell.counted for line in r.kernel_log]
    return Section(
        row=row,
        charts=tuple(_charts(cell, row, record, colours, deadline_ns)),
        shown_run=printable(record.run.id) if len(cell.counted) > 1 else "",
        cpus=_cpu_rows(cell),
        disturbed=_disturbed(cell),
        worst=_worst_rows(cell),
        command=command_line(record.load.argv),
        version=printable(record.load.version or ""),
        alive=alive_sentence(record.load),
        interrupts=_counters(machine.interrupts, record),
        softirqs=_counters(machine.softirqs, record),
        kernel_threads=_thread_rows(record),
        kernel_log=tuple(
            LogRow(_LEVELS[min(line.level, 7)], printable(line.text, limit=300))
            for line in log[:LOG_SHOWN]
        ),
        kernel_log_left_out=max(0, len(log) - LOG_SHOWN),
    )


def alive_sentence(load: LoadRecord) -> str:
    """Say what proves that the load ran, or that nothing does."""
    if not load.argv:
        return "No load: nothing has to be proved."
    if not load.ticks:
        return "Nothing shows that the load ran."
    used = [0, *(tick.cpu_ns for tick in load.ticks)]
    busy = sum(after > before for before, after in pairwise(used))
    most = max(tick.processes for tick in load.ticks)
    sentence = (
        f"Its CPU time grew in {busy:,} of {len(load.ticks):,} checks, one a second, "
        f"with up to {most:,} {'process' if most == 1 else 'processes'}"
    )
    if load.end is None:
        return f"{sentence}. How it ended is not known."
    sentence += f", {duration(load.end.cpu_ns)} of CPU time in all"
    return f"{sentence}. " + (
        "It ran until it was told to stop."
        if load.end.asked
        else "It ended by itself, before it was told to."
    )


def _charts(
    cell: Cell,
    row: Row,
    record: RunRecord,
    colours: Mapping[int | None, int],
    deadline_ns: int | None,
) -> Iterator[Chart]:
    if row.summary is None:
        return
    histogram = histogram_of(cell.threads, colours)
    virtual = virtual_word(cell.counted)
    maximum, samples = (
        us(row.summary.max_ns, virtual),
        f"{row.summary.samples:,} samples",
    )
    if histogram is not None:
        yield Chart(
            name=f"{row.anchor}-histogram",
            title=f"{row.name}: distribution",
            description=f"Histogram of {samples} under {row.name}, counts on a "
            f"logarithmic axis, each CPU as a line over all together; from "
            f"{us(row.summary.min_ns, virtual)} to the maximum of {maximum}.",
            content=histogram,
            samples=row.summary.samples,
            deadline_ns=deadline_ns,
            virtual=virtual,
        )
    observed = distribution_of(cell.threads)
    tails = [thinned(*(part.tolist() for part in ccdf(observed)))]
    if row.summary.skipped:
        corrected = with_skipped(cell.threads)
        tails.append(thinned(*(part.tolist() for part in ccdf(corrected))))
    yield Chart(
        name=f"{row.anchor}-tail",
        title=f"{row.name}: how rare is how late",
        description=f"Share of wake-ups at least as late as each latency, both axes "
        f"logarithmic, of {samples} under {row.name}; it ends at {maximum}.",
        content=tuple(tails),
        samples=row.summary.samples,
        deadline_ns=deadline_ns,
        virtual=virtual,
    )
    timeline = timeline_of(record.ticks, colours)
    if timeline is not None and any(timeline.merged_ns):
        yield Chart(
            name=f"{row.anchor}-time",
            title=f"{row.name}: latency over time",
            description=f"The latest wake-up of each CPU in each step of "
            f"{plural(timeline.step_s, 'second')} of run {printable(record.run.id)}, "
            "and the clock frequency and temperature where known.",
            content=timeline,
            samples=row.summary.samples,
            deadline_ns=deadline_ns,
            virtual=virtual,
        )


def _cpu_rows(cell: Cell) -> tuple[CpuRow, ...]:
    by_cpu: dict[int | None, list[ThreadResult]] = {}
    for thread in cell.threads:
        by_cpu.setdefault(thread.cpu, []).append(thread)
    return tuple(
        CpuRow(
            cpu=cpu_label(cpu),
            summary=_summary(threads),
        )
        for cpu, threads in sorted(
            by_cpu.items(), key=lambda item: -1 if item[0] is None else item[0]
        )
    )


def _disturbed(cell: Cell) -> str:
    switches = sum(t.involuntary_switches for t in cell.threads)
    faults = sum(t.minor_faults + t.major_faults for t in cell.threads)
    steal_ns = sum(
        times.steal_ns for r in cell.counted for times in r.result.machine.cpu_times
    )
    told = [
        f"{plural(switches, 'time')} preempted" if switches else "",
        f"{plural(faults, 'page fault')}" if faults else "",
        f"{duration(steal_ns)} of CPU time taken by the hypervisor" if steal_ns else "",
    ]
    happened = enumeration([text for text in told if text])
    return f"The measuring threads had: {happened}." if happened else ""


def _summary(threads: Sequence[ThreadResult]) -> Summary | None:
    try:
        return summarize(threads)
    except MeasurementError:
        return None


def _worst_rows(cell: Cell) -> tuple[WorstRow, ...]:
    found = [
        WorstRow(
            into_run_ns=wakeup.expiry_ns - record.result.start_ns,
            cpu=cpu_label(wakeup.cpu),
            latency_ns=wakeup.latency_ns,
            run=printable(record.run.id),
        )
        for record in cell.counted
        for thread in record.result.threads
        for wakeup in thread.worst[:WORST_SHOWN]
    ]
    return tuple(sorted(found, key=lambda w: -w.latency_ns)[:WORST_SHOWN])


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
                    name=printable(name, limit=80),
                    total=total,
                    per_second=total / seconds,
                    busiest=str(busiest),
                    busiest_share=delta.per_cpu[busiest] / total,
                )
            )
    return tuple(sorted(rows, key=lambda r: -r.total)[:COUNTERS_SHOWN])


def _thread_rows(record: RunRecord) -> tuple[ThreadRow, ...]:
    threads = sorted(
        record.result.machine.kernel_threads, key=lambda t: -t.cpu_time_ns
    )[:COUNTERS_SHOWN]
    return tuple(
        ThreadRow(
            name=printable(t.name, limit=80),
            kind="interrupt" if t.kind == "irq" else "kernel",
            cpu=str(t.cpu),
            share=kernel_thread_share(t, record),
        )
        for t in threads
        if t.cpu_time_ns
    )


def throughput_words(row: Row) -> str:
    """List the operations per second of each stressor."""
    return ", ".join(f"{name} {count(rate)}" for name, rate in row.throughput.items())
