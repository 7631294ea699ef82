"""Maxima over the seeds of a virtual board."""

from dataclasses import replace

from fakes.measurements import record, thread
from fakes.printed import render_text
from rtscope.present.documents.results import render_markdown
from rtscope.present.formats.data import render_json
from rtscope.present.model.build import build_model
from rtscope.record.model import RunRecord
from rtscope.stats.determinism import (
    OverSeeds,
    coincide,
    independent,
    over_seeds,
    trajectories,
)
from rtscope.stats.verdict import judge


def run(seed: int | None, *latencies_ns: int, load: str = "idle") -> RunRecord:
    made = record([thread(latencies_ns), thread(latencies_ns, cpu=1)], load)
    return replace(made, run=replace(made.run, seed=seed))


def test_the_maximum_of_each_seed_is_kept_and_their_times_added_up() -> None:
    over = over_seeds([run(9, 5_000, 8_000), run(1, 7_000), run(5, 3_000, 4_000)])

    assert over == OverSeeds(((1, 7_000), (5, 4_000), (9, 8_000)), 5_000_000, 3)
    assert (over.lowest_ns, over.median_ns, over.highest_ns) == (4_000, 7_000, 8_000)
    assert over.worst_seed == 9


def test_the_median_of_two_lies_between_them() -> None:
    over = over_seeds([run(1, 5_000), run(2, 8_000)])

    assert over is not None
    assert over.median_ns == 6_500


def test_a_seed_that_was_run_again_is_no_other_trajectory() -> None:
    again = [run(1, 5_000), run(1, 5_000)]

    assert over_seeds(again) is None
    assert over_seeds([*again, run(2, 6_000)]) == OverSeeds(
        ((1, 5_000), (2, 6_000)), 2_000_000, 2
    )


def test_of_a_seed_that_was_run_again_the_worse_counts() -> None:
    """It never differs, but where two versions of a board were mixed."""
    over = over_seeds([run(1, 9_000, 1_000), run(1, 5_000), run(2, 6_000)])

    assert over == OverSeeds(((1, 9_000), (2, 6_000)), 3_000_000, 2)


def test_a_seed_without_any_latency_has_a_maximum_of_zero() -> None:
    over = over_seeds([run(1, 0), run(2, 6_000)])

    assert over is not None
    assert over.maxima_ns == ((1, 0), (2, 6_000))


def test_of_equal_maxima_the_first_seed_is_the_worst() -> None:
    over = over_seeds([run(3, 8_000), run(2, 8_000), run(1, 5_000)])

    assert over is not None
    assert over.worst_seed == 2


def test_a_real_machine_has_no_seeds() -> None:
    assert over_seeds([run(None, 5_000), run(None, 6_000)]) is None


def test_a_seed_that_measured_nothing_says_nothing() -> None:
    assert over_seeds([run(1, 5_000), run(2, 6_000), run(3, -10)]) == OverSeeds(
        ((1, 5_000), (2, 6_000)), 2_000_000, 2
    )


def test_a_report_says_over_how_many_seeds_its_maxima_are() -> None:
    model = build_model([run(1, 5_000), run(2, 8_000), run(3, 6_000)])

    (line,) = model.seeds
    assert line is model.rows[0]
    assert "(seed 2)" in model.headline.where
    assert "under load idle over 3 seeds" in model.headline.support
    text = render_text(model)
    assert "Maxima over 3 seeds" in text
    assert "idle        5.00        6.00         8.00           2      3" in text
    assert "| idle | 5.00 | 6.00 | **8.00** | 2 | 3 |" in render_markdown(model)
    assert '"max_ns_of_seed": {\n          "1": 5000,' in render_json(model)


def late_at(seed: int | None, *places: int, samples: int = 2_000) -> RunRecord:
    """A run of 16 kept worst wake-ups, at these places."""
    latencies = [5_000 + (i * 7 + (seed or 0)) % 11 for i in range(samples)]
    for place in places:
        latencies[place] = 50_000 + place
    made = record([thread(latencies, worst_kept=16)])
    return replace(made, run=replace(made.run, seed=seed))


SAME = tuple(range(100, 1_700, 100))
OTHER = tuple(range(150, 1_750, 100))


