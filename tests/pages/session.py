"""A shell in an empty directory, as a reader of a page has it in front of him."""

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from pages.blocks import ROOT

# No program prints it, and bash prints it after each command with its status.
END = "\x1e"


class TooLongError(Exception):
    """A command that did not end in time."""


class Shell:
    """
    One bash for the commands of a page. A context manager: it ends what it started.

    It has a home of its own, `rtscope` on the PATH, the real cache of virtual boards,
    and CHECKOUT, the folder of rtscope, for what a page presumes.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="page-", dir="/var/tmp"))
        programs, home, here = (
            self._folder / name for name in ("bin", "home", "empty directory")
        )
        for made in (programs, home, here):
            made.mkdir()
        (programs / "rtscope").symlink_to(ROOT / ".venv" / "bin" / "rtscope")
        self.here = here
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        env = {name: os.environ[name] for name in os.environ if name != "MAKEFLAGS"}
        env |= {"HOME": str(home), "XDG_CACHE_HOME": cache, "CHECKOUT": str(ROOT)}
        env |= {"PATH": f"{programs}:{env['PATH']}", "NO_COLOR": "1", "TERM": "dumb"}
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=here,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        try:
            self._bash.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGTERM)
            self._bash.wait(timeout=60)
        assert self._bash.stdout is not None
        self._bash.stdout.close()
        shutil.rmtree(self._folder)

    def type(self, command: str, *, within_s: float) -> tuple[int, str]:
        """
        Type a command; return its status and all that it printed.

        Raises TooLongError if it has not ended after `within_s` seconds.
        """
        assert self._bash.stdin is not None
        end = r"printf '\036%d\036' $?"
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\n{end}\n".encode())
        self._bash.stdin.flush()
        text = self._read(command, until_s=time.monotonic() + within_s)
        printed, status, _ = text.rsplit(END, 2)
        return int(status), printed

    def _read(self, command: str, *, until_s: float) -> str:
        assert self._bash.stdout is not None
        read = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while read.count(END.encode()) < 2:
                if not selector.select(until_s - time.monotonic()):
                    raise TooLongError(f"{command}: not ended in time\n{read.decode()}")
                chunk = os.read(self._bash.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise TooLongError(f"{command}: ended the shell\n{read.decode()}")
                read += chunk
        return read.decode("utf-8", "replace")
