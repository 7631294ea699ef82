"""Loads: the commands of the source documents, bounded, and what they got done."""

import contextlib
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtscope.host.errors import ContractError, UsageError
from rtscope.measure.loads import (
    FreeStorage,
    LoadCommand,
    LoadPlace,
    get_load,
    load_names,
    make_command,
    safe_stressors,
    throughput_of,
    unsafe_stressors,
)

MIB = 1 << 20
GIB = 1 << 30
DISK = FreeStorage("/var/tmp/x", ("ext4",), 100 * GIB, 10_000_000)

# Written by stress-ng 0.15.06 when interrupted after 3 s; shortened.
METRICS = """\
---
system-info:
      stress-ng-version: 0.15.06
      run-by: root
      time-hh-mm-ss: 07:43:40
      hostname: board
      version: '#1 SMP PREEMPT_DYNAMIC @0'
      compiler: 'gcc 12.2.0'

metrics:
    - stressor: matrix
      bogo-ops: 15030
      bogo-ops-per-second-usr-sys-time: 5001.685531
      bogo-ops-per-second-real-time: 4990.113764
      wall-clock-time: 3.011955
      add-matrix-ops-per-sec: 202288.693859

    - stressor: set
      bogo-ops: 0
      bogo-ops-per-second-real-time: 0.000000

...
"""


def command(
    name: str,
    *,
    workers: int = 4,
    cpus: str | None = None,
    available: int = 8 * GIB,
    storage: FreeStorage | None = DISK,
    custom: tuple[str, ...] = (),
    duration_s: int = 20,
    seed: int | None = None,
) -> LoadCommand:
    place = LoadPlace(
        workers=workers,
        cpus=cpus,
        scratch_dir="/var/tmp/x/scratch",
        yaml_path="/run/metrics.yaml",
        memory_bytes=available,
        storage=storage,
    )
    return make_command(
        get_load(name), place, duration_s=duration_s, custom=custom, seed=seed
    )


def value_of(option: str, made: LoadCommand) -> str | None:
    argv = made.argv
    return argv[argv.index(option) + 1] if option in argv else None


def test_the_five_loads_of_the_source_documents_come_first() -> None:
    assert load_names()[:5] == ("idle", "cpu", "os", "memory", "storage")


@pytest.mark.parametrize(
    ("name", "stressor"),
    [
        ("cpu", "--matrix"),
        ("os", "--set"),
        ("memory", "--vm"),
        ("storage", "--dir"),
        ("network", "--sock"),
        ("timers", "--timer"),
        ("switch", "--switch"),
        ("pipe", "--pipe"),
        ("oom", "--bigheap"),
    ],
)
def test_a_load_is_one_stressor_with_one_worker_per_cpu(
    name: str, stressor: str
) -> None:
    made = command(name, workers=4)

    assert made.argv[:3] == ("stress-ng", stressor, "4")
    assert made.caveats == ()


def test_the_whole_command_of_a_load() -> None:
    assert " ".join(command("cpu").argv) == (
        "stress-ng --matrix 4 --oomable --no-rand-seed --temp-path /var/tmp/x/scratch "
        "--timeout 80s --metrics --yaml /run/metrics.yaml"
    )


def test_a_seed_is_another_sequence_of_work_and_the_only_one_that_is_given() -> None:
    made = [command("memory", seed=seed) for seed in range(64)]
    states = [int(value_of("--seed", one) or "") for one in made]

    # stress-ng refuses the two together.
    assert not any("--no-rand-seed" in one.argv for one in made)
    assert made[3] == command("memory", seed=3)
    assert len(set(states)) == 64
    assert all(0 < state < 2**63 for state in states)
    # As its generator's state a seed must have bits set all over.
    assert min(state.bit_count() for state in states) > 16
    assert command("idle", seed=3).argv == ()


def test_idle_starts_nothing() -> None:
    assert command("idle") == LoadCommand((), None, ())


@pytest.mark.parametrize("name", load_names())
def test_every_load_says_what_it_stands_for_and_whether_it_must_progress(
    name: str,
) -> None:
    load = get_load(name)

    assert load.title
    assert load.why.endswith(".")
    assert load.expects_progress == (load.uses_stress_ng or bool(load.event))
    fields = {f for part in load.argv for _, f, _, _ in string.Formatter().parse(part)}
    assert fields <= {None, "workers"}


def test_an_unknown_load_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'memory'"):
        get_load("memroy")


def test_an_unknown_load_like_no_other_lists_all() -> None:
    with pytest.raises(UsageError, match=r"load: 'q' \(known: idle, cpu, os"):
        get_load("q")


def test_the_load_ends_by_itself_if_nobody_ends_it() -> None:
    assert value_of("--timeout", command("cpu", duration_s=20)) == "80s"
    assert value_of("--timeout", command("cpu", duration_s=86_400)) == "95040s"


def test_workers_are_confined_only_when_cpus_are_given() -> None:
    assert value_of("--taskset", command("cpu")) is None
    assert value_of("--taskset", command("cpu", cpus="0,2-3")) == "0,2-3"


