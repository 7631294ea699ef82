"""
Boot a virtual board once: QEMU from start to end, its timeouts; how many at once.

Timeouts are in virtual time, so a slow or busy host does not cause them. A boot is
ended if virtual time stands still, or if too much of it passes before the measurement
begins or ends.
"""

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

from rtscope.boards.catalogue import Board
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared, write_initrd
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
from rtscope.boards.runs.diagnosis import HOST_LIMIT, Evidence, diagnose, is_of_host
from rtscope.contract import Line, parse_line
from rtscope.host import process
from rtscope.host.errors import BoardError, HostError
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.process import Progress, Step
from rtscope.host.units import NS_PER_S
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader, read, text_of
from rtscope.measure.execute import BoardProgress

# --- the number of boards that this machine can run at once: CPUs and free memory -----

MIB = 1 << 20

QEMU_BYTES = 512 * MIB
"""Memory of QEMU itself: 256 MiB of translated code, its own, the recorder."""

_UNLIMITED_BYTES = 1 << 62
"""Version 1 of cgroups writes a number near 2^63 for no limit."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The number of boards to run at once, with a message if memory limits it."""

    boards: int
    message: str = ""


def host_capacity(
    board: Board, *, cpus: int, free_bytes: int | None, jobs: int | None, runs: int
) -> Capacity:
    """
    Return the number of boots of a campaign to run at once.

    One per CPU (each QEMU is one thread), or `jobs`, as far as memory allows; if
    `free_bytes` is None, memory is no limit. Raises BoardError if not even one fits.
    """
    wanted = max(1, min(cpus if jobs is None else jobs, runs))
    if free_bytes is None:
        return Capacity(wanted)
    each_bytes = board.memory_bytes + QEMU_BYTES
    fit = free_bytes // each_bytes
    free = f"{free_bytes // MIB} MiB are free on this machine"
    if fit < 1:
        raise BoardError(
            f"{board.name}: one board takes up to {each_bytes // MIB} MiB "
            f"({board.memory} and QEMU), and {free}; free some memory"
        )
    if fit >= wanted:
        return Capacity(wanted)
    return Capacity(
        fit,
        f"{fit} of {wanted} boards at once: each takes up to {each_bytes // MIB} MiB, "
        f"and {free}",
    )


def free_memory_bytes(reader: Reader) -> int | None:
    """Return the free memory of this machine, or of our cgroups if that is less.

    A cgroup counts its page cache as used, so the result may be too small.
    """
    free = [_meminfo_bytes(reader), *_cgroup_bytes(reader)]
    return min((one for one in free if one is not None), default=None)


