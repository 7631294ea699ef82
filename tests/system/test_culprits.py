"""
Culprits that are planted on a virtual board, and what explanations say of them.

Each is planted at a time of its own; the wake-ups that it made late must be explained
by it, in that order, and by nothing else.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from rig import Done, rtscope

from culprits.build import build_module, build_rival
from rtscope.resultdir import open_records

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        shutil.which("apt-get") is None, reason="needs apt to fetch QEMU and kernels"
    ),
]

KERNELS = ("debian-6.12", "debian-6.12-rt")
PATIENCE_S = 600.0
LATE_NS = 150_000
"""Later than anything else that these boards do while the culprits are planted."""

BOARD = ("run", "--target", "virtual:pc", "--load", "custom", "--cpus", "1")
SHORT = ("--duration", "1s", "--warmup", "200ms", "--settle", "0s", "--worst", "64")

PLANTED = {
    "irqs_off": 300,
    "preempt_off": 400,
    "lock": 500,
    "interrupt": 350,
    "timer": 450,
    "softirq": 600,
}
INSERT = "insmod /files/$(uname -r).ko first_ms=300 {parameters}; "
DONE_NS = 400_000_000
"""By then all is planted; later there are the kernel's own culprits (vmstat_update)."""


@dataclass(frozen=True, slots=True)
class Blamed:
    """A wake-up and what its explanation blames."""

    at_ns: int
    """Since the first wake-up was due."""
    latency_ns: int
    cause: str
    name: str
    task: str
    share: float
    residual_ns: int
    sum_ns: int


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Modules for both kernels, and the program, as --files takes them."""
    into = tmp_path_factory.mktemp("files")
    made = [build_module(kernel, into) for kernel in KERNELS]
    return ",".join(map(str, [*made, build_rival(into)]))


def finished(*words: str | Path) -> Done:
    with rtscope(*words) as program:
        done = program.finish(PATIENCE_S)
    assert done.status == 0, done.stderr
    return done


def explained(
    script: str, *words: str, out: Path, files: str, kernels: Sequence[str] = KERNELS
) -> dict[str, list[Blamed]]:
    """Measure with a script as the load; return what was blamed by kernel, in time."""
    load = ("--command", f"sh -c '{script}exec sleep 100'", "--files", files)
    finished(*BOARD, *SHORT, "--kernel", ",".join(kernels), *load, *words, "--out", out)
    documents = json.loads(finished("explain", out, "--json").stdout)
    (interval_ns,) = {record.run.interval_ns for record in open_records(out)}
    return {
        document["kernel"]: list(_blamed(document, interval_ns))
        for document in documents
    }


def _blamed(document: dict[str, Any], interval_ns: int) -> Iterator[Blamed]:
    for wakeup in sorted(document["wakeups"], key=lambda w: w["sequence"]):
        culprit = wakeup["stretches"][wakeup["culprit"]]
        yield Blamed(
            wakeup["sequence"] * interval_ns,
            wakeup["latency_ns"],
            culprit["cause"],
            culprit["name"].removesuffix(" [culprits]"),
            culprit["task"],
            wakeup["attributed_share"],
            wakeup["residual_ns"],
            sum(s["end_ns"] - s["begin_ns"] for s in wakeup["stretches"]),
        )


def late(blamed: Sequence[Blamed]) -> list[Blamed]:
    """Return what was late while culprits were planted."""
    return [b for b in blamed if b.latency_ns > LATE_NS and b.at_ns < DONE_NS]


def in_order(blamed: Sequence[Blamed]) -> list[tuple[str, str]]:
    """Return causes and names of what was late, each once if several follow."""
    found = [(told(one.cause), one.name) for one in late(blamed)]
    return [key for key, _ in groupby(found)]


def told(cause: str) -> str:
    """Whether a handler began before the timer was due or after it is chance."""
    return "another interrupt" if cause == "an earlier interrupt" else cause


def check_sums(blamed: Sequence[Blamed]) -> None:
    assert blamed
    for one in blamed:
        assert one.share >= 0.95, one
        assert one.sum_ns + one.residual_ns == one.latency_ns


def test_what_a_module_does_to_the_measured_cpu_is_named(
    files: str, tmp_path: Path
) -> None:
    parameters = " ".join(f"{name}_us={us}" for name, us in PLANTED.items())
    found = explained(
        INSERT.format(parameters=parameters),
        *("--interval", "100us"),
        out=tmp_path / "out",
        files=files,
    )

    everywhere = [
        ("interrupts off", "culprit_irqs_off"),
        ("preemption off", "culprit_preempt_off"),
        ("waiting for a lock", "culprit_waits_for_lock"),
        ("another interrupt", "culprit_interrupt"),
        ("another timer's callback", "culprit_timer"),
    ]
    plain, rt = (in_order(found[kernel]) for kernel in KERNELS)
    assert plain == [*everywhere, ("a softirq", "culprit_softirq")]
    # There the burst runs in a thread, and the measured one preempts it.
    assert rt == everywhere
    for blamed in found.values():
        check_sums(blamed)


def test_nothing_is_blamed_that_was_not_planted(files: str, tmp_path: Path) -> None:
    found = explained(
        INSERT.format(parameters="lock_us=500"),
        *("--interval", "100us"),
        out=tmp_path / "out",
        files=files,
        kernels=KERNELS[:1],
    )

    assert in_order(found[KERNELS[0]]) == [
        ("waiting for a lock", "culprit_waits_for_lock")
    ]


SERVER = (
    "mount -t debugfs d /sys/kernel/debug; "
    "cd /sys/kernel/debug/sched/fair_server/cpu1; "
    "echo 60000000 >period; echo 3000000 >runtime; "
)
HOGS = (
    "sleep 0.3; "
    "/files/rival hog fifo 90 1 600 20000 2; sleep 0.02; "
    "/files/rival hog other 0 1 200000 200000 1 & sleep 0.02; "
    "/files/rival hog fifo 10 1 100000 100000 1; "
)


def test_a_rival_of_higher_priority_and_the_fair_server_are_told_apart(
    files: str, tmp_path: Path
) -> None:
    found = explained(
        SERVER + HOGS,
        *("--interval", "200us", "--priority", "50"),
        out=tmp_path / "out",
        files=files,
    )

    for blamed in found.values():
        assert [cause for cause, _ in in_order(blamed)] == [
            "another task",
            "the fair server",
        ]
        assert {one.task for one in late(blamed)} == {"rival"}
        check_sums(blamed)


def test_a_thread_that_silently_became_an_ordinary_one_is_found_out(
    files: str, tmp_path: Path
) -> None:
    found = explained(
        "sleep 0.3; /files/rival hog other 0 1 300000 300000 1 & sleep 0.1; "
        "/files/rival demote rtscope-agent; ",
        *("--interval", "200us", "--priority", "50"),
        out=tmp_path / "out",
        files=files,
    )

    for blamed in found.values():
        worst = max(blamed, key=lambda one: one.latency_ns)
        assert (worst.cause, worst.task) == ("the thread is not real-time", "rival")
        check_sums(blamed)


def test_a_page_fault_of_the_measured_thread_is_named(
    files: str, tmp_path: Path
) -> None:
    found = explained(
        "taskset 1 /files/rival dirty rtscope-agent 0 3000; ",
        *("--interval", "200us"),
        out=tmp_path / "out",
        files=files,
    )

    for blamed in found.values():
        worst = max(blamed, key=lambda one: one.latency_ns)
        assert worst.cause == "a page fault"
        check_sums(blamed)


def test_recording_and_explaining_change_no_result(files: str, tmp_path: Path) -> None:
    words = (*BOARD, *SHORT, "--kernel", KERNELS[1], "--files", files)
    script = "sh -c '" + INSERT.format(parameters="irqs_off_us=300") + "sleep 100'"
    for name, option in (("with", "--record"), ("without", "--no-record")):
        finished(*words, "--command", script, option, "--out", tmp_path / name)
    finished("explain", tmp_path / "with")

    (recorded,), (plain,) = (
        open_records(tmp_path / name) for name in ("with", "without")
    )
    assert recorded.result_digest == plain.result_digest
