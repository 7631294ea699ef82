"""Report records: on the terminal, as a page, as data."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field, TypeAdapter, ValidationError

from rtscope.campaign import values
from rtscope.campaign.model import Campaign
from rtscope.cli.console import Json, log, put, stdout_console, typed_words
from rtscope.cli.detail import ShownWithNotes
from rtscope.cli.foreign import open_ours
from rtscope.errors import UsageError
from rtscope.files import first_mistake, refuse_unwritable, write_atomically
from rtscope.record.explanation import find_explained
from rtscope.record.model import RunRecord
from rtscope.record.pack import unpacking
from rtscope.report.formats.brief import Detail, More, print_result
from rtscope.report.formats.data import render_csv, render_json
from rtscope.report.formats.html import render_html
from rtscope.report.formats.markdown import render_markdown, render_summary
from rtscope.report.formats.text import Told
from rtscope.report.model.build import Model, build_model
from rtscope.stats.verdict import Claim
from rtscope.units import parse_claim, parse_duration

PAGE = "report.html"
"""The page that a run writes beside its records."""


class Format(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The arguments and options of `rtscope report`."""

    record: Annotated[list[Path], typer.Argument()]
    """Result directories of rtscope run, e.g. results, or archives of rtscope pack."""
    html: Path | None = None
    """HTML page to write, e.g. report.html."""
    format: Format = Format.TABLE
    """Format of the report (default: table)."""
    json: Json = False
    shown: ShownWithNotes
    summary: Path | None = None
    """Markdown file to write for a merge request, e.g. summary.md."""
    charts: Path | None = None
    """Directory for each chart as SVG and PNG, e.g. charts."""
    deadline: str | None = None
    """Longest allowed latency (default: that of the record), e.g. 200us."""
    claim: str | None = None
    """
    Claim to test: fewer than MISSES missed deadlines in TIME (default: that of the
    record), e.g. 1/1h.
    """
    min_boots: Annotated[int | None, typer.Option(min=1)] = None
    """
    Minimum number of boots behind a claim (default: that of the record), e.g. 3.
    """


def report(request: ReportRequest) -> int:
    """Report records: on the terminal, as a page, as data."""
    detail = request.shown.detail
    for path in (request.html, request.summary):
        if path is not None:
            refuse_unwritable(path)
    charts = request.charts
    if charts is not None and charts.exists() and not charts.is_dir():
        raise UsageError(f"--charts {charts}: a file; name a directory")
    with unpacking() as opened:
        paths = [opened(path) for path in request.record]
        records = [one for path in paths for one in open_ours(path)]
        model = model_of(records, asked_with(records, request), beside=paths)
    if request.html is not None:
        write_page(model, request.html)
    if request.summary is not None:
        write_atomically(request.summary, render_summary(model).encode())
    if request.charts is not None:
        from rtscope.report.charts.drawings import write_charts

        request.charts.mkdir(parents=True, exist_ok=True)
        write_charts(model.charts, request.charts)
    form = Format.JSON if request.json else request.format
    more = More(shlex.join(typed_words()), _page_of(request))
    print_report(model, form, detail=detail, more=more)
    return model.exit_status


def _page_of(request: ReportRequest) -> str:
    """Return the page of this report, or the one that the run wrote beside it."""
    if request.html is None and len(request.record) == 1:
        beside = request.record[0] / PAGE
        return str(beside) if beside.is_file() else ""
    return str(request.html or "")


# --- also for a run ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """
    The deadline and claim to test; without a deadline there is no verdict.

    Read from a record as from a campaign file, whose other keys it does not need.
    """

    deadline_ns: Annotated[values.Deadline | None, Field(alias="deadline")] = None
    claim: values.Claim | None = None
    """As (misses, ns)."""
    min_boots: values.Times = 1


_QUESTION = TypeAdapter(Question)


def asked_by(campaign: Campaign) -> Question:
    """Return the question that the campaign asks."""
    return Question(campaign.deadline_ns, campaign.claim, campaign.min_boots)


def asked_with(records: Sequence[RunRecord], request: ReportRequest) -> Question:
    """Return the question of the options, else of the records."""
    asked = records[0].campaign.get("campaign", {}) if records else {}
    try:
        before = _QUESTION.validate_python(asked)
    except ValidationError as error:
        mistake = first_mistake(error)
        raise UsageError(f"the record: [campaign] {mistake}") from error
    deadline_ns = before.deadline_ns
    if request.deadline:
        deadline_ns = parse_duration(request.deadline)
    if request.claim and deadline_ns is None:
        raise UsageError("--claim needs a deadline: add --deadline 200us")
    return Question(
        deadline_ns,
        parse_claim(request.claim) if request.claim else before.claim,
        request.min_boots or before.min_boots,
    )


def model_of(
    records: Sequence[RunRecord], question: Question, *, beside: Sequence[Path] = ()
) -> Model:
    """Build the report that answers the question; explanations lie `beside`."""
    explained = find_explained(beside, records, log=log)
    return build_model(
        records,
        deadline_ns=question.deadline_ns,
        claim=Claim(*question.claim) if question.claim else None,
        min_boots=question.min_boots,
        explained=explained,
    )


def print_report(told: Told, form: Format, *, detail: Detail, more: More) -> None:
    """Print a report or comparison on standard output; `detail` is for a terminal."""
    match form:
        case Format.TABLE:
            with stdout_console() as console:
                print_result(told, console, detail=detail, more=more)
        case Format.MARKDOWN:
            put(render_markdown(told))
        case Format.CSV:
            assert isinstance(told, Model)
            put(render_csv(told))
        case Format.JSON:
            put(render_json(told))


def write_page(told: Told, path: Path) -> None:
    """Write the page of a report; RecordError if it cannot be written."""
    write_atomically(path, render_html(told).encode())
