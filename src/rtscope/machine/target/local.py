"""This machine as a target."""

import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from rtscope.host import process
from rtscope.host.errors import TargetError
from rtscope.host.files.heldfolders import held_folder, in_temporary_files
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader
from rtscope.machine.target import agent_file
from rtscope.machine.target.stream import PipeStream

SUDO_TIMEOUT_S = 120.0
FIRST_LINE_TIMEOUT_S = 10.0


class LocalTarget:
    """
    The machine that rtscope runs on. A context manager.

    Only the agent gets root's rights, through sudo, and only where needed.
    """

    def __init__(
        self, *, storage_dir: Path, agent: Path | None = None, may_ask: bool = True
    ) -> None:
        """May ask: sudo for a password, on a terminal."""
        self.name = "local"
        self.reader: Reader = FileReader()
        self.default_storage_dir = str(storage_dir)
        self._agent = agent or agent_file(platform.machine())
        self._may_ask = may_ask
        self._root: tuple[str, ...] = ()
        self._work_dir = Path()
        self._stack = ExitStack()
        self._keeper: PipeStream | None = None

    def __enter__(self) -> Self:
        with in_temporary_files(TargetError):
            held = held_folder(Path(tempfile.gettempdir()), prefix="rtscope-")
            self._work_dir = self._stack.enter_context(held)
        keep = [str(self._agent), "keep", "--host-link", str(self._work_dir)]
        try:
            self._keeper = PipeStream(keep, heartbeat=False)
        except TargetError:
            self._stack.close()
            raise
        self._root = _root_prefix(may_ask=self._may_ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if self._keeper is not None:  # it removes the directory, too
                self._keeper.kill()

    def start_agent(
        self, args: Sequence[str], *, privileged: bool = False
    ) -> PipeStream:
        """Start the agent; it ends when this program does."""
        prefix = self._root if privileged else ()
        return PipeStream(
            [*prefix, str(self._agent), args[0], "--host-link", *args[1:]],
            heartbeat=False,
        )

    def work_path(self, name: str) -> str:
        """Return the path of a file in the session's private directory."""
        return str(self._work_dir / name)

    def begin_run(self) -> None:
        """Nothing is to be noted: no answer comes over a link."""

    def load_user(self) -> tuple[int, int] | None:
        """Return this user, when the agent runs as another through sudo."""
        return (os.getuid(), os.getgid()) if self._root else None

    def first_line(self, command: Sequence[str]) -> str | None:
        """Return the first line that a program prints; None if it is not installed."""
        try:
            done = process.run(command, timeout_s=FIRST_LINE_TIMEOUT_S)
        except TargetError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return lines[0].strip() if lines else ""


def _root_prefix(*, may_ask: bool) -> tuple[str, ...]:
    """Return the prefix to become root: empty as root or without sudo."""
    if os.geteuid() == 0:
        return ()
    sudo = ("sudo", "-n", "--")
    try:
        if process.run([*sudo, "true"], timeout_s=SUDO_TIMEOUT_S).status == 0:
            return sudo
        if may_ask and sys.stdin.isatty() and sys.stderr.isatty():
            print(
                "rtscope: the agent needs root's rights for real-time threads: sudo "
                "asks for your password",
                file=sys.stderr,
            )
            sudo_check = process.run(
                ["sudo", "-v"], timeout_s=SUDO_TIMEOUT_S, terminal=True
            )
            return sudo if sudo_check.status == 0 else ()
    except TargetError:  # no sudo here: the user's own limits may suffice
        return ()
    return ()
