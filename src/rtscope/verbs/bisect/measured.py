"""Judge one kernel of a search by the runs that a machine has measured of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rtscope.cli.console import put, put_json, stdout_console
from rtscope.cli.foreign import open_ours
from rtscope.host.errors import UsageError
from rtscope.present.document import Detail
from rtscope.present.render.terminal import print_blocks
from rtscope.record.model import RunRecord
from rtscope.record.pack import unpacking
from rtscope.verbs.bisect.figures import check_figure_of_machines
from rtscope.verbs.bisect.machineruns import samples_of
from rtscope.verbs.bisect.step import STATUS, judge_step, step_data
from rtscope.verbs.bisect.steptext import step_answer, step_lines

Labelled = tuple[str, Sequence[RunRecord]]


def judge_measured(
    measured: str,
    *,
    good: str | None,
    bad: str | None,
    load: str | None,
    figure: str,
    as_json: bool,
    detail: Detail,
) -> int:
    """Print which end the kernel is like; return its status for `git bisect run`."""
    check_figure_of_machines(figure)
    if good is None or bad is None:
        raise UsageError(
            "--measured compares with both ends: name their records with --good and "
            "--bad"
        )
    with unpacking() as opened:
        samples = samples_of(
            _records(opened, "--good", good),
            _records(opened, "--bad", bad),
            _records(opened, "--measured", measured),
            load=load,
            figure=figure,
        )
    step = judge_step(samples, figure)
    if as_json:
        put_json(step_data(step))
    elif detail is Detail.QUIET:
        put(f"{step_answer(step)}\n")
    else:
        with stdout_console() as console:
            print_blocks(step_lines(step), console)
    return STATUS[step.judged.verdict]


def _records(opened: Callable[[Path], Path], option: str, text: str) -> Labelled:
    """Return the records of one path, or of several with commas between them."""
    paths = [text] if Path(text).exists() else text.split(",")
    if not all(paths):
        raise UsageError(f"{option} {text!a}: name a directory of results")
    records = [one for path in paths for one in open_ours(opened(Path(path)))]
    return f"{option} {text}", records
