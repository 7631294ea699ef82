"""The pages of reports, comparisons and explanations, from their templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtscope.explain.bound import bound_rows, sentence_of_tail
from rtscope.explain.model import TITLES
from rtscope.explain.runs import (
    NO_PROOF,
    ExplainedRun,
    bound_sentence,
    merged_causes,
    opening_rows,
    title_of,
    unit_of,
)
from rtscope.explain.timeline import Timeline
from rtscope.explain.words import where
from rtscope.host.escape import all_printable
from rtscope.host.units import plural
from rtscope.host.version import __version__
from rtscope.present.charts.bars import colour_of, path_bar, tail_bars
from rtscope.present.charts.flame import flame_chart, note_of_timeline
from rtscope.present.charts.wakeups import note_of_wakeups, wakeups_chart
from rtscope.present.documents.results import Result
from rtscope.present.model.build import Model
from rtscope.present.model.comparison import ComparisonReport
from rtscope.present.model.published_comparison import PublishedComparison
from rtscope.present.render.page import render_page
from rtscope.present.words import duration, enumeration
from rtscope.record.published import KernelKind

_CHARTS: Mapping[str, Callable[..., str]] = {
    "tail_bars": tail_bars,
    "path_bar": path_bar,
    "flame_chart": flame_chart,
}
_WORDS: Mapping[str, Any] = {
    "tail_sentence": sentence_of_tail,
    "timeline_note": note_of_timeline,
    "colour": colour_of,
    "where": where,
    "part_titles": TITLES,
    "bound_sentence": bound_sentence,
    "bound_rows": bound_rows,
    "title_of": title_of,
    "no_proof": NO_PROOF,
}
"""What the page of explanations alone says."""


def render_html(result: Result) -> str:
    """Return the page; the same model gives the same bytes."""
    match result:
        case Model():
            return render_page(
                "present/page.html",
                charts={"tail_bars": tail_bars, "wakeups_chart": wakeups_chart},
                wakeups_note=note_of_wakeups,
                model=result,
                span=_span(result),
                tail_sentence=sentence_of_tail,
            )
        case ComparisonReport():
            return render_page("present/compare.html", comparison=result)
        case PublishedComparison():
            return render_page(
                "present/published.html", comparison=result, kinds=tuple(KernelKind)
            )


def render_explanations(
    runs: Sequence[ExplainedRun],
    *,
    worst: int,
    timelines: Sequence[Sequence[Timeline]] = (),
) -> str:
    """
    Return the page with `worst` wake-ups of each run; same runs, same bytes.

    `timelines` are of the worst wake-ups of each run, as far as they were recorded.
    """
    causes, _ = merged_causes(runs)
    boards = enumeration(list(dict.fromkeys(run.board for run in runs)))
    places = enumeration(list(dict.fromkeys(run.place for run in runs)))
    unit = unit_of(runs)
    return render_page(
        "present/explain.html",
        charts=_CHARTS,
        **_WORDS,
        about=f"Virtual board {boards}; all times are virtual time."
        if unit
        else f"Measured on {places}.",
        unit=unit,
        runs=runs,
        worst=worst,
        timelines=all_printable(tuple(map(tuple, timelines))) or ((),) * len(runs),
        causes=causes,
        opening=opening_rows(runs),
        source="recorded paths" if unit else "recorded events",
        made_by=f"rtscope {__version__}",
    )


def _span(model: Model) -> str:
    spans = dict.fromkeys(
        f"{duration(row.observed_ns)} on {plural(row.cpus, 'CPU')}, "
        + ("one run" if row.runs == 1 else f"{row.runs} runs merged")
        for row in model.rows
    )
    return f"Each row: {' or '.join(spans)}."
