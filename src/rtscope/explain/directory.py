"""
From a result directory, or the file of a trace, to explained runs.

A run of a virtual board is explained from the paths that lie beside its record, with
the symbols of its kernel; a run on a machine from the trace that it kept. Recordings of
a replay lie there too. Each explanation is written beside its record.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rtscope.boards.recording.replay import (
    Window,
    prepare_replay,
    replay_run,
    windows_around,
)
from rtscope.boards.recording.symbols import find_symbols, read_symbols
from rtscope.explain.activity import ExplainedWindow, Recording, perfetto_trace
from rtscope.explain.events.explain import explain_events, machine_of, traits_told
from rtscope.explain.events.run import counted_wakeups, explained_windows, why_untraced
from rtscope.explain.events.sections import bounds_of_events, why_no_sections
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.explain.events.tracers import explained_reports, thread_of, with_head
from rtscope.explain.events.window import (
    NoWakeup,
    WakeupSelector,
    choose,
    window_around,
)
from rtscope.explain.instructions.eventway import explainer_of
from rtscope.explain.instructions.sections import bounds_of
from rtscope.explain.model import Explanation
from rtscope.explain.runs import (
    ExplainedRun,
    explained_run,
    explained_trace,
    require_timers,
)
from rtscope.explain.timeline import Timeline, timeline_of
from rtscope.host.errors import RecordError, RtscopeError, UsageError
from rtscope.host.files import write_atomically
from rtscope.host.files.opening import is_there
from rtscope.host.process import Progress, Step
from rtscope.record.directory.records import RECORD, ResultDir, no_records, read_record
from rtscope.record.events.dat import open_trace
from rtscope.record.events.events import Event, Trace
from rtscope.record.events.reports import reports_in
from rtscope.record.events.writer import TRACE
from rtscope.record.explanation import EXPLAINED, CpuBound, write_explained
from rtscope.record.instructions.file import (
    BOUND,
    FILE,
    REPLAY,
    note_of,
    pack,
    read_stream,
    with_windows,
)
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
)
from rtscope.record.instructions.symbols import (
    NO_SYMBOLS,
    SymbolTable,
    merged,
    parse_symbols,
)
from rtscope.record.model import RunRecord

AT_ONCE = 100_000
"""Events that are decoded together: a whole trace may not fit into memory."""

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record and the directory that it lies in."""

    record: RunRecord
    directory: Path

    @property
    def max_ns(self) -> int:
        """The longest latency."""
        return self.record.max_ns or 0

    @property
    def replay_path(self) -> Path:
        """The recording of this run's replay."""
        return self.directory / REPLAY

    @property
    def sections_path(self) -> Path:
        """The recording of the longest critical sections of this run."""
        return self.directory / BOUND


@dataclass(frozen=True, slots=True)
class Explained:
    """All runs, and of each the worst wake-ups with all that the CPUs did."""

    runs: tuple[ExplainedRun, ...]
    wakeups: tuple[tuple[Recording | ExplainedWindow, ...], ...]
    """Of each run, worst first, as many as were asked for; of counters none."""

    def perfetto(self) -> bytes:
        """Return the trace. Raises UsageError for runs of boards and of machines."""
        wakeups = [one for of_run in self.wakeups for one in of_run]
        if len({type(one) for one in wakeups}) > 1:
            raise UsageError(
                "--perfetto: virtual and real time do not fit into one trace; choose a "
                "run with --run"
            )
        return perfetto_trace(wakeups)

    def timelines(self) -> Sequence[Sequence[Timeline]]:
        """Return the timelines of the worst wake-ups of each run."""
        return [[timeline_of(one) for one in of_run] for of_run in self.wakeups]


