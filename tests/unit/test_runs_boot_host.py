"""A boot that this machine does not let come to its end, with a script as QEMU."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import SUMMARY, Qemu
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.prepare import job_for, request_for
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.errors import BoardError, HostError
from rtscope.measure.campaign.model import Campaign

BOARD = get_board("pc")

Boot = Callable[[str], None]


@pytest.fixture
def boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """Boot once, with these lines of a shell in place of QEMU."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("plugin.so", "kernel"):
        (tmp_path / name).write_text("")
    program = tmp_path / "qemu"

    def once(lines: str) -> None:
        program.write_text(f"#!/bin/sh\ncd {tmp_path}/rtscope-board-*\n{lines}\n")
        program.chmod(0o755)
        prepared = Prepared(
            BOARD,
            Qemu((str(program),), version="1", digest=""),
            plugin=tmp_path / "plugin.so",
            kernel=Kernel("k", tmp_path / "kernel", "a" * 64),
            archives=(),
            parts=(),
        )
        run = on_board(record([thread([9_000])])).run
        request = request_for(run, Campaign(target="virtual:pc"), BOARD, ())
        boot(
            prepared,
            job_for(request, prepared),
            seed=1,
            timeout=BootTimeout(1),
            stopped=lambda: False,
        )

    return once


def test_a_killed_qemu_is_the_fault_of_this_machine(boots: Boot) -> None:
    with pytest.raises(HostError, match="QEMU was killed"):
        boots("kill -9 $$")


def test_so_is_a_full_disk(boots: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    with pytest.raises(HostError, match="no space left in"):
        boots("exit 0")


def test_a_board_that_sends_nothing_has_itself_to_blame(boots: Boot) -> None:
    with pytest.raises(BoardError, match="the board sent no results") as raised:
        boots(": > results")

    assert not isinstance(raised.value, HostError)


def test_a_summary_that_was_cut_short_is_no_error_of_rtscope(boots: Boot) -> None:
    with pytest.raises(BoardError):
        boots(
            f"echo x > f; tar -cf results f; printf '{{\"schema\"' > {SUMMARY}",
        )
