"""Effects of a sweep: exact, paired by seed, with false discoveries held."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.record.model import RunRecord
from rtscope.sweep.effects import counterparts, effects_of


def runs(worst_ns: Sequence[int], *, load: str = "cpu") -> list[RunRecord]:
    """Return one run for each seed, with these maxima."""
    made = [on_board(record([thread([5_000, 7_000, top])])) for top in worst_ns]
    return [
        replace(one, run=replace(one.run, seed=seed, load=load))
        for seed, one in enumerate(made, 1)
    ]


BEFORE = (11_000, 12_000, 13_000, 14_000, 15_000, 16_000, 17_000, 18_000)


def test_a_doubled_maximum_is_found_and_nothing_else() -> None:
    changed = {
        "twice": runs([2 * ns for ns in BEFORE]),
        "nothing": runs(BEFORE),
    }

    worst, *rest = effects_of(runs(BEFORE), changed)

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
    other = effects_of(runs(BEFORE), {"x": runs(BEFORE, load="idle")})
    some = effects_of(runs(BEFORE), {"x": runs([2 * ns for ns in BEFORE[:3]])})

    assert other == ()
    assert {effect.pairs for effect in some} == {3}
    assert all(effect.low is None for effect in some)


@pytest.mark.parametrize(
    "change",
    [{"policy": "rr"}, {"kernel": "debian-6.12"}, {"interval_ns": 500_000}],
)
def test_what_a_cell_changes_of_its_runs_is_compared_with_the_base(
    change: dict[str, Any],
) -> None:
    twice = runs([2 * ns for ns in BEFORE])
    changed = [replace(one, run=replace(one.run, **change)) for one in twice]

    worst, *_ = effects_of(runs(BEFORE), {"x": changed})

    assert (worst.figure, worst.pairs, worst.found) == ("worst", 8, True)
    assert worst.key[0] == "cpu"


def test_of_several_kernels_each_is_compared_with_itself() -> None:
    def both(*tops: Sequence[int]) -> list[RunRecord]:
        return [
            replace(one, run=replace(one.run, kernel=kernel))
            for kernel, some in zip(("rt", "std"), tops, strict=True)
            for one in runs(some)
        ]

    twice = [2 * ns for ns in BEFORE]
    found = effects_of(both(BEFORE, BEFORE), {"x": both(twice, BEFORE)})

    worst = {
        effect.key[1]: effect.ratio for effect in found if effect.figure == "worst"
    }
    assert worst == {"rt": pytest.approx(2), "std": 1}
    one_more = counterparts(
        [("cpu", "rt", "fifo", "1"), ("cpu", "std", "fifo", "1")],
        [("cpu", "other", "fifo", "1")],
    )
    assert one_more == {}
