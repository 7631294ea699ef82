"""Explained wake-ups as one self-contained HTML page, in the style of the report."""

from collections.abc import Sequence

from markupsafe import Markup

from rtscope import __version__
from rtscope.explain.bound import worst_of
from rtscope.explain.causes import differences, paragraph
from rtscope.explain.model import Explanation
from rtscope.explain.words import share
from rtscope.report.charts.pathbar import colour_of, way_picture
from rtscope.report.charts.tailbars import tail_picture
from rtscope.report.escape import printable
from rtscope.report.formats.html import environment, style_sheet
from rtscope.report.model.bounds import NO_PROOF, bound_rows, bound_sentence
from rtscope.report.model.explanations import (
    ExplainedRun,
    doubts_of,
    evidence_of,
    merged_causes,
    parts_of,
    sentence_of,
    unit_of,
    where_of,
)
from rtscope.report.model.tail import Tail, sentence_of_tail
from rtscope.report.words import NOTHING, enumeration

_STYLE = Markup(
    ".key2 { background: var(--c2); } .key3 { background: var(--c3); }\n"
    ".key4 { background: var(--c4); } .key6 { background: var(--c6); }\n"
    ".way, .tail { max-width: 46rem; }\n"
    "th.cause { white-space: normal; overflow-wrap: anywhere; min-width: 11rem; }\n"
    "tr.culprit td, tr.culprit th { font-weight: 700; }\n"
    "ul.evidence { font-size: .9rem; color: var(--muted); }\n"
    "td.wrap { font-size: .82rem; }\n"
)


def render_explanations(runs: Sequence[ExplainedRun], *, worst: int) -> str:
    """Return the page with `worst` wake-ups of each run; same runs, same bytes."""
    causes = merged_causes(runs)
    boards = enumeration(list(dict.fromkeys(run.board for run in runs)))
    places = enumeration(list(dict.fromkeys(run.place for run in runs)))
    unit = unit_of(runs)
    return (
        environment()
        .get_template("explain.html")
        .render(
            title="Why the worst wake-ups were late",
            css=style_sheet() + _STYLE,
            about=f"Virtual board {boards}; all times are virtual time."
            if unit
            else f"Measured on {places}.",
            unit=unit,
            runs=runs,
            worst=worst,
            causes=causes,
            differences=[
                printable(paragraph(one, virtual=unit)) for one in differences(causes)
            ],
            parts=parts_of,
            share=share,
            sentence=sentence_of,
            doubts=doubts_of,
            evidence=evidence_of,
            where=where_of,
            colour=colour_of,
            printable=printable,
            picture=_picture,
            tail_sentence=_tail_sentence,
            tail_picture=_tail_picture,
            bound_sentence=_bound_sentence,
            bound_rows=bound_rows,
            worst_of=worst_of,
            no_proof=NO_PROOF,
            nothing=NOTHING,
            source="recorded paths" if unit else "recorded events",
            made_by=f"rtscope {__version__}",
        )
    )


def _tail_sentence(tail: Tail, unit: str) -> str:
    return sentence_of_tail(tail, virtual=unit)


def _tail_picture(tail: Tail, name: str, unit: str) -> Markup:
    return Markup(tail_picture(tail, name=name, virtual=unit))


def _bound_sentence(run: ExplainedRun) -> str:
    return bound_sentence(run.bounds, run.observed_ns, virtual=run.unit)


def _picture(explanation: Explanation, name: str, unit: str) -> Markup:
    # All text in it is ours or escaped there.
    description = sentence_of(explanation, unit)
    return Markup(
        way_picture(explanation, name=name, description=description, unit=unit)
    )
