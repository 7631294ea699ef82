"""A demonstration as one page: its timelines, and what had to happen."""

from collections.abc import Iterator
from html import escape

from rtscope.host.escape import printable
from rtscope.host.units import NS_PER_MS
from rtscope.host.version import __version__
from rtscope.present.charts.bars import tick_step
from rtscope.present.render.page import render_page, style_sheet
from rtscope.verbs.demo.model import CaseResult, Judged, Lane, Span, State
from rtscope.verbs.demo.text import chars_of


def render_demo(judgement: Judged) -> str:
    """Return the page."""
    begin = judgement.results[0].begin
    return render_page(
        "verbs/demo/demo.html",
        charts={"lanes_chart": lanes_chart},
        demo_css=style_sheet("verbs/demo/demo.css"),
        name=judgement.demo.scenario.value,
        title=judgement.demo.title,
        about=judgement.demo.about,
        where=printable(
            f"{judgement.target}, Linux {begin.kernel} ({begin.arch}), CPU {begin.cpu}"
        ),
        held=judgement.held,
        failed=sum(not one.held for one in judgement.checks),
        checks=[
            {"says": one.says, "held": one.held, "seen": printable(one.seen, limit=400)}
            for one in judgement.checks
        ],
        notes=[printable(note, limit=400) for note in judgement.notes],
        cases=[
            {
                "title": one.case.title,
                "result": one,
                "chars": chars_of(one),
                "threads": one.lanes,
            }
            for one in judgement.results
        ],
        digest=judgement.digest,
        made_by=f"rtscope {__version__}",
    )


# --- a timeline: a lane for each thread ---------------------------------------------

# Boxes like those of `flame`, and its style sheet.

_TICKS = 6
_NARROW = 0.0004
"""Of the width: what is narrower than this is joined to what is next to it."""


def lanes_chart(one: CaseResult) -> str:
    """Return the markup."""
    rows = "".join(
        f'<div class="row" style="--rows:1"><b>{_title(lane)}</b>'
        f"{''.join(_boxes(lane, number, one.end_ns))}</div>"
        for number, lane in enumerate(one.lanes)
    )
    return (
        f'<div class="flame lanes"><div class="scroll" tabindex="0" role="region" '
        f'aria-label="Timeline of {escape(one.case.title)} in ms"><div class="wide">'
        f'{rows}<div class="row ticks">{"".join(_ticks(one.end_ns))}</div>'
        "</div></div></div>"
    )


def _title(lane: Lane) -> str:
    priority = f" {lane.got.priority}" if lane.got.priority else ""
    return escape(f"{lane.name} ({lane.got.policy}{priority})")


def _boxes(lane: Lane, number: int, end_ns: int) -> Iterator[str]:
    for span in _joined(lane.spans, int(end_ns * _NARROW)):
        if span.state is State.ASLEEP:
            continue
        kind = f"lane{number}" if span.state is State.RUNNING else span.state.value
        yield (
            f'<i class="{kind}" style="left:{_percent(span.from_ns, end_ns)};width:'
            f'{_percent(span.length_ns, end_ns)}" title="{escape(lane.name)} '
            f"{span.state.value} {span.length_ns / NS_PER_MS:,.3f} ms from "
            f'{span.from_ns / NS_PER_MS:,.3f} ms on"></i>'
        )


def _joined(spans: tuple[Span, ...], narrow_ns: int) -> Iterator[Span]:
    """Join a span to the one before it over one that is too narrow to be seen."""
    kept: list[Span] = []
    for span in spans:
        if span.length_ns < narrow_ns:
            continue
        if kept and kept[-1].state is span.state:
            kept[-1] = Span(kept[-1].from_ns, span.to_ns, span.state)
        else:
            kept.append(span)
    yield from kept


def _ticks(end_ns: int) -> Iterator[str]:
    for at_ns in range(0, end_ns, tick_step(end_ns, most=_TICKS)):
        word = f"{at_ns / NS_PER_MS:,g}" + ("" if at_ns else " ms")
        yield f'<span style="left:{_percent(at_ns, end_ns)}">{word}</span>'


def _percent(part_ns: int, whole_ns: int) -> str:
    return f"{100 * part_ns / whole_ns:.3f}".rstrip("0").rstrip(".") + "%"
