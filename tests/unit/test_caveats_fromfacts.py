"""Facts before and after a run raise its doubts."""

import pytest

from fakes.trees import (
    CLOCK,
    CONTAINER,
    CPU,
    DEBIAN_RT,
    GUEST,
    VISIONFIVE,
    Files,
    reader_of,
)
from rtscope.machine.gather import GROUPS_THROTTLE, gather
from rtscope.record.caveats.catalogue import Caveat, caveats_from


def caveats(files: Files, *, cpus: tuple[int, ...] = (0, 1)) -> dict[str, str]:
    facts = gather(reader_of(files))
    return {c.id: c.detail for c in caveats_from(facts, facts, cpus=cpus)}


def test_a_tuned_board_raises_one_doubt() -> None:
    assert caveats(VISIONFIVE, cpus=(0, 1, 2, 3)) == {
        "rt_throttling": (
            "950000 us of each 1000000 us; /proc/sys/kernel/sched_rt_runtime_us: "
            "before Linux 6.12 FIFO and RR threads are throttled"
        ),
    }


def test_doubts_are_about_the_measured_cpus_only() -> None:
    swap = {"swap_active": "420 kB used before, 420 kB after"}

    assert caveats(DEBIAN_RT, cpus=(2, 3)) == swap
    assert caveats(DEBIAN_RT, cpus=(1, 2)) == {"governor": "CPU 1: powersave", **swap}


def test_a_guest_raises_its_doubts() -> None:
    assert caveats(GUEST) == {
        "guest": "KVM: /proc/cpuinfo has the flag 'hypervisor'",
        "not_realtime_kernel": (
            "uname -v says PREEMPT_DYNAMIC; CONFIG_PREEMPT_RT is not set in "
            "/proc/config.gz; preemption model: none"
        ),
        "rt_throttling": (
            f"950000 us of each 1000000 us; /proc/config.gz: {GROUPS_THROTTLE}"
        ),
    }


def test_a_container_raises_its_doubt() -> None:
    assert caveats(CONTAINER)["container"] == "docker: /.dockerenv"


def test_an_unknown_kernel_is_a_doubt_of_its_own() -> None:
    assert caveats({"/sys/kernel/realtime": "1\n"}) == {
        "kernel_unknown": ("only /sys/kernel/realtime says so, which is not enough"),
    }


def test_what_changed_during_the_run_is_a_doubt() -> None:
    before = gather(reader_of(DEBIAN_RT))
    changes = {
        f"{CPU}/online": "0-1,3\n",
        f"{CLOCK}/current_clocksource": "hpet\n",
        f"{CPU}/cpu3/cpufreq/scaling_governor": "powersave\n",
    }
    after = gather(reader_of({**DEBIAN_RT, **changes}))

    raised = caveats_from(before, after, cpus=(2, 3))

    assert raised == (
        Caveat("governor", "CPU 3: powersave"),
        Caveat("swap_active", "420 kB used before, 420 kB after"),
        Caveat("clocksource_changed", "from tsc to hpet"),
        Caveat("cpus_changed", "online: 0-3, then 0-1,3"),
        Caveat("cpu_offline", "CPU 2"),
    )


@pytest.mark.parametrize("online", ["0-1,3\n", "0-4\n"])
def test_a_cpu_that_is_not_measured_moves_load_and_interrupts_too(online: str) -> None:
    before = gather(reader_of(DEBIAN_RT))
    after = gather(reader_of({**DEBIAN_RT, f"{CPU}/online": online}))

    raised = {caveat.id for caveat in caveats_from(before, after, cpus=(0, 1))}

    assert raised == {"governor", "swap_active", "cpus_changed"}


def test_a_clock_source_that_could_not_be_read_did_not_change() -> None:
    before = gather(reader_of(DEBIAN_RT))
    after = gather(reader_of({}))

    raised = {caveat.id for caveat in caveats_from(before, after, cpus=(2, 3))}

    assert raised == {"swap_active"}
