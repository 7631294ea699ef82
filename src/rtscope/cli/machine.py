"""The machine that a command is about: can it do what is asked, and how to open it."""

from contextlib import AbstractContextManager
from pathlib import Path

from rtscope.board.catalogue import get_board
from rtscope.campaign.model import Campaign
from rtscope.errors import UsageError
from rtscope.record.resultdir import ResultDir
from rtscope.target import Target
from rtscope.target.local import LocalTarget
from rtscope.target.ssh import SshTarget
from rtscope.tuning.campaign import checks_for


def check_target(campaign: Campaign, jobs: int | None) -> None:
    """Refuse what the target cannot do, before a directory is made for it."""
    checks_for(campaign)
    if campaign.board is not None:
        get_board(campaign.board)
    elif jobs is not None:
        raise UsageError(
            "--jobs says how many virtual boards run at once; on a machine one run "
            "follows the other"
        )
    elif campaign.kernels:
        raise UsageError(
            "--kernel chooses the kernel of a virtual board; a machine is measured "
            "with the one it runs"
        )


def open_target(
    campaign: Campaign, store: ResultDir
) -> AbstractContextManager[LocalTarget | SshTarget]:
    """Return the machine, local or over ssh, for a `with`."""
    if campaign.target.startswith("ssh:"):
        return SshTarget(campaign.target.removeprefix("ssh:"))
    return LocalTarget(storage_dir=store.path.resolve())


def opened(target: str | None, *, may_ask: bool) -> AbstractContextManager[Target]:
    """Return a running machine, for a `with`; may ask: sudo for a password."""
    if target is None or target == "local":
        return LocalTarget(storage_dir=Path("/var/tmp"), may_ask=may_ask)
    if target.startswith("ssh:"):
        return SshTarget(target.removeprefix("ssh:"))
    raise UsageError(f"--target {target}: a running machine is local or ssh:HOST")
