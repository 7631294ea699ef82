"""Reports and comparisons as Markdown, for a wiki or a merge request: no charts."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rtscope.report import tables
from rtscope.report.escape import for_markdown
from rtscope.report.model.build import Model
from rtscope.report.model.comparison import ComparisonReport
from rtscope.report.model.published_comparison import PublishedComparison
from rtscope.report.model.rows import Row
from rtscope.report.words import NOTHING, as_sentence, capital, ratio
from rtscope.units import format_us


def render_markdown(told: Model | ComparisonReport | PublishedComparison) -> str:
    """Return it as CommonMark with tables, one sentence a line."""
    match told:
        case Model():
            return _templates().get_template("report.md").render(model=told)
        case ComparisonReport():
            return _templates().get_template("compare.md").render(comparison=told)
        case PublishedComparison():
            page = _templates().get_template("published.md")
            return page.render(comparison=told, lists=_lists(told))


@cache
def _templates() -> Environment:
    """Return the template engine; it escapes all that a template does not say."""
    made = Environment(
        loader=PackageLoader("rtscope.report", "."),
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
    return made


def _cell(figure: tables.Figure, row: Row, *, zero: bool = False) -> Markup:
    text = figure.text(row, zero=zero)
    strong = figure.strong and row.summary is not None
    return Markup(f"**{text}**" if strong else text)


def _lists(comparison: PublishedComparison) -> list[tuple[str, list[str]]]:
    return [
        ("Load by load", [f"{row.load}: {row.sentence}" for row in comparison.rows]),
        ("Conclusions from each sample", list(comparison.support)),
        ("Differences between the two measurements", list(comparison.differences)),
        ("Inconsistencies in the published table", list(comparison.notes)),
        ("Published but not measured", list(comparison.not_measured)),
        ("Measured but not published", list(comparison.not_published)),
        ("Caveats", [f"{c.label} {c.says}" for c in comparison.caveats]),
    ]
