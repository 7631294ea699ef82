"""Cells that measured other CPUs than the base: their effects are of those too."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.design import cells_of
from rtscope.verbs.sweep.file import sweep_of
from rtscope.verbs.sweep.result import SweepResult, result_of
from rtscope.verbs.sweep.text import lines_of_limits, sweep_data, sweep_page


def runs(*cpus: int, load: str = "idle") -> list[RunRecord]:
    """Return the record of a run on these CPUs."""
    made = record([thread([9_000, 8_000], cpu=cpu) for cpu in cpus], load)
    return [on_board(made)]


def result(
    levels: Mapping[str, Mapping[str, Any]],
    *measured: Sequence[RunRecord],
    base: Sequence[RunRecord] = (),
    loads: Sequence[str] = ("idle",),
) -> SweepResult:
    """Return the result of a sweep of levels, each with the runs that it measured."""
    axis = {
        "name": "boot",
        "level": [{"name": name, **level} for name, level in levels.items()],
    }
    run = {"load": [*loads], "duration": "1s", "interval": "1ms"}
    document = {"target": {"address": "virtual:pc"}, "run": [run]}
    cells = cells_of(sweep_of({"base": document, "axis": [axis]}, source="my.toml"))
    return result_of(
        "x",
        cells,
        records=dict(enumerate([base or runs(0, 1, 2, 3), *measured])),
        planned={cell.number: len(loads) for cell in cells},
        failures={},
    )


ISOLATED = {"kernel": {"append": "isolcpus=1"}}
NAMED = {"kernel": {"append": "isolcpus=1"}, "run": {"cpus": "0-1"}}


@pytest.mark.parametrize(
    ("level", "cpus", "told"),
    [(ISOLATED, (0, 2, 3), "0,2-3"), (NAMED, (0, 1), "0-1")],
    ids=["unasked", "named by the level"],
)
def test_other_cpus_than_those_of_the_base_are_a_limit_with_a_remedy(
    level: Mapping[str, Any], cpus: Sequence[int], told: str
) -> None:
    found = result({"isolcpus=1": level}, runs(*cpus))

    (line,) = lines_of_limits(found)
    assert line[0] == (
        f"LIMIT: 1 run of boot: isolcpus=1: measured CPU {told}, the base CPU 0-3, so "
        "the effects are also those of other CPUs; give the base the same run.cpus = "
        f'"{told}"'
    )
    page = sweep_page(found)
    assert f"LIMIT: measured CPU {told}, the base CPU 0-3" in page
    (doubt,) = sweep_data(found)["doubts"]
    assert (doubt["caveat"], doubt["weight"]) == ("other_cpus", "limit")
    assert doubt["where"] == ("boot: isolcpus=1",)
    assert found.cells[1].other_cpus == f"CPU {told}, the base CPU 0-3"


def test_cells_with_the_same_cpus_are_one_limit() -> None:
    nohz = {"kernel": {"append": "nohz_full=1"}}
    both = {"kernel": {"append": "isolcpus=1 nohz_full=1"}}

    found = result(
        {"a": ISOLATED, "b": both, "c": nohz},
        *(runs(0, 2, 3), runs(0, 2, 3), runs(1)),
    )

    assert [(one.runs, one.where) for one in found.doubts] == [
        (2, ("boot: a", "boot: b")),
        (1, ("boot: c",)),
    ]
    first, _ = lines_of_limits(found)
    assert "2 runs of 2 cells: measured CPU 0,2-3" in first[0]


@pytest.mark.parametrize(
    ("level", "cpus"),
    [
        (ISOLATED, (0, 1, 2, 3)),
        ({**NAMED, "run": {"cpus": "0-3"}}, (0, 1, 2, 3)),
        ({"run": {"cpus": "0"}}, (0,)),
    ],
    ids=["equal", "equal and named", "nothing but CPUs is changed"],
)
def test_equal_cpus_and_a_level_of_cpus_alone_are_in_order(
    level: Mapping[str, Any], cpus: Sequence[int]
) -> None:
    found = result({"isolcpus=1": level}, runs(*cpus))

    assert found.doubts == ()
    assert found.cells[1].other_cpus == ""


def test_a_cell_that_lacks_a_run_has_no_other_cpus() -> None:
    """Each load is compared with itself: `cpu` has no result in the cell."""
    base = [*runs(0), *runs(1, load="cpu")]

    found = result({"a": ISOLATED}, runs(0), base=base, loads=("idle", "cpu"))

    assert found.doubts == ()
