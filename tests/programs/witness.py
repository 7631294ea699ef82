"""What bpftrace, /proc and readelf see of a program while `app check` watches it."""

import json
import re
import signal
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

ALLOCATING = (
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
)
_END_S = 120.0

_WITH_TRACEFS = (
    *("unshare", "--mount", "sh", "-c"),
    'mount -t tracefs tracefs /sys/kernel/tracing 2>&-; exec "$@"',
    "sh",
)
"""Runs a command that finds tracefs, also where it is not mounted."""

SLICE_NS = 50_000_000
"""What it sees is counted in slices of this length: the last part of each key."""

_SCRIPT = """
BEGIN { printf("ready\\n"); }
tracepoint:raw_syscalls:sys_enter /pid == PID/ {
  @calls[tid, args->id, SLICE] = count(); @at[tid] = nsecs; @in[tid] = args->id;
  @files[tid, args->id, args->args[0] & 0xffffffff] = count();
  if (args->id == FUTEX) { @op[tid] = args->args[1]; }
}
tracepoint:raw_syscalls:sys_exit /pid == PID && @at[tid]/ {
  if (args->id == FUTEX) {
    @futexlongest[tid, @op[tid] & 127, SLICE] = max(nsecs - @at[tid]);
  }
  delete(@at[tid]);
}
software:page-faults:1 /pid == PID/ { @faults[tid, SLICE] = count(); }
tracepoint:exceptions:page_fault_user /pid == PID/ {
  @faultat[tid, args->address >> 12, SLICE] = count();
}
tracepoint:sched:sched_migrate_task /args->orig_cpu != args->dest_cpu/ {
  @moved[args->pid, SLICE] = count();
}
tracepoint:sched:sched_waking /@mine[args->pid]/ {
  @woken[args->pid, tid, args->prio, ((struct task_struct *)curtask)->prio, SLICE] =
    count();
}
tracepoint:sched:sched_waking /pid == PID/ { @mine[tid] = 1; }
tracepoint:sched:sched_switch /pid == PID/ {
  @mine[tid] = 1;
  if (args->prev_state == 0 || args->prev_state == 256) {
    @preempted[tid, SLICE] = count();
  } else {
    if (@at[tid]) { @slept[tid, @in[tid], SLICE] = count(); }
    if (@on[tid]) { @busy[tid, SLICE] = max(nsecs - @on[tid]); delete(@on[tid]); }
  }
}
tracepoint:sched:sched_wakeup /@mine[args->pid]/ {
  if (@woke[args->pid]) { @gap[args->pid, SLICE] = max(nsecs - @woke[args->pid]); }
  @woke[args->pid] = nsecs; @on[args->pid] = nsecs;
}
tracepoint:signal:signal_deliver /pid == PID/ {
  @signals[tid, args->sig, SLICE] = count();
}
"""
_SLICED = frozenset(
    [
        *("calls", "futexlongest", "faults", "faultat", "moved", "woken"),
        *("preempted", "busy", "gap", "signals", "alloc", "slept"),
    ]
)
_LONGEST = frozenset(["futexlongest", "busy", "gap"])


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread as /proc has it."""

    name: str
    policy: int
    priority: int
    cpus: int
    slack_ns: int
    major_faults: int


Maps = Mapping[str, Mapping[tuple[int, ...], int]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen: of each map of the script its numbers, by their keys."""

    maps: Maps
    """Of what is counted in slices, the last part of a key is that of its begin."""
    threads: Mapping[int, Thread]
    unlocked_kib: int
    not_resident_kib: int
    lazy: tuple[str, ...]
    nonblocking: frozenset[int]
    own_pages: frozenset[int]
    major: Mapping[int, int] = field(default_factory=dict)

    def between(self, from_ns: int, to_ns: int, *, whole: bool) -> Self:
        """
        Return what was seen in a time, of CLOCK_MONOTONIC, without slices.

        `whole`: of slices that lie in it; else of those that touch it.
        """
        first, last = from_ns // SLICE_NS, to_ns // SLICE_NS
        if whole:
            first, last = first + 1, last - 1
        maps = dict(self.maps)
        for name in _SLICED & maps.keys():
            summed: dict[tuple[int, ...], int] = {}
            for (*key, at), value in maps[name].items():
                if first <= at <= last:
                    old = summed.get(tuple(key), 0)
                    new = max(old, value) if name in _LONGEST else old + value
                    summed[tuple(key)] = new
            maps[name] = summed
        return replace(self, maps=maps)

    def count(self, of: str, tid: int) -> int:
        """Return how often, for a thread."""
        return sum(n for key, n in self.maps.get(of, {}).items() if key[0] == tid)

    def most(self, of: str, tid: int) -> int:
        """Return the longest, for a thread."""
        return max(
            (n for key, n in self.maps.get(of, {}).items() if key[0] == tid), default=0
        )


