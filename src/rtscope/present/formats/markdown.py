"""Reports and comparisons as Markdown, for a wiki or a merge request: no charts."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rtscope.host.escape import for_markdown
from rtscope.host.units import format_us
from rtscope.present import tables
from rtscope.present.model.build import Model
from rtscope.present.model.comparison import ComparisonReport
from rtscope.present.model.published_comparison import PublishedComparison
from rtscope.present.model.rows import Row
from rtscope.present.words import NOTHING, as_sentence, capital, ratio
from rtscope.record.caveats.catalogue import Effect


def render_markdown(document: Model | ComparisonReport | PublishedComparison) -> str:
    """Return it as CommonMark with tables, one sentence a line."""
    match document:
        case Model():
            return _template("report.md").render(model=document)
        case ComparisonReport():
            return _template("compare.md").render(comparison=document)
        case PublishedComparison():
            return _template("published.md").render(comparison=document)


def render_summary(model: Model) -> str:
    """Return what a merge request shows: verdict, table, and each grave caveat."""
    grave = [one for one in model.caveats if one.effect is not Effect.NOTE]
    return _template("summary.md").render(
        model=model, grave=grave, notes=len(model.caveats) - len(grave)
    )


@cache
def _template(name: str) -> Template:
    """Return a template; all that it does not say itself is escaped in it."""
    made = Environment(
        loader=PackageLoader("rtscope.present", "."),
        autoescape=False,  # that is for HTML: `finalize` escapes
        finalize=lambda v: v if isinstance(v, Markup) else for_markdown(str(v)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(tables=tables, cell=_cell, nothing=NOTHING)
    made.filters.update(capital=capital, as_sentence=as_sentence)
    made.filters.update(ratio=ratio, us=format_us, raw=Markup)
    return made.get_template(name)


def _cell(figure: tables.Figure, row: Row, *, zero: bool = False) -> Markup:
    text = figure.text(row, zero=zero)
    strong = figure.strong and row.summary is not None
    return Markup(f"**{text}**" if strong else text)
