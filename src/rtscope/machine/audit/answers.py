"""What a check function answers."""

from dataclasses import dataclass

from rtscope.machine.audit.model import CheckOutcome, Sighting


@dataclass(frozen=True, slots=True)
class Answer:
    """What a check function found."""

    outcome: CheckOutcome
    message: str
    """One sentence without its full stop: the finding, or the reason for unknown."""
    evidence: tuple[Sighting, ...] = ()
    is_note: bool = False
    """Whether a failure is worth knowing and no fault, whatever its row says."""


def passed(message: str, *evidence: Sighting) -> Answer:
    """Answer: as expected."""
    return Answer(CheckOutcome.PASS, message, evidence)


def failed(message: str, *evidence: Sighting) -> Answer:
    """Answer: not as expected."""
    return Answer(CheckOutcome.FAIL, message, evidence)


def noted(message: str, *evidence: Sighting) -> Answer:
    """Answer: not as expected, and here no fault."""
    return Answer(CheckOutcome.FAIL, message, evidence, is_note=True)


def unknown(message: str, *evidence: Sighting) -> Answer:
    """Answer: unknown, with the reason."""
    return Answer(CheckOutcome.UNKNOWN, message, evidence)


def not_applicable(message: str, *evidence: Sighting) -> Answer:
    """Answer: there is nothing here that the check is about."""
    return Answer(CheckOutcome.NOT_APPLICABLE, message, evidence)
