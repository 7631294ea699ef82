"""The tables of the price list, from parts that were measured one after the other."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pricelist import (
    effects_under,
    judged_together,
    lines_of,
    measured_whole,
    missing,
    read_result,
    sentence_of_resolution,
)
from rtscope.report.words import NOTHING
from rtscope.sweep.effects import Effect
from rtscope.sweep.result import CellResult, SweepResult


def part(*p_values: float) -> SweepResult:
    """Return a result with an effect for each p-value."""
    one = Effect(
        cell="",
        key=("os", "rt", "fifo", "99", "500000", "1000000000", "", ""),
        figure="worst",
        base=10_000.0,
        changed=20_000.0,
        pairs=8,
        ratio=2.0,
        low=None,
        high=None,
        p=1.0,
        found=False,
        could_have_seen=None,
    )
    effects = tuple(
        replace(one, cell=f"boot: {n}", p=p) for n, p in enumerate(p_values)
    )
    return SweepResult(
        name="price list", board="pc", seeds=8, cells=(), effects=effects
    )


def test_effects_of_all_parts_are_one_family_of_tests() -> None:
    alone = judged_together([part(0.02, 0.04)])
    first, second = judged_together([part(0.02, 0.04), part(1.0, 1.0)])

    assert [one.found for one in alone[0].effects] == [True, True]
    assert [one.found for one in first.effects] == [False, False]
    assert [one.found for one in second.effects] == [False, False]


def test_a_result_is_read_as_the_sweep_has_written_it(tmp_path: Path) -> None:
    file = tmp_path / "price.json"
    file.write_text(json.dumps({**asdict(part(0.5)), "answer": "none"}))

    assert read_result(file) == part(0.5)


def test_a_row_with_missing_runs_is_in_no_table_and_named() -> None:
    whole, some, none = (
        CellResult(name, name, runs=runs, planned=45)
        for name, runs in (("base", 45), ("boot: 0", 11), ("boot: 1", 0))
    )
    result = replace(part(0.01, 0.02), cells=(whole, some, none))

    kept = measured_whole(result)

    assert (kept.cells, kept.effects) == ((whole,), ())
    assert list(missing(result)) == ["`0` (boot): 11 of 45 runs"]


@pytest.mark.parametrize(("found", "ratio"), [(True, "**2.00**"), (False, "2.00")])
def test_what_is_found_is_bold(found: bool, ratio: str) -> None:
    whole = part(0.01)
    base, changed = (
        CellResult(name, name, runs=8, planned=8) for name in ("base", "boot: 0")
    )
    effects = tuple(replace(one, found=found) for one in whole.effects)

    result = replace(whole, cells=(base, changed), effects=effects)
    (key,) = result.keys
    columns = effects_under(result, key)

    assert list(lines_of(columns)) == [
        "| option | worst, us | ratio of worst (95 %) |",
        "|---|---:|---:|",
        f"| base | 10.0 | {NOTHING} |",
        f"| `0` (boot) | 20.0 | {ratio} |",
    ]


def test_what_could_have_been_seen_is_told_for_each_load() -> None:
    effects = tuple(replace(one, pairs=5) for one in part(0.01, 0.02, 0.03).effects)
    whole = replace(part(), effects=effects)
    seen = tuple(
        replace(one, could_have_seen=ratio, pairs=8)
        for one, ratio in zip(effects, (1.1, 1.2), strict=False)
    )
    result = replace(whole, effects=(*seen, effects[-1]))
    (key,) = result.keys

    said = sentence_of_resolution(result, key)
    assert "(in all): worst 1.15 (1.20). 1 effect of fewer than six pairs" in said
    assert sentence_of_resolution(whole, key) == (
        "3 effects of fewer than six pairs cannot be found."
    )
