"""
The address of a machine: `local`, `ssh:HOST`, a place of labgrid or `virtual:BOARD`.

Each is measured once at a time.

Only this module parses and refuses addresses.

The lock is a socket in Linux's abstract namespace: it needs no directory and no
rights, ends with its process however that ends, and the kernel names its holder.
"""

import contextlib
import errno
import os
import re
import shlex
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.host.errors import UsageError, quote

# --- one measurement at a time of a machine: two would measure each other -------------

_CREDENTIALS = struct.Struct("3i")
"""struct ucred of SO_PEERCRED (man 7 unix): pid, uid, gid."""


@contextlib.contextmanager
def hold_alone(name: str, log: Callable[[str], None]) -> Iterator[None]:
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


# --- the address of a machine ---------------------------------------------------------

if TYPE_CHECKING:
    from rtscope.machine.target.local import LocalTarget
    from rtscope.machine.target.ssh import SshTarget

MAX_HOST = 255

# A name that begins with "-" would be an option to ssh.
_HOST = re.compile(
    r"(?:ssh://)?(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9_\[:][\w.:%\]-]*", re.ASCII
)
_BOARD = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PLACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """This machine, a host that ssh reaches, a place of labgrid, or a virtual board."""

    host: str | None = None
    """For ssh; None: not over ssh, or labgrid knows it."""
    place: str | None = None
    """The name of a place of labgrid; None: none."""
    board: str | None = None
    """The name of a virtual board; None: a running machine."""

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self.host is None and self.place is None and self.board is None

    @property
    def text(self) -> str:
        """The address as it is written."""
        if self.host is not None:
            return f"ssh:{self.host}"
        if self.place is not None:
            return f"lab:{self.place}"
        return "local" if self.board is None else f"virtual:{self.board}"


def parse_address(text: str, *, boards: bool = True) -> Address:
    """Return the address; UsageError for another text, for a board without `boards`."""
    kind, _, name = text.partition(":")
    if text == "local":
        return Address()
    if kind == "ssh" and len(name) <= MAX_HOST and _HOST.fullmatch(name):
        return Address(host=name)
    if kind == "lab" and _PLACE.fullmatch(name):
        return Address(place=name)
    if kind == "virtual" and boards and _BOARD.fullmatch(name):
        return Address(board=name)
    forms = "local, ssh:HOST, lab:PLACE or virtual:BOARD"
    if not boards:
        forms = "local, ssh:HOST or lab:PLACE"
    raise UsageError(
        f"{quote(text)}: write {forms}; a host is a name or address as for ssh, "
        "and does not begin with '-'"
    )


def address_of(option: str | None, *, boards: bool = False) -> Address:
    """Return the address that --target gives; without it this machine."""
    try:
        return parse_address("local" if option is None else option, boards=boards)
    except UsageError as error:
        raise UsageError(f"--target: {error}") from error


@contextmanager
def open_target(
    address: Address,
    *,
    storage_dir: Path = Path("/var/tmp"),
    may_ask: bool = True,
    alone: Callable[[str], None] | None = None,
) -> "Iterator[LocalTarget | SshTarget]":
    """
    Give a running machine; may ask: sudo for a password.

    The storage load works below `storage_dir` on this machine. Alone: wait until no
    other rtscope of this machine measures it, which is said with this function.
    """
    # Loading the contract, which both need, takes as long as a local audit.
    from rtscope.machine.target.local import LocalTarget
    from rtscope.machine.target.ssh import SshTarget

    assert address.board is None, "a virtual board is booted, not opened"
    with hold_alone(address.text, alone) if alone else nullcontext():
        if address.place is not None:
            # Loaded for a place only.
            from rtscope.machine.target.labplace import held_place

            with (
                held_place(address.place) as host,
                SshTarget(host, name=address.text) as board,
            ):
                yield board
        elif address.host is not None:
            with SshTarget(address.host) as board:
                yield board
        else:
            with LocalTarget(storage_dir=storage_dir, may_ask=may_ask) as here:
                yield here
