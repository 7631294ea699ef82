"""
What is planted on a board, and how it is measured and explained: a scene for each boot.

The same for the tests and for the table in the documentation.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Any

BOTH = ("debian-6.12", "debian-6.12-rt")
LATE_NS = 150_000
"""Later than anything else that these boards do while culprits are planted."""

DONE_NS = 400_000_000
"""By then all is planted; later there are the kernel's own culprits (vmstat_update)."""

PREFIX = "culprit_"
"""Of the functions of the module."""

BOARDS_OWN = ("jh7110-6.12", "jh7110-6.12-rt")
"""Kernels of ours for the virtual jh7110: without modules, and without debugfs."""

_MEASURED = ("--load", "custom", "--cpus", "1", "--warmup", "200ms", "--worst", "64")
_MIDDLE = ("--interval", "200us", "--priority", "50")

PLANTED_US = {
    "irqs_off": 300,
    "preempt_off": 400,
    "lock": 500,
    "interrupt": 350,
    "timer": 450,
    "softirq": 600,
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A load, and how it is measured."""

    script: str
    options: tuple[str, ...]
    kernels: tuple[str, ...] = BOTH
    board: str = "pc"
    seconds: int = 1
    settled: bool = False
    """Only after the kernel has done what it puts off until after its boot."""
    status: int = 0
    """Of `rtscope run`: 3 where the culprit makes the measurement invalid."""

    def campaign(self, files: Sequence[Path], out: Path) -> tuple[str, ...]:
        """Return what follows `rtscope run` to measure it."""
        return (
            *("--target", f"virtual:{self.board}", "--duration", f"{self.seconds}s"),
            *_MEASURED,
            *("--settle", "10s" if self.settled else "0s"),
            *("--kernel", ",".join(self.kernels)),
            *("--guest-files", ",".join(map(str, files))),
            *("--command", f"sh -c '{self.script}exec sleep 100'"),
            *self.options,
            *("--out", str(out)),
        )


@dataclass(frozen=True, slots=True)
class Blamed:
    """A wake-up, and what its explanation blames."""

    at_ns: int
    """Since the first wake-up was due."""
    latency_ns: int
    cause: str
    name: str
    task: str
    share: float
    residual_ns: int
    sum_ns: int
    policy: str = ""
    """Of the task."""


def planted(us: Mapping[str, int], kernels: tuple[str, ...] = BOTH) -> Scene:
    """Insert the module with these culprits, in us by their names."""
    parameters = " ".join(f"{name}_us={length}" for name, length in us.items())
    return Scene(
        f"insmod /files/$(uname -r).ko first_ms=300 {parameters}; ",
        ("--interval", "100us"),
        kernels,
    )


RIVALS = Scene(
    # 3 ms in each 60 ms instead of 50 ms in each second, so that little is recorded.
    "mount -t debugfs d /sys/kernel/debug; "
    "cd /sys/kernel/debug/sched/fair_server/cpu1; "
    "echo 60000000 >period; echo 3000000 >runtime; "
    "sleep 0.3; "
    "/files/rival hog fifo 90 1 600 20000 2; sleep 0.02; "
    "/files/rival hog other 0 1 200000 200000 1 & sleep 0.02; "
    "/files/rival hog fifo 10 1 100000 100000 1; ",
    _MIDDLE,
)
"""A program of higher priority, then one of lower: ordinary ones starve behind it."""

RISEN = Scene(
    "sleep 0.3; "
    "/files/rival rise deadline 1 700 12000 1; "
    "/files/rival rise fifo 1 800 12000 1; "
    "taskset 1 /files/rival rise raised 1 900 12000 1; "
    "/files/rival rise boosted 1 1000 12000 1; "
    "/files/rival yield 99 1 1500 12000 1; ",
    _MIDDLE,
)
"""Programs that get a real-time policy while they run; the last one yields."""

BPF = Scene(
    "sleep 0.3; taskset 1 /files/rival bpf hrtimer_expire_entry 4000 300 20000 3 & ",
    _MIDDLE,
)
"""A program of BPF counts at each timer that expires, for a few of them."""

DEMOTED = Scene(
    "sleep 0.3; /files/rival hog other -20 1 300000 300000 1 & sleep 0.1; "
    "/files/rival demote rtscope-agent; ",
    _MIDDLE,
    status=3,
)
"""The measuring threads become SCHED_OTHER beside another that is busy, and preferred.

With equal weights one that mostly sleeps may never have to wait.
"""

FAULTS = Scene(
    # What watches the load is not to be the worst on the measured CPU.
    "taskset -p 1 $PPID; taskset 1 /files/rival refs 4 rtscope-agent 0 600; ",
    ("--interval", "200us"),
    settled=True,
)
"""The memory of the agent is write-protected again and again."""


def held_back(how: str, *, kernels: tuple[str, ...] = BOTH) -> Scene:
    """Keep the measuring threads from running for 2.5 ms each time: they are no task.

    `how` is stop (SIGSTOP), freeze (a cgroup's freezer) or trace (a debugger).
    """
    return Scene(
        f"sleep 0.3; taskset 1 /files/rival {how} rtscope-agent 2500 40000 5; ",
        _MIDDLE,
        kernels,
    )


def over_quota(*, beside: str = "", kernels: tuple[str, ...] = BOTH) -> Scene:
    """Put the measuring threads into a cgroup that another task uses up the time of.

    5 ms in each 20 ms; `beside` is what else runs meanwhile.
    """
    return Scene(
        f"sleep 0.3; {beside}/files/rival quota rtscope-agent 5000 20000 1 60000; ",
        _MIDDLE,
        kernels,
        status=3,
    )


OUTSIDE = "/files/rival hog other 19 1 300000 300000 1 & sleep 0.02; "
"""A task of no group, which runs where the group may not."""

THROTTLED = Scene(
    "cd /proc/sys/kernel; "
    "echo 19000 >sched_rt_runtime_us; echo 20000 >sched_rt_period_us; "
    "sleep 0.3; /files/rival hog other 0 1 100000 100000 1 & sleep 0.02; "
    "/files/rival hog fifo 10 1 60000 60000 1; ",
    _MIDDLE,
    ("debian-6.1", "debian-6.1-rt"),
    status=3,
)
"""Real-time threads use up the 95 % of the time that they may have."""


STARVED = Scene(
    "sleep 0.3; /files/rival hog fifo 90 1 600 20000 2; sleep 0.02; "
    "/files/rival hog other 0 1 1300000 1300000 1 & sleep 0.02; "
    "/files/rival hog fifo 10 1 1200000 1200000 1; ",
    _MIDDLE,
    BOARDS_OWN,
    board="jh7110",
    seconds=2,
)
"""As RIVALS, with the fair server as it is by default: 50 ms in each second."""

PLANTED_THERE = replace(planted(PLANTED_US, kernels=BOTH[1:]), board="rpi3")
DEMOTED_THERE = replace(DEMOTED, kernels=BOARDS_OWN, board="jh7110")


def blamed_by_kernel(documents: str, interval_ns: int) -> dict[str, list[Blamed]]:
    """Return what `rtscope explain --json` blames, in the order of time."""
    return {
        document["kernel"]: list(_blamed(document, interval_ns))
        for document in json.loads(documents)
    }


def late(blamed: Sequence[Blamed]) -> list[Blamed]:
    """Return what was late while culprits were planted."""
    return [b for b in blamed if b.latency_ns > LATE_NS and b.at_ns < DONE_NS]


def in_order(blamed: Sequence[Blamed]) -> list[tuple[str, str]]:
    """
    Return causes and names of what was late, each once if several follow.

    From the first of the module on: before it, the kernel may have been late by itself.
    """
    planted = dropwhile(lambda one: not one.name.startswith(PREFIX), late(blamed))
    return [key for key, _ in groupby((told(one.cause), one.name) for one in planted)]


def told(cause: str) -> str:
    """Whether a handler began before the timer was due or after it is chance."""
    return "another interrupt" if cause == "an earlier interrupt" else cause


def _blamed(document: dict[str, Any], interval_ns: int) -> Iterator[Blamed]:
    for wakeup in sorted(document["wakeups"], key=lambda w: w["sequence"]):
        culprit = wakeup["segments"][wakeup["dominant_segment"]]
        yield Blamed(
            wakeup["sequence"] * interval_ns,
            wakeup["latency_ns"],
            culprit["cause"],
            culprit["name"].removesuffix(" [culprits]"),
            culprit["task"],
            wakeup["attributed_share"],
            wakeup["residual_ns"],
            sum(s["end_ns"] - s["begin_ns"] for s in wakeup["segments"]),
            _policy_in(culprit["evidence"]),
        )


def _policy_in(evidence: Sequence[str]) -> str:
    told = (line for line in evidence if line.startswith("the task was "))
    return next(told, "").partition(", ")[2]
