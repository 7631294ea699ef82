"""The checks of a machine: every one good, bad, and where it must say unknown."""

import errno
from dataclasses import replace

import pytest

from fakes.audited import ARCH, BOOTED, CASES, RELEASE, Case, limits, seen
from fakes.trees import CPU, GUEST, reader_of
from rtscope.audit.catalogue import catalogue
from rtscope.audit.cpus import listed, masked
from rtscope.audit.examine import UNIT, auditing, examine, scene_of
from rtscope.audit.model import Check, Outcome, Profile, Severity
from rtscope.audit.scene import Observed, Trial
from rtscope.audit.watch import WATCHED, read_kernel_log, try_realtime, watch
from rtscope.reading import Denied

# These three have their own tests in test_audit_kernel.py, as have the options.
BY_KERNEL = {"preempt_rt", "preemption_model", "scaling_governor", "running_kernel"}


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
        if kind.judge != "config" and kind.id not in BY_KERNEL and kind.group != UNIT
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


def test_smt_of_a_guest_says_nothing_of_the_host() -> None:
    files = {f"{CPU}/smt/active": "0", "/proc/cpuinfo": "flags\t: fpu hypervisor\n"}

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
