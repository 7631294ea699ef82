"""What a sweep of remedies adds: a record's causes, and its campaign as the base."""

from pathlib import Path

from rtscope.board.catalogue import get_board
from rtscope.board.kernels import kernel_names
from rtscope.campaign.file import from_dict, to_dict
from rtscope.cli.console import log, note
from rtscope.cli.survey import explain_missing
from rtscope.errors import UsageError
from rtscope.record.explanation import find_explained
from rtscope.record.resultdir import ResultDir, read_campaign
from rtscope.report.formats.remedies import cause_line
from rtscope.sweep.file import Sweep
from rtscope.sweep.remedies import patients_of, sweep_of_remedies, worst_records

NAME = "remedies"
"""Instead of a file: `rtscope sweep remedies RECORD`."""


def remedies_for(path: Path | None) -> Sweep:
    """
    Return the sweep of the remedies for a record; without axes if none is known.

    Raises UsageError for a record of a machine, or without a finished run.
    """
    if path is None:
        raise UsageError(
            "sweep remedies: name the result of a virtual board: rtscope sweep "
            "remedies RECORD"
        )
    document = read_campaign(path)
    campaign = from_dict(document.get("campaign"), source=str(path / "campaign.json"))
    if campaign.board is None:
        raise UsageError(
            f"{path}: measured on a machine ({campaign.target}); remedies are tried "
            "on virtual boards only. On the machine: rtscope audit names its remedies, "
            "and rtscope run --tuned ID measures with one"
        )
    store = ResultDir(path)
    records = store.records()
    if not records:
        raise UsageError(
            f"{path}: has no finished run; continue with rtscope run --resume {path}"
        )
    worst = worst_records(records)
    explain_missing(worst, store)
    board = get_board(campaign.board)
    return sweep_of_remedies(
        campaign,
        to_dict(campaign),
        patients_of(worst, find_explained([path], worst, log=log)),
        source=str(path),
        kernels=kernel_names(board.arch),
        cpus=board.cpus,
    )


def announce(sweep: Sweep) -> None:
    """Say what is tried against what."""
    for one in sweep.diagnoses:
        tried = f"; tried: {', '.join(one.remedies)}" if one.remedies else ""
        note(f"  {cause_line(one)}{tried}")
