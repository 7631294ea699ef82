"""Write the script for a board's shell that runs and watches a program. Pure."""

import shlex
from collections.abc import Sequence

from rtscope.boards.runs.inspect import INSERT_RESULTS
from rtscope.boards.runs.script import PHASE_STEP_NS, agent_line, batches
from rtscope.host.units import NS_PER_S
from rtscope.machine.tasks.statistics import PATTERN
from rtscope.verbs.app.boardprogram import ROOT, Program
from rtscope.verbs.app.images import Probe
from rtscope.verbs.app.watch import snapshot_paths, watch_args
from rtscope.verbs.app.watchedcycles import cycles_args

LOAD, LOG, FACTS = "load.jsonl", "program.log", "facts.jsonl"
THREADS, FILES = "threads-{}.jsonl", "files-{}.jsonl"
BEFORE, AFTER = "before", "after"
WATCH, CYCLES = "watch.jsonl", "cycles.jsonl"

TICK_NS = 4_000_000
"""Of kernels with 250 ticks a second, and a multiple of that of faster ones."""

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
) -> str:
    """
    Return the script; the paths `facts` are read before the program begins.

    The seed decides when it begins between two ticks of the kernel's timer.
    """
    libraries = "LD_LIBRARY_PATH=/lib " if program.dynamic else ""
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
        *_snapshot_lines(BEFORE),
        f"{_line(cycles_args(_PID, duration_ns))} >/out/{CYCLES} &",
        "cycles=$!",
        f"{_line(watch_args(_PID, duration_ns, probes))} >/out/{WATCH}",
        "wait $cycles",
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
