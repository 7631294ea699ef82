"""
A machine set up for a run: audited, and with `--tuned` the settings that checks need.

A named check must be remedied, or nothing is measured. `safe` applies what it can, and
the record lists the rest.

The audit only reads and does not wait. If it fails, the run gets a caveat and goes on.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtscope.host.errors import ImpossibleRemedy, UsageError
from rtscope.host.files.jsontext import json_text
from rtscope.host.version import __version__
from rtscope.machine.audit.context import AuditContext, Observed
from rtscope.machine.audit.examine import auditing, examine, read_context
from rtscope.machine.audit.model import (
    Check,
    CheckKind,
    Severity,
    checks_document,
)
from rtscope.machine.audit.observe import observe_here, observe_settings
from rtscope.machine.reader import Reader
from rtscope.machine.settings.change import HeldSettings, TuningResult, hold
from rtscope.machine.settings.remedies import (
    PROFILE,
    SAFE,
    TuningPlan,
    choose,
    planned_for,
    undone_by,
)
from rtscope.machine.target import Target
from rtscope.measure.campaign.model import Campaign
from rtscope.record.caveats.catalogue import Caveat, make

_SET_BY_OPTION = {"governor": "governor", "rt_runtime_us": "rt_throttling"}
"""Knobs that measuring sets itself, and the campaign's key that asks for it."""


@dataclass(frozen=True, slots=True)
class CampaignTuning:
    """What a campaign runs with."""

    plan: TuningPlan = field(default_factory=TuningPlan)
    result: TuningResult = field(default_factory=TuningResult)
    holding: HeldSettings | None = None
    undone_by: str = ""
    """A running service that would change it back."""

    def check(self) -> None:
        """Raise TargetError if the settings are no longer held."""
        if self.holding is not None:
            self.holding.check()

    @property
    def changed(self) -> tuple[str, ...]:
        """Each knob that was changed with its new value, once for all its places."""
        changed = [c for c in self.result.applied if c.changed]
        return tuple(dict.fromkeys(f"{c.knob}={c.value}" for c in changed))

    def document(self) -> Mapping[str, Any]:
        """Return what the record keeps of it."""
        return {
            "changed": [
                {
                    "check": change.check,
                    "path": change.path,
                    "before": change.old,
                    "value": change.value,
                }
                for change in self.result.applied
                if change.changed
            ],
            "refused": [
                {"check": r.change.check, "path": r.change.path, "reason": r.reason}
                for r in self.result.refused
            ],
            "impossible": dict(self.plan.impossible),
            "nothing_to_do": dict(self.plan.good),
            "undone_by": self.undone_by,
        }


def checks_for(campaign: Campaign) -> list[CheckKind]:
    """Return the checks to remedy; UsageError for one that cannot be, by its name."""
    if not campaign.tuned:
        return []
    left = []
    for kind in choose(campaign.tuned):
        option = _option_of(kind, campaign)
        named = kind.id in campaign.tuned
        if named and PROFILE not in kind.profiles:
            raise UsageError(
                f"--tuned {kind.id}: not a check of the profile {PROFILE.value}; "
                "apply it before the run: rtscope audit --profile "
                f"{min(kind.profiles).value} --apply {kind.id}"
            )
        if option is None:
            left.append(kind)
        elif named:
            raise UsageError(
                f"--tuned {kind.id} and --{option.replace('_', '-')} change the "
                "same setting: remove one of them"
            )
    return left


def _option_of(kind: CheckKind, campaign: Campaign) -> str | None:
    for setting in kind.apply:
        key = _SET_BY_OPTION.get(setting.knob)
        if key and getattr(campaign, key) not in (None, "keep"):
            return key
    return None


@contextlib.contextmanager
def tune(
    target: Target, campaign: Campaign, *, cpus: tuple[int, ...] | None
) -> Iterator[CampaignTuning]:
    """
    Hold what the campaign asks for, for as long as the block lasts.

    Raises TargetError if what was named cannot be had, or was not put back.
    """
    kinds = checks_for(campaign)
    if not kinds:
        yield CampaignTuning()
        return
    seen = observe_settings(target.name)
    context, planned = planned_for(target.reader, kinds, cpus=cpus, observed=seen)
    refuse_missing(target.name, campaign.tuned, planned.impossible)
    if not planned.changes:
        yield CampaignTuning(planned)
        return
    with hold(target, planned.changes) as holding:
        refused = {r.change.check: r.reason for r in holding.result.refused}
        refuse_missing(target.name, campaign.tuned, refused)
        service = undone_by(context, planned.changes)
        yield CampaignTuning(planned, holding.result, holding, service)


def refuse_missing(name: str, named: Sequence[str], why: Mapping[str, str]) -> None:
    """Raise ImpossibleRemedy, with the target's name, if a named check is in `why`."""
    missing = {check: why[check] for check in named if check in why}
    if missing:
        reasons = "; ".join(f"{check}: {reason}" for check, reason in missing.items())
        raise ImpossibleRemedy(
            f"{name}: --tuned: {reasons}; nothing was measured, and all settings are "
            f"restored; remove the check, or type --tuned {SAFE}",
            whys=missing,
        )


# --- audit a machine before each run: `audit.json`, and a caveat for severe failures --

FILE = "audit.json"

LEFT_OUT = "rights"
"""This group is skipped: the agent has its own rights, and reports a missing one."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit."""

    document: bytes | None
    """For FILE; None if there was no audit."""
    caveats: tuple[Caveat, ...]


def run_checks(*, config_only: bool = False) -> list[CheckKind]:
    """Return the checks to make before a run."""
    kinds = auditing(config_only=config_only)
    return [kind for kind in kinds if kind.group != LEFT_OUT]


def audit_before(
    reader: Reader, *, target: str, cpus: tuple[int, ...] | None, here: bool
) -> AuditResult:
    """
    Audit a machine for a run on some of its CPUs; None: its isolated CPUs.

    `here`: it is this machine, so read its kernel log and clock too.
    """
    try:
        seen = observe_here(Observed(), trial=False) if here else Observed()
        kinds = run_checks()
        context = read_context(reader, kinds, cpus=cpus, observed=seen)
        return audit_files(context, kinds, target=target)
    except Exception as error:
        return failed_audit(error)


def audit_files(
    context: AuditContext, kinds: Iterable[CheckKind], *, target: str
) -> AuditResult:
    """Check the files of a machine, or the kernel of a virtual board."""
    checks = examine(context, kinds, observed_first=True)
    document = {
        "rtscope": __version__,
        "profile": context.profile.value,
        "cpus": None if context.cpus is None else list(context.cpus),
        **checks_document(checks, target=target, kernel=context.kernel),
    }
    content = json_text(document, indent=1).encode()
    return AuditResult(content, tuple(_caveats(checks)))


def failed_audit(error: Exception) -> AuditResult:
    """Return no document, and a caveat with the reason."""
    why = str(error) or type(error).__name__
    return AuditResult(None, (make("audit_missing", why),))


def _caveats(checks: Iterable[Check]) -> Iterator[Caveat]:
    """Yield one caveat for all severe failures; the document has the others too."""
    grave: dict[Severity, list[str]] = {}
    for check in checks:
        if check.failed and check.severity >= Severity.HIGH:
            grave.setdefault(check.severity, []).append(check.kind.id)
    if grave:
        parts = [
            f"{severity.name.lower()}: {', '.join(names)}"
            for severity, names in sorted(grave.items(), reverse=True)
        ]
        yield make("audit_failed", "; ".join(parts))
