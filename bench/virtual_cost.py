"""
What a wake-up costs in guest instructions: agent and library, beside other programs.

A virtual board counts the instructions of the whole guest, the kernel's path included,
up to a mark that is made when the program has ended. The difference of two run lengths,
by the difference of wake-ups, leaves out boot, start and end, and holds what goes on
beside: the kernel's ticks (what the board counts with nothing running), and the threads
that wait for the measuring one. Each is FIFO 99 on CPU 1 every 1.007 ms, alone on the
board. Every number is counted twice, and must be the same both times.

The library (`lib/rtscope_task.c`) keeps all of its statistics; rt-app keeps a log of
each cycle, and writes it at its end, which counts.

Exact is not general: a wake-up costs the kernel more or less by where it falls among
the ticks. Every millisecond it would fall at the same place each time, which is another
one in each run, and moved counts by almost 3 %; every 1.007 ms it falls everywhere.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.catalogue import Arch, get_arch, get_board
from rtscope.boards.parts import aptroot, initrd
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import AgentResult, parse_line
from rtscope.machine.target import agent_file

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "bench"
LIB = ROOT / "lib"

BOARDS = ("jh7110", "pc")
COUNTS = (1000, 3000)
"""Wake-ups of the two run lengths; as many digits, so that all else is the same."""

INTERVAL_US = 1007
"""A prime number, so that ticks and wake-ups meet in all ways; see above."""

SETTLE_S = 5
"""What the kernel puts off at boot is done then: 70 million instructions on pc."""

AGENT_TO_BARE = 1.1

LIBRARY_TO_BARE = {"jh7110": 1.2, "pc": 1.15}
"""
The aim on pc is 1.1; what else is on the board moves it by 0.01, other kernels by more.
To read the clock is a system call on jh7110, and the library does it twice.
"""
LIMITS = {
    ("agent", "cyclictest"): 1.0,
    ("agent", "bare"): AGENT_TO_BARE,
    ("library", "rt-app"): 1.0,
}
OWN_LIMITS = {**LIMITS, ("library", "bare"): 1.25}
"""Less what the guest executes with nothing running. The library has one system call in
each cycle besides its sleep, for the execution time; this notices a second one."""

# Else the kernel stops the tick of an idle CPU for longer or shorter, which no program
# decides: on pc that moved counts by 1,000 instructions and more per wake-up, and had
# the bare loop cost more than cyclictest.
TICKING = ("nohz=off",)

# Debian's packages of the programs of others.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "cyclictest": ("rt-tests", "libnuma1", "libc6"),
    "rt-app": ("rt-app", "libjson-c5", "libc6"),
}


def foreign(name: str) -> str:
    """Return how a board starts a program of others."""
    place = f"/bench/{name}"
    return f"{place}/loader --library-path {place} {place}/{name}"


# What each program is told, by the number of wake-ups.
PROGRAMS: Mapping[str, Callable[[int], str]] = {
    "agent": lambda n: (
        "rtscope-agent measure --cpus 1 --policy fifo --priority 99 "
        f"--interval-ns {INTERVAL_US * 1000} --duration-ns {n * INTERVAL_US * 1000}"
    ),
    "cyclictest": lambda n: (
        f"{foreign('cyclictest')} --default-system -q -m -t1 -a1 -p99 "
        f"-i{INTERVAL_US} -l{n}"
    ),
    "rt-app": lambda n: (
        f"sed 's/COUNT/{n}/; s/PERIOD/{INTERVAL_US}/' /bench/rt-app.json "
        ">/tmp/rt-app.json; "
        f"{foreign('rt-app')} /tmp/rt-app.json"
    ),
    "bare": lambda n: f"/bench/bare 1 {n}",
    "library": lambda n: f"/bench/task 1 {n}",
    "nothing": lambda n: f"sleep {n * INTERVAL_US / 1_000_000}",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Guest instructions per wake-up."""

    whole: float
    in_program: float
    """Those outside of the kernel."""


def build(name: str, arch: Arch) -> Path:
    """Compile a program of bench/guest as the agent is compiled."""
    out = BUILD / arch.name / name
    out.parent.mkdir(parents=True, exist_ok=True)
    zig_cache = str(ROOT / "agent" / "build" / "zig-cache")
    zig_dirs = {"ZIG_LOCAL_CACHE_DIR": zig_cache, "ZIG_GLOBAL_CACHE_DIR": zig_cache}
    subprocess.run(
        [
            *(sys.executable, "-m", "ziglang", "cc"),
            *("-target", f"{arch.name}-linux-musl", "-std=gnu11", "-D_GNU_SOURCE"),
            *("-O2", "-g0", "-static", "-s", f"-I{ROOT / 'agent'}"),
            f"-DINTERVAL_NS={INTERVAL_US * 1000}",
            *(f"-I{LIB}", str(ROOT / "bench" / "guest" / f"{name}.c")),
            *([str(LIB / "rtscope_task.c"), "-pthread"] if name == "task" else []),
            *("-o", str(out)),
        ],
        env={**os.environ, **zig_dirs},
        check=True,
    )
    return out