def test_what_is_no_cpu_list_never_reaches_the_command() -> None:
    with pytest.raises(UsageError, match="not a CPU list"):
        command("cpu", cpus="--exec")


def test_no_cpu_is_refused() -> None:
    with pytest.raises(UsageError, match="no CPU to load"):
        command("cpu", workers=0)


def test_only_the_oom_load_lets_stress_ng_replace_killed_workers() -> None:
    replaced = [n for n in load_names() if "--oomable" not in command_or_none(n)]

    assert replaced == ["idle", "packets", "interrupts", "oom", "custom"]


def command_or_none(name: str) -> tuple[str, ...]:
    return command(name, custom=("true",)).argv


@pytest.mark.parametrize(
    ("available", "vm_bytes"),
    [
        (512 * MIB, None),
        (512 * MIB - 1, "255m"),
        (300 * MIB, "150m"),
        (128 * MIB, "64m"),
    ],
)
def test_the_memory_load_never_takes_more_than_half_of_what_is_free(
    available: int, vm_bytes: str | None
) -> None:
    made = command("memory", available=available)

    assert value_of("--vm-bytes", made) == vm_bytes
    assert [id for id, _ in made.caveats] == (["load_reduced"] if vm_bytes else [])


def test_the_reduction_of_the_memory_load_says_by_how_much() -> None:
    assert command("memory", available=300 * MIB).caveats == (
        ("load_reduced", "150 MiB instead of 256 MiB for all workers"),
    )


def test_fewer_than_16_mib_for_each_worker_is_no_memory_load() -> None:
    with pytest.raises(UsageError, match="63 MiB, but 4 workers need 64 MiB"):
        command("memory", available=128 * MIB - 1)


def test_many_cpus_need_no_more_than_the_default_in_all() -> None:
    assert command("memory", workers=64, available=512 * MIB).caveats == ()


def test_the_storage_load_takes_its_default_when_there_is_room() -> None:
    made = command("storage")

    assert value_of("--dir-dirs", made) is None
    assert value_of("--temp-path", made) == "/var/tmp/x/scratch"


@pytest.mark.parametrize(
    ("free_bytes", "free_inodes", "dirs"),
    [
        (100 * GIB, 65_536, None),
        (100 * GIB, 65_535, "8191"),
        (100 * GIB, None, None),
        (512 * MIB, None, None),
        (256 * MIB, 1_000_000, "4096"),
        (100 * GIB, 512, "64"),
    ],
)
def test_the_storage_load_never_takes_more_than_half_of_the_blocks_or_inodes(
    free_bytes: int, free_inodes: int | None, dirs: str | None
) -> None:
    room = FreeStorage("/data", ("ext4",), free_bytes, free_inodes)

    made = command("storage", storage=room)

    assert value_of("--dir-dirs", made) == dirs
    assert [id for id, _ in made.caveats] == (["load_reduced"] if dirs else [])


def test_a_full_disk_is_no_storage_load() -> None:
    room = FreeStorage("/data", ("ext4",), 100 * GIB, 511)

    with pytest.raises(UsageError, match="511 directories, but 4 workers need 512"):
        command("storage", storage=room)


def test_the_storage_load_needs_a_directory() -> None:
    with pytest.raises(UsageError, match="add --storage-dir DIR"):
        command("storage", storage=None)


@pytest.mark.parametrize(
    "file_systems", [("tmpfs",), ("ramfs",), ("overlay", "tmpfs"), ("rootfs",)]
)
def test_a_directory_in_memory_is_refused_as_storage(
    file_systems: tuple[str, ...],
) -> None:
    room = FreeStorage("/data", file_systems, GIB, None)

    with pytest.raises(UsageError, match=r"/data is in memory .* with --storage-dir"):
        command("storage", storage=room)


def test_a_directory_in_memory_is_taken_where_that_is_allowed() -> None:
    room = FreeStorage("/data", ("tmpfs",), GIB, None, allow_in_memory=True)

    assert command("storage", storage=room).argv[1] == "--dir"


@pytest.mark.parametrize(
    ("available", "limit", "reduced"),
    [
        (8 * GIB, 512 * MIB, False),
        (2 * GIB, 512 * MIB, False),
        (GIB, 256 * MIB, True),
        (256 * MIB, 64 * MIB, True),
    ],
)
def test_the_oom_load_is_bounded_by_a_quarter_of_what_is_free(
    available: int, limit: int, reduced: bool
) -> None:
    made = command("oom", workers=4, available=available)

    assert made.memory_limit_bytes == limit
    assert [id for id, _ in made.caveats] == (["load_reduced"] if reduced else [])


def test_no_load_but_oom_has_a_memory_limit() -> None:
    limited = [
        name
        for name in load_names()
        if command(name, custom=("true",)).memory_limit_bytes is not None
    ]

    assert limited == ["oom"]


