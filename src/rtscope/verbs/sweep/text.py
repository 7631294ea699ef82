"""The result of a sweep: a short answer, a page, and data."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any
from urllib.parse import quote

from rtscope.host.escape import all_printable, printable
from rtscope.host.units import count, format_us, plural
from rtscope.host.version import __version__
from rtscope.present.document import Block, Column, Span, Table, Weight, Words
from rtscope.present.render.fitted import COLUMNS, FEWEST_ROWS, Compose, Room
from rtscope.present.render.page import render_page
from rtscope.present.words import NOTHING
from rtscope.stats.comparison.design import LEAST_PAIRS
from rtscope.verbs.sweep.design import Key, label_of
from rtscope.verbs.sweep.doubts import Doubt, lines_of_checks
from rtscope.verbs.sweep.effects import FIGURES, CellEffect
from rtscope.verbs.sweep.file import Diagnosis
from rtscope.verbs.sweep.result import Known, SweepResult, WorstRun

# --- the worst runs -------------------------------------------------------------------

IN_WORDS: Mapping[Known, str] = {
    Known.NO_CAUSE: "no dominant cause",
    Known.WITHDRAWN: "explanation withdrawn: it contradicts the recording",
    Known.OTHER: "only another wake-up is explained",
    Known.NOT_EXPLAINED: "not explained yet",
    Known.NOT_RECORDED: "no path recorded",
}


def cause_of(run: WorstRun) -> str:
    """Return the dominant cause, or why none is named."""
    return IN_WORDS.get(run.known, run.cause)


def command_for(run: WorstRun) -> str:
    """Return the command that explains a run, typed in the directory of the sweep."""
    cell = run.directory.partition("/runs/")[0]
    return shlex.join(["rtscope", "explain", cell, "--run", run.run])


def recording_command_for(run: WorstRun) -> str:
    """Return the command that records the paths of a run, typed there too."""
    cell = run.directory.partition("/runs/")[0]
    return shlex.join(["rtscope", "board", "trace", cell, "--run", run.run, "--replay"])


def link_to(file: str) -> str:
    """Return the address of a file, from the page that lies beside `cells`."""
    return quote(file)


def unrecorded(result: SweepResult) -> WorstRun | None:
    """Return the worst run of the top effect, or of all, if no run has a path."""
    runs = result.worst_runs
    if any(run.known is not Known.NOT_RECORDED for run in runs.values()):
        return None
    top = result.top
    of_top = runs.get((top.cell, top.key)) if top else None
    return of_top or max(runs.values(), key=lambda run: run.worst_ns, default=None)


def sentences_on_causes(result: SweepResult) -> Iterator[str]:
    """Yield what made base and cell of the top effect late, or how to learn it."""
    top, runs = result.top, result.worst_runs
    if top is not None:
        both = {
            name: runs.get((name, top.key)) for name in (result.cells[0].name, top.cell)
        }
        causes = [
            f"of {printable(name)} {_in_words(run)}"
            for name, run in both.items()
            if run
        ]
        if any(run and run.explanation for run in both.values()):
            load = printable(result.label(top.key))
            yield f"Worst wake-up under {load} (virtual µs): {'; '.join(causes)}."
    if unrecorded(result) is not None:
        yield "No cause is known: no path was recorded; the page has commands for it."


def _in_words(run: WorstRun) -> str:
    worst = format_us(run.worst_ns)
    if run.known is Known.CAUSE:
        return f"{worst}, {format_us(run.cause_ns)} by {printable(run.cause)}"
    return f"{worst}, {cause_of(run)}"


def anchors_of(result: SweepResult) -> Mapping[tuple[str, Key], str]:
    """Return the name of the row of each worst run, by cell and key."""
    return {
        (cell.name, run.key): f"worst-{number}-{place}"
        for number, cell in enumerate(result.cells)
        for place, run in enumerate(cell.worst_runs)
    }


# --- the result of a sweep: a short answer, a page, and data --------------------------

STRONGEST = math.log(4)
"""Ratios from here on, up or down, have the full shade."""

HEADINGS = ("change", "load", "figure", "base", "changed", "ratio", "95 %")
FIRST_NUMBER = 3
MIB = 1 << 20
BETWEEN, LEAST_NAME = 2, 12
"""Characters between columns, and of a change's name at least."""


def sweep_answer(result: SweepResult) -> str:
    """Return the answer in a sentence."""
    if result.main_effects:
        return _answer(result, result.main_effects, "main effect")
    left_out = next((one for one in result.cells if one.not_counted), None)
    if not result.effects and left_out is not None:
        return f"no effect could be tested: {left_out.not_counted}"
    if not result.effects:
        return "no effect could be tested: no cell has runs of the base's seeds"
    return _answer(result, result.effects, "effect")


