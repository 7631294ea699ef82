"""The deadline that a verdict is asked for: from the campaign, or from options."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rtscope.campaign.file import from_dict
from rtscope.campaign.model import Campaign
from rtscope.caveats.catalogue import Effect
from rtscope.cli.console import stderr_console
from rtscope.errors import MeasurementError, UsageError
from rtscope.record.explanation import find_explained
from rtscope.record.model import RunRecord
from rtscope.report.model.build import Model, build_model
from rtscope.stats.verdict import Claim
from rtscope.units import parse_claim, parse_duration


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be judged; without a deadline nothing is."""

    deadline_ns: int | None
    claim: Claim | None
    min_boots: int


def asked_by(campaign: Campaign) -> Question:
    """Return the question that the campaign asks."""
    claim = None if campaign.claim is None else Claim(*campaign.claim)
    return Question(campaign.deadline_ns, claim, campaign.min_boots)


def asked_with(
    records: Sequence[RunRecord],
    *,
    deadline: str | None,
    claim: str | None,
    min_boots: int | None,
) -> Question:
    """Return the question of the options; what is not given is as in the records."""
    before = (
        asked_by(from_dict(dict(records[0].campaign), source="the record"))
        if records
        else Question(None, None, 1)
    )
    deadline_ns = parse_duration(deadline) if deadline else before.deadline_ns
    if claim and deadline_ns is None:
        raise UsageError("--claim is about a deadline: add --deadline 200us")
    return Question(
        deadline_ns,
        Claim(*parse_claim(claim)) if claim else before.claim,
        min_boots or before.min_boots,
    )


def model_of(
    records: Sequence[RunRecord], question: Question, *, beside: Sequence[Path] = ()
) -> Model:
    """Build the report that answers the question; explanations lie `beside`."""
    talk = stderr_console()
    explained = find_explained(
        beside, records, say=lambda text: talk.print(f"rtscope: {text}", markup=False)
    )
    return build_model(
        records,
        deadline_ns=question.deadline_ns,
        claim=question.claim,
        min_boots=question.min_boots,
        explained=explained,
    )


def exit_status(model: Model) -> int:
    """Return what the verdict says; without one, 0, or 3 if a run is not valid."""
    if model.verdict is not None:
        return model.verdict.exit_status
    invalid = any(caveat.effect is Effect.INVALID for caveat in model.caveats)
    return MeasurementError.exit_status if invalid else 0