def explained_runs(
    path: Path,
    run_id: str | None,
    *,
    worst: int,
    bound: bool,
    cache: Path,
    log: Log,
    progress: Progress = lambda _step: None,
) -> Explained:
    """
    Explain every run that has recorded paths or events; log those without.

    Each explanation is written beside its record. What was recorded of so many of the
    `worst` wake-ups is kept, to be drawn. With `bound` the runs of virtual boards are
    booted again for their longest critical sections.
    """
    chosen = every_run(path, run_id)
    if bound:
        _record_sections(chosen, cache=cache, log=log, progress=progress)
    runs: list[ExplainedRun] = []
    wakeups: list[tuple[Recording | ExplainedWindow, ...]] = []
    for done, one in enumerate(chosen):
        name = one.record.run.id
        progress(Step(f"explaining {name}", done, len(chosen), "runs"))
        try:
            explanations, of_run = _wakeups_of(
                one, worst=worst, cache=cache, log=log, progress=progress
            )
        except UsageError as error:
            if len(chosen) == 1:
                raise
            log(str(error))
            continue
        bounds = _bounds_of_run(one, cache=cache, log=log, progress=progress)
        runs.append(explained_run(one.record, explanations, bounds=bounds))
        wakeups.append(tuple(of_run))
        try:
            write_explained(one.directory / EXPLAINED, runs[-1].document)
        except RecordError as error:  # a result that may only be read
            log(f"{EXPLAINED} was not written: {error}")
    if not runs:
        raise UsageError(
            f"{path}: no run has recorded paths or events; measure a virtual board "
            "without --no-record, or a machine with --explain"
        )
    return Explained(tuple(runs), tuple(wakeups))


def _wakeups_of(
    one: Recorded, *, worst: int, cache: Path, log: Log, progress: Progress
) -> tuple[Sequence[Explanation], Sequence[Recording | ExplainedWindow]]:
    """Return what explains the wake-ups of a run, and the worst with all of theirs."""
    if one.record.virtual:
        return _explained_paths(
            one, worst=worst, cache=cache, log=log, progress=progress
        )
    if is_there(one.directory / TRACE):
        machine = machine_of(one.record)
        trace = open_trace(one.directory / TRACE)
        windows = explained_windows(one.record, trace, machine)
        return [window.explanation for window in windows], windows[:worst]
    return _counted(one.record), ()


def explained_file(
    path: Path, selector: WakeupSelector, *, bound: bool, log: Log
) -> Explained:
    """
    Explain one wake-up of a trace that has no record.

    With `bound`, also its CPU's bound from the critical sections of the whole trace.
    """
    reports = reports_in(path) if path.is_file() else ()
    reported = explained_reports(reports)
    if reported and (bound or selector != WakeupSelector()):
        raise UsageError(
            f"{path}: a tracer's own report: leave out --bound, --thread and --at"
        )
    if reported:
        run = explained_trace(path.name, reported)
        return Explained((run,), ((),))
    if selector.thread is None:
        selector = replace(selector, thread=thread_of(reports))
    trace = open_trace(path)
    try:
        chosen = choose(trace, selector)
    except NoWakeup as error:
        raise UsageError(f"{path}: {error}") from None
    wakeup = chosen.wakeup
    if trace.told:
        log(f"{path}: read as {', '.join(trace.told)}")
    log(
        f"{chosen.how}: {wakeup.comm or '<...>'}-{wakeup.pid}, ready or due at "
        f"{wakeup.expiry_ns / 1e9:.9f} s"
    )
    window, wakeup = window_around(trace, wakeup)
    explanation = explain_events(window, wakeup, machine=traits_told(trace.kernel))
    explanation = with_head(explanation, reports)
    worst = ExplainedWindow(path.name, window, wakeup, explanation)
    bounds = _bounds_of_trace(trace, chosen.wakeup) if bound else ()
    run = explained_trace(path.name, [explanation], bounds=bounds)
    return Explained((run,), ((worst,),))


def open_recorded(path: Path, run_id: str | None = None) -> Recorded:
    """
    Return one run of a campaign's directory, of a run's, or of a file.

    Without `run_id`, the one with the worst wake-up. Raises UsageError where
    nothing is, or nothing of a virtual board.
    """
    runs = every_run(path, run_id)
    virtual = [one for one in runs if one.record.virtual]
    if not virtual:
        runs[0].record.require_virtual()  # raises
    return max(virtual, key=lambda one: one.max_ns)


def every_run(path: Path, run_id: str | None = None) -> list[Recorded]:
    """
    Return all runs that lie there, of boards and of machines, or the one of a name.

    Raises UsageError where there is none.
    """
    runs = [Recorded(read_record(file), file.parent) for file in _files(path)]
    if run_id is None:
        return runs
    names = [one.record.run.id for one in runs]
    runs = [one for one in runs if one.record.run.id == run_id]
    if not runs:
        raise UsageError(f"{path}: no run {run_id!r}; runs: {', '.join(names)}")
    return runs


