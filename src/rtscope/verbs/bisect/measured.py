"""Judge one kernel of a search by the runs that a machine has measured of it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from rtscope.cli.console import put, put_json, stdout_console
from rtscope.cli.foreign import open_ours
from rtscope.host.errors import UsageError, first_of
from rtscope.present.document import Block, Detail, Span, Table, table
from rtscope.present.render.terminal import print_blocks
from rtscope.record.model import RunRecord
from rtscope.record.pack import unpacking
from rtscope.stats.comparison.design import least_runs
from rtscope.verbs.bisect.criterion import (
    check_figure_of_machines,
    format_without_unit,
    heading,
)
from rtscope.verbs.bisect.machineruns import Samples, samples_of
from rtscope.verbs.bisect.step import (
    ALPHA,
    STATUS,
    WORDS,
    Step,
    Why,
    effect_words,
    judge_step,
    step_data,
)

# --- one step of a search on a machine, on the terminal: the verdict, runs and tests --

ORDER = (
    "The order of these runs was not drawn at random: if the machine has changed since "
    "the ends were measured, that may be the reason. Measure the good kernel again "
    "after the search: it must be called good."
)

ONE_BOOT = (
    "All runs of a kernel are of one boot: if boots of one kernel differ, the verdict "
    "may be about the boot. Then take each run from a boot of its own."
)


def step_answer(step: Step) -> str:
    """Return the verdict with its reason, in one line; its first word is git's."""
    return f"{WORDS[step.judged.verdict]}: {_reason(step)}"


def step_lines(step: Step) -> Iterator[Block]:
    """Return what the terminal shows of a step."""
    yield (step_answer(step), "strong")
    yield ""
    yield (heading(step.figure, step.samples.load), "strong")
    yield _table(step.samples, step.figure)
    for end, effect in (
        (step.samples.good, step.judged.from_good),
        (step.samples.bad, step.judged.from_bad),
    ):
        if effect is not None:
            yield f"against {end.label}: {effect_words(effect)}"
    yield ""
    for note in _notes(step):
        yield (note, "limit")


def _notes(step: Step) -> Iterator[str]:
    yield from step.samples.notes
    if step.samples.one_boot:
        yield ONE_BOOT
    yield ORDER


def _reason(step: Step) -> str:
    good, bad, new = (
        one.label for one in (step.samples.good, step.samples.bad, step.samples.new)
    )
    match step.judged.why:
        case Why.LIKE_BAD:
            return f"{new} is worse than {good}, and not better than {bad}"
        case Why.LIKE_GOOD:
            return f"{new} is better than {bad}, and not worse than {good}"
        case Why.BETWEEN:
            return (
                f"{new} is worse than {good} and better than {bad}: more than one "
                "change makes the difference; search on either side of it, with this "
                "record as an end"
            )
        case Why.UNDECIDED:
            return (
                f"no evidence that {new} differs from {good}, nor from {bad}: "
                f"{_needed(step)}"
            )
        case Why.TOO_FEW:
            return _too_few(step.samples)


def _needed(step: Step) -> str:
    needed = step.needed_runs
    if needed is None:
        return "runs vary too much for 10,000 of each kernel to decide"
    samples = step.samples
    has = min(len(one.values) for one in (samples.good, samples.bad, samples.new))
    if needed <= has:
        return (
            f"{needed} runs decide in four cases of five, and this is the fifth: "
            f"measure it again, e.g. with --repetitions {2 * has}"
        )
    return (
        f"{needed} runs of each kernel, of the ends as well, decide in four cases of "
        f"five: --repetitions {needed}"
    )


def _too_few(samples: Samples) -> str:
    ends = min(len(samples.good.values), len(samples.bad.values))
    least = least_runs(ALPHA, others=ends)
    said = (
        f"too few valid runs of {samples.new.label}: {len(samples.new.values)}, and a "
        f"test at 1 % needs {least}"
    )
    if samples.new.left_out:
        said += f" ({first_of(1, samples.new.left_out)})"
    return f"{said}: measure it with --repetitions {max(least, ends)}"


def _table(samples: Samples, figure: str) -> Table:
    rows: list[list[Span]] = []
    for one in (samples.good, samples.bad, samples.new):
        values = one.values
        figures = [min(values), median(values), max(values)] if values else [None] * 3
        cells = ["" if f is None else format_without_unit(f, figure) for f in figures]
        rows.append([one.label, str(len(values)), *cells])
    heads = ("runs", "least", "median", "largest")
    return table(("kernel",), heads, rows, fit="wraps")


# --- judge one kernel of a search by the runs that a machine has measured of it -------

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
