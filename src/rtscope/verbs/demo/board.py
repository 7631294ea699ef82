"""Run a demonstration with the agent of a virtual board, in one boot."""

from collections.abc import Iterator, Mapping, Sequence

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted, boot, in_steps
from rtscope.boards.runs.inspect import files_of
from rtscope.boards.runs.script import agent_line
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import Refused
from rtscope.host.errors import BoardError, TargetError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.measure.campaign.model import BOARD_SETTLE_NS
from rtscope.verbs.demo.model import (
    DURATION_NS,
    FACTS,
    Case,
    CaseResult,
    Demo,
    DemoResult,
    case_result_of,
    demo_args,
    settings_of,
)

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
        _texts(prepared, booted, _FACTS),
        _texts(prepared, booted, _FACTS_AFTER),
        not_tried,
    )


def script_of(demo: Demo, cpu: int) -> Sequence[str]:
    """Return the lines for the board's shell: facts, each case, and facts again."""
    read = agent_line("read", "--", *FACTS)
    return (
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


def _texts(prepared: Prepared, booted: Booted, name: str) -> Mapping[str, str]:
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
