"""
The causes of worst wake-ups that a sweep shows: read, and where they lack, explained.

Each explanation is written beside its record before the next run begins: Ctrl-C costs
the one that is being made.

For the base and the cells with the largest effects the pages of record and explanation
are made unasked. They lie beside the record, and are made again only where record or
explanation are newer.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.boards.parts.cache import cache_dir
from rtscope.cli.console import log, note, stderr_console
from rtscope.cli.progress import Waiting
from rtscope.host.errors import RecordError, RtscopeError
from rtscope.host.files import is_disk_full, write_atomically
from rtscope.host.process import Progress, Step
from rtscope.host.units import plural
from rtscope.record.directory.records import INTERRUPTED, RECORD, read_record
from rtscope.record.explanation import EXPLAINED, Explained, read_explained
from rtscope.verbs.sweep.result import Known, SweepResult, WorstRun, explained_by

# --- explain many runs that are already measured, one after the other -----------------

if TYPE_CHECKING:
    from rtscope.explain.directory import Explained as ExplainedRuns

Keep = Callable[[Path, str, "ExplainedRuns"], None]
"""Takes the directory of a campaign, a run, and what explains it."""


def explain_each(runs: Iterable[tuple[Path, str]], *, keep: Keep | None = None) -> None:
    """
    Explain runs, each by the directory of its campaign; log those that fail.

    Raises RecordError if `keep` finds the disk full: no other run would fare better.

    On a terminal a bar counts them, elsewhere a line every half minute.
    """
    chosen = list(runs)
    if not chosen:
        return
    # Symbols and paths take memory and time to load.
    from rtscope.explain.directory import explained_runs

    note(f"explaining the worst wake-ups of {plural(len(chosen), 'run')}")
    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            log(text)

    with Waiting(stderr_console()) as waiting:
        for number, (path, run) in enumerate(chosen, 1):
            try:
                explained = explained_runs(
                    path,
                    run,
                    worst=0 if keep is None else 1,
                    bound=False,
                    cache=cache_dir(),
                    log=waiting.over(once),
                    progress=_counting(waiting, f"{number} of {len(chosen)}"),
                )
                if keep is not None:
                    keep(path, run, explained)
            except RtscopeError as error:
                is_record = keep is not None and isinstance(error, RecordError)
                if is_record and is_disk_full(error):
                    raise
                waiting.over(once)(f"{path.name}: {error}")


def _counting(progress: Progress, place: str) -> Progress:
    def report(step: Step) -> None:
        progress(replace(step, what=f"{place}: {step.what}"))

    return report


# The causes of worst wake-ups that a sweep shows: read, and where they lack, explained.

EXPLANATION_PAGE, RECORD_PAGE = "explain.html", "report.html"
"""Beside the record of a run."""


def with_causes(result: SweepResult, path: Path) -> SweepResult:
    """Return the result of a sweep with what lies beside its worst runs in `path`."""
    return replace(
        result,
        cells=tuple(
            replace(
                cell, worst_runs=tuple(_as_it_lies(x, path) for x in cell.worst_runs)
            )
            for cell in result.cells
        ),
    )


def make_pages(result: SweepResult, path: Path) -> None:
    """
    Explain the base and the most changed cells, and make pages of their runs.

    Raises RecordError if the disk is full.
    """
    chosen = result.to_explain
    explain_each(
        (
            ((path / run.directory).parents[1], run.run)
            for run in chosen
            if run.known is not Known.NOT_RECORDED and not _is_explained(run, path)
        ),
        keep=_keep_page,
    )
    for run in chosen:
        _make_record_page(path / run.directory)


def _as_it_lies(run: WorstRun, path: Path) -> WorstRun:
    """Return a run with its files, and its cause if that is explained."""
    directory = path / run.directory
    if _is_as_new(directory / RECORD_PAGE, [directory / RECORD]):
        run = replace(run, record=f"{run.directory}/{RECORD_PAGE}")
    elif not (directory / RECORD).is_file():
        run = replace(run, record=f"{run.directory}/{INTERRUPTED}")
    explained = _explained(run, directory)
    if explained is None:
        return run
    page, file = directory / EXPLANATION_PAGE, directory / EXPLAINED
    name = EXPLANATION_PAGE if _is_as_new(page, [file]) else EXPLAINED
    run = replace(run, explanation=f"{run.directory}/{name}")
    return explained_by(run, explained)


def _is_explained(run: WorstRun, path: Path) -> bool:
    directory = path / run.directory
    page, file = directory / EXPLANATION_PAGE, directory / EXPLAINED
    return _is_as_new(page, [file]) and _explained(run, directory) is not None


def _explained(run: WorstRun, directory: Path) -> Explained | None:
    """Return the explanation beside a record; None without one of this result."""
    file = directory / EXPLAINED
    if not file.is_file():
        return None
    try:
        explained = read_explained(file)
    except RecordError as error:
        log(f"not shown: {error}")
        return None
    return explained if explained.result_digest == run.result_digest else None


def _keep_page(path: Path, run: str, explained: "ExplainedRuns") -> None:
    # Charts take a while to load.
    from rtscope.present.documents.pages import render_explanations

    lines = explained.timelines()
    page = render_explanations(explained.runs, worst=1, timelines=lines)
    write_atomically(path / "runs" / run / EXPLANATION_PAGE, page.encode())


def _make_record_page(directory: Path) -> None:
    """Make the page of a record if there is none as new as it and its explanation."""
    page, file = directory / RECORD_PAGE, directory / RECORD
    if not file.is_file() or _is_as_new(page, [file, directory / EXPLAINED]):
        return
    # Charts take a while to load.
    from rtscope.cli.results import Question, model_of, write_page

    try:
        model = model_of([read_record(file)], Question(), paths=[directory])
        write_page(model, page)
    except RecordError as error:
        if is_disk_full(error):
            raise
        log(f"{RECORD_PAGE} was not written: {error}")


def _is_as_new(made: Path, sources: Iterable[Path]) -> bool:
    """Whether a file is there, and none that it was made of is newer."""
    if not made.is_file():
        return False
    ages = [one.stat().st_mtime_ns for one in sources if one.is_file()]
    return made.stat().st_mtime_ns >= max(ages, default=0)