class Witness:
    """bpftrace at work, from when it has said that it sees."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._before = threads_of(pid)
        script = _SCRIPT
        libc = _libc_of(pid)
        if libc:
            for number, name in enumerate(ALLOCATING):
                script += f"uprobe:{libc}:{name} /pid == PID/ "
                script += f"{{ @alloc[tid, {number}, SLICE] = count(); }}\n"
        for name, value in (
            ("PID", str(pid)),
            ("FUTEX", "202"),
            ("SLICE", f"nsecs / {SLICE_NS}"),
        ):
            script = script.replace(name, value)
        self._process = subprocess.Popen(
            [*_WITH_TRACEFS, "bpftrace", "-p", str(pid), "-f", "json", "-e", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "BPFTRACE_MAP_KEYS_MAX": "262144",
            },
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "ready" in line:
                break
        else:
            raise RuntimeError(f"bpftrace ended, with status {self._process.wait()}")

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def end(self) -> Seen:
        """End it, and return what it saw."""
        proc = Path(f"/proc/{self.pid}")
        threads = threads_of(self.pid)
        smaps = _read(proc / "smaps")
        nonblocking = _nonblocking(proc)
        own = frozenset(_pages(_read(proc / "maps"), "[uprobes]"))
        lazy = tuple(_lazy_of(_read(proc / "maps")))
        self._process.send_signal(signal.SIGINT)
        try:
            out, _ = self._process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError("bpftrace did not end") from None
        return Seen(
            _maps(out),
            threads or self._before,
            *_memory(smaps),
            lazy,
            nonblocking,
            own,
            {
                tid: thread.major_faults - self._before[tid].major_faults
                for tid, thread in threads.items()
                if tid in self._before
            },
        )


def threads_of(pid: int) -> dict[int, Thread]:
    """Read the threads of a process; none if it has ended."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        before, _, rest = _read(task / "stat").rpartition(") ")
        status = _read(task / "status")
        cpus = re.search(r"^Cpus_allowed:\s*(\S+)", status, re.MULTILINE)
        if not before or cpus is None:
            continue  # it has ended meanwhile
        stat = rest.split()
        found[int(task.name)] = Thread(
            before.partition("(")[2],
            policy=int(stat[38]),
            priority=int(stat[37]),
            cpus=int(cpus[1].replace(",", ""), 16).bit_count(),
            slack_ns=int(_read(Path(f"/proc/{task.name}/timerslack_ns")) or 0),
            major_faults=int(stat[9]),
        )
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _libc_of(pid: int) -> str:
    found = re.search(r"(/\S*/libc[.-][^\s/]*so\S*)", _read(Path(f"/proc/{pid}/maps")))
    return found[1] if found else ""


def _pages(maps: str, name: str) -> list[int]:
    pages: list[int] = []
    for line in maps.splitlines():
        if line.endswith(name):
            low, high = (int(end, 16) >> 12 for end in line.split()[0].split("-"))
            pages.extend(range(low, high))
    return pages


def _lazy_of(maps: str) -> list[str]:
    files = {
        line.split(maxsplit=5)[5]
        for line in maps.splitlines()
        if " r-xp " in line and "/" in line
    }
    found = []
    for file in sorted(files):
        shown = subprocess.run(
            ["readelf", "-dW", file], capture_output=True, text=True, check=False
        ).stdout
        if (
            "(JMPREL)" in shown
            and "BIND_NOW" not in shown
            and not re.search(r"FLAGS_1\).*NOW", shown)
        ):
            found.append(Path(file).name)
    return found


def _memory(smaps: str) -> tuple[int, int]:
    unlocked = away = size = resident = 0
    executable = False
    for line in smaps.splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            executable = " r-xp " in line and "/" in line
        elif line.startswith("Size:"):
            size = int(line.split()[1])
        elif line.startswith("Rss:"):
            resident = int(line.split()[1])
        elif line.startswith("VmFlags:"):
            unlocked += 0 if " lo" in line else size
            away += size - resident if executable else 0
    return unlocked, away


def _nonblocking(proc: Path) -> frozenset[int]:
    found = set()
    for info in proc.glob("fdinfo/*"):
        flags = re.search(r"flags:\s*(\d+)", _read(info))
        if flags and int(flags[1], 8) & 0o4000:
            found.add(int(info.name))
    return frozenset(found)


def _maps(out: str) -> Maps:
    maps: dict[str, dict[tuple[int, ...], int]] = defaultdict(dict)
    for line in out.splitlines():
        row: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        if row.get("type") != "map":
            continue
        for name, values in row["data"].items():
            if isinstance(values, dict):
                maps[name[1:]] = {
                    tuple(int(part) for part in key.split(",")): int(value)
                    for key, value in values.items()
                }
    return dict(maps)