def test_too_little_memory_to_run_out_of_is_refused() -> None:
    with pytest.raises(UsageError, match="needs 64 MiB"):
        command("oom", available=256 * MIB - 1)


def test_a_custom_command_is_taken_as_it_is() -> None:
    words = ("sh", "-c", "while :; do :; done {workers}")

    assert command("custom", cpus="0", custom=words) == LoadCommand(words, None, ())


def test_the_custom_load_needs_a_command() -> None:
    with pytest.raises(UsageError, match="add --command"):
        command("custom")


def test_throughput_is_bogo_operations_per_second_of_real_time() -> None:
    assert throughput_of(METRICS) == {"matrix": 4990.113764, "set": 0.0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n",
        "just words",
        "metrics:\n",
        "metrics: [1, two, [three]]",
        "metrics: {stressor: cpu}",
        "metrics:\n - stressor: [cpu]\n   bogo-ops-per-second-real-time: 1.0",
        "metrics:\n - stressor: cpu\n   bogo-ops-per-second-real-time: nan",
        "metrics:\n - stressor: cpu\n   bogo-ops-per-second-real-time: -1.0",
        "metrics:\n - stressor: cpu\n   bogo-ops-per-second-real-time: " + "9" * 5000,
        "!!python/object/apply:os.system [true]",
        "when: 2001-99-99",
    ],
)
def test_no_figure_gives_no_throughput(text: str) -> None:
    assert throughput_of(text) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 65_537, "65,537 characters"),
        ("[" * 60_000, "nested too deeply"),
        ("a: &a [x]\nb: [*a, *a]", "alias"),
        ("metrics: [", "not valid YAML"),
        ("\x00", "not valid YAML"),
        ("? [1]\n: 2", "not valid YAML"),
        (METRICS[:120] + "\t- :", "not valid YAML"),
    ],
)
def test_hostile_or_broken_metrics_are_an_error(text: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        throughput_of(text)


@settings(max_examples=200)
@given(st.text(alphabet="-:[]{}&*!|>'\"%@#? \n\tametricsso0", max_size=300))
def test_any_text_has_a_throughput_or_is_a_contract_error(text: str) -> None:
    with contextlib.suppress(ContractError):
        throughput_of(text)


def test_metrics_are_read_from_a_file_whose_other_parts_are_no_yaml() -> None:
    written_by_0_19_02 = """---
build-info:
      compiler: 'gcc 14.2.0'
source-date-epoch: 1751354863
      stdc-hosted: '1'

metrics:
    - stressor: matrix
      bogo-ops: 650
      bogo-ops-per-second-real-time: 318.033828

...
"""
    assert throughput_of(written_by_0_19_02) == {"matrix": 318.033828}


def test_a_stressor_is_a_load_by_its_own_name() -> None:
    made = command("stress-ng:fork", workers=2)

    assert made.argv[:4] == ("stress-ng", "--fork", "2", "--oomable")
    assert not get_load("stress-ng:fork").is_safe
    assert get_load("stress-ng:futex").is_safe
    assert get_load("idle").is_safe


DANGEROUS = """
affinity apparmor bad-ioctl bigheap bind-mount binderfs brk cap chroot clock clone
cpu-online cyclic daemon dccp dev dev-shm dup efivar env exec fork forkheavy gpu
hrtimers icmp-flood idle-page ioport ipsec-mb key kill klog kvm loop memhotplug
memthrash mlock mlockmany mmap mmapmany module mutex netdev netlink-proc netlink-task
nice numa oom-pipe opcode pagemove pageswap pci physpage ping-sock plugin priv-instr
procfs pthread ptrace pty quota race-sched ramfs rawdev rawpkt rawsock rawudp reboot
resched resources rlimit rtc schedmix schedpolicy sctp seccomp set shm shm-sysv
sigsegv sleep smi sock sockabuse sockdiag sockmany sockpair softlockup spawn swap
sysbadaddr syscall sysfs sysinfo sysinval tmpfs tun udp udp-flood umount unshare
uprobe urandom usersyscall vfork vforkmany vm vm-addr watchdog x86syscall zombie
"""
"""
Devices, modules, clocks, settings, mounts, network interfaces, processes and memory
without end, real-time threads of their own, system calls at random.
"""


def test_no_stressor_of_a_dangerous_kind_counts_as_safe() -> None:
    assert safe_stressors().isdisjoint(DANGEROUS.split())


def test_a_stressor_that_only_looks_safe_is_left_out_with_its_reason() -> None:
    reasons = unsafe_stressors()

    assert safe_stressors().isdisjoint(reasons)
    assert all(reasons.values())
    assert get_load("stress-ng:loop").why_unsafe == "makes loopback block devices"
    assert get_load("stress-ng:futex").why_unsafe == ""


@pytest.mark.parametrize("name", ["stress-ng:", "stress-ng:a b", "stress-ng:--fork"])
def test_what_is_no_name_of_a_stressor_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a stressor is named as stress-ng names it"):
        get_load(name)
