"""The result of a sweep of remedies: what each does against the cause of each load."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rtscope.report.escape import printable
from rtscope.report.formats.checks import lines_of_checks
from rtscope.report.formats.fitted import Room
from rtscope.report.formats.sweep import (
    interval_of,
    lines_of_limits,
    sweep_data,
    value_of,
)
from rtscope.report.words import plural
from rtscope.sweep.effects import Effect
from rtscope.sweep.file import Diagnosis
from rtscope.sweep.remedies import AXIS
from rtscope.sweep.result import SweepResult
from rtscope.units import format_us

WORST, AVERAGE = "worst", "average"


def remedies_answer(result: SweepResult, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the answer in a sentence: the best remedy of the load that is latest."""
    treated = [one for one in diagnoses if one.remedies]
    if not treated:
        causes = dict.fromkeys(one.cause or one.why for one in diagnoses)
        return f"no remedy is known: {'; '.join(map(printable, causes))}"
    first = treated[0]
    tested = effects_on(result, first, WORST)
    head = f"{printable(first.load)}, late by {printable(first.cause)}"
    if not tested:
        return f"{head}: no remedy was measured"
    best = min(tested, key=lambda one: one.ratio)
    name = printable(remedy_of(best))
    if best.ratio >= 1:
        return f"{head}: none of {plural(len(tested), 'remedy')} lowers the worst"
    doubt = "" if best.found else f", not shown by {plural(best.pairs, 'seed')}"
    return f"{head}: {name} lowers the worst to {best.ratio:.3g} times{doubt}"


def effects_on(
    result: SweepResult, diagnosis: Diagnosis, figure: str
) -> tuple[Effect, ...]:
    """Return what the remedies of a load do to a figure, the most helpful first."""
    found = [
        one
        for one in result.effects
        if one.figure == figure
        and one.key[0] == diagnosis.load
        and remedy_of(one) in diagnosis.remedies
        and _is_of(one, diagnosis)
    ]
    return tuple(sorted(found, key=lambda one: one.ratio))


def _is_of(effect: Effect, diagnosis: Diagnosis) -> bool:
    """Whether the base of an effect is the kernel of a diagnosis."""
    return effect.key[1] == diagnosis.kernel


def remedy_of(effect: Effect) -> str:
    """Return the name of the remedy that an effect is of."""
    return effect.cell.removeprefix(f"{AXIS}: ")


def compose_remedies(
    result: SweepResult, diagnoses: Sequence[Diagnosis], *, more: str
) -> Any:
    """Return what composes the short form for `print_fitted`."""

    def compose(room: Room) -> Iterator[RenderableType]:
        yield Text(remedies_answer(result, diagnoses), style="bold")
        if result.missing:
            text = f"{plural(result.missing, 'planned run')} without a result"
            yield Text(f"LIMIT: {text}", style="yellow")
        yield from lines_of_limits(result)
        yield ""
        left = room.rows
        for one in diagnoses:
            if left <= 0:
                yield Text("…")
                break
            yield Text(cause_line(one))
            rows = effects_on(result, one, WORST)[: max(left - 1, 0)]
            if rows:
                yield _table(result, one, rows)
            left -= 2 + len(rows)
        yield ""
        if room.sentences > 1:
            yield Text(
                "Ratios to the original of the same seeds; * is found by an exact "
                "test, all others may be chance."
            )
        yield from lines_of_checks(result.checks)
        yield Text(more, no_wrap=True)

    return compose


def cause_line(one: Diagnosis) -> str:
    """Return a line on the cause of a load, and why nothing is tried against it."""
    head = f"{printable(one.load)} on {printable(one.kernel)}"
    worst = f"{format_us(one.worst_ns)} µs"
    cause = f": {printable(one.cause)}" if one.cause else ""
    return f"{head}, {worst}{cause}{f'; {one.why}' if one.why else ''}"


def _table(
    result: SweepResult, diagnosis: Diagnosis, effects: Sequence[Effect]
) -> Table:
    averages = {remedy_of(one): one for one in effects_on(result, diagnosis, AVERAGE)}
    table = Table(box=None, pad_edge=False)
    for n, heading in enumerate(
        ("  remedy", "worst", "with it", "ratio", "95 %", "average")
    ):
        table.add_column(heading, justify="right" if n else "left", no_wrap=True)
    for one in effects:
        name = remedy_of(one)
        style = "red" if one.ratio > 1 else "green"
        average = averages.get(name)
        table.add_row(
            f"  {printable(name)}",
            value_of(one.base, WORST),
            value_of(one.changed, WORST),
            Text(f"{one.ratio:.3g}{'*' if one.found else ''}", style=style),
            interval_of(one),
            f"{average.ratio:.3g}{'*' if average.found else ''}" if average else "",
        )
    return table


def remedies_data(
    result: SweepResult, diagnoses: Sequence[Diagnosis]
) -> Mapping[str, Any]:
    """Return the result as plain values; latencies in ns."""
    return {
        **sweep_data(result),
        "answer": remedies_answer(result, diagnoses),
        "diagnoses": [asdict(one) for one in diagnoses],
    }
