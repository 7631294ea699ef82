"""What `rtscope explain` explains: runs of virtual boards, of machines, and traces."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rtscope.board.cache import cache_dir
from rtscope.cli.explainbound import bounds_of_run, bounds_of_trace, record_sections
from rtscope.errors import RecordError, UsageError
from rtscope.exectrace.format import Section, Trace
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.run import (
    TRACE,
    counted_wakeups,
    explained_windows,
    has_trace,
    why_untraced,
)
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.events.window import (
    NoWakeup,
    WakeupSelector,
    choose,
    window_around,
)
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation
from rtscope.explain.perfetto import (
    ExplainedWindow,
    Recording,
    perfetto_of_events,
    perfetto_trace,
)
from rtscope.ftrace.open import open_trace
from rtscope.record.explanation import EXPLAINED, write_explained
from rtscope.report.model.explanations import (
    ExplainedRun,
    document_of,
    explained_run,
    explained_trace,
)
from rtscope.virtual.recordings import Recorded, every_run, paths_of, symbols_of

_SECONDS = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class Said:
    """Talk, which is no result."""

    console: Console

    def __call__(self, text: str) -> None:
        """Print a line of it."""
        self.console.print(f"rtscope: {text}", markup=False)


@dataclass(frozen=True, slots=True)
class Explained:
    """All runs, and what is shown of each of them in a trace for Perfetto."""

    runs: tuple[ExplainedRun, ...]
    paths: tuple[Recording, ...] = ()
    windows: tuple[ExplainedWindow, ...] = ()

    def perfetto(self) -> bytes:
        """Return the trace; either kind of time alone makes sense in one."""
        if self.paths and self.windows:
            raise UsageError(
                "--perfetto: these are runs of boards and of machines, whose times "
                "have nothing in common; choose one with --run"
            )
        if self.paths:
            return perfetto_trace(self.paths)
        return perfetto_of_events(self.windows)


def explained_runs(
    path: Path, run_id: str | None, *, worst: int, bound: bool, say: Said
) -> Explained:
    """
    Explain every run that has recorded paths or events; say which cannot be.

    Each explanation is written beside its record. With `bound` those of virtual boards
    are booted again for their longest sections.
    """
    chosen = every_run(path, run_id)
    if bound:
        record_sections(chosen, say=say)
    runs: list[ExplainedRun] = []
    paths: list[Recording] = []
    windows: list[ExplainedWindow] = []
    for one in chosen:
        try:
            if one.record.virtual:
                recordings = _recordings(one, say=say)
                paths += recordings[:worst]
                explanations = [r.explanation for r in recordings]
            elif has_trace(one.directory):
                found = _windows(one)
                windows += found[:worst]
                explanations = [w.explanation for w in found]
            else:
                explanations = _counted(one)
        except UsageError as error:
            if len(chosen) == 1:
                raise
            say(str(error))
            continue
        bounds = bounds_of_run(one, say=say)
        runs.append(explained_run(one.record, explanations, bounds=bounds))
        _keep(one, runs[-1], say=say)
    if not runs:
        raise UsageError(
            f"{path}: no run has recorded paths or events; measure a virtual board "
            "without --no-record, or a machine with --explain"
        )
    return Explained(tuple(runs), tuple(paths), tuple(windows))


def explained_file(
    path: Path, *, thread: str | None, at: str | None, bound: bool, say: Said
) -> Explained:
    """
    Explain one wake-up of a trace that has no record.

    With `bound` the sections of the whole trace are added up for its CPU.
    """
    asked = WakeupSelector(thread, None if at is None else _trace_time(at))
    trace = open_trace(path)
    try:
        chosen = choose(trace, asked)
    except NoWakeup as error:
        raise UsageError(f"{path}: {error}") from None
    wakeup = chosen.wakeup
    say(
        f"{chosen.how}: {wakeup.comm or '<...>'}-{wakeup.pid}, ready or due at "
        f"{wakeup.expiry_ns / 1e9:.9f}"
    )
    window, wakeup = window_around(trace, wakeup)
    explanation = explain_events(window, wakeup, machine=MachineTraits())
    shown = ExplainedWindow(path.name, window, wakeup, explanation)
    bounds = bounds_of_trace(trace, chosen.wakeup) if bound else ()
    run = explained_trace(path.name, [explanation], bounds=bounds)
    return Explained((run,), (), (shown,))


def _trace_time(text: str) -> int:
    match = _SECONDS.fullmatch(text.strip().rstrip(":"))
    if match is None:
        raise UsageError(
            f"--at {text!a}: not a time of a trace; write seconds, as in 1234.567890"
        )
    return int(match[1]) * 1_000_000_000 + int((match[2] or "0").ljust(9, "0"))


def _counted(one: Recorded) -> list[Explanation]:
    """Return what counters tell; raise UsageError if there are none either."""
    found = counted_wakeups(one.record)
    if not found:
        raise UsageError(
            f"{one.record.run.id}: no events were kept, so that nothing can be said of "
            f"why: {why_untraced(one.record)}"
        )
    return found


def _windows(one: Recorded) -> list[ExplainedWindow]:
    return explained_windows(one.record, open_trace(one.directory / TRACE))


def _recordings(one: Recorded, *, say: Said) -> list[Recording]:
    stream, paths = paths_of(one)
    return list(_explained_paths(one, stream, paths, say=say))


def _explained_paths(
    one: Recorded, stream: Trace, paths: Sequence[Section], *, say: Said
) -> Iterator[Recording]:
    symbols = symbols_of(one, cache=cache_dir(os.environ), log=say)
    arch, shift = stream.arch, stream.shift
    for number, section in enumerate(paths, 1):
        yield Recording(
            title=f"{one.record.run.id}, worst wake-up {number}",
            section=section,
            explanation=explain_path(section, symbols, arch=arch, shift=shift),
            symbols=symbols,
            arch=arch,
            shift=shift,
        )


def _keep(one: Recorded, explained: ExplainedRun, *, say: Said) -> None:
    try:
        write_explained(one.directory / EXPLAINED, document_of(explained))
    except RecordError as error:  # a result that may only be read
        say(f"{EXPLAINED} is not kept: {error}")
