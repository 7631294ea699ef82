"""What the audit says by version alone gives way to what the kernel shows."""

import pytest

from fakes.audited import BOOTED, Case, judged
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.model import CheckOutcome, Profile, Severity

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
FAIR = "/sys/kernel/debug/sched/fair_server/cpu1/runtime"
WEAK = "/sys/devices/system/cpu/vulnerabilities"
HEAD = "# Automatically generated file; DO NOT EDIT.\n"
GROUPS = f"{HEAD}CONFIG_RT_GROUP_SCHED=y\n"
NO_GROUPS = f"{HEAD}# CONFIG_RT_GROUP_SCHED is not set\n"
THROTTLED = "[   97.1] sched: RT throttling activated\n"

PASS, FAIL = CheckOutcome.PASS, CheckOutcome.FAIL
UNKNOWN, NONE = CheckOutcome.UNKNOWN, CheckOutcome.NOT_APPLICABLE


def logged(*lines: str) -> Observed:
    return Observed(kernel_log=BOOTED + "".join(f"{line}\n" for line in lines))


# --- clocks -----------------------------------------------------------------------

P0 = "[    0.0] [Firmware Bug]: TSC doesn't count with P0 frequency!"
CALIBRATED = "[    0.0] tsc: Detected 2596.128 MHz processor"


@pytest.mark.parametrize(
    ("lines", "outcome", "severity"),
    [
        ((P0, CALIBRATED), FAIL, Severity.INFO),
        ((P0, P0), FAIL, Severity.INFO),
        (
            (P0, "tsc: Marking TSC unstable due to clocksource watchdog"),
            FAIL,
            Severity.HIGH,
        ),
        (
            ("timekeeping watchdog: Marking clocksource 'tsc' as unstable",),
            FAIL,
            Severity.HIGH,
        ),
        ((CALIBRATED,), PASS, Severity.HIGH),
    ],
)
def test_a_tsc_that_the_kernel_measured_and_keeps_is_no_fault(
    lines: tuple[str, ...], outcome: CheckOutcome, severity: Severity
) -> None:
    check = judged("clock_doubted", Case(observed=logged(*lines)))

    assert (check.outcome, check.severity) == (outcome, severity)
    assert "every latency is wrong" not in check.kind.rationale


# --- the limit of real-time threads -----------------------------------------------


@pytest.mark.parametrize(
    ("release", "config", "log", "runtime", "outcome"),
    [
        ("6.18.44", GROUPS, THROTTLED, "950000", PASS),
        ("6.18.44", GROUPS, "", "950000", PASS),
        ("6.18.44", GROUPS, "", "-1", FAIL),
        ("6.18.44", NO_GROUPS, "", "950000", NONE),
        # The log decides over a configuration that may be another build's.
        ("6.18.44", NO_GROUPS, THROTTLED, "950000", PASS),
        ("6.18.44", "", THROTTLED, "-1", FAIL),
        ("6.18.44", "", "", "950000", UNKNOWN),
        ("6.18.44", "CONFIG_SMP=y\n", "", "950000", UNKNOWN),
        ("6.1.9", NO_GROUPS, "", "-1", FAIL),
    ],
)
def test_the_safety_net_is_there_where_the_kernel_throttles(
    release: str, config: str, log: str, runtime: str, outcome: CheckOutcome
) -> None:
    files = {RUNTIME: runtime, **({"/proc/config.gz": config} if config else {})}
    case = Case(files, observed=logged(log), release=release)

    assert judged("rt_safety_net", case).outcome is outcome


def test_throttling_in_the_log_counts_for_threads_that_never_sleep_too() -> None:
    case = Case(
        {RUNTIME: "950000", "/proc/config.gz": NO_GROUPS},
        observed=logged(THROTTLED),
        profile=Profile.POLLING,
    )

    check = judged("rt_throttling", case)

    assert check.outcome is FAIL
    assert check.evidence[-1].value.endswith("RT throttling activated")


@pytest.mark.parametrize(
    ("name", "files", "outcome"),
    [
        ("fair_server", {FAIR: "50000000"}, FAIL),
        ("fair_server", {}, NONE),
        ("sched_ext", {"/sys/kernel/sched_ext/state": "enabled"}, FAIL),
        ("sched_ext", {"/sys/kernel/sched_ext/state": "disabled"}, PASS),
        ("sched_ext", {}, NONE),
        # The file is older than what it stands for since 6.12.
        ("deadline_admission", {RUNTIME: "-1"}, NONE),
    ],
)
def test_a_backport_is_judged_by_its_files(
    name: str, files: dict[str, str], outcome: CheckOutcome
) -> None:
    assert judged(name, Case(files, release="6.6.1")).outcome is outcome


# --- mitigations ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "outcome", "message"),
    [
        (
            {"a": "Mitigation: PTI", "b": "Vulnerable", "c": "Not affected"},
            *(FAIL, "1 in force: a; vulnerable: b"),
        ),
        (
            {"a": "Mitigation: PTI", "b": "Vulnerable: No microcode", "c": "odd"},
            *(FAIL, "1 in force: a; vulnerable: b; unknown: c"),
        ),
        (
            {"a": "Mitigation: Clear CPU buffers; SMT vulnerable"},
            *(FAIL, "1 in force: a; vulnerable in part: a"),
        ),
        (
            {"a": "Mitigation: Retpolines; BHI: Vulnerable", "b": "KVM: Vulnerable"},
            *(FAIL, "1 in force: a; vulnerable in part: a; vulnerable: b"),
        ),
        (
            {"a": "Processor vulnerable", "b": "Not affected"},
            *(PASS, "none in force; vulnerable: a"),
        ),
        ({"a": "Unknown: Dependent on hypervisor status"}, UNKNOWN, ""),
    ],
)
def test_what_is_vulnerable_is_named_beside_what_is_in_force(
    texts: dict[str, str], outcome: CheckOutcome, message: str
) -> None:
    check = judged("mitigations", Case({f"{WEAK}/{n}": t for n, t in texts.items()}))

    assert check.outcome is outcome
    assert message in check.message
