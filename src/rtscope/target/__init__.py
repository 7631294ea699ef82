"""
The machines a campaign can run on: `Target` is all that one has to offer.

Whatever happens on a target is done by the agent (`measure`, `load`, `read`, ...), so a
new kind of target has to say only how to start the agent there and where to put files.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rtscope.errors import TargetError

if TYPE_CHECKING:
    from rtscope.contract import Line
    from rtscope.machine.reader import Reader

_AGENTS = Path(__file__).parent.parent / "agents"

# `uname -m` of machines that run another's binary.
_SAME_AS = {"armv8l": "armv7l", "amd64": "x86_64", "arm64": "aarch64"}


def agent_file(machine: str) -> Path:
    """
    Return the agent for a machine (its `uname -m`); TargetError if none is built.

    One per architecture is built by `make agent`.
    """
    arch = _SAME_AS.get(machine, machine)
    path = _AGENTS / arch / "rtscope-agent"
    if path.is_file():
        return path
    built = sorted(p.parent.name for p in _AGENTS.glob("*/rtscope-agent"))
    raise TargetError(
        f"no agent for {machine!r}: built are {', '.join(built) or 'none'}; "
        "run make agent (x86_64, aarch64, armv7l and riscv64 are supported)"
    )


class Stream(Protocol):
    """A running agent: its lines come out, and it can be told to end."""

    @property
    def ended(self) -> bool:
        """Whether the agent is gone and all its lines have been read."""
        ...

    def fileno(self) -> int | None:
        """Return the descriptor to wait for; None if lines are ready at any time."""
        ...

    def take_lines(self) -> "list[Line]":
        """Return the lines that have arrived; raise ContractError for a damaged one."""
        ...

    def ask_stop(self) -> None:
        """Tell the agent to end in good order; it will still report."""
        ...

    def kill(self) -> None:
        """End the agent at once, and what it has started with it."""
        ...

    def stderr_tail(self) -> str:
        """Return what it wrote to standard error, at most the last few lines."""
        ...


class Target(Protocol):
    """A booted machine that can run the agent."""

    name: str
    reader: "Reader"
    """Reads the machine's files."""
    default_storage_dir: str
    """A directory on a disk of the machine, for the storage load."""

    def start_agent(self, args: Sequence[str], *, privileged: bool = False) -> Stream:
        """
        Start the agent with a subcommand and its options, tethered to this program.

        Privileged: with root's rights where they can be had, else with the user's own
        (the agent then says which right it lacks). Raises TargetError.
        """
        ...

    def work_path(self, name: str) -> str:
        """Return the path of a file in the private directory kept for this session."""
        ...

    def load_user(self) -> tuple[int, int] | None:
        """Return the user that a privileged agent's load becomes; None: it stays."""
        ...

    def program_version(self, program: str) -> str | None:
        """Return the first line of `PROGRAM --version`; None if it is not installed."""
        ...
