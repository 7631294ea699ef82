"""Show a sweep, a survey or what was tried against causes: terminal, page, JSON."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rtscope.cli.console import put, put_json, say, stdout_console
from rtscope.cli.options import tell_reused
from rtscope.host.errors import RecordError
from rtscope.host.files import write_atomically
from rtscope.measure.plan import make_plan
from rtscope.present.document import Detail
from rtscope.present.render.fitted import Compose, print_fitted
from rtscope.record.directory.place import SWEEP, resumable
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.causes import make_pages, with_causes
from rtscope.verbs.sweep.directory import SweepWork
from rtscope.verbs.sweep.remedytext import (
    compose_remedies,
    remedies_answer,
    remedies_data,
)
from rtscope.verbs.sweep.result import SweepResult, result_of
from rtscope.verbs.sweep.survey import explain_recorded, ranked
from rtscope.verbs.sweep.surveytext import (
    compose_survey,
    survey_answer,
    survey_data,
    survey_page,
)
from rtscope.verbs.sweep.text import (
    compose_sweep,
    sweep_answer,
    sweep_data,
    sweep_page,
)

PAGE, SURVEY_PAGE = "sweep.html", "survey.html"


@contextlib.contextmanager
def show_if_cut_short(work: SweepWork, detail: Detail, *, json: bool) -> Iterator[None]:
    """Show the results so far after a failure."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(RecordError):  # the first cause counts
            show_sweep(work, detail, json=json, explain=False)
        say(f"results so far; to continue: {SWEEP.to_go_on(work.path)}")
        raise


def show_sweep(
    work: SweepWork, detail: Detail, *, json: bool, explain: bool = True
) -> int:
    """
    Show what there is of a sweep; return 1 if runs are missing, else 0.

    With `explain`, what lacks of the causes that it shows is explained first; after
    Ctrl-C it is shown without, and KeyboardInterrupt raised again.
    """
    if work.sweep.survey is not None:
        return _show_survey(work, detail, json=json, explain=explain)
    records = {cell.number: work.store(cell).records() for cell in work.cells}
    tell_reused([one for of_cell in records.values() for one in of_cell])
    result = with_causes(_result(work, records), work.path)
    cut_short, full = False, None
    try:
        cut_short = explain and _is_cut_short(work, partial(_explain, work, result))
    except RecordError as error:  # the disk is full; the result comes first
        full = error
    if explain:
        result = with_causes(result, work.path)
    with _page(work, PAGE, _text_of_page(work, result)) as page:
        _show(work, result, detail, page, json=json)
    if full is not None:
        with resumable(work.path, SWEEP):
            raise full
    if cut_short:
        raise KeyboardInterrupt
    return int(result.missing > 0)


def _explain(work: SweepWork, result: SweepResult) -> None:
    """Make the pages of the worst runs; that of the sweep first, which needs none."""
    with (
        contextlib.suppress(RecordError),
        _page(work, PAGE, _text_of_page(work, result)),
    ):
        pass
    make_pages(result, work.path)


def _text_of_page(work: SweepWork, result: SweepResult) -> str | None:
    """Return the page; of remedies only if there was one to try."""
    diagnoses = work.diagnoses
    if work.has_no_remedy:
        return None
    answer = remedies_answer(result, diagnoses) if diagnoses else ""
    return sweep_page(result, diagnoses, answer=answer)


def _show(
    work: SweepWork,
    result: SweepResult,
    detail: Detail,
    page: Path | None,
    *,
    json: bool,
) -> None:
    diagnoses = work.diagnoses
    if diagnoses:
        more = f"All effects: {page}" if page else ""
        if json:
            put_json(remedies_data(result, diagnoses))
            return
        answer = remedies_answer(result, diagnoses)
        compose = compose_remedies(result, diagnoses, more=more)
        _print(detail, answer, compose, rows=len(result.effects) + len(diagnoses))
        return
    if json:
        put_json(sweep_data(result))
        return
    more = f"All cells and effects: {page}" if page else ""
    compose = compose_sweep(result, more=more)
    _print(detail, sweep_answer(result), compose, rows=len(result.effects))


def _is_cut_short(work: SweepWork, explain: Callable[[], None]) -> bool:
    """Explain; tell whether Ctrl-C cut it short, which costs no result."""
    try:
        explain()
    except KeyboardInterrupt:
        on = SWEEP.to_go_on(work.path)
        say(f"not all worst wake-ups are explained; to explain them: {on}")
        return True
    return False


def _show_survey(work: SweepWork, detail: Detail, *, json: bool, explain: bool) -> int:
    (cell,) = work.cells
    store, plan = work.store(cell), work.plans[cell.number]
    records = store.records()
    tell_reused(records)
    causes = partial(explain_recorded, records, store)
    cut_short = explain and _is_cut_short(work, causes)
    failures = work.known_failures()[cell.number]
    ranking = ranked(records, store, plan, failures=failures)
    missing = len(plan.runs) - len(records)
    text = survey_page(
        ranking,
        name=work.sweep.name,
        target=cell.campaign.board or cell.campaign.target,
        missing=missing,
    )
    with _page(work, SURVEY_PAGE, text) as page:
        if json:
            put_json(survey_data(ranking, work.checks))
        else:
            more = f"All loads and causes: {page}" if page else ""
            compose = compose_survey(
                ranking, missing=missing, checks=work.checks, more=more
            )
            _print(detail, survey_answer(ranking), compose, rows=len(ranking.loads))
    if cut_short:
        raise KeyboardInterrupt
    return int(missing > 0)


@contextlib.contextmanager
def _page(work: SweepWork, name: str, text: str | None) -> Iterator[Path | None]:
    """
    Write a page, if there is one, and give its path for the terminal.

    If it cannot be written the path is None, and RecordError comes after the block,
    which prints the result.
    """
    failed, path = None, None if text is None else work.path / name
    if path is not None and text is not None:
        try:
            write_atomically(path, text.encode())
        except RecordError as error:
            failed, path = error, None
    yield path
    if failed is not None:
        with resumable(work.path, SWEEP):
            raise failed


def _print(detail: Detail, answer: str, compose: Compose, *, rows: int) -> None:
    """Print the answer, or what fits with it; with -v all rows of the table."""
    if detail is Detail.QUIET:
        put(f"{answer}\n")
        return
    with stdout_console() as console:
        if detail is Detail.ALL:
            print_fitted(compose, console, lines=rows + 50)
        else:
            print_fitted(compose, console)


def _result(work: SweepWork, records: Mapping[int, Sequence[RunRecord]]) -> SweepResult:
    """Return what there is of the base, and of cells that were ever asked for."""
    base, numbers = work.cells[0], work.cell_numbers()
    cells = [
        cell
        for cell in work.possible
        if cell is base or cell.number in numbers or records[cell.number]
    ]
    planned = {
        cell.number: len(make_plan(cell.campaign).runs)
        if cell.number in numbers
        else len(records[cell.number])
        for cell in cells
    }
    return result_of(
        work.sweep.name,
        cells,
        records=records,
        planned=planned,
        left_out=len(work.possible) - len(cells),
        failures={n: tuple(w.values()) for n, w in work.known_failures().items()},
        checks=work.checks,
    )
