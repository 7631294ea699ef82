"""What kernel lockdown refuses is not offered as a remedy."""

from dataclasses import replace

import pytest
from rich.console import Console

from fakes.audited import Case, judged
from fakes.trees import reader_of
from rtscope.machine.audit.context import LOCKDOWN, Observed
from rtscope.machine.audit.examine import catalogue, examine, read_context
from rtscope.machine.audit.model import Check, LockdownMode, RemedyPart, check_row
from rtscope.machine.kernelidentity import CMDLINE
from rtscope.machine.settings.remedies import plan, with_settings
from rtscope.present.formats.audit import print_checks

PREEMPT = "/sys/kernel/debug/sched/preempt"
DYNAMIC = {
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC",
    CMDLINE: "preempt=none",
}
TIGHT = "none integrity [confidentiality]"
LOCKED = "none [integrity] confidentiality"
OPEN = "[none] integrity confidentiality"
BOOT = "/boot/config-6.12.1"
LONG_LOG = f"a\nLockdown: {'x' * 300}\nLockdown: b"


def of_model(**files: str) -> Check:
    """A kernel that does not preempt; by default nothing is known of lockdown."""
    return judged("preemption_model", Case({**DYNAMIC, **files}))


@pytest.mark.parametrize("text", [LOCKED, TIGHT])
def test_a_write_to_debugfs_is_not_offered_under_lockdown(text: str) -> None:
    check = of_model(**{LOCKDOWN: text})

    assert check.failed
    assert check.remedy.startswith("kernel lockdown (")
    assert "refuses this, even to root" in check.remedy
    assert check.permanent_remedy == "preempt=full on the kernel command line"
    assert check_row(check)["remedy"] == check.remedy
    assert check_row(check)["remedy_refused"] is True


@pytest.mark.parametrize(
    "files", [{}, {LOCKDOWN: OPEN}, {LOCKDOWN: "garbage"}, {LOCKDOWN: ""}]
)
def test_without_proof_of_lockdown_the_remedy_stays(files: dict[str, str]) -> None:
    check = of_model(**files)

    assert check.remedy == catalogue()["preemption_model"].remedy
    assert check_row(check)["remedy_refused"] is False


@pytest.mark.parametrize(
    ("cmdline", "config", "log", "wanted"),
    [
        ("lockdown=integrity", "", None, "integrity"),
        ("lockdown=confidentiality lockdown=integrity", "", None, "confidentiality"),
        ("lockdown=none", "", None, "none"),
        ("lockdown=on", "", None, "none"),
        ("quiet", "FORCE_INTEGRITY", None, "integrity"),
        ("lockdown=integrity", "FORCE_CONFIDENTIALITY", None, "confidentiality"),
        ("quiet", "", "Kernel is locked down from EFI Secure Boot; see", "integrity"),
        ("quiet", "", "Lockdown: sh: use of tracefs is restricted", "confidentiality"),
        ("quiet", "", "Lockdown: sh: debugfs access is restricted", "integrity"),
    ],
)
def test_the_tightest_mode_that_is_seen_is_in_force(
    cmdline: str, config: str, log: str | None, wanted: str
) -> None:
    name = f"CONFIG_LOCK_DOWN_KERNEL_{config}=y" if config else "CONFIG_X86_64=y"
    files = {CMDLINE: cmdline, BOOT: f"{name}\n"}
    case = Case(files, observed=Observed(kernel_log=log))

    assert judged("preemption_model", case).lockdown == LockdownMode(wanted)


def test_a_remedy_that_a_unit_would_repeat_is_refused_too() -> None:
    server = {"/sys/kernel/debug/sched/fair_server/cpu1/runtime": "50000000"}
    check = judged("fair_server", Case({**server, LOCKDOWN: LOCKED}))

    assert check.is_refused(RemedyPart.REMEDY)
    assert check.is_refused(RemedyPart.PERMANENT_REMEDY)


def test_integrity_leaves_tracing_alone() -> None:
    tracing = {"/sys/kernel/tracing/current_tracer": "function"}
    lax = judged("current_tracer", Case({**tracing, LOCKDOWN: LOCKED}))
    tight = judged("current_tracer", Case({**tracing, LOCKDOWN: TIGHT}))

    assert not lax.is_refused(RemedyPart.REMEDY)
    assert tight.is_refused(RemedyPart.REMEDY)


def test_apply_plans_nothing_that_lockdown_refuses() -> None:
    kinds = [catalogue()["preemption_model"]]
    reader = reader_of({**DYNAMIC, LOCKDOWN: LOCKED, PREEMPT: "(none) full"})
    context = with_settings(read_context(reader, kinds), kinds, reader)

    planned = plan(context, examine(context, kinds))

    assert not planned.changes
    assert "kernel lockdown (integrity)" in planned.impossible["preemption_model"]


def test_the_text_offers_no_apply_that_would_be_refused() -> None:
    def text_of(check: Check) -> str:
        console = Console(width=200, color_system=None)
        with console.capture() as captured:
            kernel = read_context(reader_of(DYNAMIC), [check.kind]).kernel
            print_checks([check], console, target="here", kernel=kernel)
        return captured.get()

    locked = of_model(**{LOCKDOWN: LOCKED})
    assert "--apply" not in text_of(locked)
    assert "even to root: echo full" in text_of(locked)
    assert "--apply preemption_model" in text_of(
        replace(locked, lockdown=LockdownMode.NONE)
    )


def test_every_remedy_that_writes_a_closed_file_names_its_mode() -> None:
    for kind in catalogue().values():
        for part in RemedyPart:
            advice = getattr(kind, part)
            if "/sys/kernel/debug/" in advice:
                assert kind.refused_by[part] is LockdownMode.INTEGRITY, kind.id
            if "/sys/kernel/tracing/" in advice and "mount" not in advice:
                assert part in kind.refused_by, kind.id


@pytest.mark.parametrize(
    ("case", "message", "shown"),
    [
        (
            Case({CMDLINE: "lockdown=integrity"}),
            "integrity",
            (CMDLINE, "lockdown=integrity"),
        ),
        (
            Case({BOOT: "CONFIG_LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY=y\n"}),
            "forced",
            (BOOT, "CONFIG_LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY=y"),
        ),
        (
            Case(observed=Observed(kernel_log=LONG_LOG)),
            "on, by the kernel log",
            ("kernel log", f"Lockdown: {'x' * 190}"),
        ),
        (Case({LOCKDOWN: LOCKED}), LOCKED, (LOCKDOWN, LOCKED)),
    ],
)
def test_what_shows_the_mode_is_evidence(
    case: Case, message: str, shown: tuple[str, str]
) -> None:
    found = judged("lockdown", case)

    assert found.failed
    assert found.message == message
    assert [(s.path, s.value) for s in found.evidence] == [shown]
