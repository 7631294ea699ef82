"""Where a run's record and its recorded paths lie, and the symbols for them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtscope.errors import RtscopeError, UsageError
from rtscope.exectrace.file import AGAIN, BOUND, FILE, note_of, read_stream
from rtscope.exectrace.format import Kind, Section, Trace, with_windows
from rtscope.exectrace.symbols import NO_SYMBOLS, SymbolTable, merged, parse_symbols
from rtscope.record.attachments import why_lost
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import RECORD, ResultDir, read_record
from rtscope.virtual.replay import prepare_replay, virtual_of
from rtscope.virtual.symbols import find_symbols, read_symbols


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record and the directory that it lies in."""

    record: RunRecord
    directory: Path

    @property
    def max_ns(self) -> int:
        """The latest wake-up."""
        return self.record.max_ns or 0

    @property
    def replay_path(self) -> Path:
        """Where a second pass of this run keeps what it recorded."""
        return self.directory / AGAIN

    @property
    def sections_path(self) -> Path:
        """Where a pass for the longest sections of this run keeps them."""
        return self.directory / BOUND


def open_recorded(path: Path, run_id: str | None = None) -> Recorded:
    """
    Return one run of a campaign's directory, of a run's, or of a file.

    Without `run_id`, of several that with the latest wake-up. Raises UsageError where
    nothing is, or nothing of a virtual board.
    """
    return max(_virtual(every_run(path, run_id)), key=lambda one: one.max_ns)


def every_run(path: Path, run_id: str | None = None) -> list[Recorded]:
    """
    Return all runs that lie there, of boards and of machines, or the one of a name.

    Raises UsageError where there is none.
    """
    found = [Recorded(read_record(file), file.parent) for file in _files(path)]
    if run_id is None:
        return found
    names = [one.record.run.id for one in found]
    found = [one for one in found if one.record.run.id == run_id]
    if not found:
        raise UsageError(f"{path}: no run {run_id!r}; runs: {', '.join(names)}")
    return found


def _virtual(found: list[Recorded]) -> list[Recorded]:
    virtual = [one for one in found if one.record.virtual]
    if not virtual:
        virtual_of(found[0].record)  # says why
    return virtual


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / RECORD).is_file():
        return [path / RECORD]
    found = [path / "runs" / name / RECORD for name in ResultDir(path).done_ids()]
    if not found:
        raise UsageError(f"{path}: no record in it; rtscope run writes runs/*/{RECORD}")
    return sorted(found)


def stream_of(recorded: Recorded) -> Trace:
    """Return the paths that the run itself recorded; see `note_of`, `read_stream`."""
    record, trace = recorded.record, virtual_of(recorded.record).trace
    if why := why_lost(record, FILE):
        trace = {"why": f"{FILE} could not be written: {why}"}
    note = note_of(trace, name=record.run.id)
    return read_stream(recorded.directory / note.file, sha256=note.sha256)


def paths_of(recorded: Recorded) -> tuple[Trace, tuple[Section, ...]]:
    """
    Return the worst paths, worst first, as whole as they are recorded.

    What the run itself cut or left out is taken from a second pass, where there was
    one. Raises as `stream_of` does if neither recorded any.
    """
    replayed = recorded.replay_path
    try:
        first = stream_of(recorded)
    except UsageError:
        if not replayed.is_file():
            raise
        first = read_stream(replayed, sha256=None)
    worst = with_windows(first)
    if not replayed.is_file() or not any(map(_lacks, worst)):
        return first, worst
    fuller = {
        _wakeup(section): section
        for section in with_windows(read_stream(replayed, sha256=None))
        if not (section.cut or section.left_out)
    }
    return first, tuple(fuller.get(_wakeup(section), section) for section in worst)


def _lacks(section: Section) -> bool:
    """Tell whether a second pass may know more of a path."""
    return section.cut or section.left_out or not (section.kinds == Kind.TASK).any()


def _wakeup(section: Section) -> tuple[int, int, int, int]:
    """Return what makes it the same wake-up in another pass of the same run."""
    return section.cpu, section.sequence, section.latency_ns, section.last


def symbols_of(
    recorded: Recorded, *, cache: Path, log: Callable[[str], None]
) -> SymbolTable:
    """
    Return the symbols of the kernel; if they cannot be had, say why and return none.

    A packaged kernel is booted once for them.
    """
    virtual = virtual_of(recorded.record)
    digest, modules = virtual.kernel_digest, virtual.modules
    own = parse_symbols(virtual.module_symbols)
    found = find_symbols(cache, digest, modules=modules)
    if found is not None:
        return merged(found, own)
    try:
        prepared = prepare_replay(recorded.record, cache=cache)
        read_symbols(prepared, cache=cache, log=log)
    except RtscopeError as error:
        log(f"addresses instead of names: {error}")
        return own
    return merged(find_symbols(cache, digest, modules=modules) or NO_SYMBOLS, own)
