"""Have the threads of a virtual board's agent perform a demonstration, in one boot."""

from collections.abc import Sequence

from rtscope.board.initrd import Job
from rtscope.board.prepare import Prepared
from rtscope.demo.model import Performance, Story
from rtscope.demo.performance import DURATION_NS, demo_args, performance_of
from rtscope.errors import BoardError
from rtscope.process import Progress
from rtscope.virtual.boot import BootTimeout, boot, in_steps
from rtscope.virtual.inspect import INSERT_RESULTS
from rtscope.virtual.script import agent_line

SEED = 1


def perform_on_board(
    prepared: Prepared, story: Story, *, cpu: int | None, progress: Progress
) -> list[Performance]:
    """
    Return the performances of all cases.

    Raises BoardError if the board does not boot or sends nothing, TargetError with the
    cause if a case cannot run.
    """
    booted = boot(
        prepared,
        Job("\n".join(script_of(story, cpu)) + "\n"),
        seed=SEED,
        timeout=BootTimeout(DURATION_NS * len(story.cases)),
        stopped=lambda: False,
        on_progress=in_steps(f"{prepared.kernel.name} boots", progress),
    )
    performances = []
    for case in story.cases:
        lines = list(booted.lines(_file(case.name)))
        if not lines:
            raise BoardError(
                f"{prepared.board.name}: the board sent nothing of {case.name}: "
                f"{booted.text('script.log').strip()[-500:] or 'no message'}"
            )
        performances.append(performance_of(case, lines))
    return performances


def script_of(story: Story, cpu: int | None) -> Sequence[str]:
    """Return the lines for the board's shell: one for each case."""
    return (
        INSERT_RESULTS,
        *(
            f"{agent_line(*demo_args(case, cpu))} >/out/{_file(case.name)}"
            for case in story.cases
        ),
        "true",
    )


def _file(case: str) -> str:
    return f"demo-{case}.jsonl"
