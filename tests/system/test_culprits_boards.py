"""
Culprits on boards of other architectures: rpi3 (arm64) and jh7110 (riscv64).

The kernels of the jh7110 have no modules: there they come from user space, and the
fair server is as every kernel has it, 50 ms in each second.
"""

import shutil
from pathlib import Path

import pytest
from rig import NEEDS_APT, are_built

from culprits.build import KBUILD, build_module, build_rival
from culprits.measure import explained, worst
from culprits.scenes import (
    BOARDS_OWN,
    DEMOTED_THERE,
    LATE_NS,
    PLANTED_THERE,
    STARVED,
    in_order,
)

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]
needs_kernels = pytest.mark.skipif(
    not are_built(*BOARDS_OWN),
    reason="its kernels take minutes to compile: rtscope board build jh7110",
)


@pytest.mark.skipif(
    shutil.which(f"{KBUILD['aarch64'].prefix}gcc") is None,
    reason="needs a compiler for arm64, for the module",
)
def test_what_a_module_does_to_a_cpu_of_arm64_is_named(tmp_path: Path) -> None:
    (kernel,) = PLANTED_THERE.kernels
    module = build_module(kernel, tmp_path, board="rpi3")

    found = explained(PLANTED_THERE, [module], tmp_path / "out")

    assert in_order(found[kernel]) == [
        ("interrupts off", "culprit_irqs_off"),
        ("preemption off", "culprit_preempt_off"),
        ("waiting for a lock", "culprit_waits_for_lock"),
        ("another interrupt", "culprit_interrupt"),
        ("another timer's callback", "culprit_timer"),
    ]


@needs_kernels
def test_a_rival_and_the_fair_server_of_50_ms_are_told_apart(tmp_path: Path) -> None:
    rival = build_rival(tmp_path, arch="riscv64")

    found = explained(STARVED, [rival], tmp_path / "out")

    for blamed in found.values():
        causes = [(b.cause, b.task) for b in blamed if b.latency_ns > LATE_NS]
        assert causes[-1] == ("the fair server", "rival")
        assert set(causes[:-1]) == {("another task", "rival")}
        assert worst(blamed).latency_ns >= 50_000_000


@needs_kernels
def test_a_thread_that_became_an_ordinary_one_is_found_out(tmp_path: Path) -> None:
    rival = build_rival(tmp_path, arch="riscv64")

    found = explained(DEMOTED_THERE, [rival], tmp_path / "out")

    for blamed in found.values():
        one = worst(blamed)
        # Its timer is left to a softirq too, on PREEMPT_RT: that waits for the rival,
        # and so does the thread, where it blocks on the lock that the softirq holds.
        assert one.task == "rival"
        assert one.cause in (
            "the thread is not real-time",
            "a timer that expires in a softirq",
            "another task in place of a lock's holder",
        )
        assert not any(
            one.cause == "waiting for a lock" and "hrtimer_cancel" in one.name
            for one in blamed
        )
