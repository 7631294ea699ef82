"""A directed search finds a rare worst case of simulated programs in few trials."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from rtscope.verbs.test.search.levers import Lever, Space
from rtscope.verbs.test.search.trials import Instant, Proposal, Trial
from search import strangers
from search.landscapes import (
    HELD_OUT,
    TUNED,
    US,
    Landscape,
    Next,
    Searched,
    blind,
    directed,
    found_by,
    trials_until_found,
)

pytestmark = pytest.mark.slow

BUDGET = 400
SEEDS, FEW = range(20), range(10)
"""lab/search-worst.md has the figures of 20."""


def played(
    landscape: Searched, seeds: Iterable[int] = FEW
) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return what the search and chance found, with some seeds."""

    def with_seeds(search: Callable[[int], Next]) -> tuple[int, float]:
        taken = {
            n: trials_until_found(landscape, search(n), budget=BUDGET) for n in seeds
        }
        return found_by(taken, BUDGET)

    return with_seeds(directed), with_seeds(blind)


@pytest.mark.parametrize("landscape", HELD_OUT, ids=lambda one: one.name)
def test_a_published_worst_case_takes_at_most_half_the_trials_of_chance(
    landscape: Landscape,
) -> None:
    (found, median), (found_by_chance, median_of_chance) = played(landscape, SEEDS)

    assert found >= max(18, found_by_chance)
    assert median <= median_of_chance / 2


@pytest.mark.parametrize("landscape", strangers.SECOND, ids=lambda one: one.name)
def test_a_worst_case_of_a_stranger_takes_no_more_trials_than_by_chance(
    landscape: Landscape,
) -> None:
    (found, median), (found_by_chance, median_of_chance) = played(landscape, range(5))

    assert found >= found_by_chance
    assert median <= median_of_chance


@pytest.mark.parametrize("landscape", TUNED, ids=lambda one: one.name)
def test_no_worst_case_takes_more_trials_than_by_chance(landscape: Landscape) -> None:
    (found, median), (found_by_chance, median_of_chance) = played(landscape)

    assert found > found_by_chance
    assert median <= median_of_chance


@dataclass(frozen=True)
class Deceptive:
    """A hill that leads away from the worst case, which no instant announces."""

    found_ns: int = 300
    space: Space = field(
        default_factory=lambda: Space.of(
            [
                Lever(name, 0, 999, 2, US, frozenset({name}), 1000)
                for name in ("load", "logger")
            ]
        )
    )

    def run(self, proposal: Proposal) -> Trial:
        load, logger = proposal.settings
        hill = 200 - abs(load - 200) // 5
        worst_ns = 300 if 700 <= load < 720 else hill
        busy = (
            Instant("load", "running", (load - 250) * US),
            Instant("load", "stopped", (load - 150) * US),
            Instant("logger", "running", (logger - 250) * US),
            Instant("logger", "stopped", (logger - 150) * US),
        )
        return Trial(proposal, worst_ns, "control", frozenset({"load"}), busy)


def test_where_all_leads_away_from_the_worst_it_takes_at_most_twice_as_long() -> None:
    (found, median), (_, median_of_chance) = played(Deceptive())

    assert found >= 9
    assert median <= 2 * median_of_chance
