"""Boot a virtual board once: QEMU from start to end, and what the board sent."""

import io
import json
import os
import re
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared, write_initrd, write_kernel
from rtscope.boards.parts.qemu import (
    PROGRAM_CODE,
    PROGRAM_RECORD,
    PROGRESS,
    STREAM,
    SUMMARY,
    Boot,
    ProgramView,
    Recording,
    command_line,
    with_plugin,
)
from rtscope.boards.runs.capacity import free_memory_bytes
from rtscope.boards.runs.diagnosis import Evidence, diagnose, is_of_host
from rtscope.boards.runs.watchdog import (
    BootTimeout,
    Watchdog,
    cpu_use,
    read_progress,
)
from rtscope.contract import Line, parse_line
from rtscope.host import process
from rtscope.host.errors import BoardError, HostError
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.process import Progress, Step
from rtscope.host.units import NS_PER_S
from rtscope.machine.filetree import FileReader
from rtscope.measure.execute import BoardProgress

POLL_S = 0.1

STDERR_BYTES = 4000

MAX_RESULTS_BYTES = 256 << 20
MAX_FILES = 10_000

_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True, slots=True)
class Booted:
    """The results of one boot."""

    files: Mapping[str, bytes]
    """The files that the board has sent."""
    counts: Mapping[str, Any]
    """The plugin's summary: instructions, per CPU, quanta."""
    initrd_digest: str
    plugin_digest: str
    host_seconds: float
    stream: bytes | None = None
    """The recorded paths, if they were asked for and the plugin wrote them."""
    program: bytes | None = None
    """What the threads of a program did, if that was asked for."""
    code: bytes | None = None
    """Which code of it they executed; likewise."""

    def text(self, name: str) -> str:
        """Return a file as text; empty if the board did not send it."""
        return self.files.get(name, b"").decode("utf-8", "replace")

    def lines(self, name: str) -> Iterator[Line]:
        """Yield the lines that the board's agent wrote into a file."""
        return map(parse_line, self.files.get(name, b"").splitlines())


def boot(
    prepared: Prepared,
    job: Job,
    *,
    seed: int,
    timeout: BootTimeout,
    stopped: Callable[[], bool],
    on_progress: Callable[[BoardProgress], None] = lambda _board: None,
    recording: Recording | None = None,
    view: ProgramView | None = None,
) -> Booted:
    """
    Boot once and return what the board sent.

    The boot ends as soon as `stopped` returns True.
    Raises BoardError with the reason and the end of the console if it hangs, panics or
    sends nothing; HostError if this machine is the reason.
    """
    with temporary_folder("board", error=HostError) as folder:
        digest, kernel = _write(folder, prepared, job)
        summary, stream = folder / SUMMARY, folder / STREAM
        seen, code = folder / PROGRAM_RECORD, folder / PROGRAM_CODE
        argv = command_line(
            prepared.qemu,
            prepared.board,
            _boot(prepared, kernel, folder, seed, recording, view),
        )
        began = time.monotonic()
        ended = _run(
            argv, folder, timeout=timeout, stopped=stopped, on_progress=on_progress
        )
        try:
            files = read_results(folder / "results")
            counts = json.loads(summary.read_text()) if summary.exists() else {}
        except (BoardError, OSError, ValueError) as missing:
            left = _evidence(prepared, folder, ended, missing)
            kind = HostError if is_of_host(left) else BoardError
            raise kind(diagnose(left)) from missing
        return Booted(
            files=files,
            counts=counts,
            initrd_digest=digest,
            plugin_digest=prepared.plugin_digest,
            host_seconds=round(time.monotonic() - began, 3),
            stream=stream.read_bytes() if stream.exists() else None,
            program=_program(prepared, seen, ended)
            if view and not view.parts
            else None,
            code=code.read_bytes() if code.exists() else None,
        )


