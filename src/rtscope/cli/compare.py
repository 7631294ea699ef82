"""Compare records: machines, kernels or settings, run by run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.output import stdout_console
from rtscope.errors import UsageError
from rtscope.record import RunRecord, write_atomically
from rtscope.report.comparepage import render_comparison_page
from rtscope.report.comparetext import print_comparison
from rtscope.report.comparison import build_comparison
from rtscope.report.jsonfile import render_comparison_json
from rtscope.resultdir import open_records
from rtscope.units import parse_duration


def compare(
    record: Annotated[
        list[str],
        typer.Argument(
            help="Two or more: DIR, or LABEL=DIR; the same LABEL puts runs together."
        ),
    ],
    *,
    html: Annotated[Path | None, typer.Option(help="Write the page here.")] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Compare the misses of this too: 200us.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON.")
    ] = False,
) -> int:
    """Compare records: machines, kernels or settings, run by run."""
    sets: dict[str, list[RunRecord]] = {}
    for word in record:
        label, path, given = _labelled(word)
        if label in sets and not given:
            raise UsageError(f"two records are called {label!a}; write NAME=DIR")
        # A label given more than once: runs of one thing, taken in turns or over boots.
        sets.setdefault(label, []).extend(open_records(path))
    comparison = build_comparison(
        sets, deadline_ns=parse_duration(deadline) if deadline else None
    )
    if html is not None:
        write_atomically(html, render_comparison_page(comparison).encode())
    if json:
        sys.stdout.write(render_comparison_json(comparison))
        return 0
    with stdout_console() as console:
        print_comparison(comparison, console, page=str(html) if html else None)
    return 0


def _labelled(word: str) -> tuple[str, Path, bool]:
    label, equals, path = word.partition("=")
    if equals and label and path and not Path(word).exists():
        return label, Path(path), True
    return Path(word).resolve().name, Path(word), False
