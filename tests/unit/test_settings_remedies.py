"""What is to be written where, decided from what was read and nothing else."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.auditcases import CASES
from fakes.audited import ARCH, KERNEL, KTHREADD, RELEASE, Case, thread, threads
from fakes.trees import CPU, Files, reader_of
from rtscope.host.errors import UsageError
from rtscope.machine.audit.context import AuditContext, Observed
from rtscope.machine.audit.examine import catalogue, examine, read_context
from rtscope.machine.audit.model import CheckOutcome, Profile
from rtscope.machine.settings.remedies import (
    KNOB_STRIDE,
    SAFE,
    TuningPlan,
    choose,
    index_of,
    marked,
    plan,
    tunable,
    undone_by,
    with_settings,
)

AGENT = Path(__file__).parent.parent.parent / "agent"
HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
TABLE = """\
           CPU0       CPU1       CPU2       CPU3
 24:          5          0          0          0  IO-APIC   5-edge      eth0
 25:          5          0          0          0  IO-APIC   6-edge      eth1
LOC:        900        900        900        900  Local timer interrupts
"""
FOUR = {f"{CPU}/online": "0-3\n"}


def looked(name: str, case: Case) -> tuple[AuditContext, TuningPlan]:
    kinds = [catalogue()[name]]
    reader = reader_of(
        {RELEASE: case.release, ARCH: case.arch, **case.files}, also=case.also
    )
    context = read_context(
        reader, kinds, profile=case.profile, cpus=case.cpus, observed=case.observed
    )
    checks = examine(context, kinds)
    context = with_settings(context, kinds, reader)
    return context, plan(context, checks)


def planned(name: str, files: Files, **case: object) -> TuningPlan:
    return looked(name, replace(Case({**FOUR, **files}), **case))[1]  # type: ignore[arg-type]


def written(found: TuningPlan) -> dict[str, str]:
    return {change.path: change.value for change in found.changes}


@pytest.mark.parametrize("kind", tunable(), ids=lambda kind: kind.id)
def test_what_is_good_needs_nothing(kind: object) -> None:
    name = kind.id  # type: ignore[attr-defined]
    if name not in CASES:
        pytest.skip("its cases are in test_audit_kernel.py")
    _, found = looked(name, CASES[name].good)

    assert not found.changes
    assert list(found.good) == [name]


@pytest.mark.parametrize("kind", tunable(), ids=lambda kind: kind.id)
def test_what_cannot_be_seen_is_not_changed(kind: object) -> None:
    name = kind.id  # type: ignore[attr-defined]
    if name not in CASES:
        pytest.skip("its cases are in test_audit_kernel.py")
    _, found = looked(name, CASES[name].unseen)

    assert not found.changes
    assert found.impossible[name].startswith("unknown: ")


def test_every_setting_is_a_knob_of_the_agent_with_the_same_file() -> None:
    source = (AGENT / "journal/knob.c").read_text("utf-8")
    header = (AGENT / "journal/knob.h").read_text("utf-8")
    defines = dict(re.findall(r'#define (\w+) +"([^"]+)"', source + header))
    rows = re.findall(r'\{ "?(\w+)"?, (?:(\w+) )?"([^"]+)",\s*\w+ \}', source)
    knobs = {
        defines.get(name, name): defines.get(at, "") + path.replace("@", "#")
        for name, at, path in rows
    }
    settings = {s.knob: s.file for kind in tunable() for s in kind.apply}

    assert {knob: knobs.get(knob) for knob in settings} == {
        knob: file.replace("*", "#") for knob, file in settings.items()
    }


def test_an_index_is_counted_as_the_agent_counts_it() -> None:
    header = (AGENT / "journal/knob.h").read_text("utf-8")
    state = f"{CPU}/cpu*/cpuidle/state*/disable"

    assert f"#define KNOB_STRIDE {KNOB_STRIDE}\n" in header
    assert index_of(state, f"{CPU}/cpu17/cpuidle/state3/disable") == 3 * 4096 + 17
    assert index_of("/proc/irq/*/smp_affinity_list", "/proc/irq/9/smp_affinity_list")
    assert index_of(HUGE, HUGE) == 0


def test_the_marked_word_is_the_value() -> None:
    assert marked("always [madvise] never") == "madvise"
    assert marked("none voluntary (full)") == "full"
    assert marked("950000") == "950000"


def test_a_value_for_all_files_is_written_where_it_is_not_already() -> None:
    found = planned("transparent_hugepages", {HUGE: "[always] madvise never\n"})

    (change,) = found.changes
    assert (change.knob, change.index, change.path) == ("transparent_hugepage", 0, HUGE)
    assert (change.old, change.value) == ("always", "madvise")


def test_the_highest_frequency_becomes_the_lowest() -> None:
    policy = f"{CPU}/cpufreq/policy"
    files = {
        f"{policy}0/scaling_min_freq": "400",
        f"{policy}0/scaling_max_freq": "1500",
        f"{policy}4/scaling_min_freq": "2000",
        f"{policy}4/scaling_max_freq": "2000",
    }

    (change,) = planned("fixed_frequency", files).changes

    assert (change.index, change.old, change.value) == (0, "400", "1500")


def test_of_two_switches_for_turbo_the_one_that_is_there_is_used() -> None:
    assert written(planned("turbo", {f"{CPU}/cpufreq/boost": "1"})) == {
        f"{CPU}/cpufreq/boost": "0"
    }


def test_only_slow_idle_states_of_the_cpus_set_apart_are_disabled() -> None:
    files = {
        f"{CPU}/cpu{cpu}/cpuidle/state{state}/{name}": text
        for cpu in (0, 1)
        for state, latency in ((0, "1"), (1, "200"))
        for name, text in (("latency", latency), ("disable", "0"), ("name", "C"))
    }

    one = planned("idle_states", files, cpus=(1,))
    every = planned("idle_states", files, cpus=None)

    assert written(one) == {f"{CPU}/cpu1/cpuidle/state1/disable": "1"}
    assert len(every.changes) == 2


def test_interrupts_leave_the_cpus_set_apart_and_keep_their_others() -> None:
    irq = "/proc/irq"
    files = {
        "/proc/interrupts": TABLE,
        f"{irq}/24/smp_affinity_list": "1-2",
        f"{irq}/24/effective_affinity_list": "2",
        f"{irq}/25/smp_affinity_list": "2-3",
        f"{irq}/25/effective_affinity_list": "3",
        f"{irq}/26/smp_affinity_list": "2",
    }

    found = planned("irq_affinity", files, cpus=(2, 3))

    assert written(found) == {
        f"{irq}/24/smp_affinity_list": "1",
        f"{irq}/25/smp_affinity_list": "0-1",
    }


def test_an_interrupt_that_will_move_when_it_comes_next_is_not_directed_there() -> None:
    files = {
        "/proc/interrupts": TABLE,
        "/proc/irq/24/smp_affinity_list": "0",
        "/proc/irq/24/effective_affinity_list": "3",
        "/proc/irq/25/smp_affinity_list": "0",
    }

    assert list(planned("irq_affinity", files, cpus=(3,)).good) == ["irq_affinity"]


@pytest.mark.parametrize(
    ("mask", "wanted"),
    [
        ("f", "3"),
        ("0f", "03"),
        ("00000000,0000000f", "00000000,00000003"),
        ("0,ffffffff", "0,00000003"),
    ],
)
def test_a_mask_is_written_as_the_kernel_shows_it(mask: str, wanted: str) -> None:
    path = "/proc/irq/default_smp_affinity"

    assert written(planned("default_irq_affinity", {path: mask}, cpus=(2, 3))) == {
        path: wanted
    }


def test_a_mask_of_the_cpus_set_apart_alone_becomes_all_the_others() -> None:
    path = "/sys/devices/virtual/workqueue/cpumask"

    assert written(planned("workqueues", {path: "c"}, cpus=(2, 3))) == {path: "3"}


def test_nothing_is_directed_elsewhere_where_there_is_no_elsewhere() -> None:
    path = "/proc/irq/default_smp_affinity"
    found = planned("default_irq_affinity", {path: "f"}, cpus=(0, 1, 2, 3))

    assert found.impossible == {
        "default_irq_affinity": "every CPU is set apart: no housekeeping CPU is left"
    }


def test_the_watchdog_keeps_off_some_cpus_or_is_turned_off() -> None:
    kernel = "/proc/sys/kernel"
    files = {f"{kernel}/watchdog": "1", f"{kernel}/watchdog_cpumask": "0-3"}

    apart = planned("watchdog", files, cpus=(3,))
    alone = planned("watchdog", files, cpus=None)

    assert written(apart) == {f"{kernel}/watchdog_cpumask": "0-2"}
    assert written(alone) == {f"{kernel}/watchdog": "0"}


def test_the_fair_server_is_turned_off_on_the_cpus_set_apart_alone() -> None:
    server = "/sys/kernel/debug/sched/fair_server"
    files = {f"{server}/cpu{cpu}/runtime": "50000000" for cpu in range(4)}

    found = planned("fair_server", files, cpus=(3,), profile=Profile.POLLING)

    assert written(found) == {f"{server}/cpu3/runtime": "0"}


def test_two_checks_that_want_the_same_file_write_it_once() -> None:
    kinds = [catalogue()["rt_safety_net"]]
    path = "/proc/sys/kernel/sched_rt_runtime_us"
    reader = reader_of({RELEASE: "6.6.1", path: "-1"})
    context = with_settings(read_context(reader, kinds), kinds, reader)
    twice = examine(context, kinds) * 2

    assert len(plan(context, twice).changes) == 1


def test_safe_means_what_costs_neither_safety_nor_memory() -> None:
    names = {kind.id for kind in choose([SAFE])}

    assert "transparent_hugepages" in names
    assert not names & {"rt_throttling", "fair_server", "watchdog", "ksm", "turbo"}


def test_checks_are_applied_in_the_order_of_the_catalogue() -> None:
    # The governor performance makes the kernel refuse other energy preferences.
    named = choose(["scaling_governor", "energy_preference"])

    assert [kind.id for kind in named] == ["energy_preference", "scaling_governor"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["smt"], "its remedy is no setting that can be put back"),
        (["nonsense"], "is no check; these can be applied: .*turbo"),
        (["turbo:eth0=9"], "is no check; these can be applied: .*turbo"),
        (["interrupt_threads:eth0"], "name a device of /proc/interrupts and a prior"),
        (["interrupt_threads:eth0=0"], "a priority of 1 to 99, as in interrupt_thre"),
        (["interrupt_threads:eth0=100"], "a priority of 1 to 99, as in interrupt_th"),
        (
            ["interrupt_threads:eth0=9", "interrupt_threads:eth0=8"],
            "interrupt_threads:eth0=8: one device has one priority",
        ),
        ([], "name checks, or safe"),
    ],
)
def test_what_cannot_be_applied_is_refused_by_name(words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        choose(words)


def test_a_service_that_would_undo_it_is_named() -> None:
    files = {
        "/proc/interrupts": TABLE,
        "/proc/irq/24/smp_affinity_list": "3",
        "/proc/irq/25/smp_affinity_list": "0",
        "/proc/7/comm": "irqbalance\n",
    }
    context, found = looked("irq_affinity", Case({**FOUR, **files}, cpus=(3,)))
    machine = replace(
        context.machine,
        files={**context.machine.files, "/proc/7/comm": b"irqbalance\n"},
    )
    context = replace(context, machine=machine)

    assert undone_by(context, found.changes) == "irqbalance"
    assert undone_by(context, ()) == ""


NET = "/sys/class/net"
INDEX = {f"{NET}/eth0/ifindex": "7", f"{NET}/eth1/ifindex": "9"}


def test_a_setting_of_an_interface_is_known_by_its_index() -> None:
    found = planned(
        "deferred_polls",
        {
            **INDEX,
            f"{NET}/eth0/gro_flush_timeout": "0\n",
            f"{NET}/eth1/gro_flush_timeout": "20000\n",
        },
    )

    (change,) = found.changes
    assert (change.knob, change.index) == ("gro_flush_timeout", 9)
    assert (change.old, change.value) == ("20000", "0")


def test_both_kinds_of_busy_polling_end_together() -> None:
    files = {"/proc/sys/net/core/busy_poll": "50", "/proc/sys/net/core/busy_read": "9"}

    assert written(planned("busy_polling", files)) == dict.fromkeys(files, "0")


@pytest.mark.parametrize(
    ("packets", "wanted"), [(0, "0.0.0"), (1, "0.1.0"), (8, "0.1.0")]
)
def test_an_interface_that_delays_interrupts_stops_it(
    packets: int, wanted: str
) -> None:
    """Its driver waits for 50 us or packets, or adapts; the other does not tell."""
    delays = {"rx-usecs": 50, "rx-frames": packets, "adaptive-rx": 1}
    seen = Observed(coalescing={"eth0": delays, "eth1": {}})
    devices = {f"{NET}/{name}/device/uevent": "" for name in ("eth0", "eth1")}
    types = {f"{NET}/{name}/type": "1" for name in ("eth0", "eth1")}

    found = planned(
        "interrupt_coalescing", {**INDEX, **devices, **types}, observed=seen
    )

    (change,) = found.changes
    assert (change.knob, change.index) == ("coalescing", 7)
    assert (change.old, change.value) == (f"50.{packets}.1", wanted)


def test_interrupt_threads_go_below_the_lowest_program() -> None:
    stats = (KTHREADD, *(thread(f"irq/{n}-eth{n}", 1, 50, KERNEL) for n in (1, 2)))
    stats_by_path = threads(*stats, thread("loop", 1, 40), thread("fast", 1, 80))
    by_process = {f"/proc/{p.split('/')[2]}/stat": t for p, t in stats_by_path.items()}
    files = {**stats_by_path, **by_process}

    found = planned("interrupt_threads", files)

    assert {(c.knob, c.old, c.value) for c in found.changes} == {
        ("irq_priority", "fifo.50", "fifo.39")
    }
    assert len(found.changes) == 2
    assert all("(irq/" in str(files[c.path]) for c in found.changes)
    assert [c.index for c in found.changes] == [
        int(c.path.split("/")[2]) for c in found.changes
    ]


def test_below_the_lowest_priority_there_is_none() -> None:
    files = threads(KTHREADD, thread("irq/1-eth1", 1, 50, KERNEL), thread("loop", 1, 1))

    found = planned("interrupt_threads", {**files, "/proc/3/stat": "x"})

    assert found.impossible["interrupt_threads"] == (
        "no priority is below those of the programs"
    )


IRQ_NAMES = ("irq/24-eth0-rx-0", "irq/25-eth0-tx", "irq/26-s-eth00", "irq/27-snd_hda_")
ACTIONS = "/sys/kernel/irq/{}/actions"
DEVICES = {ACTIONS.format(27): "snd_hda_intel:card0", ACTIONS.format(4): "ttyS0"}
"""The last thread is of a kernel before 5.17, which cuts its name."""


def of_interrupts(words: str, *programs: str, names: Iterable[str]) -> TuningPlan:
    stats = threads(
        KTHREADD, *(thread(name, 1, 50, KERNEL) for name in names), *programs
    )
    files = {f"/proc/{path.split('/')[2]}/stat": text for path, text in stats.items()}
    kinds = choose(words.split(","))
    reader = reader_of({RELEASE: "6.12.1", **DEVICES, **stats, **files})
    context = read_context(reader, kinds)
    checks = examine(context, kinds)
    return plan(with_settings(context, kinds, reader), checks)


def given(found: TuningPlan) -> dict[str, str]:
    """The priorities by the numbers of the threads: 3 is of the first name."""
    return {path.split("/")[2]: value for path, value in written(found).items()}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("interrupt_threads:eth0=90", {"3": "fifo.90", "4": "fifo.90"}),
        ("interrupt_threads:eth0-tx=90", {"4": "fifo.90"}),
        ("interrupt_threads:26=7", {"5": "fifo.7"}),
        ("interrupt_threads:snd_hda_intel=85", {"6": "fifo.85"}),
        (
            "interrupt_threads,interrupt_threads:eth0=90,interrupt_threads:26=45",
            {"3": "fifo.90", "4": "fifo.90", "5": "fifo.45", "6": "fifo.39"},
        ),
    ],
)
def test_the_interrupt_threads_of_a_device_get_the_priority_that_is_named(
    words: str, wanted: dict[str, str]
) -> None:
    found = of_interrupts(words, thread("loop", 1, 40), names=IRQ_NAMES)

    assert given(found) == wanted
    assert not found.impossible
    assert set(found.risks) == set(words.split(","))


def test_a_device_that_has_its_priority_needs_nothing() -> None:
    word = "interrupt_threads:eth0=50"

    found = of_interrupts(word, names=IRQ_NAMES)

    assert not found.changes
    assert found.good == {word: "pass: 2 threads of FIFO 50"}


@pytest.mark.parametrize(
    ("device", "names", "why"),
    [
        (
            "eth9",
            IRQ_NAMES,
            "no interrupt thread of that name or number; there are: eth0-rx-0, "
            "eth0-tx, eth00, snd_hda_intel:card0",
        ),
        (
            "ttyS0",
            IRQ_NAMES,
            "its interrupt has no thread on this kernel: boot PREEMPT_RT, or with "
            "threadirqs",
        ),
        (
            "eth0",
            (),
            "interrupts have no threads on this kernel: boot PREEMPT_RT, or with "
            "threadirqs",
        ),
        (
            "eth9",
            [f"irq/{n}-dev{n}" for n in range(100, 141)],
            "no interrupt thread of that name or number; there are: "
            + ", ".join(f"dev{n}" for n in range(100, 140))
            + " and 1 more",
        ),
    ],
)
def test_a_device_without_an_interrupt_thread_is_refused(
    device: str, names: Sequence[str], why: str
) -> None:
    word = f"interrupt_threads:{device}=90"

    assert of_interrupts(word, names=names).impossible == {word: why}


def test_where_only_a_container_is_visible_no_device_is_changed() -> None:
    kinds = choose(["interrupt_threads:eth0=90"])
    context = read_context(reader_of(threads(thread("loop", 1, 80))), kinds)

    (check,) = examine(context, kinds)

    assert check.message == "only the threads of a container are visible"
    assert check.outcome is CheckOutcome.UNKNOWN
