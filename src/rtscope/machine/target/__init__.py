"""
The machines a campaign can run on, with `Target` as their interface.

The agent does all work on a target (`measure`, `load`, `read`, ...), so a new kind of
target only starts the agent and offers a place for files.

    address.py             addresses; one measurement of a machine at a time
    local.py               this machine
    ssh.py, refusals.toml  a board over SSH; remedies for messages of ssh
    labplace.py, placekeeper.py  a place of labgrid, and the process that holds it
    stream.py              a running agent, and the lines of one that ends by itself
    agentreader.py         a reader that asks the agent for many files at once
    patience.py            how long a board is waited for in all
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rtscope.host.errors import TargetError

if TYPE_CHECKING:
    from rtscope.contract import Line
    from rtscope.machine.reader import Reader
    from rtscope.machine.target.patience import Patience

_AGENTS = Path(__file__).parents[2] / "agents"

# `uname -m` of machines that run another's binary.
_SAME_AS = {"armv8l": "armv7l", "amd64": "x86_64", "arm64": "aarch64"}


def agent_file(machine: str) -> Path:
    """
    Return the agent for a machine (its `uname -m`); TargetError if none is built.

    One per architecture is built by `make agent`.
    """
    arch = _SAME_AS.get(machine, machine)
    # The machine is what a board says: never a part of a path.
    built = {p.parent.name: p for p in sorted(_AGENTS.glob("*/rtscope-agent"))}
    if arch in built:
        return built[arch]
    raise TargetError(
        f"no agent for {machine[:40]!a} (built: {', '.join(built) or 'none'}; "
        "supported: x86_64, aarch64, armv7l, riscv64); build it in the source tree: "
        "make agent"
    )


class Stream(Protocol):
    """A running agent: gives its lines, and can be stopped."""

    @property
    def ended(self) -> bool:
        """Whether the agent is gone and all its lines have been read."""
        ...

    @property
    def patience(self) -> "Patience | None":
        """What is left of the time for its machine; None: each answer has its own."""
        ...

    @property
    def memory_bytes(self) -> int:
        """What all lines so far take, at most, if they are kept."""
        ...

    def fileno(self) -> int | None:
        """Return the descriptor to wait for; None if lines are ready at any time."""
        ...

    def take_lines(self) -> "list[Line]":
        """Return the lines that have arrived; raise ContractError for a damaged one."""
        ...

    def ask_stop(self) -> None:
        """Ask the agent to stop; it still reports its result."""
        ...

    def kill(self) -> None:
        """End the agent and its children at once."""
        ...

    def stderr_tail(self) -> str:
        """Return the last few lines of its standard error."""
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
        Start the agent with a subcommand and its options; it ends with this program.

        Privileged: with root's rights if possible, else with the user's own (the agent
        then names the missing right). Raises TargetError.
        """
        ...

    def work_path(self, name: str) -> str:
        """Return the path of a file in the private directory kept for this session."""
        ...

    def begin_run(self) -> None:
        """Note that a run of the user's begins: it has the time for one of its own."""
        ...

    def load_user(self) -> tuple[int, int] | None:
        """Return the user that a privileged agent's load becomes; None: it stays."""
        ...

    def first_line(self, command: Sequence[str]) -> str | None:
        """
        Return the first line that a program prints; None if it is not installed.

        It has a few seconds; raises TargetError for one that does not end.
        """
        ...
