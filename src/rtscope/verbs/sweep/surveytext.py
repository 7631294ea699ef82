"""The result of a survey: a short answer, a page, and data."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rtscope.host.escape import all_printable, printable
from rtscope.host.units import count, format_us, plural
from rtscope.host.version import __version__
from rtscope.present.document import Block, Span, Table, Words, table
from rtscope.present.render.fitted import Compose, Room, rows_left_out
from rtscope.present.render.page import render_page
from rtscope.present.words import NOTHING
from rtscope.verbs.sweep.doubts import Checks, lines_of_checks
from rtscope.verbs.sweep.ranking import RankedLoad, Ranking, Standing
from rtscope.verbs.sweep.text import line_of_doubt

_CAUSE_CHARACTERS = 38
_LEAST_REM, _BAR_REM = 0.2, 5.0


def survey_answer(ranking: Ranking) -> str:
    """Return the answer in a sentence."""
    if not ranking.kernels or not ranking.ranked(ranking.kernels[0]):
        return "no load could be ranked: none is shown to have run"
    return "; ".join(_of_kernel(ranking, kernel) for kernel in ranking.kernels)


def _of_kernel(ranking: Ranking, kernel: str) -> str:
    ranked = ranking.ranked(kernel)
    if not ranked:
        return f"{printable(kernel)}: no load is shown to have run"
    worst = ranked[0]
    worst_ns = worst.standings[kernel].worst_ns
    above = len(ranking.worse_than_usual(kernel))
    stressors = sum(load.is_stressor for load in ranked)
    compared = (
        f"{above} of {plural(stressors, 'stressor')} above the usual loads"
        if ranking.usual(kernel)
        else "none of the usual loads has a rank"
    )
    return (
        f"{printable(kernel)}: {printable(worst.label)} is worst with "
        f"{format_us(worst_ns)} {unit_of(ranking)}; {compared}"
        f"{_worse_in_part(ranking, kernel, worst_ns)}"
    )


def _worse_in_part(ranking: Ranking, kernel: str, worst_ns: int) -> str:
    """Name the load that was worse than all others, and worked for a time only."""
    for load in ranking.ran_in_part(kernel)[:1]:
        if (part_ns := load.in_part[kernel].worst_ns) > worst_ns:
            return (
                f"; {printable(load.label)}, not shown to have run throughout, reached "
                f"{format_us(part_ns)} {unit_of(ranking)}"
            )
    return ""


def _not_known(usual: Sequence[RankedLoad]) -> str:
    names = ", ".join(load.label for load in usual)
    return (
        "causes that the usual loads miss are not listed: no cause is known of "
        f"{names}."
    )


def unit_of(ranking: Ranking) -> str:
    """Return the unit of latencies."""
    return "virtual µs" if ranking.is_virtual else "µs"


def compose_survey(
    ranking: Ranking, *, missing: int, checks: Checks, more: str
) -> Compose:
    """Return what composes the short form for `print_fitted`."""
    printable_ranking = all_printable(ranking)

    def compose(room: Room) -> Iterator[Block]:
        yield (survey_answer(ranking), "strong")
        if missing:
            text = f"LIMIT: {plural(missing, 'planned run')} without a result"
            yield (text, "limit")
        for doubt in printable_ranking.doubts:
            yield line_of_doubt(doubt, of="load", out_of="the ranking")
        if in_part := sum(bool(load.in_part) for load in printable_ranking.loads):
            yield (
                f"{plural(in_part, 'load')} without a rank: not shown to have run "
                "throughout"
            )
        if failed := len(printable_ranking.failed):
            yield (
                f"{plural(failed, 'load')} did not run on some kernel; the page says "
                "why"
            )
        yield ""
        if printable_ranking.kernels:
            kernel = printable_ranking.kernels[0]
            ranked = printable_ranking.ranked(kernel)
            yield _table(printable_ranking, ranked[: room.rows])
            yield from rows_left_out(len(ranked) - room.rows)
        yield ""
        for kernel in printable_ranking.kernels[: room.sentences]:
            if names := [load.label for load in printable_ranking.fewest(kernel)]:
                yield (
                    f"{kernel}: causes that the usual loads miss: {', '.join(names)}."
                )
            if unknown := printable_ranking.without_cause(kernel):
                yield f"{kernel}: {_not_known(unknown)}"
        yield from lines_of_checks(checks)
        yield Words((more,), fit="whole")

    return compose


def _table(ranking: Ranking, loads: tuple[RankedLoad, ...]) -> Table:
    rows: list[list[Span]] = []
    for load in loads:
        standing = load.standings.get(ranking.kernels[0])
        worst = (worst_of(load, kernel) for kernel in ranking.kernels)
        label: Span = load.label if load.is_stressor else (load.label, "strong")
        rows.append([label, *worst, cause_of(standing)[:_CAUSE_CHARACTERS]])
    return table(("load",), ranking.kernels, rows, last=("cause",))


def worst_of(load: RankedLoad, kernel: str) -> str:
    """Write the worst latency of a load in µs."""
    standing = load.standings.get(kernel)
    return format_us(standing.worst_ns) if standing else NOTHING


def cause_of(standing: Standing | None) -> str:
    """Write what the worst wake-up is explained by."""
    return standing.cause.title if standing and standing.cause else NOTHING


def survey_page(ranking: Ranking, *, name: str, target: str, missing: int) -> str:
    """Return the page; the same result gives the same bytes."""
    printable_ranking = all_printable(ranking)
    return render_page(
        "verbs/sweep/survey.html",
        name=printable(name),
        target=printable(target),
        answer=survey_answer(ranking),
        ranking=printable_ranking,
        missing=missing,
        in_part=[
            (kernel, load)
            for kernel in printable_ranking.kernels
            for load in printable_ranking.ran_in_part(kernel)
        ],
        has_p999=any(
            standing.p999_ns is not None
            for load in printable_ranking.loads
            for standing in load.standings.values()
        ),
        length=_lengths(printable_ranking),
        worst=worst_of,
        cause=cause_of,
        not_known=_not_known,
        us=format_us,
        unit=unit_of(ranking),
        rate=count,
        made_by=f"rtscope {__version__}",
    )


def _lengths(ranking: Ranking) -> Callable[[Standing], float]:
    """Return what gives the length of a bar: the logarithm of the worst latency."""
    logs = [
        math.log(max(standing.worst_ns, 1))
        for load in ranking.loads
        for standing in (*load.standings.values(), *load.in_part.values())
    ]
    low, high = min(logs, default=0.0), max(logs, default=1.0)

    def length(standing: Standing) -> float:
        over = math.log(max(standing.worst_ns, 1)) - low
        return _LEAST_REM + (_BAR_REM * over / (high - low) if high > low else 0.0)

    return length


def survey_data(ranking: Ranking, checks: Checks) -> Mapping[str, Any]:
    """Return the result as plain values; latencies in ns."""
    return {
        "answer": survey_answer(ranking),
        **asdict(ranking),
        "checks": asdict(checks),
        "worse_than_usual": {
            kernel: [load.name for load in ranking.worse_than_usual(kernel)]
            for kernel in ranking.kernels
        },
        "fewest": {
            kernel: [load.name for load in ranking.fewest(kernel)]
            for kernel in ranking.kernels
        },
    }
