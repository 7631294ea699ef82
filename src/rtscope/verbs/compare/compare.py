"""Compare records: machines, kernels or settings, run by run."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.foreign import open_ours
from rtscope.cli.options import ReportDisplayOptions
from rtscope.cli.results import (
    Format,
    JsonFormat,
    format_of,
    print_report,
    write_page,
)
from rtscope.host.errors import UsageError
from rtscope.host.files import refuse_unwritable
from rtscope.host.units import parse_duration
from rtscope.present.documents.results import Result
from rtscope.present.model.comparison import build_comparison, split_by_variant
from rtscope.present.model.published_comparison import compare_with_published
from rtscope.record.model import RunRecord
from rtscope.record.pack import SUFFIX, unpacking
from rtscope.record.published import get_published

INVALID = 3
"""Exit status: equal inputs gave different results, so no comparison is valid."""


class Shape(StrEnum):
    """How a comparison is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """The arguments and options of `rtscope compare`."""

    record: Annotated[list[str], typer.Argument()]
    """
    Result directories, or archives of rtscope pack, as DIR or LABEL=DIR; runs of one
    LABEL belong together. One is enough with several kernels or variants, or with
    --published.
    """
    published: str | None = None
    """
    Published table to compare with, e.g. raspberry-pi-2018; a wrong name lists all.
    """
    html: Path | None = None
    """HTML page to write, e.g. compare.html."""
    deadline: str | None = None
    """Deadline whose misses are compared too, e.g. 200us."""
    format: Shape = Shape.TABLE
    """Format of the comparison (default: table)."""
    json: JsonFormat = False
    display: ReportDisplayOptions


def compare(request: CompareRequest) -> int:
    """Compare records: machines, kernels or settings, run by run."""
    form = format_of(Format(request.format), json=request.json)
    if request.html is not None:
        refuse_unwritable(request.html)
    named = request.published
    table = None if named is None else get_published(named)
    sets = _sets(request.record)
    if table is not None:
        if request.deadline is not None:
            raise UsageError(
                "--deadline with --published: a published maximum has no count of "
                "misses; leave one of them out"
            )
        records = [one for runs in sets.values() for one in runs]
        _write(compare_with_published(records, table), form, request)
        return 0
    deadline = request.deadline
    comparison = build_comparison(
        split_by_variant(sets),
        deadline_ns=parse_duration(deadline) if deadline else None,
    )
    _write(comparison, form, request)
    return INVALID if comparison.not_deterministic else 0


def _sets(words: list[str]) -> dict[str, list[RunRecord]]:
    sets: dict[str, list[RunRecord]] = {}
    with unpacking() as opened:
        for word in words:
            label, path, is_named = _labelled(word)
            if label in sets and not is_named:
                raise UsageError(f"two records are called {label!a}; write NAME=DIR")
            # The same label again: more runs of the same machine, e.g. after another
            # boot.
            sets.setdefault(label, []).extend(open_ours(opened(path)))
    return sets


def _write(document: Result, form: Format, request: CompareRequest) -> None:
    if request.html is not None:
        write_page(document, request.html)
    page = str(request.html or "")
    print_report(document, form, detail=request.display.detail, page=page)


def _labelled(word: str) -> tuple[str, Path, bool]:
    label, equals, path = word.partition("=")
    if equals and label and path and not Path(word).exists():
        return label, Path(path), True
    return Path(word).resolve().name.removesuffix(SUFFIX), Path(word), False