def _answer(result: SweepResult, effects: Sequence[CellEffect], what: str) -> str:
    discoveries = [one for one in effects if one.found]
    if all(one.pairs < LEAST_PAIRS for one in effects):
        return (
            f"none of {plural(len(effects), what)} can be found: the test needs "
            f"{LEAST_PAIRS} independent pairs of runs; measure with more seeds"
        )
    head = f"{len(discoveries)} of {plural(len(effects), what)} found"
    top = result.top
    if top is None:
        return f"{head}; none of them on the worst latency"
    word = "raises" if top.ratio > 1 else "lowers"
    than = (
        f"that without it, over {top.pairs_of_cells} pairs of cells"
        if top.pairs_of_cells > 1
        else "the base's"
    )
    return (
        f"{head}; most on the worst latency: {printable(top.cell)} {word} it under "
        f"{printable(result.label(top.key))} to {ratio_of(top.ratio)} times {than}"
    )


def compose_sweep(result: SweepResult, *, more: str) -> Compose:
    """Return what composes the short form for `print_fitted`."""

    def compose(room: Room) -> Iterator[Block]:
        yield (sweep_answer(result), "strong")
        if result.missing:
            text = f"{plural(result.missing, 'planned run')} without a result"
            yield (f"LIMIT: {text}: {_first_failure(result)}", "limit")
        yield from lines_of_limits(result)
        if result.left_out:
            cells = plural(result.left_out, "cell")
            yield f"{cells} left out by --only; add with rtscope sweep --resume"
        yield ""
        rows = room.rows
        if result.main_effects:
            yield from _some(result, result.main_discoveries, rows)
            rows = max(rows - len(result.main_discoveries), 0)
            tested = plural(len(result.effects), "effect")
            yield f"Single cells: {len(result.discoveries)} of {tested} found"
        yield from _some(result, result.discoveries, rows)
        yield ""
        if room.sentences > 1:
            without = "the same cells without" if result.main_effects else "the base"
            yield (
                f"Ratios to {without}, geometric means over pairs of runs; on average "
                "at most 5 % of the effects found are false."
            )
        if room.rows > FEWEST_ROWS:
            yield from sentences_on_causes(result)
        yield from lines_of_checks(result.checks)
        yield Words((more,), fit="whole")

    return compose


def _some(
    result: SweepResult, effects: Sequence[CellEffect], rows: int
) -> Iterator[Block]:
    """Yield a table with room for so many effects, and how many are left."""
    if first := effects[:rows]:
        yield _table(result, first)
    if left := len(effects) - len(first):
        yield f"… and {left} more"


def lines_of_limits(result: SweepResult) -> Iterator[tuple[str, Weight]]:
    """Yield lines on invalid and limited runs."""
    for doubt in result.doubts:
        yield line_of_doubt(doubt, of="cell", out_of="all effects")


def line_of_doubt(doubt: Doubt, *, of: str, out_of: str) -> tuple[str, Weight]:
    """Return a line on a caveat of some runs of cells, or loads."""
    out = "" if doubt.counts else f", left out of {out_of}"
    first, *others = doubt.where
    where = plural(len(doubt.where), of) if others else printable(first)
    said = (
        f"{doubt.weight.upper()}: {plural(doubt.runs, 'run')} of {where}{out}: "
        f"{doubt.message}"
    )
    return (said, "alarm" if doubt.weight == "invalid" else "limit")


def _first_failure(result: SweepResult) -> str:
    failures = (why for cell in result.cells for why in cell.failures)
    return printable(next(failures, "interrupted; rtscope sweep --resume goes on"))


def _table(result: SweepResult, effects: Sequence[CellEffect]) -> Table:
    rows: list[tuple[Span, ...]] = [
        (
            printable(one.cell),
            printable(result.label(one.key)),
            one.figure,
            value_of(one.base, one.figure),
            value_of(one.changed, one.figure),
            (ratio_of(one.ratio), "bad" if one.is_worse else "good"),
            interval_of(one),
        )
        for one in effects
    ]
    # Of a line that is too long, the name of the change is cut.
    widths = [
        max(len(Words((cell,)).plain) for cell in column)
        for column in zip(HEADINGS, *rows, strict=True)
    ]
    room = COLUMNS - sum(width + BETWEEN for width in widths[1:])
    widths[0] = min(widths[0], max(room, LEAST_NAME))
    columns = (
        Column(heading, right=n >= FIRST_NUMBER, width=widths[n])
        for n, heading in enumerate(HEADINGS)
    )
    return Table(tuple(columns), rows)