def _meminfo_bytes(reader: Reader) -> int | None:
    for line in (text_of(read(reader, "/proc/meminfo")) or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_bytes(reader: Reader) -> list[int | None]:
    free: list[int | None] = []
    for line in (text_of(read(reader, "/proc/self/cgroup")) or "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            files = ("/sys/fs/cgroup", "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            mount = "/sys/fs/cgroup/memory"
            files = (mount, "memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        folder = PurePosixPath(path)
        # Each limit above ours holds too; in a container "/" is its own.
        free += [_free_below(reader, files, str(p)) for p in (folder, *folder.parents)]
    return free


def _free_below(reader: Reader, files: tuple[str, str, str], folder: str) -> int | None:
    mount, limit_file, used_file = files
    base = f"{mount}{folder}".rstrip("/")
    limit, used = (
        (text_of(read(reader, f"{base}/{name}")) or "").strip()
        for name in (limit_file, used_file)
    )
    if not (limit.isdigit() and used.isdigit()) or int(limit) >= _UNLIMITED_BYTES:
        return None
    return max(0, int(limit) - int(used))


# --- boot a virtual board once: QEMU from start to end, and its timeouts --------------

POLL_S = 0.1

STDERR_BYTES = 4000

BOOT_NS = 30 * NS_PER_S
"""Virtual time until the measurement begins, warm-up apart: boots take 1 to 6 s."""

END_NS = 90 * NS_PER_S
"""Virtual time after the measurement: a load has 13 s to end, storage cleans up."""

STILL_S = 120.0
"""Host time without progress: a quantum takes microseconds of virtual time."""

LAST_S = 3600.0
LAST_PER_VIRTUAL_S = 1200.0
"""The last limit, in host time: a hundred times that of a board on a free CPU."""

LONGEST_PAUSE_S = 1.0
"""A longer pause between two polls means that this process was stopped."""

_LINE = re.compile(rb"([0-9]{20}) ([0-9]{20})\n")

MAX_RESULTS_BYTES = 256 << 20
MAX_FILES = 10_000

_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True, slots=True)
class BootTimeout:
    """The limits of one boot."""

    duration_ns: int
    """Of the measurement."""
    warmup_ns: int = 0
    boot_ns: int = BOOT_NS
    still_s: float = STILL_S
    host_s: float | None = None
    """Host time after which it is ended, if the user has set one."""

    @property
    def last_s(self) -> float:
        """Host time after which every boot is ended."""
        if self.host_s is not None:
            return self.host_s
        virtual_ns = self.duration_ns + self.warmup_ns
        return LAST_S + LAST_PER_VIRTUAL_S * virtual_ns / NS_PER_S


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
        digest = _write(folder / "initrd", prepared, job)
        summary, stream = folder / SUMMARY, folder / STREAM
        seen, code = folder / PROGRAM_RECORD, folder / PROGRAM_CODE
        argv = command_line(
            prepared.qemu,
            prepared.board,
            _boot(prepared, folder, seed, recording, view),
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


def _write(path: Path, prepared: Prepared, job: Job) -> str:
    try:
        return write_initrd(path, prepared, job)
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
    folder: Path,
    seed: int,
    recording: Recording | None,
    view: ProgramView | None,
) -> Boot:
    return Boot(
        kernel=prepared.kernel.image,
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
        watchdog, began, given_up = Watchdog(timeout), time.monotonic(), ""
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


@dataclass(slots=True)
class Watchdog:
    """Watches the progress of a board; its state is the time of the last progress."""

    timeout: BootTimeout
    _polled_s: float = 0.0
    _still_s: float = 0.0
    _virtual_ns: int = -1

    def check(self, board: BoardProgress) -> str:
        """Return the reason to end the boot; empty while it makes progress."""
        virtual_ns = -1 if board.virtual_ns is None else board.virtual_ns
        passed_s = min(board.host_s - self._polled_s, LONGEST_PAUSE_S)
        self._still_s = 0.0 if virtual_ns > self._virtual_ns else self._still_s
        self._still_s += passed_s
        self._polled_s, self._virtual_ns = board.host_s, virtual_ns
        if self._still_s > self.timeout.still_s:
            return _still(board, self.timeout.still_s)
        if board.host_s > self.timeout.last_s:
            return (
                f"it has not ended within {self.timeout.last_s:.0f} s {HOST_LIMIT}; to "
                "wait longer: --host-limit, or host_limit in the table campaign of a "
                "file"
            )
        return _overdue(board, self.timeout)


def read_progress(content: bytes, *, host_s: float) -> BoardProgress:
    """Read the plugin's line (plugin/progress.h), once there is one."""
    match = _LINE.fullmatch(content)
    if match is None:
        return BoardProgress(host_s)
    return BoardProgress(host_s, int(match[1]), int(match[2]) or None)


def _still(board: BoardProgress, still_s: float) -> str:
    if board.virtual_ns is None:
        return f"QEMU did not begin to run it within {still_s:.0f} s"
    return (
        f"its time stands still at {board.virtual_ns / NS_PER_S:.3f} s: nothing has "
        f"run for {still_s:.0f} s of host time: no timer is set, or QEMU was stopped"
    )


def _overdue(board: BoardProgress, timeout: BootTimeout) -> str:
    begin_ns = timeout.boot_ns + timeout.warmup_ns
    if board.measured_ns is None:
        if (board.virtual_ns or 0) <= begin_ns:
            return ""
        return (
            f"it has run for {begin_ns / NS_PER_S:g} s of its own time and has not "
            "begun to measure"
        )
    if board.measured_ns <= timeout.duration_ns + END_NS:
        return ""
    return (
        f"it has not ended {END_NS / NS_PER_S:g} s of its own time after the "
        f"{timeout.duration_ns / NS_PER_S:g} s of the measurement"
    )


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
