"""The checks of a machine: every one good, bad, and where it must say unknown."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.auditcases import CASES
from fakes.audited import Case, judged
from fakes.trees import GUEST, reader_of
from rtscope.machine.audit.examine import (
    UNIT,
    auditing,
    catalogue,
    examine,
    read_context,
)
from rtscope.machine.audit.model import CheckOutcome, Profile, checks_document
from rtscope.machine.kernelconfig import parse_config
from rtscope.machine.kernelidentity import identify_config
from rtscope.machine.reader import Denied

ROOT = Path(__file__).parent.parent.parent

# It needs an image to compare with, and test_audit_kernel.py has one; there each option
# of a configuration is made good, bad and unseen too.
BY_IMAGE = "running_kernel"
BY_CONFIG = {
    "config_lines",
    "rt_prerequisites",
    "config",
    "high_resolution",
    "tick_mode",
}
"""Their rows are made good and bad by the configuration (test_audit_kernel.py)."""


def test_every_check_of_a_machine_has_its_three_cases() -> None:
    wanted = {
        kind.id
        for kind in catalogue().values()
        if kind.function not in BY_CONFIG and kind.id != BY_IMAGE and kind.group != UNIT
    }

    assert set(CASES) == wanted


@pytest.mark.parametrize("name", CASES)
def test_the_good_machine_passes(name: str) -> None:
    check = judged(name, CASES[name].good)

    assert check.outcome is CheckOutcome.PASS, check.message
    assert check.evidence


@pytest.mark.parametrize("name", CASES)
def test_the_bad_machine_fails_with_evidence(name: str) -> None:
    check = judged(name, CASES[name].bad)

    assert check.outcome is CheckOutcome.FAIL, check.message
    assert check.evidence


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_seen_is_unknown_with_its_reason(name: str) -> None:
    check = judged(name, CASES[name].unseen)

    assert check.outcome is CheckOutcome.UNKNOWN, check.message
    assert check.message


@pytest.mark.parametrize("profile", Profile)
def test_a_machine_without_any_file_passes_nothing(profile: Profile) -> None:
    context = read_context(reader_of({}), auditing(), profile=profile)

    assert not [
        c.kind.id
        for c in examine(context, auditing())
        if c.outcome is CheckOutcome.PASS
    ]


def test_a_guest_without_cpufreq_and_smt_files_is_not_called_good() -> None:
    context = read_context(reader_of(GUEST), auditing())
    found = {check.kind.id: check for check in examine(context, auditing())}

    for name in ("scaling_governor", "fixed_frequency", "smt", "turbo"):
        assert found[name].outcome is CheckOutcome.NOT_APPLICABLE, name
    assert found["bare_metal"].outcome is CheckOutcome.FAIL
    assert found["rt_group_sched"].outcome is CheckOutcome.FAIL


@pytest.mark.parametrize(
    ("name", "release", "outcome"),
    [
        ("fair_server", "6.11.0", CheckOutcome.PASS),  # its files show a backport
        ("fair_server", "6.12.0", CheckOutcome.PASS),
        ("rt_safety_net", "6.12.0", CheckOutcome.UNKNOWN),  # by no configuration
        ("rt_safety_net", "6.11.9", CheckOutcome.PASS),
        ("deadline_admission", "6.11.9", CheckOutcome.NOT_APPLICABLE),
    ],
)
def test_what_6_12_changed_is_gated(
    name: str, release: str, outcome: CheckOutcome
) -> None:
    case = replace(CASES[name].good, release=release)

    assert judged(name, case).outcome is outcome


def test_what_the_machine_shows_counts_more_than_how_it_is_built() -> None:
    kinds = [catalogue()[name] for name in ("lockup_detectors", "watchdog")]
    files = {
        "/proc/config.gz": "# Automatically generated file; DO NOT EDIT.\n"
        "CONFIG_SOFTLOCKUP_DETECTOR=y\n",
        "/proc/sys/kernel/watchdog": "0",
    }
    context = read_context(reader_of(files), kinds)

    built = {c.kind.id: c for c in examine(context, kinds)}
    shown = {c.kind.id: c for c in examine(context, kinds, observed_first=True)}

    assert built["lockup_detectors"].outcome is CheckOutcome.FAIL
    assert shown["lockup_detectors"].outcome is CheckOutcome.NOT_APPLICABLE


def test_how_it_is_built_counts_where_the_machine_does_not_show_it() -> None:
    kinds = [catalogue()[name] for name in ("lockup_detectors", "watchdog")]
    config = (
        "# Automatically generated file; DO NOT EDIT.\nCONFIG_SOFTLOCKUP_DETECTOR=y\n"
    )
    denied = {"/proc/sys/kernel/watchdog": Denied("Permission denied")}
    context = read_context(reader_of({"/proc/config.gz": config}, also=denied), kinds)

    shown = {c.kind.id: c for c in examine(context, kinds, observed_first=True)}

    assert shown["watchdog"].outcome is CheckOutcome.UNKNOWN
    assert shown["lockup_detectors"].outcome is CheckOutcome.FAIL


def test_a_machine_of_the_emulator_is_no_hardware() -> None:
    files = {"/proc/device-tree/compatible": b"riscv-virtio\0"}

    assert (
        judged("bare_metal", Case(files, arch="riscv64")).outcome is CheckOutcome.FAIL
    )


def test_each_check_answers_a_question_of_the_explanation() -> None:
    page = ROOT / "docs" / "explanation" / "scope-of-an-audit.md"
    asked = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    named = [word for line in asked[1:] for word in re.findall(r"`(\w+)`", line)]

    assert sorted(named) == sorted(catalogue())


def test_the_document_of_an_audit_says_all_of_a_check() -> None:
    found = judged("lockdown", Case({"/sys/kernel/security/lockdown": "[integrity]"}))
    kind = found.kind
    config = parse_config(b"CONFIG_HZ=250\n", source="config")
    kernel = identify_config(config, banner="Linux version 6.12.1 (a@b) #1 SMP")

    document = checks_document([found], target="a board", kernel=kernel)

    assert document == {
        "schema": 2,
        "target": "a board",
        "kernel": {
            "release": "6.12.1",
            "preempt_rt": kernel.preempt_rt,
            "preemption_model": kernel.preemption_model,
            "config_digest": config.digest,
        },
        "summary": {"fail": 1, "unknown": 0, "pass": 0, "not applicable": 0},
        "checks": [
            {
                "id": "lockdown",
                "title": kind.title,
                "outcome": "fail",
                "severity": found.severity.name.lower(),
                "message": "[integrity]",
                "expected": kind.expected,
                "evidence": [
                    {"path": "/sys/kernel/security/lockdown", "value": "[integrity]"}
                ],
                "rationale": kind.rationale,
                "source": kind.source,
                "remedy": kind.remedy,
                "permanent_remedy": kind.permanent_remedy,
                "remedy_refused": False,
                "risk": kind.risk,
            }
        ],
    }
