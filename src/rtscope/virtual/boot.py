"""One boot of a virtual board: QEMU from start to end, and why it failed."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtscope import process
from rtscope.board.initrd import Job
from rtscope.board.prepare import Prepared, write_initrd
from rtscope.board.qemu import Boot, Recording, command_line, with_plugin
from rtscope.board.results import read_results
from rtscope.errors import BoardError
from rtscope.machine.filetree import FileReader
from rtscope.virtual.capacity import available_bytes
from rtscope.virtual.diagnosis import Evidence, reason
from rtscope.virtual.timeout import Patience, Progress, read_progress, watch

LOOK_S = 0.1

STDERR_BYTES = 4000


@dataclass(frozen=True, slots=True)
class ToRecord:
    """Which paths a boot records; what the guest does is the same with any of it."""

    worst: int
    """How many of the worst wake-ups of all CPUs."""
    windows: tuple[tuple[int, int], ...] = ()
    """Instruction counts, first and last, ascending: everything between them."""
    places: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, int] = field(default_factory=dict)
    """What the longest sections are told by; without, they are not recorded."""


@dataclass(frozen=True, slots=True)
class Booted:
    """What one boot gave."""

    files: Mapping[str, bytes]
    """What the board has sent."""
    counts: Mapping[str, Any]
    """The plugin's summary: instructions, per CPU, turns."""
    initrd_digest: str
    plugin_digest: str
    host_seconds: float
    stream: bytes | None = None
    """The recorded paths, if they were asked for and the plugin wrote them."""


def boot(
    prepared: Prepared,
    job: Job,
    *,
    seed: int,
    patience: Patience,
    stopped: Callable[[], bool],
    hear: Callable[[Progress], None] = lambda _progress: None,
    record: ToRecord | None = None,
) -> Booted:
    """
    Boot once and return what the board sent.

    `stopped` is asked all the time, and ends it; `hear` is told how far it is. Raises
    BoardError with the reason and the end of the console if it hangs, panics or sends
    nothing.
    """
    with board_folder() as name:
        folder = Path(name)
        digest = _write(folder / "initrd", prepared, job)
        summary, stream = folder / "summary.json", folder / "stream"
        argv = command_line(
            prepared.qemu, prepared.board, _boot(prepared, folder, seed, record)
        )
        began = time.monotonic()
        ended = _run(argv, folder, patience=patience, stopped=stopped, hear=hear)
        try:
            files = read_results(folder / "results")
        except (BoardError, OSError) as missing:
            raise BoardError(
                reason(_evidence(prepared, folder, ended, missing))
            ) from missing
        return Booted(
            files=files,
            counts=json.loads(summary.read_text()) if summary.exists() else {},
            initrd_digest=digest,
            plugin_digest=prepared.plugin_digest,
            host_seconds=round(time.monotonic() - began, 3),
            stream=stream.read_bytes() if stream.exists() else None,
        )


def board_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a place for what a boot writes; BoardError if there is none."""
    try:
        return tempfile.TemporaryDirectory(prefix="rtscope-board-")
    except OSError as error:
        raise BoardError(
            f"no place for a board's files: {error.strerror}; name a directory in "
            "TMPDIR"
        ) from error


def _write(path: Path, prepared: Prepared, job: Job) -> str:
    try:
        return write_initrd(path, prepared, job)
    except OSError as error:
        raise BoardError(
            f"cannot write {path}: {error.strerror}; free some space there, or name "
            "another directory in TMPDIR"
        ) from error


def recording_in(folder: Path, record: ToRecord) -> Recording:
    """Return what the plugin is to record, into a folder."""
    return Recording(
        out=folder / "stream",
        worst=record.worst,
        windows=record.windows,
        places=record.places,
        sections=record.sections,
    )


def _boot(prepared: Prepared, folder: Path, seed: int, record: ToRecord | None) -> Boot:
    return Boot(
        kernel=prepared.kernel.image,
        initrd=folder / "initrd",
        console=folder / "console",
        results=folder / "results",
        seed=seed,
        turns=with_plugin(
            prepared.plugin,
            prepared.board,
            summary=folder / "summary.json",
            progress=folder / "progress",
            recording=None if record is None else recording_in(folder, record),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Ended:
    """How QEMU ended."""

    status: int | None
    """None if it was ended by us."""
    given_up: str
    stderr: str


def _run(
    argv: tuple[str, ...],
    folder: Path,
    *,
    patience: Patience,
    stopped: Callable[[], bool],
    hear: Callable[[Progress], None],
) -> _Ended:
    """Run QEMU to its end, or until it is not worth waiting for."""
    with (folder / "stderr").open("w+b") as stderr:
        # Its standard input is a pipe that ends with this process, and so QEMU does.
        qemu = process.start(argv, stderr=stderr)
        watched = watch(patience, time.monotonic())
        given_up = ""
        try:
            while qemu.poll() is None and not given_up:
                progress = _progress(folder)
                if progress is not None:
                    hear(progress)
                given_up = (
                    "interrupted"
                    if stopped()
                    else watched.look(time.monotonic(), progress)
                )
                time.sleep(LOOK_S)
            status = qemu.poll()
        finally:
            qemu.kill()
            qemu.wait()
            for pipe in (qemu.stdin, qemu.stdout):
                if pipe is not None:
                    pipe.close()
        stderr.seek(0, os.SEEK_END)
        stderr.seek(max(0, stderr.tell() - STDERR_BYTES))
        return _Ended(status, given_up, stderr.read().decode("utf-8", "replace"))


def _progress(folder: Path) -> Progress | None:
    try:
        return read_progress((folder / "progress").read_bytes())
    except FileNotFoundError:
        return None


def _evidence(
    prepared: Prepared, folder: Path, ended: _Ended, missing: Exception
) -> Evidence:
    return Evidence(
        board=prepared.board,
        status=ended.status,
        given_up=ended.given_up,
        stderr=ended.stderr,
        console=_console(folder),
        missing=str(missing),
        host_available_bytes=available_bytes(FileReader()),
        folder=str(folder.parent),
        folder_free_bytes=shutil.disk_usage(folder).free,
    )


def _console(folder: Path) -> list[str]:
    """Return the lines of the console, without what would act on a terminal."""
    path = folder / "console"
    text = path.read_text("utf-8", "replace") if path.exists() else ""
    lines = (
        "".join(c if c.isprintable() else " " for c in line).strip()
        for line in text.splitlines()
    )
    return [line for line in lines if line]
