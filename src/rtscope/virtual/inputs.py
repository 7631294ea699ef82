"""
What the result of a run on a virtual board depends on, all of it, by digest.

Equal inputs must give equal results on every host: that is the contract. So whatever
decides a result must be in here, and nothing that does not: neither paths, nor times,
nor the number of the run, nor whether the board was recorded.
"""

from dataclasses import dataclass
from pathlib import Path

from rtscope.board.catalogue import Board
from rtscope.board.prepare import Prepared
from rtscope.board.qemu import Boot, Qemu, command_line, turns_by_plugin
from rtscope.campaign.model import Campaign
from rtscope.loads import LoadCommand
from rtscope.measure.commands import measure_args
from rtscope.record.model import Run
from rtscope.record.virtual import InputDigests, sha256_of_json
from rtscope.virtual.boot import Booted

_NO_QEMU = Qemu((), version="", digest="")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is asked to be."""

    run: Run
    campaign: Campaign
    command: tuple[str, ...]
    load: LoadCommand
    seed: int
    started: str


def inputs_of(request: RunRequest, prepared: Prepared, booted: Booted) -> InputDigests:
    """Return the inputs of a run that has booted."""
    return InputDigests(
        kernel=prepared.kernel.digest,
        initrd=booted.initrd_digest,
        qemu=prepared.qemu.digest,
        plugin=booted.plugin_digest,
        board=board_digest(prepared.board),
        campaign=campaign_digest(request.run, request.campaign),
        seed=request.seed,
    )


def board_digest(board: Board) -> str:
    """Return the digest of how a board is booted, whatever is booted on it."""
    boot = Boot(
        kernel=Path("kernel"),
        initrd=Path("initrd"),
        console=Path("console"),
        results=Path("results"),
        seed=0,
        turns=turns_by_plugin(Path("plugin"), board),
    )
    return sha256_of_json(command_line(_NO_QEMU, board, boot))


def campaign_digest(run: Run, campaign: Campaign) -> str:
    """Return the digest of what was asked: load, measurement, times around it."""
    return sha256_of_json(
        {
            "load": run.load,
            "command": campaign.command if run.load == "custom" else (),
            "measure": measure_args(run, campaign),
            "settle_ns": campaign.settling_ns,
            "warmup_ns": campaign.warmup_ns,
        }
    )
