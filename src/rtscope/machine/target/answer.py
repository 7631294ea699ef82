"""What an agent answers that runs with root's rights and ends by itself."""

from collections.abc import Sequence

from rtscope.contract import Line
from rtscope.host.errors import TargetError
from rtscope.machine.target import Target
from rtscope.machine.target.stream import collect


def answer_of(machine: Target, args: Sequence[str], *, timeout_s: float) -> list[Line]:
    """
    Return the lines of an agent with root's rights, as far as they can be had.

    Raises TargetError if it is silent for so many seconds, or to its end.
    """
    agent = machine.start_agent(args, privileged=True)
    try:
        lines = collect(agent, timeout_s=timeout_s)
    finally:
        agent.kill()
    if not lines:
        raise TargetError(f"{machine.name}: no answer: {agent.stderr_tail()}")
    return lines
