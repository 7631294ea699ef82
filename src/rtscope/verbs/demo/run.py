"""Run a demonstration with the agent of a running machine, or of a virtual board."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted, BootTimeout, boot, in_steps
from rtscope.boards.runs.inspect import INSERT_RESULTS, files_of
from rtscope.boards.runs.script import agent_line
from rtscope.contract import Refused
from rtscope.host.errors import BoardError, TargetError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.machine.facts import cpus_in
from rtscope.machine.reader import read, text_of
from rtscope.machine.settings.change import TuningResult, hold
from rtscope.machine.settings.remedies import SettingChange
from rtscope.machine.target import Target
from rtscope.machine.target.agentreader import AgentReader
from rtscope.machine.target.stream import answer_of
from rtscope.measure.campaign.model import BOARD_SETTLE_NS
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

# --- run a demonstration with the agent of a virtual board, in one boot ---------------

SEED = 1

_SETTLE_S = BOARD_SETTLE_NS // NS_PER_S
"""Until the kernel's own work after its boot is over, as in a measurement."""

_DEBUGFS = "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null"
_FACTS, _FACTS_AFTER = "facts.jsonl", "facts-after.jsonl"


def run_demo_on_board(
    prepared: Prepared, demo: Demo, *, cpu: int | None, progress: Progress
) -> DemoResult:
    """
    Return what the threads of all cases did.

    Raises BoardError if the board does not boot or sends nothing, TargetError with the
    cause if a case cannot run.
    """
    # Settings of a CPU need its number before the agent would choose one.
    chosen = prepared.board.cpus - 1 if cpu is None else cpu
    booted = boot(
        prepared,
        Job("\n".join(script_of(demo, chosen)) + "\n"),
        seed=SEED,
        timeout=BootTimeout(DURATION_NS * len(demo.cases)),
        stopped=lambda: False,
        on_progress=in_steps(f"{prepared.kernel.name} boots", progress),
    )
    return result_of(prepared, demo, booted)


def result_of(prepared: Prepared, demo: Demo, booted: Booted) -> DemoResult:
    """Return what the threads did on a board that ran the lines of script_of()."""
    results: list[CaseResult] = []
    not_tried: dict[str, str] = {}
    for case in demo.cases:
        refused = "; ".join(_refusals(booted, case))
        if refused and not case.optional:
            raise TargetError(f"case {case.name}: {refused}")
        if refused:
            not_tried[case.name] = refused
            continue
        lines = list(booted.lines(_file(case)))
        if not lines:
            raise BoardError(
                f"{prepared.board.name}: the board sent nothing of {case.name}: "
                f"{booted.text('script.log').strip()[-500:] or 'no message'}"
            )
        results.append(case_result_of(case, lines))
    return DemoResult(
        tuple(results),
        _texts_of_board(prepared, booted, _FACTS),
        _texts_of_board(prepared, booted, _FACTS_AFTER),
        not_tried,
    )


def script_of(demo: Demo, cpu: int) -> Sequence[str]:
    """Return the lines for the board's shell: facts, each case, and facts again."""
    read = agent_line("read", "--", *FACTS)
    return (
        INSERT_RESULTS,
        _DEBUGFS,
        f"{read} >/out/{_FACTS}",
        f"sleep {_SETTLE_S}",
        *(line for case in demo.cases for line in _case_lines(case, cpu)),
        f"{read} >/out/{_FACTS_AFTER}",
        "true",
    )


def _case_lines(case: Case, cpu: int) -> Iterator[str]:
    line = f"{agent_line(*demo_args(case, cpu))} >/out/{_file(case)}"
    if not case.settings:
        yield line
        return
    options = [
        word
        for knob, index, value in settings_of(case, cpu)
        for word in ("--set", f"{knob}:{index}={value}")
    ]
    yield f"{agent_line('apply', *options)} >/out/{_settings(case)}"
    yield line
    yield f"{agent_line('restore', '--applied')} >/dev/null"


def _refusals(booted: Booted, case: Case) -> Iterator[str]:
    if case.settings:
        for line in booted.lines(_settings(case)):
            if isinstance(line, Refused):
                yield f"{line.knob} cannot be {line.value}: {line.reason}"


def _texts_of_board(prepared: Prepared, booted: Booted, name: str) -> Mapping[str, str]:
    files = files_of(prepared, booted, name).files
    return {
        path: content.decode("utf-8", "replace").strip()
        for path, content in files.items()
        if isinstance(content, bytes) and not path.startswith("/boot/")
    }


def _file(case: Case) -> str:
    return f"demo-{case.name}.jsonl"


def _settings(case: Case) -> str:
    return f"settings-{case.name}.jsonl"


# --- run a demonstration with the agent of a running machine --------------------------

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
    if demo.scenario is not Scenario.THROTTLE or not machine.name.startswith("ssh:"):
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
    texts = _texts_of_machine(reader, [*FACTS, _GROUPS])
    group = _cpu_group(texts.pop(_GROUPS, ""))
    for place in _HIERARCHIES if group else ():
        paths = {name: f"{place}{group}/{name}" for name in _GROUP_LIMITS}
        limits = _texts_of_machine(reader, list(paths.values()))
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


def _texts_of_machine(reader: AgentReader, paths: Sequence[str]) -> dict[str, str]:
    contents = reader.read_many(paths)
    return {
        path: content.decode("utf-8", "replace").strip()
        for path, content in contents.items()
        if isinstance(content, bytes)
    }
