"""Runs that are one trajectory: what is found at once is what each pair says."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import DisjointSet

from fakes.measurements import record, thread
from rtscope.contract import ThreadResult, Wakeup
from rtscope.record.model import RunRecord
from rtscope.stats.determinism import coincide
from rtscope.verbs.sweep.effects import trajectories_of, worst_lists

PERIOD_NS = 1_000_000
ONE_RUN = record([thread([5_000])])
ONE_THREAD = ONE_RUN.result.threads[0]


def run(*threads: ThreadResult) -> RunRecord:
    """Return a run of these threads."""
    return replace(ONE_RUN, result=replace(ONE_RUN.result, threads=threads))


def listing(
    places: Sequence[int], *, activations: int = 1_000, cpu: int | None = 0
) -> ThreadResult:
    """Return a thread whose worst wake-ups are these activations."""
    return replace(
        ONE_THREAD,
        cpu=cpu,
        start_ns=0,
        end_ns=activations * PERIOD_NS,
        interval_ns=PERIOD_NS,
        worst=tuple(Wakeup(cpu, place, 0, 1) for place in places),
    )


def one_by_one(runs: Sequence[RunRecord]) -> list[int]:
    """Return the first run of each run's trajectory, from each pair of runs."""
    joined = DisjointSet(range(len(runs)))
    comparisons = math.comb(len(runs), 2)
    for one, other in combinations(range(len(runs)), 2):
        if coincide(runs[one], runs[other], comparisons=comparisons):
            joined.merge(one, other)
    return [min(joined.subset(place)) for place in range(len(runs))]


def at_once(runs: Sequence[RunRecord]) -> list[int]:
    return trajectories_of([worst_lists(one) for one in runs])


@st.composite
def some_runs(draw: st.DrawFn) -> list[RunRecord]:
    """Draw runs of which several have equal lists, or lists that are nearly equal."""
    lists = draw(
        st.lists(st.lists(st.integers(1, 24), max_size=12), min_size=1, max_size=3)
    )
    threads = st.builds(
        lambda places, more, activations, cpu: listing(
            [*places, *more], activations=activations, cpu=cpu
        ),
        st.sampled_from(lists),
        st.lists(st.integers(1, 24), max_size=2),
        st.sampled_from([24, 60, 1_000, 100_000]),
        st.sampled_from([0, 0, 1, None]),
    )
    return draw(
        st.lists(st.lists(threads, max_size=3).map(lambda some: run(*some)), max_size=9)
    )


@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)
@given(some_runs())
def test_all_at_once_is_as_each_pair_of_runs(runs: list[RunRecord]) -> None:
    assert at_once(runs) == one_by_one(runs)


def test_runs_that_list_the_same_activations_are_one_trajectory() -> None:
    same = run(listing(range(10)))

    assert at_once([same, run(listing(range(500, 510))), same]) == [0, 1, 0]


def test_lists_of_nearly_all_activations_say_nothing() -> None:
    whole = run(listing(range(60), activations=60))

    assert at_once([whole, whole, whole]) == [0, 1, 2]


def test_runs_that_are_both_like_a_third_are_one_trajectory() -> None:
    first = run(listing([*range(10)]))
    third = run(listing([*range(5), *range(600, 605)]))
    other = run(listing([*range(600, 610)]))

    assert at_once([first, other, third]) == [0, 0, 0]


def test_the_earlier_of_two_runs_tells_how_many_activations_there_are() -> None:
    """Of 40 activations ten in common are chance; of 1,000 they are not."""
    short, long = (run(listing(range(20), activations=some)) for some in (28, 1_000))

    assert at_once([short, long]) == one_by_one([short, long]) == [0, 1]
    assert at_once([long, short]) == one_by_one([long, short]) == [0, 0]
    again = [long, short, long]
    assert at_once(again) == one_by_one(again) == [0, 0, 0]


def test_more_runs_than_are_compared_in_one_go() -> None:
    runs = [
        run(listing([1000 + 7 * (place % 300) + late for late in range(6)]))
        for place in range(601)
    ]

    assert at_once(runs) == [place % 300 for place in range(601)]