def _files(path: Path) -> list[Path]:
    if is_there(path) and not path.is_dir():
        return [path]
    if is_there(path / RECORD):
        return [path / RECORD]
    files = [path / "runs" / name / RECORD for name in ResultDir(path).done_ids()]
    if not files:
        raise no_records(path)
    return sorted(files)


def _explained_paths(
    one: Recorded, *, worst: int, cache: Path, log: Log, progress: Progress
) -> tuple[Sequence[Explanation], Sequence[Recording]]:
    arch, paths = _paths_of(one)
    preemptible = machine_of(one.record).preemptible
    symbols = symbols_of(one, cache=cache, log=log, progress=progress)
    explanations, recordings = list[Explanation](), list[Recording]()
    name, total = one.record.run.id, len(paths)
    explain = explainer_of(one.record.run.event)
    # The worst last, and none kept for longer: it may need the memory of all others.
    for number in range(total, 0, -1):
        done = total - number + 1
        progress(Step(f"explaining {name}", done, total, "wake-ups"))
        section = paths.pop()
        explanation = explain(section, symbols, arch=arch, preemptible=preemptible)
        explanations.insert(0, explanation)
        if number <= worst:
            title = f"{name}, worst wake-up {number}"
            recordings.insert(0, Recording(title, section, explanation, symbols, arch))
    return explanations, recordings


def stream_of(recorded: Recorded) -> ExecTrace:
    """Return the paths that the run itself recorded; see `note_of`, `read_stream`."""
    record, trace = recorded.record, recorded.record.require_virtual().trace
    if why := record.why_lost(FILE):
        trace = {"reason": f"{FILE} could not be written: {why}"}
    note = note_of(trace, name=record.run.id)
    return read_stream(recorded.directory / note.file, sha256=note.sha256)


def _paths_of(recorded: Recorded) -> tuple[str, list[TraceSection]]:
    """
    Return the architecture and the worst paths, worst first, as whole as recorded.

    Paths that the run itself cut or left out are taken from its replay, where there was
    one. Raises as `stream_of` does if neither recorded any.
    """
    replayed = recorded.replay_path
    try:
        first = stream_of(recorded)
    except UsageError:
        if not is_there(replayed):
            raise
        first = read_stream(replayed, sha256=None)
    worst = with_windows(first)
    if not is_there(replayed) or not any(map(_lacks, worst)):
        return first.arch, [*worst]
    fuller = {
        _wakeup(section): section
        for section in with_windows(read_stream(replayed, sha256=None))
        if not (section.cut or section.left_out)
    }
    return first.arch, [fuller.get(_wakeup(section), section) for section in worst]


def _lacks(section: TraceSection) -> bool:
    """Tell whether a replay may have more of a path."""
    return (
        section.cut or section.left_out or not (section.kinds == RecordKind.TASK).any()
    )


def _wakeup(section: TraceSection) -> tuple[int, int, int, int]:
    """Return the key of a wake-up, the same in each replay of the same run."""
    return section.cpu, section.sequence, section.latency_ns, section.last_ns


def symbols_of(
    recorded: Recorded,
    *,
    cache: Path,
    log: Log,
    progress: Progress = lambda _step: None,
) -> SymbolTable:
    """
    Return the symbols of the kernel; if they cannot be had, log why and return none.

    A packaged kernel is booted once for them.
    """
    virtual = recorded.record.virtual
    assert virtual is not None, "only a virtual board has symbols"
    digest, modules = virtual.kernel_digest, virtual.module_addresses
    parts = virtual.part_digests
    table = find_symbols(cache, digest, modules=modules, parts=parts)
    own = parse_symbols(virtual.module_symbols)
    if table is not None:
        return merged(table, own)
    try:
        prepared = prepare_replay(recorded.record, cache=cache)
        read_symbols(prepared, cache=cache, log=log, progress=progress)
    except RtscopeError as error:
        log(f"no symbols, functions are shown as addresses: {error}")
        return own
    table = find_symbols(cache, digest, modules=modules, parts=parts)
    return merged(table or NO_SYMBOLS, own)


def _counted(record: RunRecord) -> list[Explanation]:
    """Return explanations from counters; raise UsageError without any."""
    explanations = counted_wakeups(record)
    if not explanations:
        raise UsageError(
            f"{record.run.id}: no explanation, because no events were kept: "
            f"{why_untraced(record)}"
        )
    return explanations


