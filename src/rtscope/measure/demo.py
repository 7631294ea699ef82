"""Have the agent's threads perform a demonstration on a running machine."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from rtscope.contract import Line
from rtscope.demo.model import FACTS, Case, Performance, Shown, Story
from rtscope.demo.performance import (
    DURATION_NS,
    demo_args,
    performance_of,
    settings_of,
)
from rtscope.errors import TargetError
from rtscope.target import Target
from rtscope.target.agentreader import AgentReader
from rtscope.target.stream import collect
from rtscope.tuning.remedies import SettingChange
from rtscope.tuning.settings import TuningResult, hold
from rtscope.units import NS_PER_S

TIMEOUT_S = 30.0


def perform(
    machine: Target, story: Story, *, cpu: int | None, log: Callable[[str], None]
) -> Shown:
    """
    Return what the threads of all cases did.

    Settings are held for as long as their case lasts. Raises TargetError with the cause
    if a case cannot run: capability, limit, cgroup, a setting.
    """
    changes = any(case.settings for case in story.cases)
    facts = _facts(machine) if changes else {}
    performances: list[Performance] = []
    not_tried: dict[str, str] = {}
    for case in story.cases:
        log(f"performing {case.title}")
        at = performances[0].begin.cpu if performances else cpu
        with _held(machine, case, at or 0) as refused:
            if refused and not case.optional:
                raise TargetError(f"case {case.name}: {refused}")
            if refused:
                not_tried[case.name] = refused
                continue
            lines = _lines(machine, demo_args(case, cpu))
        performances.append(performance_of(case, lines))
    after = _facts(machine) if changes else {}
    return Shown(tuple(performances), facts, after, not_tried)


@contextlib.contextmanager
def _held(machine: Target, case: Case, cpu: int) -> Iterator[str]:
    """Hold the settings of a case; give why one was refused, or nothing."""
    if not case.settings:
        yield ""
        return
    changes = [
        SettingChange("app demo", knob, index, path="", old="", value=value)
        for knob, index, value in settings_of(case, cpu)
    ]
    with hold(machine, changes) as holding:
        yield _refused(holding.result)


def _refused(result: TuningResult) -> str:
    return "; ".join(
        f"{one.change.knob} cannot be {one.change.value}: {one.reason}"
        for one in result.refused
    )


def _facts(machine: Target) -> Mapping[str, str]:
    reader = AgentReader(lambda args: _lines(machine, args))
    contents = reader.read_many(FACTS)
    return {
        path: content.decode("utf-8", "replace").strip()
        for path, content in contents.items()
        if isinstance(content, bytes)
    }


def _lines(machine: Target, args: Sequence[str]) -> list[Line]:
    agent = machine.start_agent(args, privileged=True)
    try:
        lines = collect(agent, timeout_s=TIMEOUT_S + DURATION_NS / NS_PER_S)
    finally:
        agent.kill()
    if not lines:
        raise TargetError(f"{machine.name}: no answer: {agent.stderr_tail()}")
    return lines
