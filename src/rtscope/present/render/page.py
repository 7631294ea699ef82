"""
Reports, comparisons and explanations as one self-contained HTML page each.

No script, no network: it opens from disk, on a phone, in print, in the dark. Only the
page of a sweep links to files, those of its runs beside it. Autoescape is on; the only
markup let through is our own SVG and CSS.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rtscope.host.units import count, format_share, format_us, plural
from rtscope.present import tables
from rtscope.present.charts.drawings import svg_of
from rtscope.present.document import Document
from rtscope.present.model.charts import BINS_PER_DECADE
from rtscope.present.model.rows import Row
from rtscope.present.model.wakeparts import parts_section
from rtscope.present.render.blocks import caveat_list, markup_of
from rtscope.present.words import NOTHING, as_sentence, capital, cut, duration, ratio
from rtscope.stats import figures


def render_page(
    template: str,
    *,
    charts: Mapping[str, Callable[..., str]] | None = None,
    **variables: Any,
) -> str:
    """
    Return a page from its template, by its path in the package.

    `charts` are drawings that this page alone has. Text in their markup is ours, or
    escaped there.
    """
    drawn = {name: _ours(draw) for name, draw in (charts or {}).items()}
    return _environment().get_template(template).render(**drawn, **variables)


def page_of(document: Document) -> str:
    """Return a document as a page of its own."""
    body = markup_of(document.blocks)
    return render_page("present/document.html", document=document, body=body)


@cache
def _environment() -> Environment:
    """Return the template engine with the words of the report as its filters."""
    made = Environment(
        loader=PackageLoader("rtscope", "."),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    made.filters.update(_FILTERS)
    made.globals.update(_GLOBALS)
    made.globals["css"] = style_sheet("present/page.css")
    made.globals["explain_css"] = style_sheet("present/explain.css")
    return made


def style_sheet(path: str) -> Markup:
    """Return a style sheet by its path in the package; no foreign text is in it."""
    sheet = resources.files("rtscope").joinpath(path)
    return Markup(sheet.read_text("utf-8"))


def _ours(draw: Callable[..., str]) -> Callable[..., Markup]:
    """Let a drawing through: all text in it is ours, or escaped there."""
    return lambda *args, **named: Markup(draw(*args, **named))


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:,.3f}"


def _parts_of(named: Sequence[tuple[str, Row]]) -> Markup:
    """Return the parts of all wake-ups of these rows; empty if no run has any."""
    section = parts_section(named)
    return markup_of([section] if section else ())


_LOG_LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_FILTERS: Mapping[str, Callable[..., Any]] = {
    "us": format_us,
    "ratio": ratio,
    "count": count,
    "duration": duration,
    "percent": _percent,
    "seconds": _seconds,
    "capital": capital,
    "cut": cut,
    "as_sentence": as_sentence,
    "svg": _ours(svg_of),
}

_GLOBALS: Mapping[str, Any] = {
    "nothing": NOTHING,
    "caveat_list": caveat_list,
    "log_levels": _LOG_LEVELS,
    "bin_width": 10 ** (1 / BINS_PER_DECADE) - 1,
    "plural": plural,
    "tables": tables,
    "figure_table": figures,
    "share": format_share,
    "parts_of": _parts_of,
}
