"""What an audit says of CPUs: set apart or offline, their clocks and idle states."""

from dataclasses import replace

import pytest

from fakes.auditcases import CASES
from fakes.audited import Case, judged
from fakes.trees import CPU
from rtscope.machine.audit.context import Observed, listed, masked
from rtscope.machine.audit.model import CheckOutcome, Profile, Severity


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

    assert judged("smt", Case(files)).outcome is CheckOutcome.NOT_APPLICABLE


def test_nothing_set_apart_is_not_applicable_but_for_who_polls() -> None:
    empty = {f"{CPU}/isolated": "\n"}

    control = judged("isolated_cpus", Case(empty, cpus=None))
    polling = judged("isolated_cpus", Case(empty, cpus=None, profile=Profile.POLLING))

    assert control.outcome is CheckOutcome.NOT_APPLICABLE
    assert (polling.outcome, polling.severity) == (CheckOutcome.FAIL, Severity.HIGH)


def test_isolated_cpus_are_taken_where_none_are_named() -> None:
    files = {f"{CPU}/isolated": "1", "/proc/irq/default_smp_affinity": "3"}

    assert judged("default_irq_affinity", Case(files, cpus=None)).message == (
        "CPU 1 is in the mask"
    )


def test_a_frequency_that_moved_fails_whatever_is_set() -> None:
    path = f"{CPU}/cpufreq/policy0/scaling_cur_freq"
    good = CASES["fixed_frequency"].good
    moved = Observed(window_ns=10**9, before={path: "9"}, after={path: "8"})

    check = judged("fixed_frequency", replace(good, observed=moved))

    assert check.message == "changed within the window: 9 kHz, then 8"


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


@pytest.mark.parametrize(
    ("asked_us", "outcome"),
    [
        (0, CheckOutcome.PASS),
        (10, CheckOutcome.PASS),
        (11, CheckOutcome.FAIL),
        (None, CheckOutcome.FAIL),
    ],
)
def test_idle_states_are_bounded_by_what_programs_ask_for(
    asked_us: int | None, outcome: CheckOutcome
) -> None:
    deep = CASES["idle_states"].bad
    asked = Observed(dma_latency_us=asked_us, dma_holders={"/proc/7/fd/3": "jackd"})

    check = judged("idle_states", replace(deep, observed=asked))

    assert check.outcome is outcome
    assert (outcome is CheckOutcome.FAIL) or "jackd" in check.evidence[0].value


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [("n/a", CheckOutcome.PASS), ("10", CheckOutcome.PASS), ("0", CheckOutcome.FAIL)],
)
def test_idle_states_are_bounded_for_one_cpu(asked: str, outcome: CheckOutcome) -> None:
    deep = CASES["idle_states"].bad
    files = {**deep.files, f"{CPU}/cpu1/power/pm_qos_resume_latency_us": asked}

    assert judged("idle_states", replace(deep, files=files)).outcome is outcome


def test_a_kernel_without_idle_states_has_nothing_to_forbid() -> None:
    files = {"/proc/config.gz": "# CONFIG_CPU_IDLE is not set\n"}

    assert judged("cpu_dma_latency", Case(files)).outcome is CheckOutcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("cpuinfo", "wanted"),
    [
        ("vendor_id\t: AuthenticAMD\n", CheckOutcome.UNKNOWN),
        (
            "vendor_id\t: GenuineIntel\nflags: hypervisor\n",
            CheckOutcome.NOT_APPLICABLE,
        ),
    ],
)
def test_who_does_not_count_smis_is_no_pass(cpuinfo: str, wanted: CheckOutcome) -> None:
    case = replace(CASES["smi_count"].good, files={"/proc/cpuinfo": cpuinfo})

    assert judged("smi_count", case).outcome is wanted


def test_what_was_set_apart_and_is_offline_does_not_count_as_set_apart() -> None:
    files = {
        f"{CPU}/present": "0-1",
        f"{CPU}/online": "0",
        f"{CPU}/isolated": "1",
        "/proc/irq/default_smp_affinity": "3",
    }

    assert judged("offline_cpus", Case(files, cpus=None)).message == "CPU 1 is offline"
    alone = judged("default_irq_affinity", Case(files, cpus=None))
    assert alone.outcome is CheckOutcome.NOT_APPLICABLE
