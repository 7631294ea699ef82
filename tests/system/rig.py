"""
Real agents and real campaigns for the system tests, and looks at what they leave.

Nothing here asserts a latency. Everything that is started has an end that the test
can rely on, even when the test fails.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

from fakes.measurements import record
from rtscope.boards.kernels.recipe import get_recipe
from rtscope.boards.kernels.sourcekernel import newest_of
from rtscope.boards.parts.cache import all_parts, cache_dir
from rtscope.contract import AgentError, AgentResult, Line, ThreadResult, parse_line
from rtscope.machine.target import agent_file
from rtscope.measure.preflight import TRIAL_NS
from rtscope.record.caveats.catalogue import Effect, kind_of
from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats

Answer = TypeVar("Answer")

MS = 1_000_000
SECOND_NS = 1_000 * MS

JOURNAL_DIR = Path("/run/rtscope")
RT_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")

CPUS = tuple(sorted(os.sched_getaffinity(0)))

NEEDS_APT = pytest.mark.skipif(
    shutil.which("apt-get") is None, reason="needs apt to fetch QEMU and kernels"
)

# Slow enough for two CPUs that do other things too.
PATIENCE_S = 180.0
GONE_WITHIN_S = 9.0
"""
What stays on a machine whose user is gone: nothing after five seconds
(docs/decisions/0003), or later on a busy machine. A test measures for longer than this,
so that the end of the measurement is not what ends the agent.
"""

UNTIL_KILLED_S = (1, 4, 16, 64)
"""
How long a run with the load `oom` measures, one after the other, until the kernel has
killed a worker: on a busy machine one takes longer to fill its memory.
"""

# What the machine under the tests does, not what rtscope did wrong.
OF_THE_MACHINE = frozenset({"clocksource_changed", "cpu_throttled", "rt_throttled"})


def native_agent() -> Path:
    """Return the agent for this machine; TargetError says how to build it."""
    return agent_file(os.uname().machine)


def are_built(*kernels: str) -> bool:
    """Tell whether these kernels are in the cache as their recipes are now."""
    parts = all_parts(cache_dir())
    return all(newest_of(parts, get_recipe(kernel)) for kernel in kernels)


RISCV = "jh7110-6.12-rt" if are_built("jh7110-6.12-rt") else "debian-6.12"
"""For tests of any kernel of the jh7110: it takes minutes to compile the light one."""


def most_long(values: Iterable[Any], *, but: int = 1) -> list[Any]:
    """Return values of a parameter, all but the first for the nightly ring."""
    return [
        pytest.param(
            *(one if isinstance(one, tuple) else (one,)),
            marks=[pytest.mark.long] if number >= but else [],
        )
        for number, one in enumerate(values)
    ]


def repeated(ask: Callable[[], Answer], holds: Callable[[Answer], bool]) -> Answer:
    """
    Ask up to three times until an answer holds; return the last.

    For what a busy machine keeps from happening, or from being seen, in one watch.
    """
    for _ in range(2):
        answer = ask()
        if holds(answer):
            return answer
    return ask()


def until(true: Callable[[], bool], *, what: str, within_s: float = PATIENCE_S) -> None:
    """Wait until something is so, looking often; fail with `what` if it never is."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, f"not within {within_s:g} s: {what}"
        time.sleep(0.02)


