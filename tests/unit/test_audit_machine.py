"""The checks of a machine: every one good, bad, and where it must say unknown."""

import errno
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.audited import (
    ARCH,
    BOOTED,
    CASES,
    IRQ,
    KTHREADD,
    RELEASE,
    Case,
    limits,
    seen,
    thread,
    threads,
)
from fakes.trees import CPU, GUEST, reader_of
from rtscope.audit.catalogue import catalogue
from rtscope.audit.cpus import listed, masked
from rtscope.audit.examine import UNIT, auditing, examine, scene_of
from rtscope.audit.model import Check, Outcome, Profile, Severity
from rtscope.audit.scene import Observed, Trial
from rtscope.audit.watch import WATCHED, read_kernel_log, try_realtime, watch
from rtscope.reading import Denied

ROOT = Path(__file__).parent.parent.parent

# It needs an image to compare with, and test_audit_kernel.py has one; there each option
# of a configuration is made good, bad and unseen too.
BY_IMAGE = "running_kernel"


def judged(name: str, case: Case) -> Check:
    kinds = [catalogue()[name]]
    here = {RELEASE: case.release, ARCH: case.arch}
    scene = scene_of(
        reader_of({**here, **case.files}, also=case.also),
        kinds,
        profile=case.profile,
        cpus=case.cpus,
        observed=case.observed,
    )
    return examine(scene, kinds)[0]


def test_every_check_of_a_machine_has_its_three_cases() -> None:
    wanted = {
        kind.id
        for kind in catalogue().values()
        if kind.judge != "config" and kind.id != BY_IMAGE and kind.group != UNIT
    }

    assert set(CASES) == wanted


@pytest.mark.parametrize("name", CASES)
def test_the_good_machine_passes(name: str) -> None:
    check = judged(name, CASES[name].good)

    assert check.outcome is Outcome.PASS, check.says
    assert check.evidence


@pytest.mark.parametrize("name", CASES)
def test_the_bad_machine_fails_with_evidence(name: str) -> None:
    check = judged(name, CASES[name].bad)

    assert check.outcome is Outcome.FAIL, check.says
    assert check.evidence


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_seen_is_unknown_with_its_reason(name: str) -> None:
    check = judged(name, CASES[name].unseen)

    assert check.outcome is Outcome.UNKNOWN, check.says
    assert check.says


@pytest.mark.parametrize("profile", Profile)
def test_a_machine_without_any_file_passes_nothing(profile: Profile) -> None:
    scene = scene_of(reader_of({}), auditing(), profile=profile)

    assert not [
        c.kind.id for c in examine(scene, auditing()) if c.outcome is Outcome.PASS
    ]


def test_a_guest_without_cpufreq_and_smt_files_is_not_called_good() -> None:
    scene = scene_of(reader_of(GUEST), auditing())
    found = {check.kind.id: check for check in examine(scene, auditing())}

    for name in ("scaling_governor", "fixed_frequency", "smt", "turbo"):
        assert found[name].outcome is Outcome.NOT_APPLICABLE, name
    assert found["bare_metal"].outcome is Outcome.FAIL
    assert found["rt_group_sched"].outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "names",
    [
        {"/proc/cpuinfo": "flags\t: fpu hypervisor\n"},
        {"/proc/device-tree/compatible": b"linux,dummy-virt\0"},
    ],
)
def test_smt_of_a_guest_says_nothing_of_the_host(
    names: dict[str, str | bytes],
) -> None:
    files = {f"{CPU}/smt/active": "0", **names}

    assert judged("smt", Case(files)).outcome is Outcome.NOT_APPLICABLE


def test_lockdown_is_named_where_it_hides_the_fair_server() -> None:
    assert "lockdown" in judged("fair_server", CASES["fair_server"].unseen).says


@pytest.mark.parametrize(
    ("name", "release", "outcome"),
    [
        ("fair_server", "6.11.0", Outcome.NOT_APPLICABLE),
        ("fair_server", "6.12.0", Outcome.PASS),
        ("rt_safety_net", "6.12.0", Outcome.NOT_APPLICABLE),
        ("rt_safety_net", "6.11.9", Outcome.PASS),
        ("deadline_admission", "6.11.9", Outcome.NOT_APPLICABLE),
    ],
)
def test_what_6_12_changed_is_gated(name: str, release: str, outcome: Outcome) -> None:
    case = replace(CASES[name].good, release=release)

    assert judged(name, case).outcome is outcome


