"""What takes the place of machines, boards and programs while a case runs."""

import contextlib
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fakes import cycling, targets, threads, watching
from fakes.bootedboard import FakeBoard
from fakes.democases import an_example
from fakes.explaining import FakeExplaining
from fakes.fakelinux import MAIN, make_programs, make_recipe
from fakes.searched import Measured as MeasuredKernels
from fakes.searched import git
from rtscope.boards.runs import runner
from rtscope.contract import Applied, Restored, Tuned
from rtscope.explain import directory as analysis
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.machine.tasks.statistics import Statistics
from rtscope.measure.assemble import Measured
from rtscope.measure.preflight import Ability, State
from rtscope.record.model import Run
from rtscope.verbs.app import check as appcheck
from rtscope.verbs.app import unit as appunit
from rtscope.verbs.app.model import BoardLabel
from rtscope.verbs.app.running import running_program
from rtscope.verbs.app.source import Watched
from rtscope.verbs.app.watchedcycles import recording_of
from rtscope.verbs.audit import audit
from rtscope.verbs.bisect import bisect
from rtscope.verbs.demo import demo as appdemo
from rtscope.verbs.doctor import doctor
from rtscope.verbs.history import schedule
from rtscope.verbs.kernel import verify as kernelverify
from rtscope.verbs.run import run
from rtscope.verbs.sweep import sweep
from rtscope.verbs.tasks import tasks
from unit.test_app_rules import STACK, seen, thread

Fake = Callable[[], contextlib.AbstractContextManager[object]]

OPENING = (run, tasks, appdemo, appunit, audit, doctor, kernelverify, sweep)
"""Modules that open a machine."""

THREADS = (
    threads.kernel(18, "migration/0", 99),
    threads.task(1, name="systemd"),
    threads.task(40, name="app"),
    threads.task(41, "fifo", pid=40, priority=80, name="loop", cpus="1"),
    threads.task(42, "deadline", pid=40, name="grid"),
)
FILES = {
    "/proc/sys/vm/compact_unevictable_allowed": "1\n",
    "/sys/kernel/mm/ksm/run": "1\n",
    "/etc/systemd/system/loop.service": (
        "[Service]\nExecStart=/usr/bin/loop\nCPUSchedulingPolicy=fifo\n"
    ),
}
ABILITIES = (
    Ability("tracing", State.WORKS, "48 kinds of events"),
    Ability("threads", State.MISSING, "RLIMIT_RTPRIO is 0", "use sudo", "capability"),
    Ability("loads", State.LIMITED, "stress-ng is old", "apt install stress-ng"),
)


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """Answer as a machine on which all goes well."""

    def opened(*_: object, **__: object) -> contextlib.AbstractContextManager[object]:
        changed = [Applied("compact_unevictable_allowed", 0, "1", "0")]
        target = targets.target(
            {
                "tasks": [threads.lines(*THREADS)],
                "demo": [an_example()],
                "apply": [[*changed, Tuned(1, applied=1, already=0, refused=0)]],
                "restore": [[Restored("compact_unevictable_allowed", 0, "1")]],
            },
            files=FILES,
        )
        return contextlib.nullcontext(target)

    program = replace(
        running_program(40, threads.listing(*THREADS).threads, {}, directory="/"),
        argv=("/opt/control", "--fast"),
        executable="/opt/control",
    )
    with pytest.MonkeyPatch.context() as patched:
        for module in OPENING:
            patched.setattr(module, "open_target", opened)
        patched.setattr(appunit, "find_process", lambda *_: 40)
        patched.setattr(appunit, "see_program", lambda *_: program)
        patched.setattr(schedule, "own_command", lambda: ("/usr/bin/rtscope",))
        patched.setattr(doctor, "machine_abilities", lambda *_: iter(ABILITIES))
        patched.setattr(doctor, "computer_abilities", lambda _: iter(()))
        yield


@contextlib.contextmanager
def board(*, explained: bool = False) -> Iterator[None]:
    """Measure what the run and its seed say, on a board that is not booted."""
    made = _BoardOfRuns()
    made.smaller = (5_000, 7_000)
    explaining = FakeExplaining()
    explaining.culprit = lambda cell: "zap" if cell == "000-base" else "free_pages"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "prepare_campaign", made.prepare)
        patched.setattr(sweep, "prepare_campaign", made.prepare)
        patched.setattr(runner, "BoardRunner", lambda one, *_, **__: made.runner(one))
        if explained:
            made.paths = ({"file": "worst.trace.gz"}, {})
            patched.setattr(analysis, "explained_runs", explaining)
        yield


@contextlib.contextmanager
def program(*, on_board: bool = False) -> Iterator[None]:
    """Watch a program with some findings, and cycles of which one was late."""
    task = thread(cycling.TID)
    late = watching.thread(cycling.TID, minor_fault=3, malloc=2)
    observation = seen(
        task,
        watched=[late],
        events=[watching.event("minor_fault"), watching.event("malloc")],
        stacks={(cycling.TID, "minor_fault"): (STACK,)},
    )
    runs = (cycling.periodic(400),)
    recording = recording_of((cycling.begin(), *runs, cycling.end(runs)))
    label = BoardLabel("pc", "virtual times of pc, seed 1", {"board": "pc", "seed": 1})
    watched = Watched(
        observation,
        recording,
        MachineTraits(),
        Statistics((), ()),
        label if on_board else None,
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(appcheck, "watch_program", lambda *_: watched)
        yield


@contextlib.contextmanager
def kernels() -> Iterator[None]:
    """Build kernels of a tree in no time; those that return 41 or more are late."""

    def late(image: str) -> bool:
        found = re.search(r"return (\d+)", image)
        return found is not None and int(found[1]) > 40

    with (
        pytest.MonkeyPatch.context() as patched,
        tempfile.TemporaryDirectory() as folder,
    ):
        patched.setenv("PATH", make_programs(Path(folder) / "bin"))
        patched.setenv("XDG_CACHE_HOME", folder)
        for name in ("AUTHOR", "COMMITTER"):
            patched.setenv(f"GIT_{name}_DATE", "2026-01-02T03:04:05Z")
        patched.setattr(bisect, "_sentence", lambda _, seed, __: f"because of {seed}")
        MeasuredKernels(late).install(patched)
        _make_history()
        yield


def _make_history() -> None:
    """Make a repository `linux`: a first commit, and five that change the image."""
    make_recipe(Path.cwd(), "CONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n")
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "-m", "start")
    git("tag", "start")
    for number in range(38, 43):
        text = MAIN.replace("return 0", f"return {number}")
        Path("linux/init/main.c").write_text(text)
        git("commit", "--quiet", "-am", f"init: Return {number}")


@contextlib.contextmanager
def salt() -> Iterator[None]:
    """Redact names with the same salt each time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(secrets, "token_bytes", lambda size: b"s" * size)
        yield


class _BoardOfRuns(FakeBoard):
    """A board whose latencies follow from the run, in whatever order it is measured."""

    def _measure(self, run: Run) -> Measured:
        late_ns = 20_000 if "tick: off" in (run.variant or "") else 10_000
        late_ns *= 1 if (run.kernel or "-rt").endswith("-rt") else 2
        self.results = [late_ns + 1_000 * len(run.load) + (run.seed or 0)]
        return super()._measure(run)


FAKES: Mapping[str, Fake] = {
    "": contextlib.nullcontext,
    "machine": machine,
    "board": board,
    "explained board": partial(board, explained=True),
    "program": program,
    "program on a board": partial(program, on_board=True),
    "kernels": kernels,
    "salt": salt,
}
