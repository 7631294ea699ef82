"""
Programs that rtscope starts: the only module that imports subprocess.

Argument vectors, never shell strings; every call that waits has a limit. Children get
a process group of their own: Ctrl-C in the terminal reaches rtscope alone, which then
ends them in order. They get the environment that the user has set.
"""

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn, cast

from rtscope.host.errors import TargetError


@dataclass(frozen=True, slots=True)
class Completed:
    """A program that has ended."""

    status: int
    """Exit status; minus the signal's number if one ended it."""
    stdout: bytes
    stderr: str


MAX_OUTPUT_BYTES = 64 << 20
"""Of a program, which may be one of a board that never ends its answer."""


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    terminal: bool = False,
    most_bytes: int = MAX_OUTPUT_BYTES,
) -> Completed:
    """
    Run a program to its end.

    With `terminal` it may ask questions there (a password for sudo or ssh): it stays
    in the foreground, and its own messages go to standard error. Raises TargetError
    if the program is missing; if it does not end in time, caused by TimeoutError; and
    if it writes more than `most_bytes` to standard output and error together, caused by
    OverflowError.
    """
    try:
        started = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if terminal else subprocess.PIPE,
            bufsize=0,
            env=os.environ,
            process_group=None if terminal else 0,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    end = time.monotonic() + timeout_s
    exchange = _Exchange(started, memoryview(stdin))
    try:
        exchange.to_its_end(end, most_bytes=most_bytes)
        _wait(started, end)
    except TimeoutError as error:
        raise TargetError(
            f"{argv[0]} did not end within {timeout_s:.0f} s: {' '.join(argv)[:200]}"
        ) from error
    except OverflowError as error:
        raise TargetError(
            f"{argv[0]} wrote more than {most_bytes:,} bytes: {' '.join(argv)[:200]}"
        ) from error
    finally:
        if started.poll() is None:
            _kill(started, group=not terminal)
        for pipe in (started.stdin, started.stdout, started.stderr):
            if pipe is not None:
                pipe.close()
    return Completed(
        started.returncode,
        bytes(exchange.stdout),
        exchange.stderr.decode("utf-8", "replace"),
    )


def _wait(started: "subprocess.Popen[bytes]", end: float) -> None:
    try:
        started.wait(max(end - time.monotonic(), 0))
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error


_PIECE_BYTES = 64 << 10


@dataclass(slots=True)
class _Exchange:
    """What a program still gets, and what it has written."""

    started: "subprocess.Popen[bytes]"
    left: memoryview
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    def to_its_end(self, end: float, *, most_bytes: int) -> None:
        """
        Write all that is left, and read until both outputs end.

        Raises TimeoutError at `end`, OverflowError beyond `most_bytes`.
        """
        one = self.started
        with selectors.DefaultSelector() as pipes:
            if one.stdin is not None:
                os.set_blocking(one.stdin.fileno(), False)
                pipes.register(one.stdin, selectors.EVENT_WRITE)
            for pipe, kept in ((one.stdout, self.stdout), (one.stderr, self.stderr)):
                if pipe is not None:
                    pipes.register(pipe, selectors.EVENT_READ, kept)
            while pipes.get_map():
                ready = pipes.select(max(end - time.monotonic(), 0))
                if not ready and time.monotonic() >= end:
                    raise TimeoutError
                for key, _ in ready:
                    if self._is_done(key):
                        pipes.unregister(key.fileobj)
                        cast(IO[bytes], key.fileobj).close()
                if len(self.stdout) + len(self.stderr) > most_bytes:
                    raise OverflowError

    def _is_done(self, key: selectors.SelectorKey) -> bool:
        """Write or read a piece; tell whether it was the last one."""
        if key.data is None:
            self.left = self.left[_written(key.fd, self.left) :]
            return not self.left
        piece = os.read(key.fd, _PIECE_BYTES)
        key.data.extend(piece)
        return not piece


def _written(number: int, content: memoryview) -> int:
    """Write a piece; all of it counts as written if nobody reads any more."""
    try:
        return os.write(number, content[:_PIECE_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(content)


def _kill(started: "subprocess.Popen[bytes]", *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if group:
            os.killpg(started.pid, signal.SIGKILL)
        else:
            started.kill()
    started.wait()


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
    argv: Sequence[str],
    *,
    timeout_s: float,
    log: Path,
    watch: Callable[[], None],
    cwd: Path | None = None,
    out: Path | None = None,
) -> int:
    """
    Run a program to its end, which says all into a new log; return its status.

    It begins in `cwd`; None: in the current directory. Its standard output goes to
    `out`, if that is given. `watch` is called twice a second. Raises TargetError as
    `run` does.
    """
    end = time.monotonic() + timeout_s
    with contextlib.ExitStack() as files:
        said = files.enter_context(log.open("wb"))
        answered = said if out is None else files.enter_context(out.open("wb"))
        try:
            done = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=answered,
                stderr=said,
                cwd=cwd,
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
                _kill(done, group=True)
    raise TargetError(f"{argv[0]} did not end within {timeout_s:.0f} s (log: {log})")


def start(
    argv: Sequence[str], *, stderr: IO[bytes] | None = None, alone: bool = False
) -> "subprocess.Popen[bytes]":
    """
    Start a program whose standard input and output are pipes held by the caller.

    So is its standard error, unless that goes into a file. Alone: without a terminal,
    where several such programs would ask for passwords at once.
    """
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr or subprocess.PIPE,
            bufsize=0,
            env=os.environ,
            process_group=None if alone else 0,
            start_new_session=alone,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error


def run_attached(argv: Sequence[str]) -> int:
    """
    Run a program that has the streams of this process, and its terminal, to its end.

    Returns its status, as the shell does: 128 and the signal's number if one ended it.
    Raises TargetError if it cannot be started.
    """
    try:
        with subprocess.Popen(list(argv), env=os.environ) as started:
            status = started.wait()
    except OSError as error:
        raise _not_started(argv[0], error) from error
    return status if status >= 0 else 128 - status


def run_in_front(
    argv: Sequence[str], environ: Mapping[str, str], *, watch: Callable[[], None]
) -> int:
    """
    Run a program as `run_attached` does; signals that end a process are the program's.

    Ctrl-C reaches it from the terminal, and others through this process, which goes on
    until it ends. `watch` is called twice a second.
    """
    asked: list[int] = []
    kept = {
        signo: signal.signal(signo, lambda got, _frame: asked.append(got))
        for signo in _ENDING
        if signal.getsignal(signo) is not signal.SIG_IGN
    }
    try:
        started = subprocess.Popen(list(argv), env=dict(environ))
        while (status := _status_of(started, asked)) is None:
            watch()
    except OSError as error:
        raise _not_started(argv[0], error) from error
    finally:
        for signo, handler in kept.items():
            signal.signal(signo, handler)
    return status if status >= 0 else 128 - status


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def _status_of(started: "subprocess.Popen[bytes]", asked: list[int]) -> int | None:
    """Wait for half a second, and pass on signals; return the status, or None."""
    while asked:
        signo = asked.pop(0)
        if signo not in _TYPED or not _in_foreground():
            started.send_signal(signo)
    try:
        return started.wait(timeout=WATCH_EVERY_S)
    except subprocess.TimeoutExpired:
        return None


_TYPED = (signal.SIGINT, signal.SIGQUIT)
"""A terminal sends them to all processes in its foreground."""


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def become(argv: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Execute a program in place of this one; TargetError if that fails."""
    for signo in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores both
        signal.signal(signo, signal.SIG_DFL)
    try:
        os.execve(argv[0], list(argv), dict(environ))
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