def value_of(value: float, figure: str) -> str:
    """Write a figure: latencies in µs, rates as they are."""
    return FIGURES[figure].show(value)


def ratio_of(value: float) -> str:
    """Write a ratio with three digits; near 1 with thousandths, which can be found."""
    if 0.9 < value < 1.1:
        return f"{value:.3f}"
    return f"{value:#.3g}" if value < 99.95 else f"{value:,.0f}"


def interval_of(effect: CellEffect) -> str:
    """Write the interval of a ratio."""
    if effect.low is None or effect.high is None:
        return NOTHING
    return f"{ratio_of(effect.low)} to {ratio_of(effect.high)}"


def shade_of(effect: CellEffect) -> str:
    """Return the background of a cell of the heat map, as CSS."""
    strength = min(1.0, abs(math.log(effect.ratio)) / STRONGEST)
    colour = "var(--bad)" if effect.is_worse else "var(--good)"
    return f"background: color-mix(in srgb, {colour} {45 * strength:.0f}%, transparent)"


def sweep_page(
    result: SweepResult, diagnoses: Sequence[Diagnosis] = (), *, answer: str = ""
) -> str:
    """
    Return the page; the same result gives the same bytes.

    Of a sweep of remedies with the causes that they are tried against, and its own
    answer.
    """
    printable_result = all_printable(result)
    labels = _labels(printable_result)
    return render_page(
        "verbs/sweep/sweep.html",
        result=printable_result,
        answer=answer or sweep_answer(result),
        diagnoses=[all_printable(one) for one in diagnoses],
        microseconds=format_us,
        figures={
            name: figure
            for name, figure in FIGURES.items()
            if any(one.figure == name for one in result.effects)
        },
        directories={cell.name: cell.directory for cell in printable_result.cells},
        labels=labels,
        headings=[labels[key] for key in printable_result.keys],
        effects={(e.cell, e.key, e.figure): e for e in printable_result.effects},
        anchors=anchors_of(printable_result),
        known=Known,
        cause=cause_of,
        link=link_to,
        command=command_for,
        recording_command=recording_command_for,
        unrecorded=unrecorded(printable_result),
        value=value_of,
        ratio=ratio_of,
        interval=interval_of,
        shade=shade_of,
        resolution=list(resolution_of(_tested(result))),
        too_few=sum(one.pairs < LEAST_PAIRS for one in _tested(result)),
        costs=columns_of_costs(printable_result),
        made_by=f"rtscope {__version__}",
    )


def _labels(result: SweepResult) -> Mapping[Key, str]:
    """Return the labels of the keys of all effects and runs."""
    keys = sorted({*result.keys, *(key for _, key in result.worst_runs)})
    return {key: label_of(key, keys) for key in keys}


def _tested(result: SweepResult) -> Sequence[CellEffect]:
    return (*result.main_effects, *result.effects)


def resolution_of(effects: Sequence[CellEffect]) -> Iterator[tuple[str, str, str]]:
    """Yield each figure with the ratio that is found with 80 %: median and largest."""
    for figure in FIGURES:
        seen = [
            one.could_have_seen
            for one in effects
            if one.figure == figure and one.could_have_seen is not None
        ]
        if seen:
            yield figure, ratio_of(median(seen)), ratio_of(max(seen))


def columns_of_costs(result: SweepResult) -> Mapping[str, Sequence[str]]:
    """Return what each cell costs besides latency, by headings; no column is empty."""
    costs = [cell.costs for cell in result.cells]
    columns = {
        "image, MiB": [_scaled(one.kernel_bytes, MIB, digits=2) for one in costs],
        "available, MiB": [
            _scaled(one.memory_available_kb, 1024, digits=1) for one in costs
        ],
        "wake-ups/s, idle": [_scaled(one.wakeups_per_s) for one in costs],
    }
    for load in dict.fromkeys(load for one in costs for load in one.instructions):
        columns[f"instructions per operation, {load}"] = [
            count(one.instructions[load]) if load in one.instructions else NOTHING
            for one in costs
        ]
    return {k: values for k, values in columns.items() if {*values} != {NOTHING}}


def _scaled(value: float | None, unit: int = 1, *, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value / unit:.{digits}f}"


def sweep_data(result: SweepResult) -> Mapping[str, Any]:
    """Return the result as plain values; latencies in ns."""
    return {**asdict(result), "answer": sweep_answer(result)}
