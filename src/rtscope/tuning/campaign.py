"""
`rtscope run --tuned`: what checks need, held for a campaign and put back at its end.

A check that was named must be remedied, or nothing is measured; of `safe` what can be
is, and the record says what was not.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtscope.audit.catalogue import catalogue
from rtscope.audit.examine import examine, read_context
from rtscope.audit.model import CheckKind, Profile
from rtscope.campaign.model import Campaign
from rtscope.errors import TargetError, UsageError
from rtscope.target import Target
from rtscope.tuning.hold import Held, held
from rtscope.tuning.outcome import Tuning
from rtscope.tuning.remedies import SAFE, Plan, chosen, plan, undone_by, with_settings

PROFILE = Profile.CONTROL
"""A measurement is of threads that wake up periodically."""

_SET_BY_OPTION = {"governor": "governor", "rt_runtime_us": "rt_throttling"}
"""Knobs that measuring sets itself, and the campaign's key that asks for it."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a campaign runs with."""

    plan: Plan = field(default_factory=Plan)
    tuning: Tuning = field(default_factory=Tuning)
    holding: Held | None = None
    undone_by: str = ""
    """A running service that would change it back."""

    def check(self) -> None:
        """Raise TargetError if the settings are no longer held."""
        if self.holding is not None:
            self.holding.check()

    @property
    def changed(self) -> tuple[str, ...]:
        """Each knob that was changed with its new value, once for all its places."""
        wishes = [done.wish for done in self.tuning.done if done.changed]
        return tuple(dict.fromkeys(f"{wish.knob}={wish.value}" for wish in wishes))

    def document(self) -> Mapping[str, Any]:
        """Return what the record keeps of it."""
        return {
            "changed": [
                {
                    "check": done.wish.check,
                    "path": done.wish.path,
                    "before": done.wish.old,
                    "value": done.wish.value,
                }
                for done in self.tuning.done
                if done.changed
            ],
            "refused": [
                {"check": r.wish.check, "path": r.wish.path, "why": r.reason}
                for r in self.tuning.refused
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
    for kind in chosen(campaign.tuned):
        option = _option_of(kind, campaign)
        named = kind.id in campaign.tuned
        if named and PROFILE not in kind.profiles:
            raise UsageError(
                f"--tuned {kind.id}: it is not asked of the profile {PROFILE.value}; "
                "for another one, apply it before the run: rtscope audit --profile "
                f"{min(kind.profiles).value} --apply {kind.id}"
            )
        if option is None:
            left.append(kind)
        elif named:
            raise UsageError(
                f"--tuned {kind.id} and --{option.replace('_', '-')} set the same; "
                "leave one of them out"
            )
    return left


def _option_of(kind: CheckKind, campaign: Campaign) -> str | None:
    for setting in kind.apply:
        key = _SET_BY_OPTION.get(setting.knob)
        if key and getattr(campaign, key) not in (None, "keep"):
            return key
    return None


@contextlib.contextmanager
def tuned(
    target: Target, campaign: Campaign, *, cpus: tuple[int, ...] | None
) -> Iterator[Tuned]:
    """
    Hold what the campaign asks for, for as long as the block lasts.

    Raises TargetError if what was named cannot be had, or was not put back.
    """
    kinds = checks_for(campaign)
    if not kinds:
        yield Tuned()
        return
    wanted = [*kinds, catalogue()["irqbalance"]]
    context = read_context(target.reader, wanted, profile=PROFILE, cpus=cpus)
    checks = examine(context, kinds)
    planned = plan(with_settings(context, kinds, target.reader), checks)
    _refuse_missing(target, campaign.tuned, planned.impossible)
    if not planned.wishes:
        yield Tuned(planned)
        return
    with held(target, planned.wishes) as holding:
        refused = {r.wish.check: r.reason for r in holding.tuning.refused}
        _refuse_missing(target, campaign.tuned, refused)
        service = undone_by(context, planned.wishes)
        yield Tuned(planned, holding.tuning, holding, service)


def _refuse_missing(
    target: Target, named: Sequence[str], why: Mapping[str, str]
) -> None:
    missing = [f"{name}: {why[name]}" for name in named if name in why]
    if missing:
        raise TargetError(
            f"{target.name}: --tuned: {'; '.join(missing)}; nothing was measured and "
            f"nothing is left changed; leave it out, or write --tuned {SAFE}"
        )