def unpack(name: str, arch: Arch) -> Path:
    """Fetch a program and its libraries once; return where they are unpacked."""
    root = BUILD / arch.name / f"{name}-unpacked"
    if root.is_dir():
        return root
    packages = aptroot.resolve(
        PACKAGES[name], arch=arch.debian, root=BUILD / "apt", dependencies=False
    )
    half = root.with_suffix(".unpacking")
    for file in aptroot.fetch(packages, BUILD / "downloads", log=print):
        aptroot.unpack(file, half)
    return half.rename(root)


def archive_of(arch: Arch, *, others: bool) -> Path:
    """Write what a board needs besides its own parts, below /bench."""
    entries: dict[str, initrd.Entry] = {
        f"bench/{name}": initrd.File(build(name, arch).read_bytes(), runs=True)
        for name in ("bare", "task", "mark")
    }
    job = ROOT / "bench" / "guest" / "rt-app.json"
    entries["bench/rt-app.json"] = initrd.File(job.read_bytes())
    for name in PACKAGES if others else ():
        root = unpack(name, arch)
        program = root / "usr/bin" / name
        loader = Path(initrd.interpreter(program) or "").name
        files = {
            **initrd.libraries_of([program], libs=root / arch.libs),
            "loader": root / arch.libs / loader,
            name: program,
        }
        for file, path in files.items():
            entries[f"bench/{name}/{file}"] = initrd.File(path.read_bytes(), runs=True)
    out = BUILD / arch.name / "archive.cpio"
    out.write_bytes(initrd.pack(entries))
    return out


def prepare_board(name: str, *, others: bool) -> Prepared:
    """Return a board that has the programs."""
    board = get_board(name)
    board = replace(board, append=(*board.append, *TICKING))
    context = BuildContext(cache=cache_dir(os.environ), agent=agent_file, log=print)
    prepared = prepare(board, board.kernels[0], context=context)
    archive = archive_of(get_arch(board.arch), others=others)
    return replace(prepared, archives=(*prepared.archives, archive))


def run_once(prepared: Prepared, program: str, count: int) -> Booted:
    """Boot, run a program for a number of wake-ups, mark its end."""
    command = f"{PROGRAMS[program](count)} >/out/said\nstatus=$?"
    job = Job(f"sleep {SETTLE_S}\n{command}\n/bench/mark\nexit $status\n")
    booted = boot(
        prepared,
        job,
        seed=1,
        timeout=BootTimeout(count * 1_000_000, warmup_ns=SETTLE_S * 1_000_000_000),
        stopped=lambda: False,
    )
    if booted.files["status"] != b"0\n":
        raise SystemExit(f"{program}: {booted.files['script.log'].decode()}")
    if program == "agent":
        result = parse_line(booted.files["said"].splitlines()[-1])
        assert isinstance(result, AgentResult)
        assert [t.samples for t in result.threads] == [count]
    return booted


def counts_of(booted: Booted) -> tuple[int, int]:
    """Return the instructions up to the mark: all, and those of programs."""
    return booted.counts["last_mark"], booted.counts["last_mark_in_programs"]


def costs(
    prepared: Prepared, programs: Sequence[str], *, times: int = 2
) -> dict[str, Cost]:
    """Count each program; ValueError if a repetition gives another number."""
    wanted = [(p, n, i) for p in programs for n in COUNTS for i in range(times)]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = pool.map(lambda w: counts_of(run_once(prepared, w[0], w[1])), wanted)
        seen: dict[tuple[str, int], set[tuple[int, int]]] = {}
        for (program, count, _), counted in zip(wanted, found, strict=True):
            seen.setdefault((program, count), set()).add(counted)
    for (program, count), different in seen.items():
        if len(different) > 1:
            raise ValueError(f"{program}, {count} wake-ups: {sorted(different)}")
    cost = {}
    for program in programs:
        (short,), (long,) = (seen[program, count] for count in COUNTS)
        whole, inside = (
            (b - a) / (COUNTS[1] - COUNTS[0]) for a, b in zip(short, long, strict=True)
        )
        cost[program] = Cost(whole=whole, in_program=inside)
    return cost


def show(board: str, kernel: str, found: Mapping[str, Cost]) -> bool:
    """Print a board's table; return whether agent and library keep to their limits."""
    print(f"{board}, {kernel}: guest instructions per wake-up")
    print(f"{'':12}{'whole guest':>14}{'of them in programs':>22}")
    for name, cost in found.items():
        print(f"{name:12}{cost.whole:14.3f}{cost.in_program:22.3f}")
    kept = True
    idle = found["nothing"].whole
    limits = {**LIMITS, ("library", "bare"): LIBRARY_TO_BARE[board]}
    for (ours, other), limit in limits.items():
        mine, theirs = found[ours].whole, found[other].whole
        whole, own = mine / theirs, (mine - idle) / (theirs - idle)
        own_limit = OWN_LIMITS[ours, other]
        kept &= whole <= limit and own <= own_limit
        print(f"{ours} / {other}: {whole:.4f}; limit {limit}")
        print(f"    less what nothing costs {own:.4f}; limit {own_limit}")
    return kept


def main() -> None:
    """Print a table for each board; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boards", nargs="*", default=BOARDS)
    asked = parser.parse_args()
    kept = True
    for name in asked.boards:
        prepared = prepare_board(name, others=True)
        found = costs(prepared, list(PROGRAMS))
        kept &= show(name, prepared.kernel.name, found)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
