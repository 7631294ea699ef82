"""Results that were computed before: when `run --reuse` may take them."""

from collections.abc import Sequence

from rtscope.cli.console import say
from rtscope.host.errors import UsageError
from rtscope.host.units import plural
from rtscope.measure.campaign.model import Campaign
from rtscope.record.model import RunRecord


def refuse_reuse(campaign: Campaign) -> None:
    """Raise UsageError for a campaign whose results must be new."""
    if campaign.board is None:
        raise UsageError(
            "--reuse is for virtual boards only: no two runs of a machine are the "
            "same; leave it out"
        )
    if campaign.require_identical:
        raise UsageError(
            "--require-identical measures again, to compare; --reuse does not "
            "measure: leave one out"
        )


def refuse_reused(records: Sequence[RunRecord], *, source: str) -> None:
    """Raise UsageError if a record that must be a measurement is a stored result."""
    reused = [one.run.id for one in records if one.virtual and one.virtual.reused]
    if reused:
        raise UsageError(
            f"{source} has stored results, such as {reused[0]}, and only measurements "
            "are compared: measure without --reuse into a new --out"
        )


def reused_of(records: Sequence[RunRecord]) -> int:
    """Return how many of them are stored results."""
    return sum(one.virtual is not None and one.virtual.reused for one in records)


def tell_reused(records: Sequence[RunRecord]) -> None:
    """Say how many results were not measured now, if any."""
    if count := reused_of(records):
        of = plural(len(records), "run")
        say(f"{count} of {of}: stored results of equal inputs, not measured again")
