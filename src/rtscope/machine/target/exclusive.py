"""
One measurement at a time of a machine: two would measure each other.

The lock is a socket in Linux's abstract namespace: it needs no directory and no
rights, ends with its process however that ends, and the kernel names its holder.
"""

import contextlib
import errno
import os
import shlex
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")
"""struct ucred of SO_PEERCRED (man 7 unix): pid, uid, gid."""


@contextlib.contextmanager
def alone(name: str, log: Callable[[str], None]) -> Iterator[None]:
    """Hold the machine `name`; wait for the one that holds it, and say who that is."""
    address = f"\0rtscope-measures-{name}"[:100]
    with contextlib.ExitStack() as held:
        while not _locked(address, held):
            _wait(address, name, log)
        yield


def _locked(address: str, held: contextlib.ExitStack) -> bool:
    """Try to lock it for as long as the stack lives; False if another holds it."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(address)
        lock.listen()
    except OSError as error:
        lock.close()
        # Where a sandbox has no such sockets, a measurement goes on without the lock.
        return error.errno != errno.EADDRINUSE
    held.enter_context(lock)
    return True


def _wait(address: str, name: str, log: Callable[[str], None]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        try:
            holder.connect(address)
        except OSError:  # it has just ended
            return
        credentials = holder.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
        )
        pid, uid, _ = _CREDENTIALS.unpack(credentials)
        log(
            f"waiting: {name} is being measured by process {pid} of user {uid} "
            f"({_command(pid)}); two measurements would disturb each other"
        )
        with contextlib.suppress(OSError):
            holder.recv(1)  # returns when the holder ends


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "unknown"
    typed = [os.fsdecode(word) for word in words if word]
    return shlex.join(
        [Path(word).name if n < 2 else word for n, word in enumerate(typed)]
    )
