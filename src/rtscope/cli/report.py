"""Make a report from records: on the terminal, as a page, as data."""

from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli import verdict
from rtscope.cli.output import Format, print_report, write_page
from rtscope.record.resultdir import open_records


def report(
    record: Annotated[
        list[Path], typer.Argument(help="Directories that rtscope run has made.")
    ],
    *,
    html: Annotated[Path | None, typer.Option(help="Write the page here.")] = None,
    format: Annotated[Format, typer.Option(help="What to print.")] = Format.TABLE,
    json: Annotated[
        bool, typer.Option("--json", help="The same as --format json.")
    ] = False,
    charts: Annotated[
        Path | None, typer.Option(help="Write each chart there, as SVG and PNG.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Judge against this: 200us.")
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="What is to be shown: 1/1h.")
    ] = None,
    min_boots: Annotated[
        int | None, typer.Option(min=1, help="Boots that a claim needs.")
    ] = None,
) -> int:
    """Make a report from records: on the terminal, as a page, as data."""
    records = [one for path in record for one in open_records(path)]
    question = verdict.asked_with(
        records, deadline=deadline, claim=claim, min_boots=min_boots
    )
    model = verdict.model_of(records, question, beside=record)
    if html is not None:
        write_page(model, html)
    if charts is not None:
        from rtscope.report.charts.drawings import write_charts

        charts.mkdir(parents=True, exist_ok=True)
        write_charts(model.charts, charts)
    print_report(model, Format.JSON if json else format, page=html)
    return verdict.exit_status(model)
