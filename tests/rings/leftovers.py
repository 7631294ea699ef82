"""
What a test can leave on a machine, seen before and after it.

Of a folder for temporary files, and of processes, only those of this run of the tests
are seen: they have its `TMPDIR` and its `MARK`. Journals, tracing instances and control
groups are the machine's; those of a living agent of another run are left out. Settings
and mounts have nobody's name, so they are looked at by a test that alone changes them,
and other work may put its own back meanwhile.
"""

import contextlib
import enum
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "RTSCOPE_TEST_RUN"
"""In the environment of every process that a test starts."""
JOURNALS = Path("/run/rtscope")
INSTANCES = Path("/sys/kernel/tracing/instances")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
MOUNTS = Path("/proc/self/mountinfo")
SETTINGS = (
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/vm/stat_interval",
    "/sys/devices/system/cpu/online",
    "/sys/kernel/tracing/tracing_on",
    "/sys/kernel/tracing/current_tracer",
)
# Those of Python's own modules, which stay as long as the tests run.
_PYTHONS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")


class Machine(enum.Enum):
    """What is looked at of the whole machine."""

    NOTHING = enum.auto()
    OF_AGENTS = enum.auto()
    """Journals, tracing instances and control groups, which have an agent's number."""
    ALL = enum.auto()


def seen(folder: Path, mark: str, machine: Machine = Machine.NOTHING) -> frozenset[str]:
    """
    Return what is there now, each with its kind.

    `folder` and `mark` are those of this run of the tests.
    """
    found = {f"file {path}" for path in folder.iterdir()}
    found.update(_processes(mark))
    if machine is not Machine.NOTHING:
        found.update(_of_agents(mark))
    if machine is Machine.ALL:
        found.update(_of_machine())
    return frozenset(found)


def left_after(
    before: frozenset[str],
    folder: Path,
    mark: str,
    machine: Machine = Machine.NOTHING,
    *,
    patience_s: float,
) -> frozenset[str]:
    """Return what is there beyond what was before, after waiting for its end."""
    end = time.monotonic() + patience_s
    while True:
        left = seen(folder, mark, machine) - before
        # What nobody could read before is not known to have changed.
        left = frozenset(one for one in left if _was_known(one, before))
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)


def _was_known(one: str, before: frozenset[str]) -> bool:
    name, is_value, _ = one.partition(" = ")
    return not is_value or any(other.startswith(f"{name} = ") for other in before)


def _of_agents(mark: str) -> Iterator[str]:
    for journal in JOURNALS.glob("journal.*"):
        if not is_held(journal):
            yield f"journal {journal}"
    for instance in INSTANCES.glob("rtscope*"):
        if not is_of_others(instance, mark):
            yield f"tracing instance {instance}"
    for pattern in ("rtscope*", "*/rtscope*", "*/*/rtscope*"):
        for group in CONTROL_GROUPS.glob(pattern):
            if not is_of_others(group, mark):
                yield f"control group {group}"


def is_of_others(made: Path, mark: str) -> bool:
    """Whether the agent whose number it has is alive, and of another run of tests."""
    number = made.name.rpartition(".")[2]
    try:
        words = Path("/proc", number, "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    marks = [word for word in words if word.startswith(f"{MARK}=".encode())]
    return bool(marks) and f"{MARK}={mark}".encode() not in marks


def _of_machine() -> Iterator[str]:
    for place in sorted(mounted(MOUNTS.read_text())):
        yield f"mount {place}"
    for name in SETTINGS:
        with contextlib.suppress(OSError):
            yield f"setting {name} = {Path(name).read_text().strip()}"


def mounted(mountinfo: str) -> set[str]:
    """Return where the kernel's own file systems are: what is below /sys and /proc."""
    places = {line.split()[4] for line in mountinfo.splitlines()}
    return {one for one in places if one.startswith(("/sys/", "/proc/"))}


def _processes(mark: str) -> Iterator[str]:
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            command = (entry / "cmdline").read_bytes()
            if command and not any(word in command for word in _PYTHONS):
                words = command.replace(b"\0", b" ").decode("utf-8", "replace")
                yield f"process {entry.name}: {words.strip()[:200]}"


def is_held(journal: Path) -> bool:
    """Whether the agent that changed the settings is alive, or has put them back."""
    try:
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return not journal.exists()
    except (FileNotFoundError, BlockingIOError):
        return True


@contextlib.contextmanager
def marked(folder: Path) -> Iterator[str]:
    """Have processes marked and temporary files made in a folder; gives the mark."""
    mark = folder.name
    before = {name: os.environ.get(name) for name in (MARK, "TMPDIR")}
    os.environ |= {MARK: mark, "TMPDIR": str(folder)}
    try:
        yield mark
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
