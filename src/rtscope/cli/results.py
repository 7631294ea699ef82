"""Results on the command line: the question put to records, their report, its page."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field, TypeAdapter, ValidationError

from rtscope.cli.console import log, put, stdout_console, typed_words
from rtscope.host.errors import UsageError
from rtscope.host.files import first_mistake, write_atomically
from rtscope.host.units import parse_claim, parse_duration
from rtscope.measure.campaign import values
from rtscope.present.document import Detail
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import Result, print_result, render_markdown
from rtscope.present.documents.shared import More
from rtscope.present.formats.data import render_csv, render_json
from rtscope.present.model.build import Model, build_model
from rtscope.record.explanation import find_explained
from rtscope.record.model import RunRecord
from rtscope.record.samples import find_samples
from rtscope.stats.evidence import Claim
from rtscope.stats.utility import Utility

if TYPE_CHECKING:
    from rtscope.measure.campaign.model import Campaign

PAGE = "report.html"
"""The page that a run writes beside its records."""


class Format(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


JsonFormat = Annotated[
    bool, typer.Option("--json", help="Result as JSON, short for --format json.")
]


def format_of(named: Format, *, json: bool) -> Format:
    """Return the format that --format or --json names; UsageError if they differ."""
    if json and named not in (Format.TABLE, Format.JSON):
        raise UsageError(
            f"--json is short for --format json: leave it or --format {named} out"
        )
    return Format.JSON if json else named


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


def question_in(campaign: "Campaign") -> Question:
    """Return the question that the campaign asks."""
    return Question(campaign.deadline_ns, campaign.claim, campaign.min_boots)


def question_of(
    records: Sequence[RunRecord],
    *,
    deadline: str | None = None,
    claim: str | None = None,
    min_boots: int | None = None,
) -> Question:
    """Return the question of these options, else of the records."""
    table = records[0].campaign.get("campaign", {}) if records else {}
    try:
        before = _QUESTION.validate_python(table)
    except ValidationError as error:
        mistake = first_mistake(error)
        raise UsageError(f"the record: [campaign] {mistake}") from error
    deadline_ns = parse_duration(deadline) if deadline else before.deadline_ns
    if claim and deadline_ns is None:
        raise UsageError("--claim needs a deadline: add --deadline 200us")
    return Question(
        deadline_ns,
        parse_claim(claim) if claim else before.claim,
        min_boots or before.min_boots,
    )


def model_of(
    records: Sequence[RunRecord],
    question: Question,
    *,
    paths: Sequence[Path] = (),
    utility: Utility | None = None,
) -> Model:
    """Build the report that answers the question; explanations lie below `paths`."""
    explained = find_explained(paths, records, log=log)
    return build_model(
        records,
        deadline_ns=question.deadline_ns,
        claim=Claim(*question.claim) if question.claim else None,
        min_boots=question.min_boots,
        explained=explained,
        samples=find_samples(paths, records, log=log),
        utility=utility,
    )


def print_report(
    document: Result,
    form: Format,
    *,
    detail: Detail,
    page: str = "",
    again: str = "",
) -> None:
    """
    Print a report or comparison on standard output; `detail` is for a terminal.

    `page` is its page if there is one, `again` the command that prints it again if that
    is not the one that was typed.
    """
    match form:
        case Format.TABLE:
            more = More(again or shlex.join(typed_words()), page)
            with stdout_console() as console:
                print_result(document, console, detail=detail, more=more)
        case Format.MARKDOWN:
            put(render_markdown(document))
        case Format.CSV:
            assert isinstance(document, Model)
            put(render_csv(document))
        case Format.JSON:
            put(render_json(document))


def write_page(document: Result, path: Path) -> None:
    """Write the page of a report; RecordError if it cannot be written."""
    write_atomically(path, render_html(document).encode())