def test_a_group_that_does_not_share_out_cpu_time_needs_no_budget() -> None:
    bad = CASES["group_budget"].bad
    path = "/sys/fs/cgroup/user.slice/cgroup.controllers"

    check = judged(
        "group_budget", replace(bad, files={**bad.files, path: "cpuset memory"})
    )

    assert check.outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({f"{CPU}/isolated": "1"}, Outcome.PASS),
        ({f"{CPU}/nohz_full": "1"}, Outcome.PASS),
        ({"/sys/fs/cgroup/cpuset.cpus.isolated": "1"}, Outcome.FAIL),
        ({"/etc/default/irqbalance": "IRQBALANCE_BANNED_CPUS=2"}, Outcome.PASS),
        (
            # Named CPUs take the place of those that it would leave alone by itself.
            {
                f"{CPU}/isolated": "1",
                "/etc/default/irqbalance": 'IRQBALANCE_BANNED_CPULIST="2-3"',
            },
            Outcome.FAIL,
        ),
    ],
)
def test_irqbalance_leaves_alone_what_it_is_known_to(
    files: dict[str, str], outcome: Outcome
) -> None:
    check = judged("irqbalance", Case({"/proc/8/comm": "irqbalance", **files}))

    assert check.outcome is outcome


def test_nothing_set_apart_is_not_applicable_but_for_who_polls() -> None:
    empty = {f"{CPU}/isolated": "\n"}

    control = judged("isolated_cpus", Case(empty, cpus=None))
    polling = judged("isolated_cpus", Case(empty, cpus=None, profile=Profile.POLLING))

    assert control.outcome is Outcome.NOT_APPLICABLE
    assert (polling.outcome, polling.severity) == (Outcome.FAIL, Severity.HIGH)


def test_isolated_cpus_are_taken_where_none_are_named() -> None:
    files = {f"{CPU}/isolated": "1", "/proc/irq/default_smp_affinity": "3"}

    assert judged("default_irq_affinity", Case(files, cpus=None)).says == (
        "CPU 1 is among them"
    )


def test_a_log_that_lost_its_beginning_proves_nothing() -> None:
    late = Observed(kernel_log="[ 1000.000000] something\n")

    for name in ("unknown_parameters", "logged_delays", "clock_doubted"):
        assert judged(name, Case(observed=late)).outcome is Outcome.UNKNOWN


def test_a_boot_image_alone_is_no_unknown_parameter() -> None:
    line = 'Unknown kernel command line parameters "BOOT_IMAGE=/v splash", will be'
    log = Observed(kernel_log=BOOTED + line)

    assert judged("unknown_parameters", Case(observed=log)).outcome is Outcome.PASS


def test_a_frequency_that_moved_fails_whatever_is_set() -> None:
    path = f"{CPU}/cpufreq/policy0/scaling_cur_freq"
    good = CASES["fixed_frequency"].good
    moved = Observed(window_ns=10**9, before={path: "9"}, after={path: "8"})

    check = judged("fixed_frequency", replace(good, observed=moved))

    assert check.says == "it changed within the window: 9 kHz, then 8"


@pytest.mark.parametrize(
    ("rtprio", "capabilities", "says"),
    [
        ("0", "0", "neither CAP_SYS_NICE nor a limit on real-time priorities above 0"),
        ("50", "0", "no CAP_SYS_NICE, and RLIMIT_RTPRIO is 50"),
        (
            "0",
            "800000",
            "despite CAP_SYS_NICE: a control group, a seccomp filter or a container",
        ),
    ],
)
def test_a_refused_policy_names_who_refused(
    rtprio: str, capabilities: str, says: str
) -> None:
    files = {**limits(rtprio=rtprio), "/proc/self/status": f"CapEff:\t{capabilities}\n"}
    refused = Observed(trial=Trial("FIFO", errno.EPERM, "Operation not permitted"))

    check = judged("realtime_policy", Case(files, observed=refused))

    assert check.says == f"EPERM: {says}"


def test_a_capability_goes_beyond_a_limit() -> None:
    files = {**limits(rtprio="0"), "/proc/self/status": "CapEff:\t0000000000800000\n"}

    assert judged("rtprio_limit", Case(files)).outcome is Outcome.PASS


def test_interrupts_of_another_cpu_do_not_count() -> None:
    check = judged(
        "observed_device_interrupts", Case(observed=seen(device=9), cpus=(0,))
    )

    assert check.outcome is Outcome.PASS


def test_an_interrupt_seen_is_named() -> None:
    check = judged("observed_device_interrupts", Case(observed=seen(device=3)))

    assert check.says == "3 in 1.0 s, most of them 24 eth0"


