"""
Programs that rtscope starts: the only module that imports subprocess.

Argument vectors, never shell strings; every call that waits has a limit. Children get
a process group of their own: Ctrl-C in the terminal reaches rtscope alone, which then
ends them in order. They get the environment that the user has set.
"""

import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rtscope.host.errors import TargetError


@dataclass(frozen=True, slots=True)
class Completed:
    """A program that has ended."""

    status: int
    """Exit status; minus the signal's number if one ended it."""
    stdout: bytes
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    terminal: bool = False,
) -> Completed:
    """
    Run a program to its end.

    With `terminal` it may ask questions there (a password for sudo or ssh): it stays
    in the foreground, and its own messages go to standard error. Raises TargetError
    if the program is missing or does not end in time.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=None if terminal else subprocess.PIPE,
            timeout=timeout_s,
            check=False,
            env=os.environ,
            process_group=None if terminal else 0,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    except subprocess.TimeoutExpired as error:
        raise TargetError(
            f"{argv[0]} did not end within {timeout_s:.0f} s: {' '.join(argv)[:200]}"
        ) from error
    return Completed(
        done.returncode,
        done.stdout or b"",
        (done.stderr or b"").decode("utf-8", "replace"),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """How far something is that one waits for."""

    what: str
    done: int
    about: int = 0
    """Of about so many; 0 if nobody knows."""
    unit: str = "files"
    """Or `bytes`, or `virtual s` of a board."""


Progress = Callable[[Step], None]
"""Takes note of a step; it is called often."""

WATCH_EVERY_S = 0.5


def run_watched(
    argv: Sequence[str], *, timeout_s: float, log: Path, watch: Callable[[], None]
) -> int:
    """
    Run a program to its end, which says all into a new log; return its status.

    `watch` is called twice a second. Raises TargetError as `run` does.
    """
    end = time.monotonic() + timeout_s
    with log.open("wb") as said:
        try:
            done = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=os.environ,
                process_group=0,
            )
        except OSError as error:
            raise _not_started(argv[0], error) from error
        try:
            while time.monotonic() < end:
                try:
                    return done.wait(timeout=WATCH_EVERY_S)
                except subprocess.TimeoutExpired:
                    watch()
        finally:
            if done.poll() is None:
                os.killpg(done.pid, signal.SIGKILL)
                done.wait()
    raise TargetError(f"{argv[0]} did not end within {timeout_s:.0f} s (log: {log})")


def start(argv: Sequence[str], *, stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a program whose standard input and output are pipes held by the caller."""
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            env=os.environ,
            process_group=0,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error


def start_thread(work: Callable[[], None]) -> None:
    """Do `work` beside this thread; TargetError if no thread can be started."""
    try:
        threading.Thread(target=work, daemon=True).start()
    except RuntimeError as error:
        raise TargetError(NO_THREAD) from error


def _not_started(program: str, error: OSError) -> TargetError:
    if isinstance(error, FileNotFoundError):
        return TargetError(f"{program}: not installed on this machine; install it")
    return TargetError(f"cannot run {program}: {_why(error)}")


def _why(error: OSError) -> str:
    limit = _LIMITS.get(error.errno or 0)
    hint = f"; raise the limit, which is {limit} of this shell" if limit else ""
    group = ", or pids.max of its cgroup" if limit == PROCESSES else ""
    return f"{error.strerror}{hint}{group}"


PROCESSES = "ulimit -u"
"""The limit of processes and threads of a user; the message adds whose it is."""

_LIMITS = {
    errno.EMFILE: "ulimit -n",
    errno.EAGAIN: PROCESSES,
    errno.ENOMEM: "ulimit -v",
}

NO_THREAD = (
    f"cannot start a thread: {_why(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))}"
)

TimeoutExpired = subprocess.TimeoutExpired
"""Raised by the `wait` of a started program."""

Started = subprocess.Popen[bytes]
"""A program that was started and may still run."""
