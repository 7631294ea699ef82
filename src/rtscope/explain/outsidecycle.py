"""
Cycles of a program on a board, booted again with all instructions around them recorded.

Equal inputs give an equal boot: the program does the same in it to the nanosecond,
which is shown by its record, or nothing is explained. All that explains a cycle goes
this way: `rtscope test` and `rtscope app check`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramView
from rtscope.boards.parts.qemu import Recording as Paths
from rtscope.boards.recording.replay import MAX_WINDOW_NS
from rtscope.boards.recording.symbols import find_kernel_layout, find_symbols
from rtscope.boards.runs.program import ProgramRun, run_program
from rtscope.boards.runs.programscript import ProgramJob
from rtscope.explain.activity import Recording
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation
from rtscope.explain.outsidetimeline import marks_of
from rtscope.explain.timeline import Timeline, timeline_of
from rtscope.explain.words import sentence
from rtscope.host.errors import BoardError, ContractError, HostError
from rtscope.host.escape import all_printable
from rtscope.host.process import Progress
from rtscope.host.units import format_us
from rtscope.programs.outside.file import ProgramRecord
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.programs.outside.placed import CpusOfThreads
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
    marked_at,
)
from rtscope.record.instructions.symbols import NO_SYMBOLS, SymbolTable, parse_symbols
from rtscope.record.instructions.symbols import merged as merged_symbols

LEAD_NS, MOST_LEAD_NS = 100_000, 500_000
"""From the begin of the recording to that of the cycle: half of it, within these."""
VIRTUAL = "virtual "

Log = Callable[[str], None]
Wanted = Sequence[tuple[OutsideThread, OutsideCycle]]
Window = tuple[int, int]
"""First and last virtual ns."""


@dataclass(frozen=True, slots=True)
class ProgramBoot:
    """A boot with a program, and what is needed to do the same again."""

    prepared: Prepared
    job: ProgramJob
    view: ProgramView
    run: ProgramRun


@dataclass(frozen=True, slots=True)
class RecordedCycle:
    """What all CPUs executed in a cycle, and what took its time."""

    cycle: OutsideCycle
    explanation: Explanation
    timeline: Timeline
    marks: Sequence[tuple[int, str]]
    """Times in it that have names, in ns since it began."""
    says: str
    """Its cause, in a sentence."""
    section: TraceSection
    cpu: int
    symbols: SymbolTable


def recorded_cycles(
    boot: ProgramBoot,
    record: ProgramRecord,
    wanted: Wanted,
    *,
    log: Log,
    progress: Progress,
) -> Mapping[int, RecordedCycle]:
    """
    Boot again, record a cycle of each of these threads, and explain it; by TID.

    A cycle is explained that a timer began, on one CPU, of at most 10 ms. Why one is
    not is in the log.
    """
    placed, cpus = CpusOfThreads(record), dict[int, int]()
    for thread, cycle in wanted:
        used = placed.of(thread.tid, cycle)
        if why := _why_not(thread, cycle, used):
            log(f"{_name(thread, cycle)}: its cause is not looked for: {why}")
        else:
            cpus[thread.tid] = used[0]
    chosen = [one for one in wanted if one[0].tid in cpus]
    if not chosen:
        return {}
    try:
        trace = _boot_again(boot, [cycle for _, cycle in chosen], progress)
        symbols = _symbols(boot)
    except (BoardError, ContractError) as error:
        for thread, cycle in chosen:
            log(f"{_name(thread, cycle)}: its cause is not known: {error}")
        return {}
    found = {}
    for thread, cycle in chosen:
        try:
            section = cycle_section(trace, cycle, cpu=cpus[thread.tid])
        except BoardError as error:
            log(f"{_name(thread, cycle)}: its cause is not known: {error}")
            continue
        found[thread.tid] = _explained(trace, section, thread, cycle, symbols)
    return found


def _explained(
    trace: ExecTrace,
    section: TraceSection,
    thread: OutsideThread,
    cycle: OutsideCycle,
    symbols: SymbolTable,
) -> RecordedCycle:
    explanation = explain_path(section, symbols, arch=trace.arch, to_the_end=True)
    name = _name(thread, cycle)
    recording = Recording(name, section, explanation, symbols, trace.arch)
    timeline = timeline_of(recording)
    explanation = all_printable(explanation)
    spent = f"{name}: {_us(cycle.response_ns)} from its due time to its end"
    return RecordedCycle(
        cycle,
        explanation,
        all_printable(timeline),
        all_printable(marks_of(cycle)),
        sentence(explanation, virtual=VIRTUAL, of=spent),
        section,
        section.cpu,
        symbols,
    )


def _name(thread: OutsideThread, cycle: OutsideCycle) -> str:
    return f"{thread.name}, cycle {cycle.number}"


def _us(ns: int) -> str:
    return f"{format_us(ns)} {VIRTUAL}µs"


def _why_not(thread: OutsideThread, cycle: OutsideCycle, cpus: Sequence[int]) -> str:
    """Return why a cycle is not explained; empty if it is."""
    # It sleeps too if its time has passed already, until the timer has said so.
    if cycle.late_ns or not cycle.slept:
        return "it was late already, by the cycle before"
    if not cycle.timed:
        return "another thread woke it"
    if len(cpus) != 1:
        return f"it was on {len(cpus)} CPUs"
    if cycle.response_ns + MOST_LEAD_NS > MAX_WINDOW_NS:
        return f"more than {_us(MAX_WINDOW_NS - MOST_LEAD_NS)} are too long"
    return ""


def _boot_again(
    boot: ProgramBoot, cycles: Sequence[OutsideCycle], progress: Progress
) -> ExecTrace:
    """
    Return the recording of a second boot.

    Raises BoardError unless it was the same, ContractError if its paths are damaged.
    """
    paths = Paths(
        worst=1,
        windows=tuple(merged(windows_of(cycles))),
        layout=find_kernel_layout(boot.prepared, cache=cache_dir()),
    )
    try:
        again = run_program(
            boot.prepared,
            boot.job,
            view=replace(boot.view, code=False),
            recording=paths,
            progress=progress,
        )
    except HostError as error:
        raise BoardError(f"the second boot failed: {error}") from error
    if again.record != boot.run.record:
        raise BoardError("a second boot was not the same")
    if again.paths is None:
        raise BoardError("the plugin wrote no paths")
    return parse_trace(again.paths)


def windows_of(cycles: Sequence[OutsideCycle]) -> Iterator[Window]:
    """Yield when each cycle is to be recorded: before its begin, to its end."""
    for cycle in cycles:
        lead_ns = min(max(LEAD_NS, cycle.response_ns // 2), MOST_LEAD_NS)
        yield max(0, cycle.begin_ns - lead_ns), cycle.done_ns


def merged(windows: Iterable[Window]) -> Iterator[Window]:
    """Yield windows in their order, those that overlap as one."""
    before: Window | None = None
    for one in sorted(windows):
        if before is not None and one[0] <= before[1]:
            before = before[0], max(before[1], one[1])
            continue
        if before is not None:
            yield before
        before = one
    if before is not None:
        yield before


def cycle_section(trace: ExecTrace, cycle: OutsideCycle, *, cpu: int) -> TraceSection:
    """
    Return the part of a window that a cycle has, as a path marked at its end.

    Raises BoardError if no window has its begin.
    """
    ((first_ns, _),) = windows_of([cycle])
    windows = (one for one in trace.sections if one.kind is SectionKind.WINDOW)
    around = (one for one in windows if one.first_ns <= cycle.begin_ns <= one.last_ns)
    window = next(around, None)
    if window is None:
        raise BoardError("the plugin recorded nothing at its begin")
    inside = (window.at_ns >= first_ns) & ~_recorded_again(window)
    recorded = replace(
        window,
        sequence=cycle.number,
        first_ns=max(window.first_ns, first_ns),
        at_ns=window.at_ns[inside],
        cpus=window.cpus[inside],
        kinds=window.kinds[inside],
        values=window.values[inside],
    )
    return marked_at(recorded, cycle.done_ns, cpu=cpu, latency_ns=cycle.response_ns)


def _recorded_again(window: TraceSection) -> NDArray[np.bool_]:
    """
    Tell which records of tasks have another of the same switch behind them.

    A window has a task as soon as the kernel's own variable names it, and again behind
    the switch, with its name: only the latter is in a path.
    """
    again = np.zeros(len(window.kinds), np.bool_)
    nameless: dict[int, tuple[int, int]] = {}
    for at in np.flatnonzero(window.kinds == RecordKind.TASK).tolist():
        cpu, task = int(window.cpus[at]), int(window.values[at])
        is_named = window.kinds[at + 1 : at + 2] == RecordKind.NAME
        before, known = nameless.pop(cpu, (at, None))
        if not is_named.any():
            nameless[cpu] = at, task
        elif known == task:
            again[before] = True
    return again


def _symbols(boot: ProgramBoot) -> SymbolTable:
    prepared = boot.prepared
    found = find_symbols(
        cache_dir(),
        prepared.kernel.digest,
        modules={},
        parts={part.name: part.digest for part in prepared.parts},
    )
    return merged_symbols(found or NO_SYMBOLS, parse_symbols(boot.run.module_symbols))
