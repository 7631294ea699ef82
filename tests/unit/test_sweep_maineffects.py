"""Main effects: a level in all its cells, each beside the same cell without it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.design import Cell, cells_of
from rtscope.verbs.sweep.effects import (
    CellEffect,
    main_effects_of,
    pairs_of_cells,
    runs_by_key,
)
from rtscope.verbs.sweep.file import sweep_of
from rtscope.verbs.sweep.result import result_of
from rtscope.verbs.sweep.text import sweep_answer, sweep_page

BASE = {
    "target": {"address": "virtual:pc"},
    "run": [{"load": "idle", "duration": "1s", "interval": "1ms"}],
}
ORDINARY = 8_000


def axis(name: str, *levels: str) -> dict[str, Any]:
    return {
        "name": name,
        "level": [
            {"name": one, "kernel": {"append": f"{name}={one}"}} for one in levels
        ],
    }


def cells(*axes: dict[str, Any], design: str = "full") -> tuple[Cell, ...]:
    document = {"sweep": {"design": design}, "base": BASE, "axis": list(axes)}
    return cells_of(sweep_of(document, source="my.toml"))


FOUR = cells(axis("a", "1", "2"), axis("b", "1"), axis("c", "1"), axis("d", "1"))
"""3 x 2 x 2 x 2 = 24 cells."""


def run(number: int, worst_ns: int, *, interval_ns: int = 1_000_000) -> RunRecord:
    """Return a run with four late wake-ups at places of its own, by its number."""
    latencies = [5_000] * 1_000
    for late, place in enumerate((0, 101, 203, 307)):
        latencies[(17 * number + place) % 997] = worst_ns - late
    made = thread(latencies, interval_ns=interval_ns, worst_kept=4)
    one = on_board(record([made]))
    return replace(
        one, run=replace(one.run, seed=1, load="idle", interval_ns=interval_ns)
    )


def records_of(
    some: Sequence[Cell], worst_ns: Mapping[str, int]
) -> dict[int, list[RunRecord]]:
    """Return runs: the worst is what the levels add to the ordinary, and a bit."""
    return {
        cell.number: [
            run(
                cell.number,
                ORDINARY
                + 7 * (cell.number % 5)
                + sum(worst_ns.get("=".join(level), 0) for level in cell.levels),
            )
        ]
        for cell in some
    }


def main_effects(
    some: Sequence[Cell], records: Mapping[int, Sequence[RunRecord]]
) -> tuple[CellEffect, ...]:
    return main_effects_of(some, runs_by_key(some, records))


def worst_of(found: Sequence[CellEffect]) -> dict[str, CellEffect]:
    return {one.cell: one for one in found if one.figure == "worst"}


def test_each_cell_with_a_level_is_paired_with_the_same_cell_without_it() -> None:
    pairs = pairs_of_cells(FOUR)

    levels = {cell.number: {*cell.levels} for cell in FOUR}
    assert {name: len(some) for name, some in pairs.items()} == {
        "a: 1": 8,
        "a: 2": 8,
        "b: 1": 12,
        "c: 1": 12,
        "d: 1": 12,
    }
    for name, some in pairs.items():
        axis_and_level = tuple(name.split(": "))
        for without, with_it in some:
            assert levels[with_it] - levels[without] == {axis_and_level}
            assert levels[without] < levels[with_it]


def test_a_design_of_one_change_at_a_time_has_no_main_effects() -> None:
    one = cells(axis("a", "1", "2"), axis("b", "1"), design="one")

    assert pairs_of_cells(one) == {}
    assert main_effects(one, records_of(one, {})) == ()


def test_what_no_cell_shows_with_one_seed_all_cells_together_do() -> None:
    found = result_of(
        "x",
        FOUR,
        records=records_of(FOUR, {"b=1": ORDINARY}),
        planned={cell.number: 1 for cell in FOUR},
        failures={},
    )

    assert not found.discoveries
    worst = worst_of(found.main_effects)
    assert [name for name, one in worst.items() if one.found] == ["b: 1"]
    assert worst["b: 1"].ratio == pytest.approx(2, rel=0.01)
    assert (worst["b: 1"].pairs, worst["b: 1"].pairs_of_cells) == (12, 12)
    assert "b: 1 raises it under idle to 2.00 times" in sweep_answer(found)
    page = sweep_page(found)
    assert "Main effects" in page
    assert "Effects of single cells found" in page


def test_runs_that_coincide_are_one_pair() -> None:
    records = records_of(FOUR, {"b=1": ORDINARY})
    without = [cell.number for cell in FOUR if ("b", "1") not in cell.levels]
    for number in without:  # one trajectory, told twelve times
        records[number] = records[0]

    assert worst_of(main_effects(FOUR, records))["b: 1"].pairs == 1


def test_cells_without_a_result_are_in_no_pair() -> None:
    records = records_of(FOUR, {})
    gone = next(c.number for c in FOUR if c.levels == (("b", "1"), ("c", "1")))
    del records[gone]

    worst = worst_of(main_effects(FOUR, records))

    assert worst["b: 1"].pairs_of_cells == 11
    assert worst["a: 1"].pairs_of_cells == 7


def test_what_an_axis_changes_of_the_runs_is_compared_over_all_cells_too() -> None:
    some = cells(
        {"name": "interval", "level": [{"name": "2ms", "run": {"interval": "2ms"}}]},
        axis("b", "1"),
    )
    records = {
        cell.number: [
            run(
                cell.number,
                ORDINARY + cell.number,
                interval_ns=cell.campaign.runs[0].intervals_ns[0],
            )
        ]
        for cell in some
    }

    worst = worst_of(main_effects(some, records))

    assert {one.pairs_of_cells for one in worst.values()} == {2}
    assert [*worst] == ["interval: 2ms", "b: 1"] or {*worst} == {
        "interval: 2ms",
        "b: 1",
    }
