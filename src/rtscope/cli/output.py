"""Where results go: which format, which file, and how a page is written."""

from enum import StrEnum
from pathlib import Path

from rtscope.cli.console import put, stdout_console
from rtscope.files import write_atomically
from rtscope.report.formats.data import render_csv, render_json
from rtscope.report.formats.html import render_html
from rtscope.report.formats.markdown import render_markdown
from rtscope.report.formats.text import print_text
from rtscope.report.model.build import Model


class Format(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


def print_report(model: Model, form: Format, *, page: Path | None = None) -> None:
    """Print a report on standard output."""
    match form:
        case Format.TABLE:
            with stdout_console() as console:
                print_text(model, console, page=str(page) if page else None)
        case Format.MARKDOWN:
            put(render_markdown(model))
        case Format.CSV:
            put(render_csv(model))
        case Format.JSON:
            put(render_json(model))


def write_page(model: Model, path: Path) -> None:
    """Write the page of a report; RecordError if it cannot be written."""
    write_atomically(path, render_html(model).encode())
