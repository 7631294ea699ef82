"""A program that the agent watches inside a virtual board, as it does on a machine."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import ROOT, Program
from rtscope.boards.recording.programuses import NO_DEBUG_FILES, content_of
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.inspect import files_of
from rtscope.boards.runs.script import agent_line, batches
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import LoadHello
from rtscope.host.units import NS_PER_S
from rtscope.machine.tasks.listing import PATHS, make_listing, read_surroundings
from rtscope.programs.images import Images
from rtscope.verbs.app.eventstacks import Naming
from rtscope.verbs.app.model import Observation
from rtscope.verbs.app.watch import (
    ProcessSnapshot,
    observation_of,
    read_snapshot,
    snapshot_paths,
    watch_args,
)
from rtscope.verbs.app.watchedcycles import CycleRecording, cycles_args, recording_of

ENDING_NS = 20 * NS_PER_S
"""To close the probes of a thread takes half a second of the kernel."""
LOAD, LOG, FACTS = "load.jsonl", "program.log", "facts.jsonl"
THREADS, FILES = "threads-{}.jsonl", "files-{}.jsonl"
BEFORE, AFTER = "before", "after"
WATCH, CYCLES = "watch.jsonl", "cycles.jsonl"
_PID = "$pid"
_RECORDING = (
    f"until [ -s /out/{CYCLES} ] || ! kill -0 $cycles 2>/dev/null; do sleep 0.01; done"
)
"""Its first line is there, or it has ended."""


@dataclass(frozen=True, slots=True)
class WatchedInside:
    """What the agent of a board saw of a program."""

    observation: Observation
    recording: CycleRecording
    said: str
    """What the program printed."""


def watch_inside(
    prepared: Prepared, program: Program, *, settle_ns: int, duration_ns: int
) -> WatchedInside:
    """Boot once, run a static program and watch it with the agent of the board."""
    booted = boot(
        prepared,
        Job(_script(program, settle_ns, duration_ns), tree=program.tree),
        seed=1,
        timeout=BootTimeout(0, settle_ns + duration_ns + ENDING_NS),
        stopped=lambda: False,
    )
    (pid,) = (one.pid for one in booted.lines(LOAD) if isinstance(one, LoadHello))
    with Images(content_of(program), debug_files=NO_DEBUG_FILES) as images:
        observation = observation_of(
            _snapshot(prepared, booted, BEFORE, pid),
            list(booted.lines(WATCH)),
            _snapshot(prepared, booted, AFTER, pid),
            images=images,
            probes=(),
            naming=Naming(packages=lambda _paths: {}),
        )
    recording = recording_of(list(booted.lines(CYCLES)), booted.text("script.log"))
    return WatchedInside(observation, recording, booted.text(LOG))


def _snapshot(
    prepared: Prepared, booted: Booted, when: str, pid: int
) -> ProcessSnapshot:
    around = read_surroundings(files_of(prepared, booted, FACTS))
    listing = make_listing(list(booted.lines(THREADS.format(when))), around)
    return read_snapshot(files_of(prepared, booted, FILES.format(when)), listing, pid)


def _script(program: Program, settle_ns: int, duration_ns: int) -> str:
    guard = agent_line(
        *("load", "--log", f"/out/{LOG}", "--"),
        *("busybox", "chroot", f"/{ROOT}", *program.command),
    )
    lines = [
        f"mkdir -p /{ROOT}/proc /{ROOT}/dev",
        f"mount -t proc proc /{ROOT}/proc",
        f"mount -t devtmpfs dev /{ROOT}/dev",
        *(f"{agent_line('read', '--', *b)} >>/out/{FACTS}" for b in batches(PATHS)),
        f"{guard} </dev/null >/out/{LOAD} &",
        f"sleep {settle_ns / NS_PER_S:g}",
        f"""pid=$(sed -n 's/.*"load_hello".*"pid":\\([0-9]*\\).*/\\1/p' /out/{LOAD})""",
        f"{_line(cycles_args(_PID, duration_ns))} >/out/{CYCLES} &",
        "cycles=$!",
        _RECORDING,
        *_snapshot_lines(BEFORE),
        f"{_line(watch_args(_PID, duration_ns, ()))} >/out/{WATCH}",
        "wait $cycles",
        *_snapshot_lines(AFTER),
        f'kill -KILL "{_PID}"',
        "true",
    ]
    return "\n".join(lines) + "\n"


def _snapshot_lines(when: str) -> Sequence[str]:
    return (
        f"{agent_line('tasks')} >/out/{THREADS.format(when)}",
        f"{_line(['read', '--', *snapshot_paths(_PID)])} >/out/{FILES.format(when)}",
    )


def _line(args: Sequence[str]) -> str:
    """Return the agent with arguments in which the shell puts the PID."""
    words = (f'"{w}"' if _PID in w else shlex.quote(w) for w in args)
    return " ".join(["rtscope-agent", *words])
