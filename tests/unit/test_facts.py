"""Facts of whole machines, exactly; what cannot be read is never given a value."""

from pathlib import Path

import pytest

from fakes.trees import (
    CLOCK,
    CONTAINER,
    CPU,
    DEBIAN_RT,
    DEBIAN_RT_RELEASE,
    GUEST,
    VISIONFIVE,
    Files,
    reader_of,
    write_tree,
)
from rtscope.caveats import Caveat
from rtscope.facts import (
    PARSERS,
    catalogue,
    caveats_from,
    gather,
    memory_available_bytes,
)
from rtscope.facts.scheduling import FAIR_SERVER, GROUPS_THROTTLE
from rtscope.filereader import FileReader
from rtscope.reading import Denied
from rtscope.record import FactValue

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


def values(files: Files, *names: str) -> list[object]:
    facts = gather(reader_of(files))
    return [facts[name].value for name in names]


def fact(files: Files, name: str) -> FactValue:
    return gather(reader_of(files))[name]


def caveats(files: Files, *, cpus: tuple[int, ...] = (0, 1)) -> dict[str, str]:
    facts = gather(reader_of(files))
    return {c.id: c.detail for c in caveats_from(facts, facts, cpus=cpus)}


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
    assert facts["machine_model"].why == (
        "this machine has neither a device tree nor DMI"
    )
    assert facts["rt_throttling"] == FactValue(
        True, f"/proc/config.gz: {GROUPS_THROTTLE}"
    )
    assert facts["rt_group_sched"].value is True


def test_a_container() -> None:
    facts = gather(reader_of(CONTAINER))

    assert facts["container"] == FactValue(True, "/.dockerenv")
    assert facts["container_kind"].value == "docker"
    assert facts["irqbalance"].why == "the host's processes are not visible"
    assert facts["guest"].why == "no CPU flag, DMI or device tree tells"
    assert facts["preempt_rt"].value is False


@pytest.mark.parametrize(
    ("files", "container", "kind"),
    [
        ({"/run/systemd/container": "lxc\n"}, True, "lxc"),
        ({"/proc/1/environ": b"A=b\0container=oci\0"}, True, "oci"),
        ({"/proc/1/cgroup": "4:cpu:/docker/0a1b\n"}, True, "docker"),
        ({"/proc/1/cgroup": "0::/kubepods.slice/pod1\n"}, True, "kubepods"),
        ({"/run/.containerenv": b""}, True, "podman"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, None, None),
        ({"/proc/2/comm": "kthreadd\n", "/proc/1/cgroup": "0::/\n"}, False, "none"),
        ({"/proc/2/comm": "kthreadd\n", "/.dockerenv": b""}, None, None),
        ({}, None, None),
    ],
)
def test_containers_are_known_by_what_their_managers_leave(
    files: Files, container: bool | None, kind: str | None
) -> None:
    assert values(files, "container", "container_kind") == [container, kind]


def test_a_mark_beside_the_hosts_own_threads_is_contradictory() -> None:
    assert fact(GUEST, "container").why == (
        "contradictory: /.dockerenv is there, yet so are the kernel's threads: an "
        "image booted as a machine, or a container that shares the host's processes"
    )


X86 = "flags\t\t: fpu tsc\n"
X86_GUEST = "flags\t\t: fpu hypervisor\n"
TREE = "/proc/device-tree"
DMI = "/sys/class/dmi/id"


