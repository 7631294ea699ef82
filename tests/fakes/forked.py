"""
Programs that start without loading anything: each is a fork of one that has it loaded.

    with loaded("import rtscope.verbs.run.run") as forked:
        subprocess.run([*forked("from rtscope.cli.start import main; main()"), "run"])

Each is a process of its own, with the streams, the directory, the environment and the
ignored signals that it is started with. Only what an interpreter does before its first
line is done again by `_begin`; a test of that starts an interpreter.
"""

import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
ASKING = Path(__file__).with_name("forking.py")
SPOKEN = 1 << 20

Forked = Callable[[str], Sequence[str]]
"""Return the words that start a program, given its text."""


@contextmanager
def loaded(first: str) -> Iterator[Forked]:
    """Keep a process that has executed a text until the end of the context."""
    with tempfile.TemporaryDirectory() as made:
        place = f"{made}/socket"
        serve = "from fakes.forked import serve; serve()"
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        with subprocess.Popen(
            [sys.executable, "-c", serve, place, first],
            env={**environment, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdout.read()
            assert Path(place).exists(), "it ended before it listened"
            words = (sys.executable, "-I", "-S", str(ASKING), place)
            yield lambda program: (*words, program)
            server.stdin.close()


def serve() -> None:
    """Answer each connection with a process, until standard input ends."""
    place, first = sys.argv[1:]
    exec(first, {})
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(place)
    listening.listen()
    gc.freeze()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # says that it listens
    while True:
        ready, _, _ = select.select([0, listening.fileno()], [], [])
        if 0 in ready:
            break
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(connection)
            return
        connection.close()
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):  # those that ended
            pass
    with suppress(ChildProcessError):
        while os.wait():
            pass


def _answer(connection: socket.socket) -> None:
    """Run what is asked for in a child, and say how it ended; stop it if none waits."""
    spoken, streams, _, _ = socket.recv_fds(connection, SPOKEN, 3)
    asked = json.loads(spoken)
    child = os.fork()
    if child == 0:
        connection.close()
        _begin(asked, streams)
        exec(asked["program"], {"__name__": "__main__"})
        return
    for given in streams:
        os.close(given)
    watched = os.pidfd_open(child)
    ready, _, _ = select.select([watched, connection.fileno()], [], [])
    if watched not in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _begin(asked: dict[str, Any], streams: Sequence[int]) -> None:
    """Do what the interpreter does when it starts."""
    for number in range(3):
        os.close(number)
    for number, given in zip(asked["open"], streams, strict=True):
        os.dup2(given, number)
        os.close(given)
    has: dict[int, Any] = {number: _stream(number) for number in asked["open"]}
    sys.stdin = has.get(0)
    sys.stdout = has.get(1)
    sys.stderr = has.get(2)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["directory"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.SIG_DFL)
    for signo in asked["ignored"]:
        signal.signal(signo, signal.SIG_IGN)
    sys.argv = ["-c", *asked["words"]]


def _stream(number: int) -> io.TextIOWrapper:
    if number == 0:
        return open(0, closefd=False)
    terminal = os.isatty(number)
    errors = "strict" if number == 1 else "backslashreplace"
    stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    stream.reconfigure(line_buffering=terminal or number == 2)
    return stream
