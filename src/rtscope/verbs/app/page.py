"""A page about a running program: findings, cycles, longest cycle."""

from collections.abc import Mapping
from typing import Any

from rtscope.explain.activity import ExplainedWindow
from rtscope.explain.timeline import timeline_of
from rtscope.host.escape import all_printable, printable
from rtscope.host.version import __version__
from rtscope.present.formats.html import render_page
from rtscope.verbs.app.boardlabel import BoardLabel
from rtscope.verbs.app.checktext import (
    disturbance,
    headline,
    kernel_waits,
    stack_words,
)
from rtscope.verbs.app.cycles import SHOWN_PERCENTILES
from rtscope.verbs.app.cycletables import (
    NAMES,
    JudgedCycles,
    caveats,
    cycle_words,
)
from rtscope.verbs.app.model import Examined, finding_kinds
from rtscope.verbs.app.spreads import spread_chart

MAX_STACKS = 8


def render_examined(
    examined: Examined,
    cycles: JudgedCycles,
    longest: Mapping[int, ExplainedWindow],
    *,
    board: BoardLabel | None = None,
) -> str:
    """Return the page; `longest` are the longest cycles by TID, with their events."""
    seen = examined.observation
    kinds = finding_kinds()
    ids = dict.fromkeys(one.id for one in examined.findings)
    return render_page(
        "verbs/app/appcheck.html",
        charts={"spread_chart": spread_chart},
        name=printable(seen.name),
        headline=headline(examined),
        board="" if board is None else printable(board.words, limit=400),
        findings=[
            {
                "id": one.id,
                "title": kinds[one.id].title,
                "weight": one.weight.value,
                "thread": printable(f"{one.tid} {one.thread}") if one.tid else "",
                "count": one.count,
                "rate_per_s": one.rate_per_s,
                "detail": printable(one.detail, limit=400),
            }
            for one in examined.findings
        ],
        kinds=[_kind(examined, id_) for id_ in ids],
        unseen=[all_printable(one) for one in examined.unseen],
        threads=[
            _thread(cycles, tid, longest.get(tid))
            for tid in cycles.names
            if tid in cycles.threads
        ],
        percentiles=SHOWN_PERCENTILES,
        caveats=list(caveats(cycles.end)),
        kernel_waits=[" ".join(lines) for lines in kernel_waits(examined)],
        disturbance=[" ".join(lines) for lines in disturbance(examined)],
        made_by=f"rtscope {__version__}",
    )


def _kind(examined: Examined, id_: str) -> dict[str, Any]:
    kind = finding_kinds()[id_]
    stacks = [
        stack
        for one in examined.findings
        if one.id == id_
        for stack in one.stacks[:MAX_STACKS]
    ]
    return {
        "id": id_,
        "title": kind.title,
        "why": kind.why,
        "remedy": kind.remedy,
        "stacks": [f"{one.times}x {stack_words(one.stack)}" for one in stacks],
    }


def _thread(
    cycles: JudgedCycles, tid: int, longest: ExplainedWindow | None
) -> dict[str, Any]:
    thread = cycles.threads[tid]
    spreads = thread.latency, thread.execution, thread.response
    return {
        "tid": tid,
        "name": printable(cycles.names[tid]),
        "words": cycle_words(thread),
        "spreads": list(zip(NAMES, spreads, strict=True)),
        "longest": None
        if longest is None
        else {
            "words": printable(cycles.longest.get(tid, ""), limit=1000),
            "explanation": all_printable(longest.explanation),
            "timeline": all_printable(timeline_of(longest)),
        },
    }
