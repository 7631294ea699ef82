"""
A place of labgrid: acquired, powered, and given back in every ending.

A process of its own holds it (`placekeeper.py`), and gives it back as soon as the pipe
from here closes, so also when rtscope is killed. labgrid works in one thread of a
process alone: several places are several processes.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from rtscope.host import process
from rtscope.host.errors import RecordError, TargetError, UsageError
from rtscope.host.files.documents import json_object

KEEPER = (sys.executable, "-P", "-m", "rtscope.machine.target.placekeeper")

INSTALL = "pip install 'rtscope[lab]'"

MOST_BYTES = 64 << 10
"""Of what the keeper says in a line."""

END_S = 90.0
"""For a place to be given back: power off and release, 30 s each at most."""


@contextmanager
def held_place(name: str) -> Iterator[str]:
    """
    Acquire a place and switch it on; give its host, as ssh takes it.

    Power that was off is off again at the end. Raises UsageError without labgrid,
    TargetError if the place is not there, somebody holds it, it has no address, does
    not answer, or could not be given back.
    """
    if find_spec("labgrid") is None:
        raise UsageError(
            f"lab:{name}: needs the Python package labgrid; type {INSTALL}"
        )
    keeper = process.start((*KEEPER, name))
    try:
        host = _said(keeper, name)["host"]
        yield host
    except BaseException:
        with contextlib.suppress(TargetError):  # the first cause counts
            _end(keeper, name)
        raise
    _end(keeper, name)


def _said(keeper: process.Started, name: str) -> Mapping[str, Any]:
    """Return what the keeper says next; TargetError for an error, or its end."""
    assert keeper.stdout is not None
    line = b""
    while not line.endswith(b"\n") and len(line) < MOST_BYTES:
        piece = keeper.stdout.readline(MOST_BYTES - len(line))
        if not piece:
            break
        line += piece
    try:
        said = json_object(line.decode("utf-8", "replace"), name=f"lab:{name}")
    except RecordError as error:
        raise TargetError(
            f"lab:{name}: the process that holds the place has ended; see "
            f"labgrid-client -p {name} show"
        ) from error
    if "error" in said:
        raise TargetError(f"lab:{name}: {said['error']}")
    return said


def _end(keeper: process.Started, name: str) -> None:
    """Let the place be given back; TargetError if that fails, or takes too long."""
    assert keeper.stdin is not None
    keeper.stdin.close()
    try:
        _said(keeper, name)
        keeper.wait(timeout=END_S)
    except process.TimeoutExpired as error:
        raise TargetError(
            f"lab:{name}: not given back within {END_S:.0f} s; see labgrid-client -p "
            f"{name} show"
        ) from error
    finally:
        for pipe in (keeper.stdout, keeper.stderr):
            if pipe is not None:
                pipe.close()
