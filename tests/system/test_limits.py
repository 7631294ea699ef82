"""Limits of processes, memory and disk: each is named, and nothing is half done."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import (
    MARK,
    NEEDS_APT,
    RISCV,
    Program,
    agents_of,
    alive,
    arguments_of,
    children_of,
    doubts,
    invalid,
    marked,
    records_in,
    rtscope,
    until,
    workers_of,
)
from test_rights import python_for

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

QUICK = ("--warmup", "100ms", "--interval", "1ms")
SHORT = (*QUICK, "--duration", "1s")


# --- processes ------------------------------------------------------------------------

NEW_USER = 64_123
"""Of whom no process counts already."""


@pytest.mark.parametrize("most", [1, 2, 4, 7])
def test_a_limit_of_processes_is_named_whatever_it_refuses(
    most: int, scratch: Path
) -> None:
    """It refuses the agent, the load, a process of the load, or a thread."""
    scratch.chmod(0o777)
    mark = f"processes-{os.getpid()}-{most}"
    user = (f"--reuid={NEW_USER}", f"--regid={NEW_USER}", "--clear-groups")
    limited = ("prlimit", f"--nproc={most}", "--", *python_for(str(NEW_USER)))
    words = ("run", "--policy", "other", "--load", "cpu", *SHORT)
    with Program(
        ["setpriv", *user, *limited, *words, "--out", scratch / "out"],
        env={"HOME": str(scratch), "TMPDIR": str(scratch), MARK: mark},
    ) as program:
        done = program.finish()

    assert done.status == 3, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "ulimit -u" in last or "RLIMIT_NPROC" in last
    assert list(scratch.glob("out/runs/*/*")) == []
    assert marked(mark) == []


@pytest.fixture
def few_processes() -> Iterator[Path]:
    """A cgroup that limits processes; the limit is not set yet."""
    top = Path("/sys/fs/cgroup")
    second = (top / "cgroup.controllers").exists()
    place = (top if second else top / "pids") / f"test-{os.getpid()}"
    try:
        place.mkdir()
        (place / "pids.max").write_text("max")
    except OSError as error:
        pytest.skip(f"cannot make a cgroup for processes here: {error}")
    yield place
    until(lambda: not (place / "cgroup.procs").read_text(), what="it is empty")
    place.rmdir()


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6])
def test_a_group_too_small_to_check_a_command_is_named(
    most: int, few_processes: Path
) -> None:
    (few_processes / "pids.max").write_text(str(most))
    mark = f"checked-{os.getpid()}-{most}"
    words = ("app", "check", "--duration", "300ms", "--settle", "100ms")
    enter = f'echo $$ >{few_processes}/cgroup.procs; exec "$@"'
    own = (sys.executable, "-m", "rtscope", *words, "--", "sleep", "60")
    with Program(["sh", "-c", enter, "sh", *own], env={MARK: mark}) as program:
        done = program.finish()

    assert done.status == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "pids.max" in done.stderr.strip().splitlines()[-1]
    assert marked(mark) == []


# --- memory ---------------------------------------------------------------------------


class MemoryGroup:
    """A memory cgroup with a limit, of either version."""

    def __init__(self, limit_bytes: int) -> None:
        top = Path("/sys/fs/cgroup")
        second = (top / "cgroup.controllers").exists()
        self.path = (top if second else top / "memory") / f"test-{os.getpid()}"
        self._file = "memory.max" if second else "memory.limit_in_bytes"
        try:
            self.path.mkdir()
            self.limit(limit_bytes)
        except OSError as error:
            pytest.skip(f"cannot make a memory cgroup here: {error}")

    def limit(self, limit_bytes: int) -> None:
        """Set the limit."""
        (self.path / self._file).write_text(str(limit_bytes))

    def take(self, pids: list[int]) -> None:
        """Move processes into the group."""
        for pid in pids:
            (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Remove it; nothing may be in it."""
        until(self._is_empty, what="the group is empty")
        self.path.rmdir()

    def _is_empty(self) -> bool:
        return not (self.path / "cgroup.procs").read_text()


@pytest.fixture
def small_group() -> Iterator[MemoryGroup]:
    group = MemoryGroup(1 << 20)
    yield group
    group.remove()


def test_a_load_that_a_memory_group_kills_is_named_and_caps_the_verdict(
    small_group: MemoryGroup, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    words = ("run", "--load", "memory", *QUICK, "--duration", "4s", "--out", out)
    with rtscope(*words, "--deadline", "10s", "--claim", "1/1s") as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        time.sleep(0.3)
        small_group.take(workers_of(run.pid))
        done = run.finish()

    (kept,) = records_in(out).values()
    assert done.status == 4, done.stderr
    assert "HELD" not in done.stdout.decode()
    assert "Killed process" in doubts(kept)["oom_kill"]
    assert {"load_died", "load_stalled", "worker_died"} & doubts(kept).keys()
    assert invalid(kept) == set()


def test_an_agent_that_a_memory_group_kills_is_named_and_its_load_ends(
    small_group: MemoryGroup, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    words = ("run", "--load", "cpu", *QUICK, "--duration", "3s", "--out", out)
    with rtscope(*words) as run:
        until(lambda: bool(workers_of(run.pid)), what="the load runs")
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        workers = workers_of(run.pid)
        small_group.limit(4096)
        small_group.take(agents_of(run.pid, "measure"))
        done = run.finish()

    assert done.status == 3
    assert "rtscope-agent ended by signal 9" in done.stderr
    assert "where memory runs out" in done.stderr
    assert alive(workers) == []
    assert list(out.glob("runs/*/record.json")) == []


# --- the disk of the cache ------------------------------------------------------------


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
@pytest.mark.parametrize("size", ["8k", "64k"])
def test_a_full_disk_of_the_cache_is_named_and_keeps_nothing_half_done(
    size: str, tmp_path: Path
) -> None:
    """It is full before apt is asked, or when its lists arrive."""
    cache = tmp_path / "cache"
    cache.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "rtscope-test", str(cache)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        with rtscope("board", "build", "pc", env={"XDG_CACHE_HOME": str(cache)}) as run:
            done = run.finish()
        left = list(cache.glob("rtscope/parts/*"))
    finally:
        subprocess.run(["umount", cache], check=True)

    assert done.status == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"rtscope: no space left in {cache}/rtscope: free some")
    assert left == []


@NEEDS_APT
def test_a_board_that_a_memory_group_kills_is_told(
    small_group: MemoryGroup, private_tmp: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    words = (
        *("run", "--target", "virtual:jh7110", "--kernel", RISCV),
        *("--load", "idle", "--duration", "10m"),
    )
    with rtscope(*words, "--out", out) as run:
        until(lambda: bool(boards_of(run.pid)), what="a board boots")
        small_group.take(boards_of(run.pid))
        done = run.finish()

    assert done.status == 3, done.stderr
    said = " ".join(done.stderr.split())
    assert "QEMU was killed (SIGKILL), probably because memory ran out" in said
    assert "free some memory" in said
    assert list(out.glob("runs/*/record.json")) == []
    assert list(private_tmp.iterdir()) == []


def boards_of(pid: int) -> list[int]:
    return [one for one in children_of(pid) if "-icount" in arguments_of(one)]