def _record_sections(
    chosen: Sequence[Recorded], *, cache: Path, log: Log, progress: Progress
) -> None:
    """
    Boot each run again that has no critical sections yet; log those that fail.

    Raises UsageError for the only one.
    """
    for one in [one for one in chosen if not is_there(one.sections_path)]:
        try:
            _record_sections_of(one, cache=cache, log=log, progress=progress)
        except UsageError as error:
            if len(chosen) == 1:
                raise
            log(str(error))


def _record_sections_of(
    one: Recorded, *, cache: Path, log: Log, progress: Progress
) -> None:
    name = one.record.run.id
    require_timers(one.record)
    if not one.record.virtual:
        raise UsageError(
            f"{name}: measured on {one.record.run.target}; --bound boots only runs of "
            "virtual boards again"
        )
    symbols = symbols_of(one, cache=cache, log=log, progress=progress)
    log(f"{name}: booting again to record the longest critical sections")
    done = replay_run(
        one.record, windows=(), cache=cache, log=log, symbols=symbols, progress=progress
    )
    path = one.sections_path
    write_atomically(path, pack(done.raw, name=path.name)[0])


def _bounds_of_run(
    one: Recorded, *, cache: Path, log: Log, progress: Progress
) -> Sequence[CpuBound]:
    """Return the bounds of a run; none without recorded critical sections."""
    if not one.record.virtual or not is_there(one.sections_path):
        return ()
    symbols = symbols_of(one, cache=cache, log=log, progress=progress)
    return bounds_of(read_stream(one.sections_path, sha256=None), symbols)


def _bounds_of_trace(trace: Trace, wakeup: TracedWakeup) -> Sequence[CpuBound]:
    """
    Return the bound of a wake-up's CPU from the critical sections of a whole trace.

    Raises UsageError, with the reason, for a trace without them.
    """
    why = why_no_sections(trace.names)
    if why:
        raise UsageError(f"{trace.name}: {why}")
    cpu = wakeup.cpu
    if cpu is None:
        raise UsageError(f"{trace.name}: the CPU of the thread is unknown")
    lost = [f"events of CPU {cpu}: {x.reason}" for x in trace.losses if x.cpu == cpu]
    return bounds_of_events(
        _events_of(trace, cpu),
        measuring={cpu: wakeup.pid},
        not_recorded=dict.fromkeys(lost),
    )


def _events_of(trace: Trace, cpu: int) -> Iterator[Event]:
    for rows in trace.rows:
        for first in range(0, len(rows.at_ns) if rows.cpu == cpu else 0, AT_ONCE):
            last = min(first + AT_ONCE, len(rows.at_ns))
            yield from trace.events(rows, np.arange(first, last, dtype=np.int64))


def record_windows(
    one: Recorded,
    windows: Sequence[Window],
    *,
    worst: int,
    cache: Path,
    log: Log,
    progress: Progress = lambda _step: None,
) -> ExecTrace:
    """
    Record windows in a replay, keep it beside the record, and return it.

    Without `windows`, those around the worst wake-ups; the paths are recorded in any
    case, with a longer ring.
    """
    if not windows:
        try:
            sections = stream_of(one).sections
        except UsageError:  # recorded without: one more replay finds them
            first = replay_run(
                one.record, windows=(), cache=cache, log=log, progress=progress
            )
            sections = first.trace.sections
        windows = windows_around(sections, worst)
    log(f"booting again to record the paths and {len(windows)} windows")
    done = replay_run(
        one.record, windows=tuple(windows), cache=cache, log=log, progress=progress
    )
    for name in done.not_recorded:
        log(f"{name} not recorded: its place in this kernel is unknown")
    write_atomically(path := one.directory / REPLAY, pack(done.raw, name=REPLAY)[0])
    log(f"same result; recorded in {path}")
    return done.trace


def select_sections(
    trace: ExecTrace, worst: int, *, windows: bool
) -> Sequence[TraceSection]:
    """Return the windows, or the worst paths as whole as they are recorded."""
    if windows:
        return [s for s in trace.sections if s.kind is SectionKind.WINDOW]
    return with_windows(trace)[: max(1, worst)]
