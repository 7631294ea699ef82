"""A published table beside ours, for other programs and pages: JSON, Markdown, HTML."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rtscope.published import Kind
from rtscope.report.escape import for_markdown as safe
from rtscope.report.formats.html import EFFECT_WORDS, environment, style_sheet
from rtscope.report.formats.jsonfile import SCHEMA, caveat_object, row_object
from rtscope.report.model.published import Beside, BesideRow
from rtscope.report.words import NOTHING, as_published, capital, ratio
from rtscope.units import format_us


def render_beside_page(beside: Beside) -> str:
    """Return the page; the same tables give the same bytes."""
    return (
        environment()
        .get_template("beside.html")
        .render(
            beside=beside,
            kinds=tuple(Kind),
            css=style_sheet(),
            effects=EFFECT_WORDS,
            nothing=NOTHING,
        )
    )


def render_beside_json(beside: Beside) -> str:
    """Return one JSON object, latencies in ns; ours virtual if `virtual` is true."""
    return json.dumps(_object(beside), indent=2, ensure_ascii=False) + "\n"


def _object(beside: Beside) -> Mapping[str, Any]:
    table = beside.table
    return {
        "schema": SCHEMA,
        "made_by": beside.made_by,
        "title": beside.title,
        "virtual": bool(beside.virtual),
        "published": {
            "name": table.name,
            "source": table.source,
            "machine": table.machine,
            "cpus": table.cpus,
            "command": table.command,
            "interval_ns": table.interval_ns,
            "duration_ns": table.duration_ns,
            "policy": table.policy,
            "priority": table.priority,
            "kernels": {kind: k.release for kind, k in table.kernels.items()},
        },
        "ours": {"machine": beside.machine, "kernels": dict(beside.kernels)},
        "summary": beside.summary,
        "loads": [_load(row) for row in beside.rows],
        "not_measured": list(beside.not_measured),
        "not_published": list(beside.not_published),
        "support": list(beside.support),
        "differences": list(beside.differences),
        "notes": [{"id": n.id, "says": n.says} for n in table.notes],
        "caveats": [caveat_object(caveat) for caveat in beside.caveats],
    }


def _load(row: BesideRow) -> Mapping[str, Any]:
    return {
        "load": row.load,
        "sentence": row.sentence,
        "published": {
            "max_ratio": row.published.ratio,
            **{
                kind.value: {
                    "min_ns": f.min_ns,
                    "avg_ns": f.avg_ns,
                    "stdev_ns": f.stdev_ns,
                    "max_ns": f.max_ns,
                }
                for kind, f in row.published.figures.items()
            },
        },
        "ours": {
            "max_ratio": row.ours.ratio,
            **{kind.value: row_object(mine) for kind, mine in row.ours.rows.items()},
        },
    }


def render_beside_markdown(beside: Beside) -> str:
    """Return CommonMark with one table, one sentence a line."""
    return "\n".join(_lines(beside)) + "\n"


def _lines(beside: Beside) -> Iterator[str]:
    yield f"# {safe(beside.title)}"
    yield ""
    yield f"Published: {safe(beside.table.source)}."
    yield ""
    yield safe(beside.summary)
    yield ""
    yield (
        "| load | | RT min | RT avg | RT max | mainline min | mainline avg | "
        "mainline max | ratio |"
    )
    yield "| --- | --- |" + " ---: |" * 7
    for row in beside.rows:
        yield _line(row, "published", _published(row), row.published.ratio)
        yield _line(row, "ours", _ours(row), row.ours.ratio)
    yield ""
    unit = f"published in µs, ours in {beside.virtual}µs" if beside.virtual else "in µs"
    yield f"Latencies {unit}; the ratio is of the maxima, mainline over PREEMPT_RT."
    yield ""
    for heading, items in (
        ("Load by load", [f"{row.load}: {row.sentence}" for row in beside.rows]),
        ("What each sample supports", beside.support),
        ("What keeps the two apart", beside.differences),
        ("What does not add up in the published table", beside.notes),
        ("Published and not measured", beside.not_measured),
        ("Measured and not published", beside.not_published),
        ("Caveats", [f"{c.effect.upper()} {c.says}" for c in beside.caveats]),
    ):
        yield from _list(heading, items)
    yield safe(f"Made by {beside.made_by}.")


def _line(
    row: BesideRow, side: str, cells: Sequence[str], quotient: float | None
) -> str:
    first = safe(row.load) if side == "published" else ""
    return f"| {' | '.join([first, side, *cells, ratio(quotient)])} |"


def _published(row: BesideRow) -> list[str]:
    found = [row.published.figures.get(kind) for kind in Kind]
    return [
        as_published(value)
        for f in found
        for value in ((f.min_ns, f.avg_ns, f.max_ns) if f else (None,) * 3)
    ]


def _ours(row: BesideRow) -> list[str]:
    rows = [row.ours.rows.get(kind) for kind in Kind]
    summaries = [mine.summary if mine else None for mine in rows]
    return [
        format_us(value)
        for s in summaries
        for value in ((s.min_ns, s.mean_ns, s.max_ns) if s else (None,) * 3)
    ]


def _list(heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"## {heading}"
        yield ""
        yield from (f"* {safe(capital(item))}" for item in items)
        yield ""