def test_what_the_machine_shows_counts_more_than_how_it_is_built() -> None:
    kinds = [catalogue()[name] for name in ("lockup_detectors", "watchdog")]
    files = {
        "/proc/config.gz": "# Automatically generated file; DO NOT EDIT.\n"
        "CONFIG_SOFTLOCKUP_DETECTOR=y\n",
        "/proc/sys/kernel/watchdog": "0",
    }
    scene = scene_of(reader_of(files), kinds)

    built = {c.kind.id: c for c in examine(scene, kinds)}
    shown = {c.kind.id: c for c in examine(scene, kinds, observed_first=True)}

    assert built["lockup_detectors"].outcome is Outcome.FAIL
    assert shown["lockup_detectors"].outcome is Outcome.NOT_APPLICABLE


def test_a_window_reads_twice_and_waits_between() -> None:
    reader = reader_of({"/proc/stat": "cpu 1"})
    waits: list[float] = []

    found = watch(reader, 500_000_000, sleep=waits.append)

    assert reader.trips == [WATCHED, WATCHED]
    assert waits == [0.5]
    assert found.window_ns >= 500_000_000
    assert found.before == found.after == {"/proc/stat": "cpu 1"}


def test_no_window_reads_nothing() -> None:
    reader = reader_of({})

    assert watch(reader, 0) == Observed()
    assert reader.trips == []


def test_a_log_that_is_refused_says_why() -> None:
    log, why = read_kernel_log("/nowhere/kmsg")

    assert log is None
    assert why == "the kernel log cannot be read: No such file or directory"


def test_the_trial_leaves_this_process_as_it_was() -> None:
    tried = try_realtime()

    assert tried.error in (None, errno.EPERM)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-1,3", {0, 1, 3}), ("(null)", set()), ("", set()), ("3-1", None)],
)
def test_lists_of_cpus(text: str, cpus: set[int] | None) -> None:
    assert listed(text) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"), [("1,00000001", {0, 32}), ("0", set()), ("x", None)]
)
def test_masks_of_cpus(text: str, cpus: set[int] | None) -> None:
    assert masked(text) == cpus


def test_a_denied_pattern_is_unknown_and_names_the_place() -> None:
    path = "/sys/kernel/mm/ksm/run"
    check = judged("ksm", Case({}, {path: Denied("Permission denied")}))

    assert check.evidence[0].where == path


RISCV = """\
           CPU0       CPU1
 10:        103         96  RISC-V INTC   5 Edge      riscv-timer
 12:          2          {device}  SiFive PLIC  10 Edge      ttyS0
IPI1:         3         {call}  Function call interrupts
"""
ARM = """\
           CPU0       CPU1
 11:        103         96     GICv3  27 Level     arch_timer
 12:          2          {device}     GICv3  78 Edge      ttyS0
IPI1:         3         {call}       Function call interrupts
"""


def seen_in(table: str, *, device: int = 0, call: int = 0) -> Observed:
    return Observed(
        window_ns=10**9,
        before={"/proc/interrupts": table.format(device=0, call=0)},
        after={"/proc/interrupts": table.format(device=device, call=call)},
    )


@pytest.mark.parametrize("table", [RISCV, ARM])
def test_the_timer_that_each_cpu_has_is_no_device(table: str) -> None:
    files = {
        "/proc/interrupts": table.format(device=0, call=0),
        "/proc/irq/10/smp_affinity_list": "0-1",
        "/proc/irq/11/smp_affinity_list": "0-1",
        "/proc/irq/12/effective_affinity_list": "0",
    }
    quiet = seen_in(table).after
    ticking = {p: t.replace(" 96 ", " 996 ") for p, t in quiet.items()}
    ticks = Observed(window_ns=10**9, before=quiet, after=ticking)
    polling = Case(files, observed=ticks, profile=Profile.POLLING)

    directed = judged("irq_affinity", Case(files))
    assert (directed.outcome, directed.says) == (Outcome.PASS, "none of 1")
    assert judged("observed_device_interrupts", polling).outcome is Outcome.PASS
    assert judged("observed_ticks", polling).outcome is Outcome.FAIL


@pytest.mark.parametrize("table", [RISCV, ARM])
def test_devices_and_calls_are_found_by_their_names(table: str) -> None:
    case = Case(observed=seen_in(table, device=3, call=40))

    device = judged("observed_device_interrupts", case)
    call = judged("observed_ipis", case)
    assert device.says == "3 in 1.0 s, most of them 12 ttyS0"
    assert call.says == "40 in 1.0 s, most of them IPI1 Function call interrupts"


