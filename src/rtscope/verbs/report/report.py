"""Report records: on the terminal, as a page, as data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.foreign import open_ours
from rtscope.cli.options import ReportDisplayOptions
from rtscope.cli.results import (
    PAGE,
    Format,
    JsonFormat,
    format_of,
    model_of,
    print_report,
    question_of,
    write_page,
)
from rtscope.host.errors import UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.present.documents.results import render_summary
from rtscope.record.pack import unpacking
from rtscope.stats.utility import parse_utility


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The arguments and options of `rtscope report`."""

    record: Annotated[list[Path], typer.Argument()]
    """Result directories of rtscope run, e.g. results, or archives of rtscope pack."""
    html: Path | None = None
    """HTML page to write, e.g. report.html."""
    format: Format = Format.TABLE
    """Format of the report (default: table)."""
    json: JsonFormat = False
    display: ReportDisplayOptions
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
    soft: str | None = None
    """
    Soft or firm deadline, as a value from 1 to 0 over the latency, whose average over
    all wake-ups is shown, e.g. 200us:1,500us:0.
    """
    min_boots: Annotated[int | None, typer.Option(min=1)] = None
    """
    Minimum number of boots behind a claim (default: that of the record), e.g. 3.
    """


def report(request: ReportRequest) -> int:
    """Report records: on the terminal, as a page, as data."""
    detail, page = request.display.detail, _page_of(request)
    form = format_of(request.format, json=request.json)
    for path in (request.html, request.summary):
        if path is not None:
            refuse_unwritable(path)
    utility = None if request.soft is None else parse_utility(request.soft)
    charts = request.charts
    if charts is not None and charts.exists() and not charts.is_dir():
        raise UsageError(f"--charts {charts}: a file; name a directory")
    with unpacking() as opened:
        paths = [opened(path) for path in request.record]
        records = [one for path in paths for one in open_ours(path)]
        question = question_of(
            records,
            deadline=request.deadline,
            claim=request.claim,
            min_boots=request.min_boots,
        )
        model = model_of(records, question, paths=paths, utility=utility)
    if request.html is not None:
        write_page(model, request.html)
    if request.summary is not None:
        write_atomically(request.summary, render_summary(model).encode())
    if request.charts is not None:
        from rtscope.present.charts.drawings import files_of

        request.charts.mkdir(parents=True, exist_ok=True)
        for name, content in files_of(model.charts):
            write_atomically(request.charts / name, content)
    print_report(model, form, detail=detail, page=page)
    return model.exit_status


def _page_of(request: ReportRequest) -> str:
    """Return the page of this report, or the one that the run wrote beside it."""
    if request.html is None and len(request.record) == 1:
        page = request.record[0] / PAGE
        return str(page) if page.is_file() else ""
    return str(request.html or "")
