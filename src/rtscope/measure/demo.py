"""Have the agent's threads perform a demonstration on a running machine."""

from collections.abc import Callable

from rtscope.contract import Line
from rtscope.demo.model import Performance, Story
from rtscope.demo.performance import DURATION_NS, demo_args, performance_of
from rtscope.errors import TargetError
from rtscope.target import Target
from rtscope.target.stream import collect
from rtscope.units import NS_PER_S

TIMEOUT_S = 30.0


def perform(
    machine: Target, story: Story, *, cpu: int | None, log: Callable[[str], None]
) -> list[Performance]:
    """
    Return the performances of all cases.

    Raises TargetError with the cause if one cannot run: capability, limit, cgroup.
    """
    performances = []
    for case in story.cases:
        log(f"performing {case.title}")
        lines = _lines(machine, demo_args(case, cpu))
        performances.append(performance_of(case, lines))
    return performances


def _lines(machine: Target, args: list[str]) -> list[Line]:
    agent = machine.start_agent(args, privileged=True)
    try:
        lines = collect(agent, timeout_s=TIMEOUT_S + DURATION_NS / NS_PER_S)
    finally:
        agent.kill()
    if not lines:
        raise TargetError(f"{machine.name}: no answer: {agent.stderr_tail()}")
    return lines
