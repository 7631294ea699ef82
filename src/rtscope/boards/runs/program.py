"""
Run a program of the user's on a virtual board: one boot, one start or several.

Each start is a new process with an empty /tmp and /run. What carries over from start to
start is what a running machine keeps: the state of the kernel and of its memory, files
that the program wrote elsewhere, and /dev/shm.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from signal import SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGTRAP

from rtscope.boards.kernels.catalogue import event_modules_of
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramView, Recording
from rtscope.boards.recording.crash import crash_place
from rtscope.boards.runs import programscript as script
from rtscope.boards.runs.boot import Booted, boot, in_steps
from rtscope.boards.runs.diagnosis import messages_of, oom_kills
from rtscope.boards.runs.identity import BoardIdentity, identity_of
from rtscope.boards.runs.inspect import GuestFiles, files_of
from rtscope.boards.runs.programscript import ProgramJob, job_of_program
from rtscope.boards.runs.script import MODULE_SYMBOLS
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import (
    AgentError,
    Line,
    LoadEnd,
    LoadHello,
    LoadTick,
    LoadWindow,
    sha256_of_json,
)
from rtscope.host.errors import BoardError, TargetError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.machine.gather import paths as fact_paths
from rtscope.machine.reader import text_of
from rtscope.measure.assemble import caveats_from_load
from rtscope.measure.loadproof import LoadProof
from rtscope.measure.loads import get_load, stream_caveats, stream_of
from rtscope.programs.ends import end_words
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.memorymap import parse_maps
from rtscope.record.caveats.catalogue import Caveat, caveats_from_outside, make

SHOWN_CHARACTERS = 400
"""Of the output of a program that failed, in a message."""

_UPTIME = re.compile(r"([0-9]{1,9})\.([0-9]{2})")
FAULTS = frozenset({SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV})
"""Signals by which the kernel ends what executes something impossible."""

_NS_PER_HUNDREDTH = NS_PER_S // 100


@dataclass(frozen=True, slots=True)
class Output:
    """What a start wrote to one of its streams."""

    begin: bytes
    end: bytes
    """Empty if `begin` has all of it."""
    size: int
    refused: bool
    """Whether it filled its room, so that more would have been refused."""

    @property
    def cut_bytes(self) -> int:
        """How many bytes between begin and end were not kept."""
        return self.size - len(self.begin) - len(self.end)

    @property
    def text(self) -> str:
        """Return what was kept, with a line where something is missing."""
        begin, end = (one.decode("utf-8", "replace") for one in (self.begin, self.end))
        cut = f"\n[{self.cut_bytes:,} bytes were not kept]\n" if self.cut_bytes else ""
        room = f"\n[it filled its {script.STREAM_BYTES >> 20} MiB]\n"
        return f"{begin}{cut}{end}{room if self.refused else ''}"


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """One start of a program."""

    number: int
    pid: int
    status: int | None
    """None: by a signal."""
    signal: int | None
    stopped: bool
    """Whether it ran until its time was over, and was ended then."""
    lasted_ns: int
    """To a hundredth of a second; the record has it exactly."""
    left: int
    """Processes that its first one left behind, ended with it."""
    stdout: Output
    stderr: Output
    maps: Mapping[int, tuple[Piece, ...]]
    """What was where in the memory of each of its processes, at the end."""
    threads: tuple[Line, ...] = ()
    """All threads of the board when its time was over, as its agent listed them; none:
    they were not asked for, or it ended before."""
    about: GuestFiles = field(default_factory=lambda: GuestFiles({}))
    """What was read of the board then."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a boot with a program gave."""

    starts: tuple[ProgramStart, ...]
    identity: BoardIdentity
    record: bytes | None
    """What its threads did, as the plugin wrote it; None: it was not asked for."""
    reader: GuestFiles
    """Facts about the board, read before the first start."""
    caveats: tuple[Caveat, ...]
    """What casts doubt on its load, and on the kernel."""
    kernel_log: str
    host_seconds: float
    paths: bytes | None = None
    """What the CPUs executed, as the plugin wrote it; None: it was not asked for."""
    code: bytes | None = None
    """Which code each thread executed; likewise."""
    module_symbols: str = ""
    """Of the modules that its load needs, as in /proc/kallsyms."""

    @property
    def inputs_digest(self) -> str:
        """The digest of all that decides the result."""
        return sha256_of_json(self.identity.row())