def in_steps(what: str, progress: Progress) -> Callable[[BoardProgress], None]:
    """Return an `on_progress` for one who waits for a boot: its virtual seconds."""

    def tell(board: BoardProgress) -> None:
        progress(Step(what, (board.virtual_ns or 0) // NS_PER_S, unit="virtual s"))

    return tell


def _write(folder: Path, prepared: Prepared, job: Job) -> tuple[str, Path]:
    """Write the files of a boot; return the initrd's SHA-256, and the kernel."""
    path = folder / "initrd"
    try:
        digest = write_initrd(path, prepared, job)
        path = folder / "kernel"
        return digest, write_kernel(path, prepared)
    except OSError as error:
        raise HostError(
            f"cannot write {path}: {error.strerror}; free some space there, or name "
            "another directory in TMPDIR"
        ) from error


def _program(prepared: Prepared, path: Path, ended: "_Ended") -> bytes:
    """Return what the plugin wrote of a program; BoardError if it is no good."""
    wrong = re.search(rf"{re.escape(str(path))}: (.*)", ended.stderr)
    if wrong or not path.exists():
        why = wrong[1] if wrong else "the plugin wrote nothing"
        raise BoardError(
            f"{prepared.kernel.name}: programs cannot be watched from outside: {why}"
        )
    return path.read_bytes()


def _boot(
    prepared: Prepared,
    kernel: Path,
    folder: Path,
    seed: int,
    recording: Recording | None,
    view: ProgramView | None,
) -> Boot:
    return Boot(
        kernel=kernel,
        initrd=folder / "initrd",
        console=folder / "console",
        results=folder / "results",
        seed=seed,
        quantum=with_plugin(
            prepared.plugin,
            prepared.board,
            folder=folder,
            recording=recording,
            view=view,
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
    timeout: BootTimeout,
    stopped: Callable[[], bool],
    on_progress: Callable[[BoardProgress], None],
) -> _Ended:
    """Run QEMU until it ends, is stopped, or a timeout expires."""
    with (folder / "stderr").open("w+b") as stderr:
        # Its standard input is a pipe that ends with this process, and so QEMU does.
        qemu = process.start(argv, stderr=stderr)
        watchdog = Watchdog(timeout, lambda: cpu_use(qemu.pid))
        began, given_up = time.monotonic(), ""
        try:
            while qemu.poll() is None and not given_up:
                progress = _progress(folder, host_s=time.monotonic() - began)
                on_progress(progress)
                given_up = "interrupted" if stopped() else watchdog.check(progress)
                time.sleep(POLL_S)
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


def _progress(folder: Path, *, host_s: float) -> BoardProgress:
    try:
        return read_progress((folder / PROGRESS).read_bytes(), host_s=host_s)
    except FileNotFoundError:
        return BoardProgress(host_s)


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
        host_available_bytes=free_memory_bytes(FileReader()),
        folder=str(folder.parent),
        folder_free_bytes=shutil.disk_usage(folder).free,
    )


def _console(folder: Path) -> list[str]:
    """Return the lines of the console without control characters."""
    path = folder / "console"
    text = path.read_text("utf-8", "replace") if path.exists() else ""
    lines = (
        "".join(c if c.isprintable() else " " for c in line).strip()
        for line in text.splitlines()
    )
    return [line for line in lines if line]


def read_results(path: Path) -> dict[str, bytes]:
    """
    Return the files of a board's /out by name.

    Raises BoardError if the board has not sent all of it: it hung, panicked or ran out
    of something; see its console.
    """
    with path.open("rb") as file:
        content = file.read(MAX_RESULTS_BYTES + 1)
    if len(content) > MAX_RESULTS_BYTES:
        raise BoardError(f"the board sent more than {MAX_RESULTS_BYTES >> 20} MiB")
    if not content:
        raise BoardError("the board sent no results")
    try:
        files, end = _unpacked(content)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise BoardError(f"the board's results are damaged: {error}") from error
    # tarfile takes whatever is no header for the end; the format has two zero blocks.
    rest = content[end:]
    if len(rest) < 2 * _BLOCK or len(rest) % _BLOCK or any(rest):
        raise BoardError("the board's results are cut short or damaged")
    return files


def _unpacked(content: bytes) -> tuple[dict[str, bytes], int]:
    """Return the files, and where the last of them ends."""
    files: dict[str, bytes] = {}
    end = 0
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for count, member in enumerate(archive, 1):
            if count > MAX_FILES:
                raise BoardError(f"the board sent more than {MAX_FILES} files")
            end = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
            opened = archive.extractfile(member) if member.isreg() else None
            if opened is not None:
                files[str(PurePosixPath(member.name))] = opened.read()
    return files, end
