"""The lines of an agent that runs with root's rights and ends by itself."""

from collections.abc import Sequence

from rtscope.contract import Line
from rtscope.host.errors import TargetError
from rtscope.machine.target import Stream, Target
from rtscope.machine.target.stream import collect


def run_agent(
    machine: Target, args: Sequence[str], *, timeout_s: float, works_s: float = 0.0
) -> tuple[list[Line], Stream]:
    """
    Return the lines of an agent with root's rights, as far as they can be had.

    And the stream, which has ended. Raises TargetError if it is silent for so many
    seconds beside those for which it works.
    """
    agent = machine.start_agent(args, privileged=True)
    try:
        return collect(agent, timeout_s=timeout_s, works_s=works_s), agent
    finally:
        agent.kill()


def answer_of(
    machine: Target,
    args: Sequence[str],
    *,
    timeout_s: float,
    works_s: float = 0.0,
    failure: str = "no answer",
) -> list[Line]:
    """
    Return the lines of an agent, as `run_agent` does, which are at least one.

    Raises TargetError if it is silent for so many seconds, or to its end; the error
    then says `failure`.
    """
    lines, agent = run_agent(machine, args, timeout_s=timeout_s, works_s=works_s)
    if not lines:
        said = agent.stderr_tail() or "it ended without a word"
        raise TargetError(f"{machine.name}: {failure}: {said}")
    return lines