def run_program(
    prepared: Prepared,
    job: ProgramJob,
    *,
    view: ProgramView | None = None,
    recording: Recording | None = None,
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _step: None,
) -> ProgramRun:
    """
    Boot once, and start the program as often as the job says.

    With a `view` the plugin writes what its threads do, with a `recording` what the
    CPUs execute.

    Raises BoardError if the board does not boot, or if the program did not begin or
    ended with an error; with what it printed.
    """
    ends_ns = len(job.phases_ns) * script.LONGEST_END_NS
    booted = boot(
        prepared,
        job_of_program(
            job,
            facts=fact_paths(),
            event_modules=event_modules_of(prepared.kernel),
        ),
        seed=job.seed,
        timeout=BootTimeout(0, job.settle_ns + job.lead_ns + job.starts_ns + ends_ns),
        stopped=stopped,
        on_progress=in_steps(f"{prepared.kernel.name} runs the program", progress),
        view=view,
        recording=recording,
    )
    starts = tuple(
        _start(prepared, job, booted, number)
        for number in range(1, len(job.phases_ns) + 1)
    )
    identity = identity_of(prepared, booted, job.seed)
    if view is not None and view.phases:
        identity = replace(identity, phases=" ".join(map(str, view.phases)))
    return ProgramRun(
        starts=starts,
        identity=identity,
        record=booted.program,
        reader=files_of(prepared, booted, script.FACTS),
        caveats=(
            *_load_caveats(job, booted),
            *caveats_from_outside(messages_of(booted.text("kernel.log")), ()),
        ),
        kernel_log=booted.text("kernel.log"),
        host_seconds=booted.host_seconds,
        paths=booted.stream,
        code=booted.code,
        module_symbols=booted.text(MODULE_SYMBOLS),
    )


# --- one start ------------------------------------------------------------------------


def _start(
    prepared: Prepared, job: ProgramJob, booted: Booted, number: int
) -> ProgramStart:
    pid, end = None, None
    for line in booted.lines(script.GUARD.format(number)):
        match line:
            case AgentError():
                raise TargetError(line.message)
            case LoadHello():
                pid = line.pid
            case LoadEnd():
                end = line
    begun_ns, ended_ns = (
        _uptime_ns(booted.text(name.format(number)))
        for name in (script.BEGUN, script.ENDED)
    )
    if pid is None or end is None or begun_ns is None or ended_ns is None:
        raise BoardError(_failure(prepared, job, booted, number, "did not begin"))
    # it may have ended by itself shortly before
    asked = script.ASKED.format(number) in booted.files and end.signal == SIGKILL
    start = ProgramStart(
        number=number,
        pid=pid,
        status=end.status,
        signal=end.signal,
        stopped=asked,
        lasted_ns=ended_ns - begun_ns,
        left=end.left or 0,
        stdout=_output(booted, script.STDOUT.format(number)),
        stderr=_output(booted, script.STDERR.format(number)),
        maps=_maps(prepared, booted, number, pid),
        threads=tuple(booted.lines(script.THREADS.format(number))),
        about=_about(prepared, booted, script.ABOUT.format(number)),
    )
    if problem := _problem(start):
        if start.signal in FAULTS:
            place = crash_place(
                job.program,
                booted.text("kernel.log"),
                arch=prepared.board.arch,
                from_ns=begun_ns,
                to_ns=ended_ns,
            )
            problem += place and f" in {place}"
        raise BoardError(_failure(prepared, job, booted, number, problem))
    return start


def _about(prepared: Prepared, booted: Booted, name: str) -> GuestFiles:
    return files_of(prepared, booted, name) if name in booted.files else GuestFiles({})


def _problem(start: ProgramStart) -> str:
    """Return why a start does not count; empty if it does."""
    if start.stopped:
        return ""
    lasted = f"after {start.lasted_ns / NS_PER_S:.2f} virtual s"
    if start.signal is None and not start.status:
        return ""
    return f"ended {lasted}, {end_words(start.status, start.signal)}"


