"""
Culprits that are planted on a virtual board, and what explanations say of them.

Each is planted at a time of its own; the wake-ups that it made late must be explained
by it, in that order, and by nothing else.
"""

from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from rig import NEEDS_APT

from culprits.build import build_module, build_rival, know_kernel
from culprits.measure import explained, finished, worst
from culprits.scenes import (
    BOTH,
    BPF,
    DEMOTED,
    FAULTS,
    OUTSIDE,
    PLANTED_US,
    RISEN,
    RIVALS,
    THROTTLED,
    held_back,
    in_order,
    late,
    over_quota,
    planted,
)
from rtscope.record.directory.records import open_records

HELD_NS = 2_000_000
"""Later than anything else on these boards while a thread is held back for 2.5 ms."""

RIVALRY = ["another task", "the fair server"]
"""Beside these the ordinary kernel delays by itself, with preemption off."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Modules for both kernels, and the program."""
    into = tmp_path_factory.mktemp("files")
    made = [build_module(kernel, into) for kernel in BOTH]
    return [*made, build_rival(into)]


def test_what_a_module_does_to_the_measured_cpu_is_named(
    files: list[Path], tmp_path: Path
) -> None:
    found = explained(planted(PLANTED_US), files, tmp_path / "out")

    everywhere = [
        ("interrupts off", "culprit_irqs_off"),
        ("preemption off", "culprit_preempt_off"),
        ("waiting for a lock", "culprit_waits_for_lock"),
        ("another interrupt", "culprit_interrupt"),
        ("another timer's callback", "culprit_timer"),
    ]
    plain, rt = (in_order(found[kernel]) for kernel in BOTH)
    assert plain == [*everywhere, ("a softirq", "culprit_softirq")]
    # There the burst runs in a thread, and the measured one preempts it.
    assert rt == everywhere


def test_a_rival_of_higher_priority_and_the_fair_server_are_told_apart(
    files: list[Path], tmp_path: Path
) -> None:
    found = explained(RIVALS, files, tmp_path / "out")

    for blamed in found.values():
        by_tasks = [one for one in late(blamed) if one.cause in RIVALRY]
        causes = [cause for cause, _ in groupby(one.cause for one in by_tasks)]
        assert causes == RIVALRY
        assert {one.task for one in by_tasks} == {"rival"}


def test_a_policy_that_a_program_gets_while_it_runs_is_told(
    files: list[Path], tmp_path: Path
) -> None:
    found = explained(RISEN, files, tmp_path / "out")

    for blamed in found.values():
        policies = [one.policy for one in late(blamed) if one.task == "rival"]
        assert [*dict.fromkeys(policies)] == [
            "SCHED_DEADLINE",
            *(f"real-time, priority {priority}" for priority in (90, 85, 80, 99)),
        ]


def test_a_program_of_bpf_is_named(files: list[Path], tmp_path: Path) -> None:
    found = explained(BPF, files, tmp_path / "out")

    for blamed in found.values():
        (program,) = {one.name for one in late(blamed) if one.cause == "a probe"}
        assert program.startswith("bpf_prog_")
        assert program.endswith("_count_events [bpf]")


def test_a_thread_that_silently_became_an_ordinary_one_is_found_out(
    files: list[Path], tmp_path: Path
) -> None:
    found = explained(DEMOTED, files, tmp_path / "out")

    for blamed in found.values():
        one = worst(blamed)
        assert (one.cause, one.task) == ("the thread is not real-time", "rival")


def test_a_page_fault_of_the_measured_thread_is_named(
    files: list[Path], tmp_path: Path
) -> None:
    found = explained(FAULTS, files, tmp_path / "out")

    for blamed in found.values():
        counted = Counter(one.cause for one in blamed)
        # The worst of all may be another that the faults have led to: a call from the
        # other CPU, or the scheduler.
        assert counted["a page fault"] > len(blamed) / 2, counted


def test_real_time_throttling_is_named_on_kernels_that_have_it(tmp_path: Path) -> None:
    for kernel in THROTTLED.kernels:
        know_kernel(kernel)

    found = explained(THROTTLED, [build_rival(tmp_path)], tmp_path / "out")

    for blamed in found.values():
        one = worst(blamed)
        assert (one.cause, one.task) == ("real-time throttling", "rival")


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("stop", "a stopped thread"),
        ("freeze", "a frozen thread"),
        ("trace", "a traced thread"),
    ],
)
def test_a_thread_that_is_held_back_is_delayed_by_that_and_not_by_the_idle_task(
    how: str, cause: str, files: list[Path], tmp_path: Path
) -> None:
    found = explained(held_back(how), files, tmp_path / "out")

    for blamed in found.values():
        long = [one for one in blamed if one.latency_ns > HELD_NS]
        assert {(one.cause, one.task) for one in long} == {(cause, "")}


@pytest.mark.parametrize("beside", ["", OUTSIDE], ids=["idle", "beside a program"])
def test_a_thread_whose_group_has_used_up_its_time_is_delayed_by_its_quota(
    beside: str, tmp_path: Path
) -> None:
    for kernel in BOTH:
        know_kernel(kernel)

    found = explained(
        over_quota(beside=beside), [build_rival(tmp_path)], tmp_path / "out"
    )

    for blamed in found.values():
        one = worst(blamed)
        told = (one.cause, one.name, one.task, one.residual_ns)
        assert told == ("a CPU quota", "throttle_cfs_rq", "", 0)
        assert one.share >= 0.95


def test_nothing_else_is_blamed_and_recording_changes_no_result(
    files: list[Path], tmp_path: Path
) -> None:
    (kernel,) = kernels = BOTH[1:]
    scene = planted({"irqs_off": 300}, kernels=kernels)
    recorded, plain = tmp_path / "recorded", tmp_path / "plain"

    found = explained(scene, files, recorded)
    finished("run", *scene.campaign(files, plain), "--no-record")

    assert in_order(found[kernel]) == [("interrupts off", "culprit_irqs_off")]
    digests = [open_records(out)[0].result_digest for out in (recorded, plain)]
    assert digests[0] == digests[1]
