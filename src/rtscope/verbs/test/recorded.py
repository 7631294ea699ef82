"""
The worst cycle, booted again with every instruction recorded around it, and explained.

Equal inputs give an equal boot: the program does the same in it to the nanosecond,
which is shown by its record, or the explanation is not made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.qemu import Recording as Paths
from rtscope.boards.recording.replay import MAX_WINDOW_NS
from rtscope.boards.recording.symbols import find_kernel_layout, find_symbols
from rtscope.boards.runs.program import run_program
from rtscope.explain.activity import Recording
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation
from rtscope.explain.timeline import Timeline, timeline_of
from rtscope.explain.words import sentence
from rtscope.host.errors import BoardError, HostError
from rtscope.host.escape import all_printable
from rtscope.host.process import Progress
from rtscope.present.words import us
from rtscope.programs.outside.file import Kind, ProgramRecord
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
)
from rtscope.record.instructions.symbols import NO_SYMBOLS, SymbolTable
from rtscope.verbs.test.baseline import VIRTUAL
from rtscope.verbs.test.functions import (
    FunctionUse,
    Naming,
    functions_of,
    naming_of,
)
from rtscope.verbs.test.places import pieces_of
from rtscope.verbs.test.running import Ran

LEAD_NS, MOST_LEAD_NS = 100_000, 500_000
"""From the begin of the recording to that of the cycle: half of it, within these."""

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What all CPUs executed in a cycle, and what took its time."""

    explanation: Explanation
    timeline: Timeline
    says: str
    """Its cause, in a sentence."""
    functions: tuple[FunctionUse, ...] = ()
    """Which functions were executed in it, most instructions first."""


def recorded_cycle(
    ran: Ran,
    record: ProgramRecord,
    thread: OutsideThread,
    cycle: OutsideCycle,
    *,
    log: Log,
    progress: Progress,
) -> Recorded | None:
    """
    Boot again, record the cycle, and explain it; None, with the reason in the log.

    A cycle is explained that a timer began, on one CPU, of at most 10 ms.
    """
    name = f"{thread.name}, cycle {cycle.number}"
    cpus = _cpus_of(record, thread, cycle)
    if why := _why_not(thread, cycle, cpus):
        log(f"{name}: its cause is not looked for: {why}")
        return None
    try:
        trace = _boot_again(ran, cycle, progress)
    except BoardError as error:
        log(f"{name}: its cause is not known: {error}")
        return None
    symbols = _symbols(ran)
    section = cycle_section(trace, cycle, cpu=cpus[0])
    explanation = explain_path(section, symbols, arch=trace.arch, to_the_end=True)
    recording = Recording(name, section, explanation, symbols, trace.arch)
    timeline = timeline_of(recording)
    explanation = all_printable(explanation)
    return Recorded(
        explanation,
        all_printable(timeline),
        sentence(explanation, virtual=VIRTUAL, of=_head(thread, cycle)),
        all_printable(
            functions_of(
                *(section, cycle),
                cpu=cpus[0],
                shift=record.shift,
                symbols=symbols,
                named=_naming(ran, record, thread),
            )
        ),
    )


def _naming(ran: Ran, record: ProgramRecord, thread: OutsideThread) -> Naming:
    program = ran.boot.job.program
    maps = next((s.maps for s in ran.run.starts if thread.process in s.maps), {})
    pieces = pieces_of(program, maps, thread.process)
    return naming_of(program, pieces, arch=record.arch)


def _head(thread: OutsideThread, cycle: OutsideCycle) -> str:
    spent = us(cycle.response_ns, VIRTUAL)
    return f"{thread.name}, cycle {cycle.number}: {spent} from its due time to its end"


def _why_not(thread: OutsideThread, cycle: OutsideCycle, cpus: Sequence[int]) -> str:
    """Return why a cycle is not explained; empty if it is."""
    # It sleeps too if its time has passed already, until the timer has said so.
    before = [one for one in thread.cycles if one.begin_ns < cycle.begin_ns][-1:]
    if not cycle.slept or (before and before[0].done_ns > cycle.begin_ns):
        return "it was late already, by the cycle before"
    if not cycle.timed:
        return "another thread woke it"
    if len(cpus) != 1:
        return f"it was on {len(cpus)} CPUs"
    if cycle.response_ns + MOST_LEAD_NS > MAX_WINDOW_NS:
        return f"more than {us(MAX_WINDOW_NS - MOST_LEAD_NS, VIRTUAL)} are too long"
    return ""


def _cpus_of(
    record: ProgramRecord, thread: OutsideThread, cycle: OutsideCycle
) -> tuple[int, ...]:
    """Return the CPUs on which a thread executed a cycle."""
    kinds = (Kind.IN, Kind.FIRST, Kind.OUT, Kind.CALL)
    return tuple(
        {
            one.cpu
            for one in record.entries
            if one.tid == thread.tid
            and one.kind in kinds
            and cycle.woken_ns <= one.at_ns <= cycle.done_ns
        }
    )


def _boot_again(ran: Ran, cycle: OutsideCycle, progress: Progress) -> ExecTrace:
    """Return the recording of a second boot; BoardError unless it was the same."""
    boot = ran.boot
    lead_ns = min(max(LEAD_NS, cycle.response_ns // 2), MOST_LEAD_NS)
    paths = Paths(
        worst=1,
        windows=((max(0, cycle.begin_ns - lead_ns), cycle.done_ns),),
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
    if again.record != ran.run.record:
        raise BoardError("a second boot was not the same")
    if again.paths is None:
        raise BoardError("the plugin wrote no paths")
    return parse_trace(again.paths)


def cycle_section(trace: ExecTrace, cycle: OutsideCycle, *, cpu: int) -> TraceSection:
    """Return a recorded window as the path of a cycle, marked at its end."""
    window = next(one for one in trace.sections if one.kind is SectionKind.WINDOW)
    inside = (window.at_ns <= cycle.done_ns) & ~_recorded_again(window)
    return replace(
        window,
        kind=SectionKind.WORST,
        cpu=cpu,
        latency_ns=cycle.response_ns,
        sequence=cycle.number,
        last_ns=cycle.done_ns,
        at_ns=np.append(window.at_ns[inside], cycle.done_ns),
        cpus=np.append(window.cpus[inside], np.uint8(cpu)),
        kinds=np.append(window.kinds[inside], np.uint8(RecordKind.MARK)),
        values=np.append(window.values[inside], np.uint64(cycle.response_ns)),
    )


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


def _symbols(ran: Ran) -> SymbolTable:
    prepared = ran.boot.prepared
    found = find_symbols(
        cache_dir(),
        prepared.kernel.digest,
        modules={},
        parts={part.name: part.digest for part in prepared.parts},
    )
    return found or NO_SYMBOLS
