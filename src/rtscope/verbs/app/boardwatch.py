"""
Watch a program of the user's inside a virtual board: one boot.

The board's agent watches it as on a machine. Nothing of this computer but the files of
the program decides the result, so the same program gives the same result again.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import ROOT, Program
from rtscope.boards.runs.boot import Booted, BootTimeout, boot, in_steps
from rtscope.boards.runs.diagnosis import oom_kills
from rtscope.boards.runs.identity import BoardIdentity, identity_of
from rtscope.boards.runs.inspect import INSERT_RESULTS, GuestFiles, files_of
from rtscope.boards.runs.script import PHASE_STEP_NS, agent_line, batches
from rtscope.contract import AgentError, Line, LoadEnd, LoadHello
from rtscope.host.errors import BoardError, TargetError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.machine.gather import paths as fact_paths
from rtscope.machine.reader import Content, Missing
from rtscope.machine.tasks.listing import PATHS, make_listing, read_surroundings
from rtscope.machine.tasks.statistics import PATTERN
from rtscope.programs.images import Images, Probe, each_once
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.verbs.app.eventstacks import Naming
from rtscope.verbs.app.model import Observation
from rtscope.verbs.app.watch import (
    ProcessSnapshot,
    observation_of,
    read_snapshot,
    snapshot_paths,
    watch_args,
)
from rtscope.verbs.app.watchedcycles import (
    CycleRecording,
    cycles_args,
    no_cycles,
    recording_of,
)

ENDING_NS = 20 * NS_PER_S
"""To close the probes of a thread takes half a second of the kernel."""

NO_DEBUG_FILES: tuple[Path, ...] = ()
"""Those of this computer are no input of the board."""


@dataclass(frozen=True, slots=True)
class BoardWatch:
    """What the agent of a board saw of a program."""

    observation: Observation
    recording: CycleRecording
    reader: GuestFiles
    """Facts about the board, and the statistics that the program keeps."""
    identity: BoardIdentity


def watch_on_board(
    prepared: Prepared,
    program: Program,
    *,
    settle_ns: int,
    duration_ns: int,
    seed: int,
    light: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _step: None,
) -> BoardWatch:
    """
    Boot once, run the program and watch it.

    Raises BoardError if the board does not boot or the program does not run there,
    TargetError or ContractError if the agent could not watch it.
    """
    places = [] if light else _probes(program)
    script = watching_script(
        program,
        places,
        facts=(*fact_paths(), *PATHS),
        settle_ns=settle_ns,
        duration_ns=duration_ns,
        seed=seed,
        light=light,
    )
    booted = boot(
        prepared,
        Job(script, tree=program.tree),
        seed=seed,
        timeout=BootTimeout(0, settle_ns + duration_ns + ENDING_NS),
        stopped=stopped,
        on_progress=in_steps(f"{prepared.kernel.name} runs the program", progress),
    )
    pid = _pid(prepared, booted, program)
    facts = files_of(prepared, booted, FACTS)
    before = _snapshot(prepared, booted, BEFORE, facts, pid)
    after = _snapshot(prepared, booted, AFTER, facts, pid)
    later = files_of(prepared, booted, FILES.format(AFTER))
    with Images(_reading(program), debug_files=NO_DEBUG_FILES) as images:
        observation = observation_of(
            before,
            list(booted.lines(WATCH)),
            after,
            images=images,
            probes=_with_inodes(places, before.maps),
            light=light,
            naming=Naming(progress, packages=lambda _paths: {}),
        )
    return BoardWatch(
        observation,
        no_cycles(observation)
        if light
        else recording_of(list(booted.lines(CYCLES)), booted.text("script.log")),
        GuestFiles({**facts.files, **later.files}),
        identity_of(prepared, booted, seed),
    )


def _probes(program: Program) -> list[Probe]:
    """Return where allocators begin in the files that the board gets."""
    pieces = [
        Piece(0, 0, "r-xp", 0, "", 1, f"/{path}") for path in sorted(program.files)
    ]
    with Images(_reading(program), debug_files=NO_DEBUG_FILES) as images:
        images.read(pieces)
        return each_once(
            (one.path, Probe(function, offset, one.path, 0))
            for one in pieces
            for function, offset in images.functions(one)
        )


def _with_inodes(places: Sequence[Probe], maps: Sequence[Piece]) -> list[Probe]:
    """Return the probes in the files that are in memory, with their inodes."""
    inodes = {piece.path: piece.inode for piece in maps}
    return [
        Probe(one.name, one.offset, one.path, inodes[one.path])
        for one in places
        if one.path in inodes
    ]


def _reading(program: Program) -> Callable[[Piece], Content]:
    def read_piece(piece: Piece) -> Content:
        content = program.image(piece.path)
        return Missing() if content is None else content

    return read_piece


def _snapshot(
    prepared: Prepared, booted: Booted, when: str, facts: GuestFiles, pid: int
) -> ProcessSnapshot:
    lines: list[Line] = list(booted.lines(THREADS.format(when)))
    listing = make_listing(lines, read_surroundings(facts))
    return read_snapshot(files_of(prepared, booted, FILES.format(when)), listing, pid)


def _pid(prepared: Prepared, booted: Booted, program: Program) -> int:
    """Return the process that was watched; BoardError if the program did not run."""
    pid, why = None, ""
    for line in booted.lines(LOAD):
        match line:
            case AgentError():
                raise TargetError(line.message)
            case LoadHello():
                pid = line.pid
            case LoadEnd() if WATCH not in booted.files:
                how = f"by signal {line.signal}" if line.signal else ""
                why = how or f"with status {line.status}"
    if pid is not None and WATCH in booted.files:
        return pid
    name = PurePosixPath(program.command[0]).name
    ended = f"ended before it could be watched, {why}" if why else "did not begin"
    log = booted.text(LOG).strip() or booted.text("script.log").strip()
    printed = f"; it printed: {log[-300:]}" if log else "; it printed nothing"
    killed = oom_kills(booted.text("kernel.log"), prepared.board)
    raise BoardError(
        f"{prepared.board.name}: {name} {ended}{printed}{killed and f'; {killed}'}"
    )


# --- the script for the board's shell -----------------------------------------------

LOAD, LOG, FACTS = "load.jsonl", "program.log", "facts.jsonl"
THREADS, FILES = "threads-{}.jsonl", "files-{}.jsonl"
BEFORE, AFTER = "before", "after"
WATCH, CYCLES = "watch.jsonl", "cycles.jsonl"

TICK_NS = 4_000_000
"""Of kernels with 250 ticks a second, and a multiple of that of faster ones."""

_RECORDING = (
    f"until [ -s /out/{CYCLES} ] || ! kill -0 $cycles 2>/dev/null; do sleep 0.01; done"
)
"""Its first line is there, or it has ended."""

_PID = "$pid"
"""A variable of the shell."""

# What a program expects in its root directory. /dev/shm is that of the board, where the
# library of the tasks keeps its statistics.
_MOUNTS = (
    f"mkdir -p /{ROOT}/proc /{ROOT}/sys /{ROOT}/dev /{ROOT}/tmp",
    f"mount -t proc proc /{ROOT}/proc",
    f"mount -t sysfs sysfs /{ROOT}/sys",
    f"mount -t devtmpfs dev /{ROOT}/dev",
    f"mount -o bind /dev/shm /{ROOT}/dev/shm",
    f"mount -t tmpfs tmp /{ROOT}/tmp",
)


def watching_script(
    program: Program,
    probes: Sequence[Probe],
    *,
    facts: Sequence[str],
    settle_ns: int,
    duration_ns: int,
    seed: int,
    light: bool = False,
) -> str:
    """
    Return the script; the paths `facts` are read before the program begins.

    `light` leaves out the cycles. The seed decides when it begins between two ticks of
    the kernel's timer.
    """
    cycles = _line(cycles_args(_PID, duration_ns))
    places = ":".join(program.libraries)
    libraries = f"LD_LIBRARY_PATH={places} " if places else ""
    guard = agent_line(
        *("load", "--log", f"/out/{LOG}", "--"),
        *("busybox", "chroot", f"/{ROOT}", *program.command),
    )
    reads = [f"{agent_line('read', '--', *b)} >>/out/{FACTS}" for b in batches(facts)]
    lines = [
        INSERT_RESULTS,
        *_MOUNTS,
        *reads,
        f"sleep {seed * PHASE_STEP_NS % TICK_NS / NS_PER_S:.9f}",
        f"{libraries}{guard} </dev/null >/out/{LOAD} &",
        f"sleep {settle_ns / NS_PER_S:g}",
        f"""pid=$(sed -n 's/.*"load_hello".*"pid":\\([0-9]*\\).*/\\1/p' /out/{LOAD})""",
        f'[ -n "{_PID}" ] && [ -d "/proc/{_PID}" ] || exit 1',
        *([] if light else [f"{cycles} >/out/{CYCLES} &", "cycles=$!", _RECORDING]),
        *_snapshot_lines(BEFORE),
        f"{_line(watch_args(_PID, duration_ns, probes))} >/out/{WATCH}",
        *([] if light else ["wait $cycles"]),
        *_snapshot_lines(AFTER),
        f'kill -KILL "{_PID}"',
        "true",
    ]
    return "\n".join(lines) + "\n"


def _snapshot_lines(when: str) -> Sequence[str]:
    paths = (*snapshot_paths(_PID), *((PATTERN,) if when == AFTER else ()))
    return (
        f"{agent_line('tasks')} >/out/{THREADS.format(when)}",
        f"{_line(['read', '--', *paths])} >/out/{FILES.format(when)}",
    )


def _line(args: Sequence[str]) -> str:
    """Return the agent with arguments in which the shell puts the PID."""
    words = (f'"{w}"' if _PID in w else shlex.quote(w) for w in args)
    return " ".join(["rtscope-agent", *words])
