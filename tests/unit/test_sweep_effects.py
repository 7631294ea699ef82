"""Effects of a sweep: exact, paired by seed, with false discoveries held."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.contract import ThreadResult
from rtscope.record.model import RunRecord
from rtscope.stats.summary import Summary, summarize
from rtscope.verbs.sweep.design import Cell, cells_of
from rtscope.verbs.sweep.effects import CellEffect, effects_of, runs_by_key
from rtscope.verbs.sweep.file import sweep_of

BASE: Mapping[str, Any] = {
    "target": {"address": "virtual:pc"},
    "kernel": {"names": ["rt"]},
    "run": [{"load": "cpu", "duration": "1s", "interval": "1ms"}],
}


def runs(
    worst_ns: Sequence[int], *, places: Sequence[int] = (), **run: Any
) -> list[RunRecord]:
    """
    Return one run for each seed, with these maxima.

    `places` are those of its four latest activations, by seed; else all differ.
    """
    found = []
    for seed, top in enumerate(worst_ns, 1):
        latencies = [5_000] * 1_000
        place = places[seed - 1] if places else 53 * seed + top % 50
        for late, at in enumerate((0, 101, 203, 307)):
            latencies[(place + at) % 997] = top - late
        cpus = run.get("cpus") or (0,)
        made = on_board(
            record([thread(latencies, cpu=cpu, worst_kept=4) for cpu in cpus])
        )
        asked = {"kernel": "rt", "load": "cpu", "interval_ns": 1_000_000, **run}
        found.append(replace(made, run=replace(made.run, seed=seed, **asked)))
    return found


def effects(
    before: Sequence[RunRecord],
    changed: Mapping[str, Sequence[RunRecord]],
    *levels: Mapping[str, Any],
    **base: Any,
) -> tuple[CellEffect, ...]:
    """Return the effects of cells with these levels, by the name of the level."""
    some = cells(changed, *levels, **base)
    measured = (before, *changed.values())
    found = effects_of(some, runs_by_key(some, dict(enumerate(measured))))
    return tuple(replace(one, cell=one.cell.removeprefix("axis: ")) for one in found)


def cells(
    changed: Mapping[str, Any], *levels: Mapping[str, Any], **base: Any
) -> tuple[Cell, ...]:
    made = [
        {"name": name, **level}
        for name, level in zip(
            changed, levels or [{"kernel": {"append": n}} for n in changed], strict=True
        )
    ]
    document = {"base": {**BASE, **base}, "axis": [{"name": "axis", "level": made}]}
    return cells_of(sweep_of(document, source="my.toml"))


BEFORE = (11_000, 12_000, 13_000, 14_000, 15_000, 16_000, 17_000, 18_000)


def test_a_doubled_maximum_is_found_and_nothing_else() -> None:
    changed = {
        "twice": runs([2 * ns for ns in BEFORE]),
        "nothing": runs(BEFORE),
    }

    worst, *rest = effects(runs(BEFORE), changed)

    assert (worst.cell, worst.figure, worst.pairs) == ("twice", "worst", 8)
    assert worst.found
    assert worst.is_worse
    assert worst.ratio == pytest.approx(2)
    assert worst.p == 2 / 2**8
    assert worst.low == pytest.approx(2)
    same = [effect for effect in rest if effect.cell == "nothing"]
    assert {effect.figure for effect in same} >= {"worst", "average"}
    assert all(effect.ratio == 1 and effect.p == 1 for effect in same)
    assert not any(effect.found for effect in same)


def test_runs_are_paired_by_load_and_seed_and_others_are_left_out() -> None:
    other = effects(runs(BEFORE), {"x": runs(BEFORE, load="idle")})
    some = effects(runs(BEFORE), {"x": runs([2 * ns for ns in BEFORE[:3]])})

    assert other == ()
    assert {effect.pairs for effect in some} == {3}
    assert all(effect.low is None for effect in some)


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({"policy": "rr"}, {"run": {"policy": "rr"}}),
        ({"kernel": "std"}, {"kernel": {"names": ["std"]}}),
        ({"interval_ns": 500_000}, {"run": {"interval": "500us"}}),
        ({"priority": 50}, {"run": {"priority": 50}}),
        ({"cpus": (1,)}, {"run": {"cpus": "1"}}),
    ],
)
def test_what_a_cell_changes_of_its_runs_is_compared_with_the_base(
    change: dict[str, Any], level: dict[str, Any]
) -> None:
    twice = runs([2 * ns for ns in BEFORE], **change)

    worst, *_ = effects(runs(BEFORE), {"x": twice}, level)

    assert (worst.figure, worst.pairs, worst.found) == ("worst", 8, True)
    assert worst.key[0] == "cpu"


TWICE = [2 * ns for ns in BEFORE]


@pytest.mark.parametrize(
    ("part", "one", "other", "base"),
    [
        ("kernel", "rt", "std", {"kernel": {"names": ["rt", "std"]}}),
        ("cpus", (0,), (1,), {"run": [{"cpus": "0"}, {"cpus": "1"}]}),
        ("priority", 99, 50, {"run": [{"priority": [99, 50]}]}),
        ("duration_ns", 1, 2, {"run": [{"duration": ["1s", "2s"]}]}),
        ("variant", "a", "b", {"run": [{"variant": "a"}, {"variant": "b"}]}),
    ],
)
def test_runs_that_differ_in_a_part_are_each_compared_with_their_like(
    part: str, one: Any, other: Any, base: dict[str, Any]
) -> None:
    named = {"load": "cpu", "interval": "1ms"}
    if "run" in base:
        base = {"run": [{**named, **run} for run in base["run"]]}

    def both(*tops: Sequence[int]) -> list[RunRecord]:
        return [
            run
            for value, some in zip((one, other), tops, strict=True)
            for run in runs(some, **{part: value})
        ]

    found = effects(both(BEFORE, BEFORE), {"x": both(TWICE, BEFORE)}, **base)

    ratios = sorted(effect.ratio for effect in found if effect.figure == "worst")
    assert ratios == [1, pytest.approx(2)]


def test_each_load_is_compared_with_its_own_runs_of_the_base() -> None:
    tables = [
        {"load": "cpu", "interval": "1ms"},
        {"load": "idle", "interval": "10ms", "policy": "other"},
    ]
    slow: dict[str, Any] = {"interval_ns": 20_000_000}
    idle: dict[str, Any] = {"load": "idle", "policy": "other", "priority": 0}
    before = [*runs(BEFORE), *runs(BEFORE, **idle, interval_ns=10_000_000)]
    after = [*runs(BEFORE, **slow), *runs(TWICE, **idle, **slow)]

    found = effects(before, {"x": after}, {"run": {"interval": "20ms"}}, run=tables)

    ratios = {one.key: one.ratio for one in found if one.figure == "worst"}
    assert {(key[0], key[4]): ratio for key, ratio in ratios.items()} == {
        ("cpu", "1000000"): 1,
        ("idle", "10000000"): pytest.approx(2),
    }


def test_what_is_compared_does_not_depend_on_which_runs_have_a_result() -> None:
    """The base lost one kernel and the cell the other: nothing is alike."""
    of_rt, of_std = runs(BEFORE), runs(TWICE, kernel="std")

    found = effects(of_rt, {"x": of_std}, kernel={"names": ["rt", "std"]})

    assert found == ()


@pytest.mark.parametrize("alike", ["base", "cell"])
def test_alike_seeds_count_once_in_the_base_and_in_the_cell(alike: str) -> None:
    same = [7] * len(BEFORE)
    before = runs(BEFORE, places=same if alike == "base" else ())
    after = runs(TWICE, places=same if alike == "cell" else ())

    worst, *_ = effects(before, {"x": after})

    assert (worst.pairs, worst.p, worst.found) == (1, 1, False)


def test_each_run_is_summarized_once_however_many_cells_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summarized: list[object] = []

    def counted(threads: Sequence[ThreadResult]) -> Summary:
        summarized.append(threads)
        return summarize(threads)

    monkeypatch.setattr("rtscope.verbs.sweep.effects.summarize", counted)
    changed = {f"x={n}": runs(BEFORE) for n in range(5)}

    effects(runs(BEFORE), changed)

    assert len(summarized) == 6 * len(BEFORE)
