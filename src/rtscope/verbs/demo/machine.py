"""Run a demonstration with the agent of a running machine."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from rtscope.host.errors import TargetError
from rtscope.host.units import NS_PER_S
from rtscope.machine.facts import cpus_in
from rtscope.machine.reader import read, text_of
from rtscope.machine.settings.change import TuningResult, hold
from rtscope.machine.settings.remedies import SettingChange
from rtscope.machine.target import Target
from rtscope.machine.target.agentreader import AgentReader
from rtscope.machine.target.stream import answer_of
from rtscope.verbs.demo.model import (
    DURATION_NS,
    FACTS,
    GROUP_PERIOD,
    GROUP_RUNTIME,
    Case,
    CaseResult,
    Demo,
    DemoResult,
    Scenario,
    case_result_of,
    demo_args,
    settings_of,
)

TIMEOUT_S = 30.0
ONLINE = "/sys/devices/system/cpu/online"


def run_demo(
    machine: Target, demo: Demo, *, cpu: int | None, log: Callable[[str], None]
) -> DemoResult:
    """
    Return what the threads of all cases did.

    Settings are held for as long as their case lasts. Raises TargetError with the cause
    if a case cannot run: capability, limit, cgroup, a setting,
    a connection that would not last.
    """
    _refuse_starving_the_connection(machine, demo)
    changes = any(case.settings for case in demo.cases)
    facts = _facts(machine) if changes else {}
    results: list[CaseResult] = []
    not_tried: dict[str, str] = {}
    for case in demo.cases:
        log(f"case: {case.title}")
        at = results[0].begin.cpu if results else cpu
        with _held(machine, case, at or 0) as refused:
            if refused and not case.optional:
                raise TargetError(f"case {case.name}: {refused}")
            if refused:
                not_tried[case.name] = refused
                continue
            args, works_s = demo_args(case, cpu), DURATION_NS / NS_PER_S
            lines = answer_of(machine, args, timeout_s=TIMEOUT_S, works_s=works_s)
        results.append(case_result_of(case, lines))
    after = _facts(machine) if changes else {}
    return DemoResult(tuple(results), facts, after, not_tried)


def _refuse_starving_the_connection(machine: Target, demo: Demo) -> None:
    """Refuse what leaves no CPU to sshd for longer than the agent waits for a sign."""
    if demo.scenario is not Scenario.THROTTLE or machine.name == "local":
        return
    if len(cpus_in(text_of(read(machine.reader, ONLINE)) or "") or ()) == 1:
        raise TargetError(
            f"{machine.name} has one CPU, which this demonstration would keep from "
            "sshd for 2.5 s, and the connection would end it: run rtscope app demo "
            f"{demo.scenario} on the board itself"
        )


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
    reader = AgentReader(lambda args: answer_of(machine, args, timeout_s=TIMEOUT_S))
    texts = _texts(reader, [*FACTS, _GROUPS])
    group = _cpu_group(texts.pop(_GROUPS, ""))
    for place in _HIERARCHIES if group else ():
        paths = {name: f"{place}{group}/{name}" for name in _GROUP_LIMITS}
        limits = _texts(reader, list(paths.values()))
        texts |= {name: limits[path] for name, path in paths.items() if path in limits}
    return texts


_GROUPS = "/proc/self/cgroup"
_GROUP_LIMITS = (GROUP_RUNTIME, GROUP_PERIOD)
_HIERARCHIES = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
"""Of cgroup v1: v2 has no limit for real-time threads."""


def _cpu_group(text: str) -> str:
    """Return the group of the controller `cpu` in a /proc/PID/cgroup, or nothing."""
    for line in text.splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if "cpu" in names.split(","):
            return path.rstrip("/") or "/."
    return ""


def _texts(reader: AgentReader, paths: Sequence[str]) -> dict[str, str]:
    contents = reader.read_many(paths)
    return {
        path: content.decode("utf-8", "replace").strip()
        for path, content in contents.items()
        if isinstance(content, bytes)
    }
