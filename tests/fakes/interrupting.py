"""
Run `rtscope` and interrupt it at many lines: `interrupting.py COUNT SIGNAL WORDS`.

At each of COUNT lines, spread evenly over all that it executes from its `main` to its
end, a fork gets the signal and goes on. Prints how each fork ended.
"""

import os
import shutil
import signal
import sys
import tempfile
from types import FrameType
from typing import Any

from rtscope.cli import start


def main() -> None:
    """Count the lines in a fork first, then interrupt at some of them."""
    most, signo, *words = sys.argv[1:]
    signal.signal(int(signo), signal.SIG_DFL)  # whatever ignores it, such as nohup
    sys.argv = ["rtscope", *words]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        place = tempfile.mkdtemp()
        os.chdir(place)  # what it writes is not in the way of the second time
        lines = _Lines()
        _quietly(lambda: _traced(lines))
        os.write(writing, str(lines.seen).encode())
        shutil.rmtree(place)
        os._exit(0)
    os.waitpid(child, 0)
    every = max(int(os.read(reading, 100)) // int(most), 1)
    lines = _Lines(every, int(signo), report=os.dup(1))
    _quietly(lambda: _traced(lines))
    os._exit(0)


class _Lines:
    """Counts lines; at every n-th one a fork of this process gets a signal."""

    def __init__(self, every: int = 0, signo: int = 0, *, report: int = 1) -> None:
        self.seen = 0
        self._every = every
        self._signo = signo
        self._report = report

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.seen += 1
            if self._every and self.seen % self._every == 0:
                self._interrupt(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self

    def _interrupt(self, where: str) -> None:
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                sys.settrace(None)
                self._every = 0
                os.dup2(said.fileno(), 2)
                os.kill(os.getpid(), self._signo)
                return
            _, status = os.waitpid(child, 0)
            said.seek(0)
            ended = os.waitstatus_to_exitcode(status)
            line = f"{ended}\t{where}\t{said.read().decode()[-300:]!r}\n"
            os.write(self._report, line.encode())


def _traced(lines: _Lines) -> None:
    sys.settrace(lines)
    try:
        start.main()
    finally:
        if lines._every or not lines._signo:
            sys.settrace(None)


def _quietly(work: Any) -> None:
    """Do it with its output dropped; a status is no error."""
    own = os.getpid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        work()
    except SystemExit as ended:
        if os.getpid() != own:
            raise
        del ended


if __name__ == "__main__":
    main()