def _failure(
    prepared: Prepared, job: ProgramJob, booted: Booted, number: int, problem: str
) -> str:
    name = PurePosixPath(job.program.command[0]).name
    streams = (_output(booted, one.format(number)) for one in _STREAMS)
    logs = (booted.text(script.GUARD_LOG.format(number)), booted.text("script.log"))
    killed = oom_kills(booted.text("kernel.log"), prepared.board)
    which = f", start {number} of {len(job.phases_ns)}," if number > 1 else ""
    return (
        f"{prepared.board.name}: {name}{which} {problem}"
        f"{printed(*streams, *logs)}{killed and f'; {killed}'}"
    )


def printed(*streams: Output | str) -> str:
    """Return the end of the first of these that is not empty, for a message."""
    texts = (one if isinstance(one, str) else one.text for one in streams)
    said = next((text.strip() for text in texts if text.strip()), "")
    if not said:
        return "; it printed nothing"
    return f"; it printed: {said[-SHOWN_CHARACTERS:]}"


_STREAMS = (script.STDERR, script.STDOUT)


def _output(booted: Booted, name: str) -> Output:
    begin = booted.files.get(name, b"")
    size = booted.text(script.SIZE.format(name)).strip()
    whole = int(size) if size.isdecimal() else len(begin)
    tail = booted.files.get(script.TAIL.format(name), b"")
    end = tail[-(whole - len(begin)) :] if whole > len(begin) else b""
    return Output(begin, end, whole, refused=whole >= script.STREAM_BYTES)


def _uptime_ns(text: str) -> int | None:
    match = _UPTIME.match(text)
    if match is None:
        return None
    return int(match[1]) * NS_PER_S + int(match[2]) * _NS_PER_HUNDREDTH


def _maps(
    prepared: Prepared, booted: Booted, number: int, pid: int
) -> Mapping[int, tuple[Piece, ...]]:
    """Return the maps of the processes of a start: those of its session."""
    stats = files_of(prepared, booted, script.STATS.format(number)).files
    of_start = {pid}
    for path, content in stats.items():
        fields = (text_of(content) or "").rpartition(")")[2].split()
        if len(fields) > _SESSION and fields[_SESSION] == str(pid):
            of_start.add(int(path.split("/")[2]))
    files = files_of(prepared, booted, script.MAPS.format(number)).files
    found: dict[int, tuple[Piece, ...]] = {}
    for one in sorted(of_start):
        text = text_of(files.get(f"/proc/{one}/maps", b""))
        if text:
            found[one] = tuple(parse_maps(text))
    return found


_SESSION = 3
"""Of the fields of /proc/PID/stat that follow the name."""


# --- its load -------------------------------------------------------------------------


def _load_caveats(job: ProgramJob, booted: Booted) -> Iterator[Caveat]:
    """Yield what casts doubt on the load: whether it ran from first start to last."""
    command = job.load_command
    yield from (make(name, detail) for name, detail in command.caveats)
    if not command.argv:
        return
    ticks: list[LoadTick] = []
    windows: list[LoadWindow] = []
    end: LoadEnd | None = None
    for line in booted.lines(script.LOAD):
        match line:
            case AgentError():
                raise TargetError(line.message)
            case LoadTick():
                ticks.append(line)
            case LoadWindow():
                windows.append(line)
            case LoadEnd():
                end = line
    begun_ns = _uptime_ns(booted.text(script.BEGUN.format(1))) or 0
    ended_ns = _uptime_ns(booted.text(script.RUN_ENDED)) or begun_ns
    load, span_ns = get_load(job.load), (begun_ns, ended_ns)
    early = end is not None and not end.stop_requested
    yield from caveats_from_load(
        load, ticks, end=end, ended_early=early, window_ns=span_ns
    )
    proof = LoadProof(load, command.argv, windows, span_ns, ticks=ticks)
    yield from proof.caveats(ended_early=early)
    if load.event:
        log = booted.text(script.LOAD_LOG)
        yield from stream_caveats(load, stream_of(log, span_ns), log)
