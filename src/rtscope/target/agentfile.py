"""Where the agent's binaries are: one per architecture, built by `make agent`."""

from pathlib import Path

from rtscope.errors import TargetError

_AGENTS = Path(__file__).parent.parent / "agents"

# `uname -m` of machines that run another's binary.
_SAME_AS = {"armv8l": "armv7l", "amd64": "x86_64", "arm64": "aarch64"}


def agent_file(machine: str) -> Path:
    """Return the agent for a machine (its `uname -m`), or raise TargetError."""
    arch = _SAME_AS.get(machine, machine)
    path = _AGENTS / arch / "rtscope-agent"
    if path.is_file():
        return path
    built = sorted(p.parent.name for p in _AGENTS.glob("*/rtscope-agent"))
    raise TargetError(
        f"no agent for {machine!r}: built are {', '.join(built) or 'none'}; "
        "run make agent (x86_64, aarch64, armv7l and riscv64 are supported)"
    )
