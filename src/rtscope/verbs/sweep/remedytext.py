"""The result of a sweep of remedies: what each does against the cause of each load."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rtscope.host.escape import printable
from rtscope.host.units import format_us, plural
from rtscope.present.document import Block, Span, Table, line, strong, table, words
from rtscope.present.render.fitted import Compose, Room
from rtscope.record.directory.journal import REMEDY
from rtscope.verbs.sweep.checktext import lines_of_checks
from rtscope.verbs.sweep.effects import Effect
from rtscope.verbs.sweep.file import Diagnosis
from rtscope.verbs.sweep.result import SweepResult
from rtscope.verbs.sweep.text import (
    interval_of,
    lines_of_limits,
    sweep_data,
    value_of,
)

WORST, AVERAGE = "worst", "average"


def remedies_answer(result: SweepResult, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the answer in a sentence: the best remedy of the load that is latest."""
    with_remedies = [one for one in diagnoses if one.remedies]
    if not with_remedies:
        return f"nothing to try: {'; '.join(dict.fromkeys(map(_why, diagnoses)))}"
    first = with_remedies[0]
    tested = effects_on(result, first, WORST)
    head = f"{printable(first.load)}, late by {printable(first.cause)}"
    if not tested:
        whys = [cell.not_counted for cell in result.cells if cell.not_counted]
        return ": ".join((head, "no remedy was measured", *map(printable, whys[:1])))
    best = min(tested, key=lambda one: one.ratio)
    name = printable(remedy_of(best))
    if best.ratio >= 1:
        return f"{head}: none of {plural(len(tested), 'remedy')} lowers the worst"
    doubt = "" if best.found else f", not shown by {plural(best.pairs, 'seed')}"
    return f"{head}: {name} lowers the worst to {best.ratio:.3g} times{doubt}"


def _why(one: Diagnosis) -> str:
    """Return the cause, and why no remedy is tried for it."""
    whys = [f"{name}: {why}" for name, why in one.not_tried.items()] or [one.why]
    return printable(": ".join(filter(None, (one.cause, ", ".join(whys)))))


def effects_on(
    result: SweepResult, diagnosis: Diagnosis, figure: str
) -> tuple[Effect, ...]:
    """Return what the remedies of a load do to a figure, the most helpful first."""
    effects = [
        one
        for one in result.effects
        if one.figure == figure
        and remedy_of(one) in diagnosis.remedies
        and _is_of(one, diagnosis)
    ]
    return tuple(sorted(effects, key=lambda one: one.ratio))


def _is_of(effect: Effect, diagnosis: Diagnosis) -> bool:
    """Whether the base of an effect is the run of a diagnosis, all else equal."""
    if diagnosis.key:
        return effect.key == diagnosis.key
    return effect.key[:2] == (diagnosis.load, diagnosis.kernel)


def remedy_of(effect: Effect) -> str:
    """Return the name of the remedy that an effect is of."""
    return effect.cell.removeprefix(f"{REMEDY}: ")


def compose_remedies(
    result: SweepResult, diagnoses: Sequence[Diagnosis], *, more: str
) -> Compose:
    """Return what composes the short form for `print_fitted`."""

    def compose(room: Room) -> Iterator[Block]:
        yield strong(remedies_answer(result, diagnoses))
        if result.missing:
            text = f"{plural(result.missing, 'planned run')} without a result"
            yield words((f"LIMIT: {text}", "limit"))
        yield from lines_of_limits(result)
        yield ""
        left = room.rows
        for one in diagnoses:
            if left <= 0:
                yield "…"
                break
            lines = lines_of_cause(one)
            yield from lines
            left -= len(lines)
            rows = effects_on(result, one, WORST)[: max(left, 0)]
            if rows:
                yield _table(result, one, rows)
                left -= 1 + len(rows)
        yield ""
        if room.sentences > 1 and result.effects:
            yield (
                "Ratios to the original of the same seeds; * is found by an exact "
                "test, all others may be chance."
            )
        yield from lines_of_checks(result.checks)
        yield line(more)

    return compose


def lines_of_cause(one: Diagnosis) -> list[str]:
    """Return a line on the cause of a load, and one for each remedy not tried."""
    where = f" on {one.kernel}" if one.kernel else ""
    cause = f": {one.cause}" if one.cause else ""
    why = f"; {one.why}" if one.why else ""
    head = f"{one.load}{where}, {format_us(one.worst_ns)} µs{cause}{why}"
    others = (f"  {name}: {reason}" for name, reason in one.not_tried.items())
    return [printable(line) for line in (head, *others)]


def _table(
    result: SweepResult, diagnosis: Diagnosis, effects: Sequence[Effect]
) -> Table:
    averages = {remedy_of(one): one for one in effects_on(result, diagnosis, AVERAGE)}
    rows: list[list[Span]] = []
    for one in effects:
        name = remedy_of(one)
        average = averages.get(name)
        rows.append(
            [
                f"  {printable(name)}",
                value_of(one.base, WORST),
                value_of(one.changed, WORST),
                (_ratio(one), "bad" if one.ratio > 1 else "good"),
                interval_of(one),
                _ratio(average) if average else "",
            ]
        )
    heads = ("worst", "with it", "ratio", "95 %", "average")
    return table(("  remedy",), heads, rows)


def _ratio(effect: Effect) -> str:
    return f"{effect.ratio:.3g}{'*' if effect.found else ''}"


def remedies_data(
    result: SweepResult, diagnoses: Sequence[Diagnosis]
) -> Mapping[str, Any]:
    """Return the result as plain values; latencies in ns."""
    return {
        **sweep_data(result),
        "answer": remedies_answer(result, diagnoses),
        "diagnoses": [asdict(one) for one in diagnoses],
    }
