"""
The report as one self-contained HTML page.

No script, no network, no link to a file: it opens from disk, on a phone, in print,
in the dark. Autoescape is on; the only markup let through is our own SVG and CSS.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rtscope.caveats.catalogue import Effect
from rtscope.report.charts.charts import svg_of
from rtscope.report.charts.tailbars import tail_picture
from rtscope.report.model import seedvariation
from rtscope.report.model.build import Model
from rtscope.report.model.explained import ExplainedBeside
from rtscope.report.model.sections import Section, throughput_words
from rtscope.report.model.series import BINS_PER_DECADE, Chart, Histogram, Timeline
from rtscope.report.model.tail import sentence_of_tail
from rtscope.report.words import (
    NOTHING,
    as_published,
    capital,
    count,
    duration,
    percentile_ns,
    plural,
    ratio,
)
from rtscope.stats.summary import Summary
from rtscope.units import format_us

EFFECT_WORDS: Mapping[Effect, str] = {
    Effect.INVALID: "INVALID",
    Effect.CAP: "CAP",
    Effect.NOTE: "NOTE",
}

COLUMNS = (
    ("max", "max"),
    ("samples", "samples"),
    ("skipped", "skipped"),
    ("caveats", "caveats"),
    ("p99_9", "p99.9"),
    ("p99_999", "p99.999"),
    ("min", "min"),
    ("avg", "avg"),
    ("stdev", "stdev"),
)


def render_html(model: Model) -> str:
    """Return the page; the same model gives the same bytes."""
    template = environment().get_template("page.html")
    return template.render(
        model=model,
        css=style_sheet(),
        columns=COLUMNS,
        effects=EFFECT_WORDS,
        nothing=NOTHING,
        span=_span(model),
        seeds_title=seedvariation.title_of(model.seeds),
        seeds_headings=seedvariation.HEADINGS,
        seeds_explained=seedvariation.EXPLAINED,
        tail_picture=_tail_picture,
        tail_sentence=_tail_sentence,
    )


@cache
def environment() -> Environment:
    """Return the template engine with the words of the report as its filters."""
    made = Environment(
        loader=PackageLoader("rtscope.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    made.filters.update(_FILTERS)
    return made


def style_sheet() -> Markup:
    """Return the page's CSS; it is ours, and so is no foreign text."""
    sheet = resources.files("rtscope.report").joinpath("page.css")
    return Markup(sheet.read_text("utf-8"))


def _tail_picture(one: ExplainedBeside, name: str) -> Markup:
    # All text in it is ours or escaped there.
    assert one.tail is not None
    return Markup(tail_picture(one.tail, name=name, virtual=one.virtual))


def _tail_sentence(one: ExplainedBeside) -> str:
    assert one.tail is not None
    return sentence_of_tail(one.tail, virtual=one.virtual)


def _svg(chart: Chart) -> Markup:
    return Markup(svg_of(chart))


def _percentile(summary: Summary, pct: float) -> str:
    return format_us(percentile_ns(summary, pct))


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:,.3f}"


def _caption(chart: Chart, section: Section) -> str:
    if isinstance(chart.content, Histogram):
        bins = (
            f"Bins are {10 ** (1 / BINS_PER_DECADE) - 1:.1%} wide"
            if chart.content.logarithmic
            else "Bins are equally wide"
        )
        return (
            f"{bins}; counts on a logarithmic axis. Filled: all CPUs together. "
            "The arrow points at the maximum, be it a single sample."
        )
    if isinstance(chart.content, Timeline):
        run = (
            f" Run {section.shown_run}, which has the maximum."
            if section.shown_run
            else ""
        )
        hardware = (
            " Below: the lowest clock frequency of each step"
            if chart.content.ghz
            else ""
        )
        if chart.content.celsius:
            hardware += (" and" if hardware else " Below:") + (
                f" the hottest sensor ({chart.content.sensor})"
            )
        step = plural(chart.content.step_s, "second")
        return (
            f"Each dash is the latest wake-up of one CPU in one step of {step}."
            f"{hardware}{'.' if hardware else ''}{run}"
        )
    return (
        "Share of wake-ups at least as late as x, of all CPUs together. In the shaded "
        f"part, below 3 in {count(chart.samples)}, too few samples tell how rare such "
        "a latency is."
    )


def _span(model: Model) -> str:
    spans = dict.fromkeys(
        f"{duration(row.observed_ns)} on {plural(row.cpus, 'CPU')}, "
        + ("one run" if row.runs == 1 else f"{row.runs} runs merged")
        for row in model.rows
    )
    return f"Each row: {' or '.join(spans)}."


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "us": format_us,
    "ratio": ratio,
    "published": as_published,
    "count": count,
    "duration": duration,
    "percentile": _percentile,
    "percent": _percent,
    "seconds": _seconds,
    "capital": capital,
    "svg": _svg,
    "caption": _caption,
    "throughput": throughput_words,
}
