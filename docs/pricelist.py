"""
The tables of docs/measured/price-list.md, from results of `rtscope sweep price`.

    rtscope sweep --resume price --json > price.json
    python docs/pricelist.py price.json:7.1

The number is the CPU time of a run in seconds, which no record has: that of the sweep
with its boards, by its runs. Parts of the list that were measured beside bases of their
own are results of their own. Bold are the effects that the exact test has found, among
all of all results: a list in parts is one family of tests.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

from prose import row
from rtscope.report.formats.sweep import (
    columns_of_costs,
    interval_of,
    ratio_of,
    resolution_of,
    value_of,
)
from rtscope.report.words import NOTHING, count, plural
from rtscope.stats.power import LEAST_PAIRS
from rtscope.stats.signflip import discoveries
from rtscope.sweep.effects import FIGURES, MORE_IS_BETTER, Effect
from rtscope.sweep.keys import Key
from rtscope.sweep.result import SweepResult

Columns = Mapping[str, Sequence[str]]
"""By headings; a row for each cell."""


def effects_under(result: SweepResult, key: Key) -> Columns:
    """Return what was tested under a load, the base first; latencies in virtual us."""
    base, *cells = [cell.name for cell in result.cells]
    columns = {"option": [_option(name) for name in (base, *cells)]}
    for figure in FIGURES:
        effects = [result.effect(name, key, figure) for name in cells]
        tested = [one for one in effects if one]
        if not tested:
            continue
        # The base of a cell is that of the seeds that both have.
        whole = max(tested, key=lambda one: one.pairs)
        unit = "" if figure in MORE_IS_BETTER else ", us"
        columns[f"{figure}{unit}"] = [
            value_of(whole.base, figure),
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


def costs(result: SweepResult, *, cpu_s: float) -> Columns:
    """Return what cells cost besides latency, the base first."""
    return {
        "option": [_option(cell.name) for cell in result.cells],
        **columns_of_costs(result),
        "CPU s": [count(round(cell.runs * cpu_s)) for cell in result.cells],
        "wall s": [count(round(cell.host_s)) for cell in result.cells],
    }


def _option(cell: str) -> str:
    axis, _, level = cell.partition(": ")
    return f"`{level}` ({axis})" if level else cell


def _ratio(effect: Effect | None) -> str:
    if effect is None:
        return NOTHING
    text = ratio_of(effect.ratio)
    if effect.low is not None:
        text += f" ({interval_of(effect)})"
    return f"**{text}**" if effect.found else text


def lines_of(columns: Columns) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield row(columns)
    yield "|---|" + "---:|" * (len(columns) - 1)
    yield from map(row, zip(*columns.values(), strict=True))


def judged_together(results: Sequence[SweepResult]) -> Sequence[SweepResult]:
    """Return the results with what is found among the effects of all of them."""
    everything = [effect for result in results for effect in result.effects]
    found = iter(discoveries([effect.p for effect in everything]))
    return [
        replace(
            result,
            effects=tuple(replace(one, found=next(found)) for one in result.effects),
        )
        for result in results
    ]


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
    """Print the tables of each result: one for each load, and that of costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", nargs="+", help="FILE:CPU-SECONDS")
    given = [word.rpartition(":") for word in parser.parse_args().result]
    read = [read_result(Path(file)) for file, _, _ in given]
    results = judged_together(list(map(measured_whole, read)))
    tested = sum(len(result.effects) for result in results)
    found = sum(len(result.found) for result in results)
    print(f"{found} of {tested} effects found\n")
    for line in chain.from_iterable(map(missing, read)):
        print(f"not measured whole, and in no table: {line}\n")
    for result, (_, _, cpu_s) in zip(results, given, strict=True):
        for key in sorted({one.key for one in result.effects}):
            print(f"### {result.label(key)}\n")
            print("\n".join(lines_of(effects_under(result, key))))
            print(f"\n{sentence_of_resolution(result, key)}\n")
        print("\n".join(lines_of(costs(result, cpu_s=float(cpu_s)))))
        print()


if __name__ == "__main__":
    main()