@pytest.mark.parametrize(
    ("files", "guest", "hypervisor"),
    [
        # DMI of a whole computer in a cloud names the cloud: the CPU knows better.
        ({"/proc/cpuinfo": X86, f"{DMI}/sys_vendor": "Amazon EC2"}, False, "none"),
        (
            {"/proc/cpuinfo": X86_GUEST, f"{DMI}/sys_vendor": "Amazon EC2"},
            True,
            "Amazon EC2",
        ),
        ({"/proc/cpuinfo": X86_GUEST, f"{DMI}/sys_vendor": "QEMU"}, True, "QEMU"),
        ({"/proc/cpuinfo": X86_GUEST}, True, None),
        ({"/proc/cpuinfo": X86, "/sys/hypervisor/type": "xen\n"}, True, "xen"),
        ({f"{TREE}/model": b"linux,dummy-virt\0"}, True, "unnamed"),
        ({f"{TREE}/compatible": b"riscv-virtio,qemu\0"}, True, "QEMU"),
        ({f"{TREE}/hypervisor/compatible": b"linux,kvm\0"}, True, "KVM"),
        ({f"{TREE}/hypervisor/compatible": b"xen,xen-4.1\0xen,xen\0"}, True, "Xen"),
        ({f"{TREE}/fw-cfg@9020000/compatible": b"qemu,fw-cfg-mmio\0"}, True, "QEMU"),
        ({f"{TREE}/model": b"Raspberry Pi 4 Model B\0"}, False, "none"),
        (
            {
                f"{DMI}/sys_vendor": "Amazon EC2",
                f"{DMI}/product_name": "c7g.metal",
            },
            False,
            "none",
        ),
        ({f"{DMI}/sys_vendor": "Ampere"}, False, "none"),
        ({}, None, None),
    ],
)
def test_guests_are_known_by_what_only_a_hypervisor_shows(
    files: Files, guest: bool | None, hypervisor: str | None
) -> None:
    assert values(files, "guest", "hypervisor") == [guest, hypervisor]


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
        "/proc/config.gz": config,
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


def governors(*each: str) -> dict[str, str]:
    return {
        f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": governor
        for cpu, governor in enumerate(each)
    }


@pytest.mark.parametrize(
    ("online", "each", "value"),
    [
        ("0-1", ("schedutil", "schedutil"), "schedutil"),
        ("0-1", ("schedutil", "performance"), ("0=schedutil", "1=performance")),
        ("0-3", ("performance",), ("0=performance",)),
        (None, ("performance",), ("0=performance",)),
    ],
)
def test_a_governor_read_on_some_cpus_does_not_pass_for_all(
    online: str | None, each: tuple[str, ...], value: object
) -> None:
    there = {f"{CPU}/online": online} if online else {}

    assert fact({**governors(*each), **there}, "governor").value == value


def test_refused_files_say_so_and_give_no_value() -> None:
    pattern = f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor"
    refused = {
        "/proc/meminfo": Denied("Permission denied"),
        f"{CPU}/cpu0/cpufreq/scaling_governor": Denied("Input/output error"),
        f"{CLOCK}/current_clocksource": Denied("Operation not permitted"),
        "/proc/[0-9]*/comm": Denied("Permission denied"),
    }

    facts = gather(reader_of({}, also=refused))

    assert facts["memory_total_kb"] == FactValue(
        None, "/proc/meminfo", "/proc/meminfo: Permission denied"
    )
    assert facts["governor"] == FactValue(
        None, pattern, f"{CPU}/cpu0/cpufreq/scaling_governor: Input/output error"
    )
    assert facts["clocksource"].why.endswith("clocksource: Operation not permitted")
    assert facts["irqbalance"].value is None


def test_a_refused_directory_is_a_refusal_of_its_facts() -> None:
    pattern = f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor"
    facts = gather(reader_of({}, also={pattern: Denied("Permission denied")}))

    assert facts["governor"].why == f"{pattern}: Permission denied"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("rt_runtime_us", RUNTIME),
        ("uptime_s", "/proc/uptime"),
        ("smt_active", f"{CPU}/smt/active"),
        ("load_average", "/proc/loadavg"),
        ("memory_total_kb", "/proc/meminfo"),
        ("transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("timebase_frequency_hz", "/proc/device-tree/cpus/timebase-frequency"),
        ("distribution", "/etc/os-release"),
        ("cpu_model", "/proc/cpuinfo"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe?", b"PRETTY_NAME='open"])
def test_nonsense_gives_no_value_but_a_reason(
    name: str, path: str, content: bytes
) -> None:
    got = fact({path: content}, name)

    assert got.value is None
    assert got.why.endswith("says nothing that is understood")


def test_a_machine_that_shows_nothing_has_no_fact_but_reasons() -> None:
    facts = gather(reader_of({}))
    told = {name for name, f in facts.items() if f.value is not None}

    assert told == {"preempt_rt_how", "preemption_model_how"}
    assert all(f.why for name, f in facts.items() if name not in told)
    assert tuple(facts) == tuple(catalogue())


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
        Caveat("cpu_offline", "CPU 2"),
    )


def test_a_clock_source_that_could_not_be_read_did_not_change() -> None:
    before = gather(reader_of(DEBIAN_RT))
    after = gather(reader_of({}))

    raised = {caveat.id for caveat in caveats_from(before, after, cpus=(2, 3))}

    assert raised == {"swap_active"}
