"""The tables of the price list, from parts that were measured one after the other."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pricelist import (
    costs,
    effects_under,
    joined,
    judged_together,
    lines_of,
    measured_whole,
    missing,
    read_result,
    sentence_of_resolution,
)
from rtscope.present.words import NOTHING
from rtscope.verbs.sweep.doubts import Checks, Doubt
from rtscope.verbs.sweep.effects import CellEffect
from rtscope.verbs.sweep.result import CellResult, SweepResult


def part(*p_values: float) -> SweepResult:
    """Return a result with an effect for each p-value."""
    one = CellEffect(
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


def test_brief_tables_have_the_figures_of_the_base_and_ratios_alone() -> None:
    whole = part_with(part(0.0001), row_of(1, "boot: a"))
    (key,) = whole.keys

    assert list(lines_of(effects_under(whole, key, brief=True))) == [
        "| option | worst |",
        "|---|---:|",
        "| base | 10.0 us |",
        "| `a` (boot) | 2.00 |",
    ]
    assert not {"CPU s", "wall s"} & set(costs(whole, None))


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


def row_of(number: int, name: str) -> CellResult:
    return CellResult(name, f"{number:03}-{name}", runs=8, planned=8)


def part_with(result: SweepResult, *cells: CellResult) -> SweepResult:
    """Return a part of a sweep of four cells: the base, and these."""
    base = row_of(0, "base")
    return replace(
        result,
        cells=(base, *cells),
        effects=tuple(
            replace(one, cell=cell.name)
            for one, cell in zip(result.effects, cells, strict=True)
        ),
        left_out=3 - len(cells),
        checks=Checks(planned=1, equal=1),
    )


def test_parts_beside_the_same_base_become_one_result() -> None:
    first = part_with(part(0.02, 0.04), row_of(1, "boot: a"), row_of(3, "boot: c"))
    second = part_with(part(1.0), row_of(2, "boot: b"))

    whole = joined([first, second])

    assert [cell.name for cell in whole.cells] == [
        "base",
        "boot: a",
        "boot: b",
        "boot: c",
    ]
    assert {one.cell: one.found for one in whole.effects} == {
        "boot: a": False,
        "boot: b": False,
        "boot: c": False,
    }
    assert (whole.left_out, whole.checks) == (0, Checks(planned=2, equal=2))


def test_a_row_of_two_parts_counts_once() -> None:
    one = part_with(part(0.02), row_of(1, "boot: a"))

    assert joined([one, one]).effects == joined([one]).effects


def test_parts_beside_different_bases_are_not_joined() -> None:
    first = part_with(part(0.02), row_of(1, "boot: a"))
    second = part_with(part(0.02), row_of(2, "boot: b"))
    slower = tuple(replace(one, base=10_001.0) for one in second.effects)

    with pytest.raises(ValueError, match="boot: b: worst is beside another base"):
        joined([first, replace(second, effects=slower)])
    with pytest.raises(ValueError, match="another board, base or release"):
        joined([first, replace(second, releases=("6.12.118",))])


def test_doubts_of_both_parts_stay() -> None:
    doubt = Doubt("load_died", "limit", "the load died", runs=8, where=("boot: a",))
    first = replace(part_with(part(0.1), row_of(1, "boot: a")), doubts=(doubt,))
    other = replace(doubt, where=("boot: b",))
    second = replace(part_with(part(0.1), row_of(2, "boot: b")), doubts=(other,))

    (both,) = joined([first, second]).doubts

    assert (both.runs, both.where) == (16, ("boot: a", "boot: b"))
    assert joined([first, first]).doubts == (doubt,)


def test_doubts_with_other_messages_stay_apart_and_none_is_replaced_by_a_smaller() -> (
    None
):
    """Cells that measured other CPUs than the base have one caveat, and many words."""
    wide = Doubt("other_cpus", "limit", "CPU 0", runs=16, where=("base", "boot: a"))
    other = replace(wide, message="CPU 1", where=("boot: a",), runs=8)
    small = replace(wide, runs=8, where=("base",))
    first = replace(part_with(part(0.1), row_of(1, "boot: a")), doubts=(wide, other))
    second = replace(part_with(part(0.1), row_of(2, "boot: b")), doubts=(small,))

    assert joined([first, second]).doubts == (wide, other)


def test_a_row_that_one_part_has_whole_is_taken_from_there() -> None:
    whole = part_with(part(0.02), row_of(1, "boot: a"))
    none = replace(row_of(1, "boot: a"), runs=0, failures=("it panics",))
    lacking = replace(whole, cells=(row_of(0, "base"), none), effects=())

    for parts in ([lacking, whole], [whole, lacking]):
        assert joined(parts).cells == whole.cells
        assert [one.cell for one in joined(parts).effects] == ["boot: a"]


def test_the_cpu_time_of_a_row_is_measured_or_marked_as_reckoned() -> None:
    whole = part_with(part(0.02), row_of(1, "boot: a"))

    assert costs(whole, {"base": 90.4, "each run": 11.2})["CPU s"] == ["90", "about 90"]
    assert costs(whole, {})["CPU s"] == [NOTHING, NOTHING]
