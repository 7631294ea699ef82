"""What a sweep says of a cell beside its effects."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.record.caveats.catalogue import make
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.design import cells_of
from rtscope.verbs.sweep.file import sweep_of
from rtscope.verbs.sweep.result import SweepResult, result_of
from rtscope.verbs.sweep.text import lines_of_limits, sweep_answer, sweep_page

BASE = {
    "target": {"address": "virtual:pc"},
    "run": [{"load": "idle", "duration": "1s", "interval": "1ms"}],
}


def runs(*cpus: int) -> list[RunRecord]:
    """Return the record of a run on these CPUs."""
    return [on_board(record([thread([9_000, 8_000], cpu=cpu) for cpu in cpus]))]


def result(
    level: dict[str, object],
    *,
    measured: Sequence[int],
    base: Sequence[RunRecord] = (),
) -> SweepResult:
    """Return the result of a sweep with one level, that measured these CPUs."""
    axis = {"name": "boot", "level": [{"name": "isolcpus=1", **level}]}
    cells = cells_of(sweep_of({"base": BASE, "axis": [axis]}, source="my.toml"))
    return result_of(
        "x",
        cells,
        records={0: base or runs(0, 1), 1: runs(*measured)},
        planned={0: 1, 1: 1},
        failures={},
    )


LOADS = ("idle", "cpu")
ISOLATED: dict[str, object] = {"kernel": {"append": "isolcpus=1"}}


def test_the_time_of_a_cell_is_that_of_all_its_boots() -> None:
    axis = {"name": "a", "level": [{"name": "b", **ISOLATED}]}
    cells = cells_of(sweep_of({"base": BASE, "axis": [axis]}, source="my.toml"))
    slow = [replace(one, host_duration_s=2.5) for one in runs(0)]

    found = result_of(
        "x", cells, records={0: slow * 3}, planned={0: 3, 1: 3}, failures={}
    )

    assert [cell.host_s for cell in found.cells] == [7.5, 0.0]


def test_the_page_tells_which_linux_was_measured() -> None:
    found = result(ISOLATED, measured=[0, 1])

    assert found.releases == (runs(0)[0].release,)
    assert f"Linux {found.releases[0]}." in sweep_page(found)


def test_the_page_shows_what_cells_cost_besides_latency() -> None:
    sized = [on_board(one, kernel_bytes=5 << 20) for one in runs(0, 1)]
    found = result(ISOLATED, measured=[0, 1], base=sized)

    assert found.cells[0].costs.kernel_bytes == 5 << 20
    page = sweep_page(found)
    assert "Costs besides latency" in page
    assert "image, MiB" in page
    assert "<td>5.00</td>" in page
    assert "instructions per operation" not in page


def test_a_label_has_what_tells_runs_of_one_load_apart() -> None:
    measured = [
        on_board(record([thread([9_000, 8_000], interval_ns=interval_ns)], load))
        for load, interval_ns in [
            ("idle", 10_000_000),
            ("os", 250_000),
            ("os", 500_000),
        ]
    ]
    axis = {"name": "boot", "level": [{"name": "isolcpus=1", **ISOLATED}]}
    runs_of_base = [
        {"load": "idle", "interval": "10ms"},
        {"load": "os", "interval": ["250us", "500us"]},
    ]
    base = {**BASE, "run": runs_of_base}
    cells = cells_of(sweep_of({"base": base, "axis": [axis]}, source="my.toml"))
    found = result_of(
        "x",
        cells,
        records={0: measured, 1: measured},
        planned={0: 3, 1: 3},
        failures={},
    )

    labels = {found.label(key) for key in found.keys}
    assert labels == {"idle", "os 250 us", "os 500 us"}


def with_caveat(one: RunRecord) -> RunRecord:
    return replace(one, caveats=(make("clocksource_changed"),))


def whose_sums_contradict(one: RunRecord) -> RunRecord:
    """Return a run that no caveat of its own, but its samples invalidate."""
    (measured,) = one.result.threads
    wrong = replace(measured, sum_ns=2 * (measured.sum_ns or 0))
    return replace(one, result=replace(one.result, threads=(wrong,)))


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (with_caveat, "the kernel changed its clocksource"),
        (whose_sums_contradict, "the sums of a CPU contradict its histogram"),
    ],
)
def test_invalid_runs_are_named_and_in_no_effect(
    spoilt: Callable[[RunRecord], RunRecord], message: str
) -> None:
    invalid = [spoilt(one) for one in runs(0)]

    found = result(ISOLATED, measured=[0], base=invalid)

    assert found.effects == ()
    (line,) = lines_of_limits(found)
    assert "INVALID: 1 run of base, left out of all effects" in line[0]
    assert "1 of 1 run of base does not count" in sweep_answer(found)
    assert message in sweep_page(found)


def test_with_too_few_seeds_the_answer_says_that_nothing_can_be_found() -> None:
    found = result(ISOLATED, measured=[0, 1])

    assert {one.pairs for one in found.effects} == {1}
    assert sweep_answer(found) == (
        "none of 2 effects can be found: the test needs 6 independent pairs of runs; "
        "measure with more seeds"
    )