def test_seeds_that_share_their_worst_wakeups_are_one_trajectory() -> None:
    runs = [late_at(1, *SAME), late_at(2, *OTHER), late_at(3, *SAME, samples=3_000)]
    assert coincide(runs[0], runs[2])
    assert not coincide(runs[0], runs[1])
    assert trajectories(runs) == ((runs[0], runs[2]), (runs[1],))
    over = over_seeds(runs)
    assert over is not None
    assert (over.trajectories, over.observed_ns) == (2, 5_000_000_000)
    [finding] = judge(runs, deadline_ns=900_000).findings
    assert (len(finding.evidence.misses), finding.evidence.observed_ns) == (
        3,
        5_000_000_000,
    )
    assert (
        "in 5 s (3 seeds, but only 2 independent: others share the worst wake-ups) "
    ) in finding.sentence
    support = build_model(runs).headline.support
    assert support.startswith(
        "Longest in 5 s under load idle over 3 seeds, of which 2 "
    )


def test_a_row_adds_up_the_time_of_independent_trajectories_only() -> None:
    runs = [late_at(1, *SAME), late_at(2, *OTHER), late_at(3, *SAME, samples=3_000)]

    assert independent(runs) == (runs[2], runs[1])
    [row] = build_model(runs).rows
    assert (row.runs, row.observed_ns) == (3, 5_000_000_000)
    machine = [replace(r, run=replace(r.run, seed=None)) for r in runs]
    [row] = build_model(machine).rows
    assert (row.runs, row.observed_ns) == (3, 7_000_000_000)


def of_kernel(record: RunRecord, kernel: str) -> RunRecord:
    return replace(record, run=replace(record.run, kernel=kernel))


def test_a_comparison_counts_the_episodes_of_one_trajectory_once() -> None:
    late = [of_kernel(late_at(seed, *SAME), "late") for seed in (1, 2, 3)]
    good = [of_kernel(late_at(seed, *OTHER), "good") for seed in (1, 2, 3)]
    quiet = thread([5_000, 6_000] * 1_000, worst_kept=16)
    good = [replace(r, result=replace(r.result, threads=(quiet,))) for r in good]

    pair = build_model([*late, *good]).pair
    assert pair is not None
    assert "late had 16 episodes in 2 s" in pair.rows[0].sentence


def test_a_miss_of_a_seed_that_adds_no_time_is_still_a_miss() -> None:
    runs = [late_at(1, *SAME, samples=3_000), late_at(2, *SAME)]
    threads = runs[1].result.threads
    late = thread([5_000] * 1_999 + [950_000], worst_kept=16)
    worst = (late.worst[0], *threads[0].worst[:15])
    late = replace(late, worst=worst)
    runs[1] = replace(runs[1], result=replace(runs[1].result, threads=(late,)))
    [finding] = judge(runs, deadline_ns=900_000).findings
    assert (finding.evidence.total, finding.evidence.episodes) == (1, 1)


def test_two_shared_by_chance_of_long_lists_are_no_coincidence() -> None:
    one = late_at(1, *range(0, 1_600, 100), samples=1_700)
    other = late_at(2, *range(0, 300, 100), *range(350, 1_600, 100), samples=1_700)
    alone = late_at(3, 100, *range(150, 1_600, 100), samples=1_700)
    assert coincide(one, other)  # 3 of 16 v 16 in 1,700: 0.15 expected
    assert not coincide(one, alone)


def test_the_same_activations_of_different_cpus_are_no_coincidence() -> None:
    latencies = [*[5_000] * 1_998, 50_000, 60_000]
    on = [record([thread(latencies, cpu=cpu, worst_kept=2)]) for cpu in (0, 0, 1)]
    first, again, apart = on
    assert coincide(first, again)
    assert not coincide(first, apart)


def test_a_coincidence_must_hold_among_all_pairs_that_were_looked_at() -> None:
    one = late_at(1, *range(0, 1_600, 100), samples=1_700)
    other = late_at(2, *range(0, 300, 100), *range(350, 1_600, 100), samples=1_700)
    # P(Poisson(0.15) >= 3) = 0.0005
    assert coincide(one, other, comparisons=90)
    assert not coincide(one, other, comparisons=110)


def test_runs_of_a_machine_are_independent() -> None:
    runs = [late_at(None, *SAME), late_at(None, *SAME, samples=3_000)]
    assert trajectories(runs) == ((runs[0],), (runs[1],))


def test_without_seeds_nothing_is_said_of_them() -> None:
    model = build_model([run(None, 5_000), run(None, 6_000)])

    assert model.seeds == ()
    assert "seed" not in render_text(model)
    assert "(repetition 1)" in model.headline.where
