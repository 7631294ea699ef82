"""A test for a steady distance: planted periods, and seldom one that is not there."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from rtscope.stats.latetimes import LEAST_EVENTS, SIGNIFICANCE, Steady, steady_distance

S = 10**9
MINUTE, HOUR = 60 * S, 3_600 * S

Chance = Callable[[np.random.Generator, int], Sequence[Sequence[int]]]


def times(values: Iterable[float]) -> list[int]:
    return sorted(int(value) for value in values)


def planted(
    rng: np.random.Generator,
    *,
    count: int = 24,
    jitter: float = 0.03,
    missing: float = 0.0,
    extra: int = 0,
    period_ns: int = MINUTE,
) -> list[int]:
    start = rng.random() * period_ns
    kept = [
        start + (i + jitter * rng.standard_normal()) * period_ns
        for i in range(count)
        if rng.random() >= missing
    ]
    return times([*kept, *(rng.random(extra) * count * period_ns)])


def period_of(found: Steady | None) -> float:
    assert found is not None
    assert found.found is not None
    return found.found.period_ns / S


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"jitter": 0.1},
        {"jitter": 0.0},
        {"missing": 0.2},
        {"extra": 8},
        {"missing": 0.2, "extra": 6},
        {"count": 12},
        {"count": LEAST_EVENTS, "jitter": 0.02},
        {"count": 48, "extra": 12},
    ],
    ids=str,
)
def test_a_planted_minute_is_found(how: dict[str, float]) -> None:
    rng = np.random.default_rng(7)

    found = steady_distance([planted(rng, **how)])  # type: ignore[arg-type]

    assert period_of(found) == pytest.approx(60, rel=0.02)


def test_bursts_count_once() -> None:
    rng = np.random.default_rng(3)
    bursts = [
        at + int(rng.random() * S) for at in planted(rng, count=12) for _ in "abcd"
    ]

    found = steady_distance([bursts])

    assert period_of(found) == pytest.approx(60, rel=0.02)
    assert found is not None
    assert found.found is not None
    assert found.found.events == 12


def test_runs_with_a_phase_of_their_own_are_added_up() -> None:
    rng = np.random.default_rng(5)
    runs = [planted(rng, count=6) for _ in range(4)]

    assert period_of(steady_distance(runs)) == pytest.approx(60, rel=0.03)


def test_half_of_a_period_is_not_named() -> None:
    rng = np.random.default_rng(11)

    for _ in range(10):
        found = steady_distance([planted(rng, count=16, jitter=0.01)])
        assert period_of(found) == pytest.approx(60, rel=0.02)


def uniform(rng: np.random.Generator, count: int) -> Sequence[Sequence[int]]:
    return [times(rng.random(count) * HOUR)]


def in_bursts(rng: np.random.Generator, count: int) -> Sequence[Sequence[int]]:
    centres = rng.random(max(count // 4, 2)) * HOUR
    return [times([c + rng.exponential(2 * S) for c in centres for _ in range(4)])]


def ever_rarer(rng: np.random.Generator, count: int) -> Sequence[Sequence[int]]:
    return [times(rng.beta(1, 3, size=count) * HOUR)]


def in_runs(rng: np.random.Generator, count: int) -> Sequence[Sequence[int]]:
    return [times(rng.random(count // 3) * HOUR) for _ in range(3)]


@pytest.mark.parametrize(
    "count", [12, *(pytest.param(n, marks=pytest.mark.slow) for n in (20, 32))]
)
@pytest.mark.parametrize("chance", [uniform, in_bursts, ever_rarer, in_runs])
def test_chance_is_seldom_called_steady(chance: Chance, count: int) -> None:
    rng = np.random.default_rng(1)
    trials = 120
    tested = [steady_distance(chance(rng, count)) for _ in range(trials)]
    named = sum(one is not None and one.found is not None for one in tested)

    assert named <= SIGNIFICANCE * trials + 2 * (SIGNIFICANCE * trials) ** 0.5


def test_whole_seconds_are_no_distance() -> None:
    rng = np.random.default_rng(2)
    named = 0
    for _ in range(60):
        seconds = [int(s) * S for s in np.unique(rng.integers(0, 600, size=24))]
        found = steady_distance([seconds], step_ns=S)
        assert found is not None
        assert found.shortest_ns >= 4 * S
        named += found.found is not None

    assert named <= 6


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [[]],
        [[5] * 20],
        [list(range(LEAST_EVENTS - 1))],
        [[0, MINUTE, 2 * MINUTE]] * 5,
    ],
)
def test_too_few_events_say_nothing(runs: Sequence[Sequence[int]]) -> None:
    assert steady_distance(runs) is None


def test_more_choices_of_events_make_p_larger() -> None:
    rng = np.random.default_rng(4)
    events = planted(rng)
    once, twice = steady_distance([events]), steady_distance([events], tests=2)

    assert once is not None
    assert twice is not None
    assert once.found is not None
    assert twice.found is not None
    assert twice.found.p == pytest.approx(2 * once.found.p)
