"""From the files that a board has sent to its record."""

import base64
from dataclasses import replace
from pathlib import Path

from fakes.measurements import record, thread
from fakes.trees import GUEST, Files
from rtscope.board.catalogue import get_board
from rtscope.board.kernels import Kernel
from rtscope.board.prepare import Prepared
from rtscope.board.qemu import Qemu
from rtscope.campaign.model import Campaign
from rtscope.contract import FileLine, dump_line
from rtscope.measure.assemble import assemble
from rtscope.virtual.assemble import measured_on_board
from rtscope.virtual.boot import Booted
from rtscope.virtual.prepare import request_for

MEASURED = (Path(__file__).parents[2] / "format/v1/x86_64.jsonl").read_bytes()
BOARD = get_board("pc")
PREPARED = Prepared(
    BOARD,
    Qemu((), version="1", digest=""),
    plugin=Path("/plugin.so"),
    kernel=Kernel("debian-6.12-rt", Path("/kernel"), "a" * 64),
    archives=(),
    parts=(),
)


def sent(files: Files) -> bytes:
    """Return the lines of the board's agent that read these files."""
    return b"\n".join(
        dump_line(
            FileLine(
                path,
                "ok",
                base64.b64encode(
                    content.encode() if isinstance(content, str) else content
                ).decode(),
            )
        )
        for path, content in files.items()
    )


def test_a_board_is_said_to_be_a_board_and_not_to_be_a_guest_too() -> None:
    run = replace(record([thread([9_000])]).run, target="virtual:pc")
    booted = Booted(
        files={
            "measure.jsonl": MEASURED,
            "facts-before.jsonl": sent(GUEST),
            "facts-after.jsonl": sent(GUEST),
        },
        counts={"marks": 3, "last_mark": 70, "instructions": 99, "per_cpu": [99]},
        initrd_digest="",
        plugin_digest="",
        host_seconds=1.0,
    )

    campaign = Campaign(target="virtual:pc")
    request = request_for(run, campaign, BOARD, ("rtscope",))
    kept = assemble(
        measured_on_board(request, PREPARED, booted, trace={}, attachments={})
    )

    # What was counted until QEMU ended is of the host, and differs each time.
    assert kept.virtual is not None
    assert kept.virtual.plugin_counters == {"marks": 3, "last_mark": 70}
    raised = [caveat.id for caveat in kept.caveats]
    assert kept.facts_before["guest"].value is True
    assert "virtual_board" in raised
    assert "guest" not in raised
