"""A report or a comparison in the form that is asked for."""

from collections.abc import Iterator
from itertools import chain

from rich.console import Console

from rtscope.present.document import Block, Detail, Document, Notes, Phrase, Words
from rtscope.present.documents.comparison import brief_comparison, comparison_document
from rtscope.present.documents.published import brief_published, published_document
from rtscope.present.documents.report import (
    brief_report,
    report_answer,
    report_document,
    summary_document,
)
from rtscope.present.documents.shared import WIDE, Form, More, foot, notes_in_lines
from rtscope.present.model.build import Model
from rtscope.present.model.comparison import ComparisonReport
from rtscope.present.model.published_comparison import PublishedComparison
from rtscope.present.render.fitted import Room, print_fitted
from rtscope.present.render.markdown import render_document
from rtscope.present.render.terminal import print_blocks, rendered

Result = Model | ComparisonReport | PublishedComparison
"""What has a text, a page and data."""


def print_result(
    result: Result, console: Console, *, detail: Detail, more: More
) -> None:
    """Print as much of a report or a comparison as is asked for."""
    match detail:
        case Detail.QUIET:
            for part in rendered(_answer(result)):
                console.print(part, soft_wrap=True)
        case Detail.BRIEF:
            print_brief(result, console, more=more)
        case Detail.NOTES:
            head: Block = (result.title, "strong")
            print_blocks((head, "", Notes(result.caveats)), console)
        case Detail.ALL:
            print_text(result, console, page=more.page)


def print_brief(result: Result, console: Console, *, more: More) -> None:
    """Print the short form of a report or a comparison."""

    def compose(room: Room) -> Iterator[Block]:
        yield from _brief(result, room)
        yield from notes_in_lines(result.caveats, more, room)
        yield foot(more)

    print_fitted(compose, console)


def print_text(result: Result, console: Console, *, page: str = "") -> None:
    """Print all of a report or a comparison; `page` is where its page is."""
    document = _document(result, Form.TERMINAL, console.width)
    where = Words((("Charts, details, definitions: ", "strong"), page))
    head: Block = (document.title, "strong")
    end = (where,) if page else ()
    print_blocks(chain((head,), document.blocks, end), console)


def render_markdown(result: Result) -> str:
    """Return it as CommonMark with tables, one sentence a line."""
    return render_document(_document(result, Form.MARKDOWN, WIDE))


def render_summary(model: Model) -> str:
    """Return what a merge request shows: verdict, table, and each grave caveat."""
    return render_document(summary_document(model), level=3)


def _answer(result: Result) -> Phrase:
    return report_answer(result) if isinstance(result, Model) else result.summary


def _brief(result: Result, room: Room) -> Iterator[Block]:
    match result:
        case Model():
            return brief_report(result, room)
        case ComparisonReport():
            return brief_comparison(result, room)
        case PublishedComparison():
            return brief_published(result, room)


def _document(result: Result, form: Form, width: int) -> Document:
    match result:
        case Model():
            return report_document(result, form, width)
        case ComparisonReport():
            return comparison_document(result, form, width)
        case PublishedComparison():
            return published_document(result, form)
