"""What a sweep of remedies adds: a record's causes, and its campaign as the base."""

from collections.abc import Sequence
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import kernel_names
from rtscope.cli.console import log, note
from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.machine.audit.model import CheckKind
from rtscope.machine.settings.remedies import choose
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.record.directory.place import CAMPAIGN, SWEEP, read_document
from rtscope.record.directory.records import ResultDir
from rtscope.record.explanation import find_explained
from rtscope.record.pack import is_packed
from rtscope.verbs.sweep.file import Diagnosis, Sweep
from rtscope.verbs.sweep.remedies import worst_records, worst_wakeups
from rtscope.verbs.sweep.remedydesign import Original, sweep_of_remedies
from rtscope.verbs.sweep.remedytext import lines_of_cause
from rtscope.verbs.sweep.survey import explain_missing

NAME = "remedies"
"""Instead of a file: `rtscope sweep remedies RECORD`."""


def remedies_for(path: Path | None) -> Sweep:
    """
    Return the sweep of the remedies for a record; without axes if none can be tried.

    Raises UsageError for a record of a machine, or without a finished run.
    """
    if path is None:
        raise UsageError(
            "sweep remedies: name the result of a virtual board: rtscope sweep "
            "remedies RECORD"
        )
    campaign = _campaign_of(path)
    store = ResultDir(path)
    records = store.records()
    if not records:
        raise UsageError(
            f"{path}: has no finished run; continue with {CAMPAIGN.to_go_on(path)}"
        )
    worst = worst_records(records)
    explain_missing(worst, store)
    board = get_board(campaign.board or "")
    sweep = sweep_of_remedies(
        Original(
            campaign=campaign,
            base=to_dict(campaign),
            source=str(path),
            kernels=kernel_names(board.arch),
            cpus=board.cpus,
            arch=board.arch,
            append=(*board.append, *campaign.append),
            tuned=frozenset(kind.id for kind in _tuned(campaign)),
        ),
        worst_wakeups(worst, find_explained([path], worst, log=log)),
    )
    if sweep.axes and (tried := _seeds(sweep)) < (all_of_it := len(campaign.run_seeds)):
        note(f"  with {tried} of the {all_of_it} seeds of {path}")
    return sweep


def _campaign_of(path: Path) -> Campaign:
    """Return the campaign of a board; UsageError for all that is none."""
    _refuse_other_results(path)
    document = read_document(path, CAMPAIGN)
    campaign = from_dict(document.asked, source=document.source)
    if campaign.board is None:
        raise UsageError(
            f"{path}: measured on a machine ({campaign.target}); remedies are tried "
            "on virtual boards only. On the machine: rtscope audit names its remedies, "
            "and rtscope run --tuned ID measures with one"
        )
    get_board(campaign.board)
    if campaign.qemu is not None:  # a result may have come by mail
        raise UsageError(
            f"{path}: measured with a QEMU of its own ({campaign.qemu}); measure again "
            "without --qemu, then type rtscope sweep remedies with that result"
        )
    return campaign


def _refuse_other_results(path: Path) -> None:
    """Raise UsageError, with what to type, for what is no result of `rtscope run`."""
    if CAMPAIGN.is_in(path):
        return
    again = f"rtscope sweep {NAME}"
    for whole in path.parents:
        if path.exists() and CAMPAIGN.is_in(whole):
            raise UsageError(
                f"{path}: a part of the result {whole}; type {again} {whole}"
            )
    if path.is_file():
        if is_packed(path):
            raise UsageError(
                f"{path}: an archive; unpack it with tar -xzf {path}, then type "
                f"{again} DIRECTORY"
            )
        raise UsageError(
            f"{path}: a file, and no result directory; type {again} DIRECTORY, after "
            "rtscope run --target virtual:pc --out DIRECTORY"
        )
    if SWEEP.is_in(path):
        raise UsageError(
            f"{path}: a sweep; name one of its cells, for example {again} "
            f"{path / SWEEP.parts / '000-base'}"
        )
    if ResultDir(path).done_ids():
        raise UsageError(
            f"{path}: imported from another tool, or without its {CAMPAIGN.file}; "
            "remedies are tried on virtual boards only: rtscope run --target virtual:pc"
        )


def _tuned(campaign: Campaign) -> list[CheckKind]:
    return choose(campaign.tuned) if campaign.tuned else []


def _seeds(sweep: Sweep) -> int:
    return len(from_dict(dict(sweep.base), source=sweep.source).run_seeds)


def announce(diagnoses: Sequence[Diagnosis]) -> None:
    """Say what is tried against what, and what is not."""
    for one in diagnoses:
        tried = f"; tried: {', '.join(one.remedies)}" if one.remedies else ""
        first, *rest = lines_of_cause(one)
        note(f"  {first}{printable(tried)}")
        for line in rest:
            note(f"  {line}")