def test_what_unpacks_the_kernel_knows_nokaslr() -> None:
    line = 'Unknown kernel command line parameters "nokaslr nohz_full=1", will be'
    log = Observed(kernel_log=BOOTED + line)

    assert judged("unknown_parameters", Case(observed=log)).says == "nohz_full=1"


@pytest.mark.parametrize(
    ("asked_us", "outcome"),
    [(0, Outcome.PASS), (10, Outcome.PASS), (11, Outcome.FAIL), (None, Outcome.FAIL)],
)
def test_idle_states_are_bounded_by_what_programs_ask_for(
    asked_us: int | None, outcome: Outcome
) -> None:
    deep = CASES["idle_states"].bad
    asked = Observed(dma_latency_us=asked_us, dma_holders={"/proc/7/fd/3": "jackd"})

    check = judged("idle_states", replace(deep, observed=asked))

    assert check.outcome is outcome
    assert (outcome is Outcome.FAIL) or "jackd" in check.evidence[0].what


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [("n/a", Outcome.PASS), ("10", Outcome.PASS), ("0", Outcome.FAIL)],
)
def test_idle_states_are_bounded_for_one_cpu(asked: str, outcome: Outcome) -> None:
    deep = CASES["idle_states"].bad
    files = {**deep.files, f"{CPU}/cpu1/power/pm_qos_resume_latency_us": asked}

    assert judged("idle_states", replace(deep, files=files)).outcome is outcome


def test_a_kernel_without_idle_states_has_nothing_to_forbid() -> None:
    files = {"/proc/config.gz": "# CONFIG_CPU_IDLE is not set\n"}

    assert judged("cpu_dma_latency", Case(files)).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    "cpuinfo",
    ["vendor_id\t: AuthenticAMD\n", "vendor_id\t: GenuineIntel\nflags: hypervisor\n"],
)
def test_who_does_not_count_smis_is_no_pass(cpuinfo: str) -> None:
    case = replace(CASES["smi_count"].good, files={"/proc/cpuinfo": cpuinfo})

    assert judged("smi_count", case).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    "stats",
    [(KTHREADD, IRQ, thread("sh")), (KTHREADD, thread("loop", 1, 80))],
    ids=["no real-time thread", "no interrupt thread"],
)
def test_interrupt_threads_are_judged_beside_others_only(
    stats: tuple[str, ...],
) -> None:
    check = judged("interrupt_threads", Case(threads(*stats)))

    assert check.outcome is Outcome.NOT_APPLICABLE


def test_a_container_does_not_show_that_nobody_has_99() -> None:
    check = judged("real_time_threads", Case(threads(thread("sh"))))

    assert check.outcome is Outcome.UNKNOWN


def test_a_program_cannot_pass_for_an_interrupt_or_hide_behind_brackets() -> None:
    ours = thread("irq/1) R 0", 1, 50)

    check = judged("interrupt_threads", Case(threads(KTHREADD, IRQ, ours)))

    assert check.says == "1 of 1 are not below irq/1) R 0 (FIFO 50)"


@pytest.mark.parametrize("name", ["current_tracer", "trace_instances", "trace_events"])
def test_what_lockdown_takes_away_is_named(name: str) -> None:
    lockdown = {"/sys/kernel/security/lockdown": "none integrity [confidentiality]"}

    check = judged(name, Case(lockdown))

    assert check.outcome is Outcome.UNKNOWN
    assert check.says.startswith("kernel lockdown takes it away: /sys/kernel/tracing/")


def test_a_machine_of_the_emulator_is_no_hardware() -> None:
    files = {"/proc/device-tree/compatible": b"riscv-virtio\0"}

    assert judged("bare_metal", Case(files, arch="riscv64")).outcome is Outcome.FAIL


def test_what_was_set_apart_and_is_offline_does_not_count_as_set_apart() -> None:
    files = {
        f"{CPU}/present": "0-1",
        f"{CPU}/online": "0",
        f"{CPU}/isolated": "1",
        "/proc/irq/default_smp_affinity": "3",
    }

    assert judged("offline_cpus", Case(files, cpus=None)).says == "CPU 1 is offline"
    alone = judged("default_irq_affinity", Case(files, cpus=None))
    assert alone.outcome is Outcome.NOT_APPLICABLE


def test_each_check_answers_a_question_of_the_explanation() -> None:
    page = ROOT / "docs" / "explanation" / "what-an-audit-looks-at.md"
    asked = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    named = [word for line in asked[1:] for word in re.findall(r"`(\w+)`", line)]

    assert sorted(named) == sorted(catalogue())
