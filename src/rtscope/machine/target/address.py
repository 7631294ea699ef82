"""
The address of a machine: `local`, `ssh:HOST` or `virtual:BOARD`.

Only this module parses and refuses addresses.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.host.errors import UsageError, quote
from rtscope.machine.target.exclusive import alone as held_alone

if TYPE_CHECKING:
    from rtscope.machine.target.local import LocalTarget
    from rtscope.machine.target.ssh import SshTarget

MAX_HOST = 255

# A name that begins with "-" would be an option to ssh.
_HOST = re.compile(
    r"(?:ssh://)?(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9_\[:][\w.:%\]-]*", re.ASCII
)
_BOARD = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Address:
    """This machine, a host that ssh reaches, or a virtual board."""

    host: str | None = None
    """For ssh; None: not over ssh."""
    board: str | None = None
    """The name of a virtual board; None: a running machine."""


def parse_address(text: str, *, boards: bool = True) -> Address:
    """Return the address; UsageError for another text, for a board without `boards`."""
    kind, _, name = text.partition(":")
    if text == "local":
        return Address()
    if kind == "ssh" and len(name) <= MAX_HOST and _HOST.fullmatch(name):
        return Address(host=name)
    if kind == "virtual" and boards and _BOARD.fullmatch(name):
        return Address(board=name)
    forms = "local, ssh:HOST or virtual:BOARD" if boards else "local or ssh:HOST"
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
    name = "local" if address.host is None else f"ssh:{address.host}"
    with held_alone(name, alone) if alone else nullcontext():
        if address.host is not None:
            with SshTarget(address.host) as board:
                yield board
        else:
            with LocalTarget(storage_dir=storage_dir, may_ask=may_ask) as here:
                yield here
