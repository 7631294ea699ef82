"""Facts of whole machines, exactly, in as few round trips as can be."""

from pathlib import Path

import pytest

from fakes.gathered import fact, values
from fakes.trees import (
    CPU,
    DEBIAN_RT,
    DEBIAN_RT_RELEASE,
    GUEST,
    VISIONFIVE,
    reader_of,
    write_tree,
)
from rtscope.machine.facts import FactValue, catalogue, memory_available_bytes
from rtscope.machine.filetree import FileReader
from rtscope.machine.gather import FAIR_SERVER, GROUPS_THROTTLE, PARSERS, gather

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


def test_the_starfive_board(tmp_path: Path) -> None:
    facts = gather(FileReader(write_tree(tmp_path, VISIONFIVE)))

    known = {name: f.value for name, f in facts.items() if f.value is not None}
    digest = known.pop("kernel_config_digest")
    how = known.pop("preemption_model_how")
    assert isinstance(digest, str)
    assert len(digest) == 64
    assert "'lazy'" in str(how)
    assert known == {
        "hostname": "buildroot",
        "machine_model": "StarFive VisionFive V2",
        "cpu_model": "sifive,u74-mc rv64imafdc",
        "cpus_online": "0-3",
        "cpus_possible": "0-3",
        "cpus_isolated": "",
        "memory_total_kb": 8_140_892,
        "memory_available_kb": 7_801_234,
        "swap_total_kb": 0,
        "swap_used_kb": 0,
        "kernel_release": "5.15.0-rt17+",
        "kernel_version": "#5 SMP PREEMPT RT Wed Oct 25 17:51:59 CST 2023",
        "kernel_cmdline": "root=/dev/mmcblk1p4 console=ttyS0,115200 earlycon",
        "preempt_rt": True,
        "preempt_rt_how": (
            "uname -v says PREEMPT RT; CONFIG_PREEMPT_RT=y in /proc/config.gz"
        ),
        "preemption_model": "PREEMPT_RT",
        "clocksource": "riscv_clocksource",
        "clocksources_available": ("riscv_clocksource",),
        "governor": "performance",
        "frequency_max_khz": 1_500_000,
        "rt_runtime_us": 950_000,
        "rt_period_us": 1_000_000,
        "rt_throttling": True,
        "rt_group_sched": False,
        "guest": False,
        "hypervisor": "none",
        "container": False,
        "container_kind": "none",
        "irqbalance": False,
        "uptime_s": 301.52,
        "load_average": "0.15 0.10 0.04",
        "distribution": "Buildroot 2021.11",
        "timebase_frequency_hz": 4_000_000,
        "thermal_zones": ("cpu-thermal 54.3 °C",),
    }


def test_debian_rt_on_a_bare_machine(tmp_path: Path) -> None:
    facts = gather(FileReader(write_tree(tmp_path, DEBIAN_RT)))

    expected = {
        "boot_id": "9a2fbb0e-4f5c-4a39-8f1d-1b8a6c1f2e3d",
        "machine_model": "Dell Inc. OptiPlex 5060",
        "cpu_model": "Intel(R) Core(TM) i5-8500 CPU @ 3.00GHz",
        "cpus_isolated": "2-3",
        "nohz_full": "",
        "smt_active": False,
        "swap_total_kb": 999_420,
        "swap_used_kb": 420,
        "preempt_rt": True,
        "preemption_model": "PREEMPT_RT",
        "clocksources_available": ("tsc", "hpet", "acpi_pm"),
        "governor": ("0-1=powersave", "2-3=performance"),
        "boost": True,
        "rt_throttling": False,
        "rt_group_sched": False,
        "guest": False,
        "hypervisor": "none",
        "container": False,
        "lockdown": "none",
        "irqbalance": True,
        "distribution": "Debian GNU/Linux 13 (trixie)",
        "transparent_hugepages": "madvise",
        "mitigations": ("l1tf: Mitigation: PTE Inversion",),
    }
    assert {name: facts[name].value for name in expected} == expected
    assert facts["rt_throttling"].source == (
        f"/boot/config-{DEBIAN_RT_RELEASE}: {FAIR_SERVER}"
    )
    assert facts["guest"].source == "/proc/cpuinfo lacks the flag 'hypervisor'"
    assert facts["irqbalance"].source == "/proc/845/comm"


