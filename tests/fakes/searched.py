"""Kernels that `rtscope bisect` builds in no time, on boards that do not boot."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes.bootedboard import FakeBoard
from rtscope.boards.parts.cache import Part
from rtscope.boards.runs.prepare import PreparedCampaign
from rtscope.record.caveats.catalogue import make
from rtscope.verbs.bisect import kernels

GOOD_NS, BAD_NS = 5_000, 300_000


class Measured:
    """Boards whose latency follows from what the image has in it."""

    def __init__(self, late: Callable[[str], bool]) -> None:
        self.late = late
        self.boots = 0
        self.died: Callable[[str], bool] = lambda _: False
        """Whether the load dies on a kernel."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the place of boards that boot."""
        monkeypatch.setattr(kernels, "prepare_with", self._prepare)
        monkeypatch.setattr(kernels, "with_append", lambda board, _: board)
        monkeypatch.setattr(kernels, "replace", _replaced)
        monkeypatch.setattr(kernels, "BoardRunner", self._runner)

    def _prepare(self, _board: object, part: Part, **_: object) -> str:
        return part.file("kernel").read_text("utf-8", "replace")

    def _runner(self, prepared: PreparedCampaign, **_: object) -> FakeBoard:
        board = FakeBoard()
        for request, image in prepared.runs:
            self.boots += 1
            base = BAD_NS if self.late(str(image)) else GOOD_NS
            board.results.append(base + 100 * request.seed)
            if self.died(str(image)):
                board.caveats = (make("load_died", "of a test"),)
        return board


def _replaced(one: Any, **changes: object) -> Any:
    """Leave the text that stands for a prepared board as it is."""
    return one if isinstance(one, str) else replace(one, **changes)


def git(*words: str) -> str:
    argv = ["git", "-C", "linux", "-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run([*argv, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