class Program:
    """A program in a process group of its own. A context manager: kills on exit."""

    def __init__(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            env={**os.environ, **(env or {})},
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def send(self, signo: signal.Signals) -> None:
        """Send a signal to the program alone."""
        self._process.send_signal(signo)

    def tell(self, content: bytes) -> None:
        """Write to its standard input all that it will ever get."""
        stdin, self._process.stdin = self._process.stdin, None
        assert stdin is not None
        with stdin, contextlib.suppress(BrokenPipeError):
            stdin.write(content)

    def finish(self, patience_s: float = PATIENCE_S) -> "Done":
        """Wait for its end, with its standard input open until then."""
        stdin, self._process.stdin = self._process.stdin, None
        try:
            out, err = self._process.communicate(timeout=patience_s)
        finally:
            if stdin is not None:
                stdin.close()
        return Done(self._process.returncode, out, err.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Done:
    """A program that has ended."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def lines(self) -> list[Line]:
        """What an agent said."""
        return [parse_line(line) for line in self.stdout.splitlines()]

    @property
    def result(self) -> AgentResult:
        """The result of an agent that measured."""
        last = self.lines[-1]
        assert isinstance(last, AgentResult), (last, self.stderr)
        return last

    @property
    def error(self) -> AgentError:
        """Why an agent could not measure."""
        last = self.lines[-1]
        assert isinstance(last, AgentError), last
        return last


def measuring(
    *options: str | Path,
    seconds: float = 0.3,
    policy: str = "fifo",
    priority: int | None = None,
    prefix: Sequence[str | Path] = (),
    agent: Path | None = None,
) -> Program:
    """Start the agent as `rtscope` does: at 1 ms, tethered to this process."""
    if priority is None and policy in ("fifo", "rr"):
        priority = 99
    return Program(
        [
            *prefix,
            agent or native_agent(),
            *("measure", "--host-link", "--policy", policy),
            *(("--priority", str(priority)) if priority else ()),
            *("--interval-ns", str(MS)),
            *("--duration-ns", str(int(seconds * SECOND_NS))),
            *options,
        ]
    )


def rtscope(*words: str | Path, env: Mapping[str, str] | None = None) -> Program:
    """Start the program that users start."""
    own = {"XDG_STATE_HOME": state_home(), **(env or {})}
    return Program([sys.executable, "-m", "rtscope", *words], env=own)


@cache
def state_home() -> str:
    """Return where these tests store results: never among those of the user."""
    made = tempfile.mkdtemp(prefix="rtscope-state-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def judged(result: AgentResult) -> RunRecord:
    """Put a result into a record, for the statistics to look at."""
    made = record(result.threads)
    return replace(made, result=result)


def doubts(kept: RunRecord) -> dict[str, str]:
    """Return every caveat of a record with its detail."""
    return {caveat.id: caveat.detail for caveat in all_caveats(kept)}


def invalid(kept: RunRecord) -> set[str]:
    """Return the caveats that make a record worthless and are not the machine's."""
    return {
        caveat.id
        for caveat in all_caveats(kept)
        if kind_of(caveat).effect is Effect.INVALID and caveat.id not in OF_THE_MACHINE
    }


def records_in(directory: Path) -> dict[str, RunRecord]:
    """Return the records of a campaign by load."""
    return {kept.run.load: kept for kept in open_records(directory)}


def out_of_memory(kept: RunRecord) -> int:
    """Return how often the kernel killed a worker of the load in its memory group."""
    assert kept.load.end is not None
    return kept.load.end.oom_kills or 0


def due(thread: ThreadResult) -> int:
    """Return how many activations the run's time has."""
    return (thread.end_ns - thread.start_ns) // thread.interval_ns


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs, nearest first."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return found
    for task in tasks:
        try:
            listed = (task / "children").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += map(int, listed.split())
    return found + [below for child in found for below in children_of(child)]


def arguments_of(pid: int) -> list[str]:
    """Return a process's command line; empty if it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.decode("utf-8", "replace").split("\0")[:-1]


def agents_of(pid: int, command: str) -> list[int]:
    """
    Return the agents with this subcommand in a campaign; a trial does not count.

    Nor does a child of one, which has the same words until it begins its program.
    """
    found = [
        child
        for child in children_of(pid)
        if (words := arguments_of(child))
        and Path(words[0]).name == "rtscope-agent"
        and command in words[1:2]
        and not is_trial(words)
    ]
    below = {child for one in found for child in children_of(one)}
    return [one for one in found if one not in below]


def is_trial(words: Sequence[str]) -> bool:
    """Whether an agent only tries whether it could measure, before the campaign."""
    given = dict(pairwise(words))
    interval_ns = int(given.get("--interval-ns", "0"))
    length_ns = max(TRIAL_NS, 2 * interval_ns)
    return given.get("--duration-ns") == str(length_ns)


def measures(pid: int) -> bool:
    """Tell whether an agent of a campaign has a real-time thread: it samples then."""
    return any(
        policy_of(task) in (os.SCHED_FIFO, os.SCHED_RR)
        for agent in agents_of(pid, "measure")
        for task in tasks_of(agent)
    )


def tasks_of(pid: int) -> list[int]:
    """Return the threads of a process; none if it is gone."""
    try:
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def policy_of(tid: int) -> int | None:
    """Return the policy of a thread; None if it is gone."""
    try:
        return os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
    except ProcessLookupError:
        return None


def workers_of(pid: int) -> list[int]:
    """Return the processes of stress-ng among those of a campaign."""
    return [
        child
        for child in children_of(pid)
        if "stress-ng" in " ".join(arguments_of(child)[:1])
    ]


def alive(pids: Iterable[int]) -> list[int]:
    """Return those of the processes that still run."""
    return [pid for pid in pids if state_of(pid) not in ("", "Z", "X")]


def marked(mark: str) -> list[int]:
    """Return the processes that were started with this environment variable set."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = environment.read_bytes()
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in content.split(b"\0"):
            found.append(int(environment.parent.name))
    return alive(found)


MARK = "RTSCOPE_SYSTEM_TEST"


def state_of(pid: int) -> str:
    """Return the letter of a process's state; empty if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.rpartition(")")[2].split()[0]
