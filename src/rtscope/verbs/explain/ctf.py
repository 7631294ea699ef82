"""Write what was explained as a folder of the Common Trace Format."""

from pathlib import Path

from rtscope.explain.directory import Explained
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import write_atomically
from rtscope.record.events.dat import open_trace
from rtscope.record.events.writer import TRACE
from rtscope.verbs.explain.ctftrace import CtfTrace, ctf_of_calls, ctf_of_trace


def refuse_used(folder: Path) -> None:
    """Raise UsageError for a folder that has something in it, or is a file."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--ctf {folder}: there already; name a new folder")


def write_ctf(
    folder: Path, explained: Explained, *, trace: Path | None, record: Path | None
) -> None:
    """
    Write all events of a trace, or of a run: of a board the calls of its worst wake-up.

    Raises UsageError for several runs, RecordError if it cannot be written.
    """
    made = _of_file(trace or _trace_in(record)) or _of_board(explained)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"cannot make {folder}: {error.strerror}") from error
    for name, content in made.files().items():
        write_atomically(folder / name, content)


def _trace_in(record: Path | None) -> Path | None:
    """Return the trace of a machine's run; None if there is none, as of a board's."""
    if record is None:
        return None
    folder = record if record.is_dir() else record.parent
    found = [folder / TRACE, *sorted(folder.glob(f"runs/*/{TRACE}"))]
    found = [one for one in found if one.is_file() and not one.is_symlink()]
    if len(found) > 1:
        raise UsageError(
            f"--ctf: {len(found)} runs have a trace, and a folder holds one; name a "
            f"run: rtscope explain {found[0].parent} --ctf DIR"
        )
    return next(iter(found), None)


def _of_file(trace: Path | None) -> CtfTrace | None:
    return None if trace is None else ctf_of_trace(open_trace(trace))


def _of_board(explained: Explained) -> CtfTrace:
    drawn = explained.timelines()
    if len(drawn) > 1:
        raise UsageError("--ctf: a folder holds one run: choose it with --run")
    timelines = [one for of_run in drawn for one in of_run[:1]]
    if not timelines:
        raise UsageError("--ctf: no wake-up of this record has a trace")
    worst = timelines[0]
    return ctf_of_calls(
        (
            track.cpu,
            one.begin_ns - worst.begin_ns,
            one.end_ns - worst.begin_ns,
            one.name,
        )
        for track in worst.tracks
        for one in track.slices
    )
