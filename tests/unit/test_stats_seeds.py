"""Maxima over the seeds of a virtual board."""

from dataclasses import replace

from fakes.measurements import record, thread
from rtscope.record.model import RunRecord
from rtscope.report.formats.data import render_json
from rtscope.report.formats.markdown import render_markdown
from rtscope.report.formats.text import render_text
from rtscope.report.model.build import build_model
from rtscope.stats.seeds import OverSeeds, over_seeds


def run(seed: int | None, *latencies_ns: int, load: str = "idle") -> RunRecord:
    made = record([thread(latencies_ns), thread(latencies_ns, cpu=1)], load)
    return replace(made, run=replace(made.run, seed=seed))


def test_the_maximum_of_each_seed_is_kept_and_their_times_added_up() -> None:
    over = over_seeds([run(9, 5_000, 8_000), run(1, 7_000), run(5, 3_000, 4_000)])

    assert over == OverSeeds(((1, 7_000), (5, 4_000), (9, 8_000)), 5_000_000)
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
        ((1, 5_000), (2, 6_000)), 2_000_000
    )


def test_of_a_seed_that_was_run_again_the_worse_counts() -> None:
    """It never differs, but where two versions of a board were mixed."""
    over = over_seeds([run(1, 9_000, 1_000), run(1, 5_000), run(2, 6_000)])

    assert over == OverSeeds(((1, 9_000), (2, 6_000)), 3_000_000)


def test_of_equal_maxima_the_first_seed_is_the_worst() -> None:
    over = over_seeds([run(3, 8_000), run(2, 8_000), run(1, 5_000)])

    assert over is not None
    assert over.worst_seed == 2


def test_a_real_machine_has_no_seeds() -> None:
    assert over_seeds([run(None, 5_000), run(None, 6_000)]) is None


def test_a_seed_that_measured_nothing_says_nothing() -> None:
    assert over_seeds([run(1, 5_000), run(2, 6_000), run(3, -10)]) == OverSeeds(
        ((1, 5_000), (2, 6_000)), 2_000_000
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
    assert "| idle | 5.00 | 6.00 | 8.00 | 2 | 3 |" in render_markdown(model)
    assert '"max_ns_of_seed": {\n          "1": 5000,' in render_json(model)


def test_without_seeds_nothing_is_said_of_them() -> None:
    model = build_model([run(None, 5_000), run(None, 6_000)])

    assert model.seeds == ()
    assert "seed" not in render_text(model)
    assert "(repetition 1)" in model.headline.where