def test_a_guest_without_cpufreq() -> None:
    facts = gather(reader_of(GUEST))

    assert facts["guest"] == FactValue(True, "/proc/cpuinfo has the flag 'hypervisor'")
    assert facts["hypervisor"].value == "KVM"
    assert facts["governor"] == FactValue(
        None,
        f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor",
        "no cpufreq: this machine's frequency is not visible",
    )
    assert facts["machine_model"].reason == (
        "this machine has neither a device tree nor DMI"
    )
    assert facts["rt_throttling"] == FactValue(
        True, f"/proc/config.gz: {GROUPS_THROTTLE}"
    )
    assert facts["rt_group_sched"].value is True


@pytest.mark.parametrize(
    ("release", "runtime", "config", "throttling"),
    [
        ("6.11.9", "950000", "CONFIG_A=y", True),
        ("6.11.9", "-1", "CONFIG_A=y", False),
        ("6.12.0", "950000", "CONFIG_A=y", False),
        ("6.12.0", "950000", "CONFIG_RT_GROUP_SCHED=y", True),
        ("6.12.0", "-1", "CONFIG_RT_GROUP_SCHED=y", False),
        ("6.12.0", "950000", None, None),
        ("6.11.9", "950000", None, True),
        ("6.11.9", None, "CONFIG_A=y", None),
        ("none", "950000", "CONFIG_A=y", None),
    ],
)
def test_what_the_rt_share_limits_depends_on_the_kernel(
    release: str, runtime: str | None, config: str | None, throttling: bool | None
) -> None:
    files = {
        "/proc/sys/kernel/osrelease": release,
        RUNTIME: runtime,
        "/proc/config.gz": config
        and f"# Automatically generated DO NOT EDIT\n{config}",
    }

    there = {path: text for path, text in files.items() if text is not None}
    assert fact(there, "rt_throttling").value is throttling


@pytest.mark.parametrize(
    ("config", "cmdline", "value"),
    [
        ("CONFIG_A=y\n", "rt_group_sched=1", False),
        ("CONFIG_RT_GROUP_SCHED=y\n", "quiet", True),
        ("CONFIG_RT_GROUP_SCHED=y\n", "rt_group_sched=1 rt_group_sched=0", False),
        (
            "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n",
            "quiet",
            False,
        ),
    ],
)
def test_rt_groups_follow_the_build_and_then_the_boot(
    config: str, cmdline: str, value: bool
) -> None:
    files = {"/proc/config.gz": config, "/proc/cmdline": cmdline}

    assert fact(files, "rt_group_sched").value is value


def test_arm_cpus_are_named_by_their_numbers_each_kind_once() -> None:
    def cpu(part: str) -> str:
        return f"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n"

    both = cpu("0xd05") + cpu("0xd05") + cpu("0xd0a")

    assert values({"/proc/cpuinfo": both}, "cpu_model") == [
        ("ARM implementer 0x41 part 0xd05", "ARM implementer 0x41 part 0xd0a")
    ]
    assert values({"/proc/cpuinfo": cpu("0xd08")}, "cpu_model") == [
        "ARM implementer 0x41 part 0xd08"
    ]


def test_facts_take_one_round_trip_if_the_kernel_carries_its_configuration() -> None:
    reader = reader_of(GUEST)
    gather(reader)

    assert len(reader.trips) == 1
    assert len(set(reader.trips[0])) == len(reader.trips[0])


def test_facts_take_a_second_one_to_find_the_configuration_elsewhere() -> None:
    reader = reader_of(DEBIAN_RT)
    gather(reader)

    assert len(reader.trips) == 2
    assert reader.trips[1][0] == f"/boot/config-{DEBIAN_RT_RELEASE}"


def test_every_parser_is_used_and_every_fact_has_one() -> None:
    kinds = catalogue().values()

    assert {kind.parser for kind in kinds} == set(PARSERS)
    assert all(kind.title and kind.means and kind.paths for kind in kinds)


def test_this_machine_can_be_read() -> None:
    facts = gather(FileReader())

    assert facts["kernel_release"].value == (
        Path("/proc/sys/kernel/osrelease").read_text().strip()
    )
    available = memory_available_bytes(facts)
    assert available is not None
    assert available > 0


def test_memory_is_given_in_bytes_and_unknown_stays_unknown() -> None:
    assert memory_available_bytes(gather(reader_of(VISIONFIVE))) == 7_801_234 * 1024
    assert memory_available_bytes({}) is None
