"""
The tables of docs/measured/price-list.md, from results of `rtscope sweep price`.

    rtscope sweep --resume price --json > price.json
    python tools/docs/pricelist.py --brief price.json
    python tools/docs/pricelist.py price.json --cpu-times cpu.json

The page has the brief tables, of ratios; the others have values and intervals, too.
Bold are the effects that the exact test has found, among all of all results: a list in
parts is one family of tests. Parts that were measured in different directories, each
beside the same base, become one result:

    python tools/docs/pricelist.py --join earlier.json price.json > joined.json

No record has the CPU time of a row. In cpu.json it stands by the name of the cell, as
measured while nothing else ran, or for a run under "each run": rows that it does not
name are reckoned from that, and marked as such.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

from prose import row
from rtscope.host.units import count, plural
from rtscope.present.words import NOTHING
from rtscope.stats.comparison.design import FALSE_DISCOVERIES, LEAST_PAIRS
from rtscope.stats.comparison.effect import false_discovered
from rtscope.verbs.sweep.design import Key
from rtscope.verbs.sweep.doubts import Checks, Doubt
from rtscope.verbs.sweep.effects import FIGURES, CellEffect, judged
from rtscope.verbs.sweep.result import CellResult, SweepResult
from rtscope.verbs.sweep.text import (
    columns_of_costs,
    interval_of,
    ratio_of,
    resolution_of,
    sweep_data,
    value_of,
)

Columns = Mapping[str, Sequence[str]]
"""By headings; a row for each cell."""
CpuTimes = Mapping[str, float]
"""Seconds by the name of the cell, and for a run of any other one."""
EACH_RUN = "each run"


def effects_under(result: SweepResult, key: Key, *, brief: bool = False) -> Columns:
    """Return the effects under a load, the base first; brief: its ratios alone."""
    base, *cells = [cell.name for cell in result.cells]
    columns = {"option": [_option(name) for name in (base, *cells)]}
    for figure in FIGURES:
        effects = [result.effect(name, key, figure) for name in cells]
        tested = [one for one in effects if one]
        if not tested:
            continue
        # The base of a cell is that of the seeds that both have.
        whole = max(tested, key=lambda one: one.pairs)
        unit = "" if FIGURES[figure].more_is_better else "us"
        base_value = value_of(whole.base, figure)
        if brief:
            ratios = map(_ratio_alone, effects)
            columns[figure] = [f"{base_value} {unit}".strip(), *ratios]
            continue
        columns[f"{figure}, {unit}" if unit else figure] = [
            base_value,
            *(value_of(one.changed, figure) if one else NOTHING for one in effects),
        ]
        columns[f"ratio of {figure} (95 %)"] = [NOTHING, *map(_ratio, effects)]
    return columns


def sentence_of_resolution(result: SweepResult, key: Key) -> str:
    """Say from which ratio on an effect under a load would have been found."""
    effects = [one for one in result.effects if one.key == key]
    ratios = [
        f"{figure} {mid} ({most})" for figure, mid, most in resolution_of(effects)
    ]
    never = sum(one.pairs < LEAST_PAIRS for one in effects)
    return " ".join(
        (
            f"An effect that is tested alone is found with 80 % from this ratio on, in "
            f"half of the rows (in all): {', '.join(ratios)}."
            if ratios
            else "",
            f"{plural(never, 'effect')} of fewer than six pairs cannot be found."
            if never
            else "",
        )
    ).strip()


def costs(result: SweepResult, cpu_s: CpuTimes | None) -> Columns:
    """Return the costs besides latency, the base first; None: not of measuring them."""
    columns = {
        "option": [_option(cell.name) for cell in result.cells],
        **columns_of_costs(result),
    }
    if cpu_s is None:
        return columns
    return {
        **columns,
        "CPU s": [_cpu_time(cell, cpu_s) for cell in result.cells],
        "wall s": [count(round(cell.host_s)) for cell in result.cells],
    }


def _cpu_time(cell: CellResult, cpu_s: CpuTimes) -> str:
    if cell.name in cpu_s:
        return count(round(cpu_s[cell.name]))
    if EACH_RUN in cpu_s:
        return f"about {count(round(cell.runs * cpu_s[EACH_RUN]))}"
    return NOTHING


def _option(cell: str) -> str:
    axis, _, level = cell.partition(": ")
    return f"`{level}` ({axis})" if level else cell


def _ratio(effect: CellEffect | None) -> str:
    if effect is None or effect.low is None:
        return _ratio_alone(effect)
    text = f"{ratio_of(effect.ratio)} ({interval_of(effect)})"
    return f"**{text}**" if effect.found else text


def _ratio_alone(effect: CellEffect | None) -> str:
    if effect is None:
        return NOTHING
    text = ratio_of(effect.ratio)
    return f"**{text}**" if effect.found else text


def lines_of(columns: Columns) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield row(columns)
    yield "|---|" + "---:|" * (len(columns) - 1)
    yield from map(row, zip(*columns.values(), strict=True))


def judged_together(results: Sequence[SweepResult]) -> Sequence[SweepResult]:
    """Return the results with what is found among the effects of all of them."""
    everything = [effect for result in results for effect in result.effects]
    adjusted = iter(false_discovered([effect.p for effect in everything]))
    return [
        replace(
            result,
            effects=tuple(
                replace(one, found=next(adjusted) <= FALSE_DISCOVERIES)
                for one in result.effects
            ),
        )
        for result in results
    ]


def joined(results: Sequence[SweepResult]) -> SweepResult:
    """
    Return parts of one sweep as one result; ValueError if their bases differ.

    A cell that several parts have is that of the part with most of its runs; of these,
    of the first one.
    """
    first, *others = results
    for other in others:
        if _identity(other) != _identity(first):
            raise ValueError(f"{other.name}: of another board, base or release")
    cells: dict[str, CellResult] = {}
    effects: list[CellEffect] = []
    for result in results:
        new = {cell.name: cell for cell in result.cells if _has_more(cell, cells)}
        cells |= new
        effects = [one for one in effects if one.cell not in new]
        effects += [one for one in result.effects if one.cell in new]
    known = max(len(result.cells) + result.left_out for result in results)
    checks = [result.checks for result in results]
    together = replace(
        first,
        cells=tuple(sorted(cells.values(), key=lambda cell: cell.directory)),
        effects=judged(effects),
        checks=Checks(
            sum(one.planned for one in checks),
            sum(one.equal for one in checks),
            tuple(chain.from_iterable(one.failures for one in checks)),
        ),
        doubts=_doubts_together(results),
        left_out=max(known - len(cells), 0),
    )
    _refuse_other_bases(together)
    return together


def _has_more(cell: CellResult, known: Mapping[str, CellResult]) -> bool:
    return cell.name not in known or cell.runs > known[cell.name].runs


def _identity(result: SweepResult) -> tuple[object, ...]:
    base = result.cells[0]
    return (
        *(result.name, result.board, result.seeds, result.releases),
        *(base.runs, base.costs),
    )


def _refuse_other_bases(result: SweepResult) -> None:
    """Raise ValueError if rows with all runs do not have the same base."""
    bases: dict[tuple[Key, str], float] = {}
    for one in measured_whole(result).effects:
        if bases.setdefault((one.key, one.figure), one.base) != one.base:
            raise ValueError(f"{one.cell}: {one.figure} is beside another base")


def _doubts_together(results: Sequence[SweepResult]) -> tuple[Doubt, ...]:
    """Return the doubts of all; runs that two parts have are counted twice."""
    found: dict[tuple[str, str], Doubt] = {}
    for doubt in chain.from_iterable(result.doubts for result in results):
        kind = doubt.caveat, doubt.message
        before = found.setdefault(kind, doubt)
        if not {*doubt.where} <= {*before.where}:
            where = tuple(dict.fromkeys((*before.where, *doubt.where)))
            found[kind] = replace(before, runs=before.runs + doubt.runs, where=where)
    return tuple(found.values())


def measured_whole(result: SweepResult) -> SweepResult:
    """Return the result without cells of which runs are missing."""
    cells = tuple(one for one in result.cells if one.runs == one.planned)
    names = {one.name for one in cells}
    effects = tuple(one for one in result.effects if one.cell in names)
    return replace(result, cells=cells, effects=effects)


def missing(result: SweepResult) -> Iterator[str]:
    """Yield the cells of which some runs are missing, with how many there are."""
    for one in result.cells:
        if 0 < one.runs < one.planned:
            yield f"{_option(one.name)}: {one.runs} of {one.planned} runs"


def read_result(path: Path) -> SweepResult:
    """Return the result in a file that `rtscope sweep --json` has written."""
    return TypeAdapter(SweepResult).validate_python(json.loads(path.read_text()))


def main() -> None:
    """Print the tables of each result, or all results as one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", nargs="+", type=Path)
    parser.add_argument("--cpu-times", type=Path, help="see above", metavar="FILE")
    parser.add_argument("--brief", action="store_true", help="print ratios alone")
    parser.add_argument("--join", action="store_true", help="print one JSON")
    given = parser.parse_args()
    read = [read_result(file) for file in given.result]
    if given.join:
        print(json.dumps(sweep_data(joined(read)), indent=2))
        return
    cpu_s: CpuTimes = json.loads(given.cpu_times.read_text()) if given.cpu_times else {}
    results = judged_together(list(map(measured_whole, read)))
    tested = sum(len(result.effects) for result in results)
    found = sum(len(result.discoveries) for result in results)
    print(f"{found} of {tested} effects found\n")
    for line in chain.from_iterable(map(missing, read)):
        print(f"not measured whole, and in no table: {line}\n")
    for result in results:
        for key in sorted({one.key for one in result.effects}):
            print(f"### {result.label(key)}\n")
            print("\n".join(lines_of(effects_under(result, key, brief=given.brief))))
            print(f"\n{sentence_of_resolution(result, key)}\n")
        print("\n".join(lines_of(costs(result, None if given.brief else cpu_s))))
        print()


if __name__ == "__main__":
    main()
