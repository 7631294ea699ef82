"""Compare records: machines, kernels or settings, run by run."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import put, stdout_console
from rtscope.errors import UsageError
from rtscope.files import write_atomically
from rtscope.published import get_published
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import open_records
from rtscope.report.formats.comparepage import render_comparison_page
from rtscope.report.formats.comparetext import print_comparison
from rtscope.report.formats.jsonfile import render_comparison_json
from rtscope.report.formats.pairmarkdown import render_comparison_markdown
from rtscope.report.formats.publishedforms import (
    render_beside_json,
    render_beside_markdown,
    render_beside_page,
)
from rtscope.report.formats.publishedtext import print_beside
from rtscope.report.model.comparison import (
    Comparison,
    build_comparison,
    split_by_kernel,
)
from rtscope.report.model.published import Beside, set_beside
from rtscope.units import parse_duration

INVALID = 3
"""Exit status: equal inputs gave different results, so there is nothing to compare."""


class Shape(StrEnum):
    """How a comparison is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def compare(
    record: Annotated[
        list[str],
        typer.Argument(
            help="Two or more: DIR, or LABEL=DIR; the same LABEL puts runs together. "
            "One is enough if it has several kernels, or with --published."
        ),
    ],
    *,
    published: Annotated[
        str | None,
        typer.Option(
            help="Set this published table beside them; a wrong name lists all."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the page here.")] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Compare the misses of this too: 200us.")
    ] = None,
    format: Annotated[Shape, typer.Option(help="What to print.")] = Shape.TABLE,
    json: Annotated[
        bool, typer.Option("--json", help="The same as --format json.")
    ] = False,
) -> int:
    """Compare records: machines, kernels or settings, run by run."""
    shape = Shape.JSON if json else format
    table = None if published is None else get_published(published)
    sets = _sets(record)
    if table is not None:
        if deadline is not None:
            raise UsageError(
                "--deadline with --published: a published maximum tells of no misses; "
                "leave one of them out"
            )
        records = [one for runs in sets.values() for one in runs]
        return _beside(set_beside(records, table), html, shape)
    comparison = build_comparison(
        split_by_kernel(sets),
        deadline_ns=parse_duration(deadline) if deadline else None,
    )
    return _compared(comparison, html, shape)


def _sets(words: list[str]) -> dict[str, list[RunRecord]]:
    sets: dict[str, list[RunRecord]] = {}
    for word in words:
        label, path, given = _labelled(word)
        if label in sets and not given:
            raise UsageError(f"two records are called {label!a}; write NAME=DIR")
        # A label given more than once: runs of one thing, taken in turns or over boots.
        sets.setdefault(label, []).extend(open_records(path))
    return sets


def _compared(comparison: Comparison, html: Path | None, shape: Shape) -> int:
    if html is not None:
        write_atomically(html, render_comparison_page(comparison).encode())
    match shape:
        case Shape.JSON:
            put(render_comparison_json(comparison))
        case Shape.MARKDOWN:
            put(render_comparison_markdown(comparison))
        case Shape.TABLE:
            with stdout_console() as console:
                print_comparison(comparison, console, page=str(html) if html else None)
    return INVALID if comparison.not_deterministic else 0


def _beside(beside: Beside, html: Path | None, shape: Shape) -> int:
    if html is not None:
        write_atomically(html, render_beside_page(beside).encode())
    match shape:
        case Shape.JSON:
            put(render_beside_json(beside))
        case Shape.MARKDOWN:
            put(render_beside_markdown(beside))
        case Shape.TABLE:
            with stdout_console() as console:
                print_beside(beside, console, page=str(html) if html else None)
    return 0


def _labelled(word: str) -> tuple[str, Path, bool]:
    label, equals, path = word.partition("=")
    if equals and label and path and not Path(word).exists():
        return label, Path(path), True
    return Path(word).resolve().name, Path(word), False
