"""What a search tries next, without a board."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import UsageError
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.model import Outside, OutsideCycle, OutsideThread
from rtscope.verbs.test.file import ProgramTest, program_test_of
from rtscope.verbs.test.search.levers import Lever, Settings, Space
from rtscope.verbs.test.search.meetings import KEPT, held_longer, met, together
from rtscope.verbs.test.search.proposals import bases_of, propose
from rtscope.verbs.test.search.seen import Start, judged_name
from rtscope.verbs.test.search.trials import Instant, Proposal, Trial, growth

LOAD = Lever(
    "load", 0, 999, step=2, ns_per_unit=1000, moves=frozenset({"load"}), period=1000
)
START = Lever("start", 0, 400, ns_per_unit=1000, moves=frozenset({"control"}))
SEED = Lever("seed", 1, 9, is_time=False)


def trial_of(settings: Settings, worst_ns: int = 100_000, *i: Instant) -> Trial:
    return Trial(Proposal(settings, "spread"), worst_ns, "control", frozenset(), i)


def searched(
    space: Space, worst_ns: Callable[[Settings], int], *, seed: int, count: int
) -> list[Trial]:
    trials: list[Trial] = []
    while len(trials) < count:
        for proposal in propose(space, trials, seed=seed, count=4):
            ns = worst_ns(proposal.settings)
            trials.append(Trial(proposal, ns, "control"))
    return trials


@pytest.mark.parametrize(
    ("wanted", "value"), [(7, 8), (1003, 4), (-10, 990), (999, 998)]
)
def test_a_phase_is_rounded_to_its_grid_within_its_period(
    wanted: int, value: int
) -> None:
    assert LOAD.nearest(wanted) == value


def test_a_value_outside_the_range_of_no_period_is_none() -> None:
    assert START.nearest(401) is None
    assert START.nearest(-1) is None


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot vary PHASE_US from 5 to 4"):
        Lever("PHASE_US", 5, 4)


def test_a_search_without_levers_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to vary"):
        Space.of([])


def test_the_first_trial_is_a_start_without_a_search() -> None:
    [first, *_] = propose(Space.of([LOAD, SEED]), [], seed=1, count=4)

    assert (first.settings, first.how) == ((0, 1), "first")


BUSY = (
    Instant("load", "running", 250_000),
    Instant("load", "stopped", 290_000),
    Instant("tick", "running", 700_000),
    Instant("tick", "stopped", 710_000),
)


def drawn_from(space: Space, trial: Trial, count: int = 400) -> list[Settings]:
    drawn = Random(1)
    return [met(space, trial, drawn) for _ in range(count)]


def test_most_draws_let_the_load_run_while_the_judged_thread_does() -> None:
    trial = trial_of((500,), 100_000, *BUSY)

    draws = drawn_from(Space.of([LOAD]), trial)

    # Busy from 250 us to 290 us in the trial; the judged thread from 0 to 100 us.
    meets = [500 - 290 <= value <= 500 - 150 for (value,) in draws]
    assert 400 * 0.5 < sum(meets) < 400


def test_all_that_moves_is_due_with_the_judged_thread() -> None:
    trial = trial_of((500,), 100_000, Instant("load", "release", 240_000), *BUSY)

    assert together(Space.of([LOAD]), trial) == (260,)


def test_a_judged_thread_that_moves_is_due_with_what_stays() -> None:
    trial = trial_of((100,), 100_000, Instant("load", "release", 240_000), *BUSY)

    assert together(Space.of([START]), trial) == (340,)


WAITED = Trial(
    Proposal((500, 0), "spread"),
    100_000,
    "control",
    frozenset({"holder"}),
    (
        Instant("load", "release", 240_000),
        Instant("load", "running", 250_000),
        Instant("load", "stopped", 290_000),
        Instant("holder", "release", -20_000),
    ),
    ((60_000, 80_000),),
)
HOLDER = Lever("holder", 0, 999, ns_per_unit=1000, moves=frozenset({"holder"}))


def test_another_is_due_while_the_judged_thread_waits() -> None:
    space = Space.of([LOAD, HOLDER])
    drawn = [held_longer(space, WAITED, Random(seed)) for seed in range(200)]
    due_us = [240 + one[0] - 500 for one in drawn if one is not None]

    assert len(due_us) == 200
    assert {one[1] for one in drawn if one is not None} == {0}
    # From as long before the wait as it took; or it executes then, 40 us of its own.
    assert min(due_us) < 40 - 20
    assert max(due_us) <= 80
    assert sum(40 <= at <= 80 for at in due_us) >= 100


@pytest.mark.parametrize(
    ("levers", "trial"),
    [
        ([LOAD], replace(WAITED, waits_ns=())),
        ([HOLDER], WAITED),
        ([START], WAITED),
        ([LOAD], replace(WAITED, instants=WAITED.instants[3:])),
    ],
    ids=["no wait", "only who holds it", "only the judged", "not seen"],
)
def test_nothing_makes_a_wait_longer(levers: list[Lever], trial: Trial) -> None:
    assert held_longer(Space.of(levers), trial, Random(1)) is None


def test_who_is_not_seen_stays_where_it_is() -> None:
    assert together(Space.of([LOAD]), trial_of((500,), 100_000)) == (500,)


def test_the_start_in_which_all_meet_is_tried_once_and_no_hill() -> None:
    release = Instant("load", "release", 240_000)
    trials = [trial_of((at,), 1000 + at, release) for at in (500, 400, 300)]
    made = propose(Space.of([LOAD]), trials, seed=1, count=8)

    assert [one.settings for one in made if one.how == "together"] == [(260,)]
    met_so = Trial(made[0], 9_000_000, "control", frozenset(), ())
    assert made[0].how == "together"
    assert bases_of([*trials, met_so]) == bases_of(trials)


def test_a_lever_of_the_judged_thread_takes_it_to_the_others() -> None:
    trial = trial_of((0,), 100_000, *BUSY[:2])

    draws = drawn_from(Space.of([START]), trial)

    assert sum(150 <= value <= 290 for (value,) in draws) > 400 * 0.5


def test_who_held_the_thread_up_mostly_stays() -> None:
    levers = Space.of([START, LOAD])
    trial = Trial(
        Proposal((100, 0), "spread"), 50_000, "control", frozenset({"load"}), BUSY
    )

    draws = drawn_from(levers, trial)

    assert sum(load == 0 for _, load in draws) > 400 * KEPT / 2


def test_threads_that_are_moved_together_meet_in_one_cycle() -> None:
    levers = Space.of([LOAD, Lever("tick", 0, 999, 1, 1000, frozenset({"tick"}), 1000)])
    trial = trial_of((100, 100), 100_000, *BUSY)

    both = [one for one in drawn_from(levers, trial) if one[0] != 100 and one[1] != 100]

    def meets(settings: Settings) -> bool:
        later_us = [(value - 100) % 1000 for value in settings]
        return 710 <= later_us[0] <= 850 and 290 <= later_us[1] <= 400

    assert sum(meets(one) for one in both) > 4 * len(both) * 0.14 * 0.11


def test_a_seed_is_no_time_that_can_be_moved() -> None:
    trial = trial_of((3,), 1, *BUSY)

    assert {value for (value,) in drawn_from(Space.of([SEED]), trial)} == set(
        range(1, 10)
    )


def test_every_second_trial_looks_at_no_other() -> None:
    space = Space.of([LOAD, START])
    trials = [trial_of((n, n), 100_000 + n, *BUSY) for n in range(0, 40, 2)]
    others = [trial_of((n, n), 100_000) for n in range(0, 40, 2)]

    made = propose(space, trials, seed=1, count=20)
    blind = propose(space, others, seed=1, count=20)

    spread = [one.settings for one in made if one.how == "spread"]
    assert len(spread) == 10
    assert spread == [one.settings for one in blind[::2]]


def test_a_search_goes_on_from_the_worst_few_that_differ() -> None:
    worst_ns = [100, 100, 100, 100, 100, 160, 130, 161, 102]
    trials = [trial_of((n,), ns * 1000) for n, ns in enumerate(worst_ns)]

    assert bases_of(trials) == [7, 6]


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_search_repeats_itself_and_never_a_start(seed: int, count: int) -> None:
    space = Space.of([LOAD, START, SEED])

    def worst_ns(settings: Settings) -> int:
        return sum(settings) % 97

    trials = searched(space, worst_ns, seed=seed, count=count)

    assert trials == searched(space, worst_ns, seed=seed, count=count)
    assert len({trial.settings for trial in trials}) == len(trials)


def test_a_search_ends_when_all_settings_are_tried() -> None:
    space = Space.of([SEED])
    trials = [trial_of((value,)) for value in range(1, 8)]

    proposals = propose(space, trials, seed=1, count=5)

    assert {p.settings for p in proposals} == {(8,), (9,)}


def test_the_even_points_leave_no_tenth_of_a_range_out() -> None:
    space = Space.of([Lever("a", 0, 999), Lever("b", 0, 999)])

    points = [space.spread(n, (0.3, 0.9)) for n in range(40)]

    assert {a // 100 for a, _ in points} == set(range(10))
    assert {b // 100 for _, b in points} == set(range(10))


def test_a_step_beside_the_worst_climbs_a_hill() -> None:
    space = Space.of([Lever("a", 0, 9999), Lever("b", 0, 9999)])

    def worst_ns(settings: Settings) -> int:
        return 150_000 - abs(settings[0] - 4321) * 10 - abs(settings[1] - 8765) * 10

    trials = searched(space, worst_ns, seed=3, count=200)

    assert max(trial.worst_ns for trial in trials) > 150_000 * 0.97


def test_growth_has_the_first_trial_and_each_that_exceeded_all_before() -> None:
    trials = [trial_of((n,), ns) for n, ns in enumerate([5, 3, 5, 9, 8, 11])]

    assert [(step.trial, step.worst_ns) for step in growth(trials)] == [
        (1, 5),
        (4, 9),
        (6, 11),
    ]


# --- which thread is searched ---------------------------------------------------------


def start_of(*threads: tuple[str, int, int | None]) -> Start:
    """Return a start by name, response and period of its threads, in us."""
    made = []
    for tid, (name, response_us, period_us) in enumerate(threads, 100):
        done_ns = response_us * 1000
        cycle = OutsideCycle(
            *(0, 0, True, 0, None, None, 0, done_ns, done_ns, 1, (), (), {}, 0, True)
        )
        period_ns = period_us and period_us * 1000
        made.append(OutsideThread(tid, 100, name, 19, period_ns, None, (cycle,), 0, 0))
    return Start(Outside(tuple(made), 0, 1, 0, frozenset(Kind), 1), {}, {})


TWO = start_of(("fast", 40, 1000), ("slow", 90, 4000))


@pytest.mark.parametrize(
    ("start", "limits", "name"),
    [
        (TWO, {}, "fast"),
        (TWO, {"slow": "2ms"}, "slow"),
        (TWO, {"slow": "100us", "fast": "50us"}, "slow"),
        (start_of(("none", 900, None), ("slow", 90, 4000)), {}, "slow"),
        (start_of(), {}, None),
    ],
)
def test_the_thread_nearest_to_its_limit_or_else_its_period_is_searched(
    start: Start, limits: dict[str, str], name: str | None
) -> None:
    tables = {one: {"response": limit} for one, limit in limits.items()}
    test = program_test_of(
        {"program": {"command": ["./control"]}, "thread": tables}, source="a.toml"
    )

    assert judged_name(test, start) == name


def test_a_thread_that_is_wanted_is_searched_or_told_to_be_none() -> None:
    assert judged_name(ProgramTest(), TWO, wanted="slow") == "slow"
    with pytest.raises(UsageError, match="'slwo'; did you mean 'slow'"):
        judged_name(ProgramTest(), TWO, wanted="slwo")
