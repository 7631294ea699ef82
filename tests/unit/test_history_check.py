"""Is the newest night worse? The question, its test and its words."""

import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import on_board
from fakes.nights import keep, lab, latencies, run
from rtscope.host.errors import UsageError
from rtscope.record.caveats.catalogue import make
from rtscope.record.model import InputDigests, RunRecord
from rtscope.verbs.history import database
from rtscope.verbs.history.checktext import Check, check_json, check_junit, sentence_of
from rtscope.verbs.history.indexing import Tally, index_place
from rtscope.verbs.history.judge import Answer, Nights, Word, effects_of_nights, judge
from rtscope.verbs.history.query import Filters
from rtscope.verbs.history.questions import Asked, Baseline, baseline_of, questions
from rtscope.verbs.history.series import Measure, changes
from rtscope.verbs.history.tags import write_tags


def checked(
    place: Path,
    *,
    latest: int | None = 1,
    new: frozenset[str] = frozenset(),
    baseline: str = "last:20",
    deadline_ns: int | None = None,
) -> Check:
    file = place.parent / "history.db"
    with database.opened(file, make=True) as opened:
        tally = Tally()
        index_place(opened, place, tally)
        assert not tally.damaged
        asked = Asked(latest, new, baseline_of(baseline), deadline_ns)
        return Check(judge(questions(opened, Filters(), asked)), baseline)


def only(check: Check) -> Answer:
    [answer] = check.answers
    return answer


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Twenty equal nights of one board."""
    place = tmp_path / "nights"
    lab(place, 20)
    return place


def add(nights: Path, night: int, *records: RunRecord) -> Path:
    return keep(nights / f"night-{night}" / "a", *records).path


WORSE = {"worst_ns": 400_000}


# --- what is compared with what -------------------------------------------------------


def test_a_night_far_worse_than_twenty_is_an_alarm_at_one_in_twenty_one(
    nights: Path,
) -> None:
    add(nights, 20, run(latencies(20, **WORSE), night=20, release="6.12.44"))
    check = checked(nights)
    answer = only(check)

    assert (answer.word, check.status) == (Word.WORSE, 1)
    assert {one.figure for one in answer.worse} == {"max", "mean"}
    assert answer.worse[0].p == pytest.approx(1 / 21)
    assert answer.question.changed == ("kernel 6.12.43 → 6.12.44",)
    said = sentence_of(answer)
    assert "ssh:a idle is worse than in 20 nights before" in said
    assert "kernel 6.12.43 → 6.12.44" in said


def test_an_equal_night_is_not_worse_and_says_what_would_have_been_seen(
    nights: Path,
) -> None:
    add(nights, 20, run(latencies(40), night=20))
    check = checked(nights)
    answer = only(check)

    assert (answer.word, check.status) == (Word.NOT_WORSE, 0)
    [effect] = [one for one in answer.effects if one.figure == "max"]
    assert effect.detectable_ratio is not None
    assert 1 < effect.detectable_ratio < 3
    assert "1 v 20 nights would show" in sentence_of(answer)


def test_a_better_night_is_no_alarm(nights: Path) -> None:
    add(nights, 20, run(latencies(20, mean_ns=2_000, worst_ns=5_000), night=20))
    assert only(checked(nights)).word is Word.NOT_WORSE


def test_one_night_against_too_few_says_how_many_it_takes(tmp_path: Path) -> None:
    lab(tmp_path / "n", 10)
    check = checked(tmp_path / "n")

    assert (only(check).word, check.status) == (Word.TOO_FEW, 4)
    assert "1 new and 19 before can show something" in sentence_of(only(check))
    assert only(checked(tmp_path / "n", latest=4)).word is Word.NOT_WORSE


def test_runs_of_one_night_are_one_value(nights: Path) -> None:
    three = [run(latencies(n, **WORSE), night=20) for n in (30, 31, 32)]
    records = [
        replace(one, run=replace(one.run, id=f"{at:03}-idle", repetition=at))
        for at, one in enumerate(three, 1)
    ]
    add(nights, 20, *records)
    answer = only(checked(nights))

    assert [len(night.runs) for night in answer.question.new] == [3]
    assert answer.effects[0].runs == (20, 1)


def test_a_named_result_is_compared_with_those_before_it_alone(nights: Path) -> None:
    named = add(nights, 20, run(latencies(20, **WORSE), night=20))
    add(nights, 21, run(latencies(21), night=21))
    answer = only(checked(nights, new=frozenset({str(named)})))

    assert answer.word is Word.WORSE
    assert str(nights / "night-21/a") not in {n.directory for n in answer.question.base}


def test_the_baseline_may_be_tagged(nights: Path) -> None:
    for night in range(20, 24):
        add(nights, night, run(latencies(night, **WORSE), night=night))
    # The last nights are bad themselves, and hide a bad one more.
    add(nights, 24, run(latencies(24, **WORSE), night=24))
    assert only(checked(nights, latest=1)).word is Word.NOT_WORSE
    for night in range(20):
        write_tags(nights / f"night-{night:02}/a", {"good"})
    answer = only(checked(nights, latest=1, baseline="tag:good"))

    assert len(answer.question.base) == 20
    assert answer.word is Word.WORSE


@pytest.mark.parametrize("text", ["last:0", "last:x", "good", "tag:No", "last:100000"])
def test_a_wrong_baseline_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        baseline_of(text)


def test_the_baseline_is_read() -> None:
    assert baseline_of("last:7") == Baseline(last=7)
    assert baseline_of("tag:good").words == "tag:good"


def test_two_settings_of_one_night_are_two_series(nights: Path) -> None:
    for night in range(20):
        place = nights / f"night-{night:02}" / "b"
        both = [
            run(latencies(night), night=night, board="b"),
            run(latencies(night + 50), night=night, board="b", preempt_rt=False),
        ]
        later = replace(both[1], started_at=both[1].started_at.replace(":00Z", ":09Z"))
        kept = replace(later, run=replace(later.run, id="002-idle", repetition=2))
        keep(place, both[0], kept)
    answers = checked(nights, latest=4).answers

    assert [one.question.series.name for one in answers] == [
        *("ssh:a idle", "ssh:b idle", "ssh:b idle"),
    ]
    assert {one.word for one in answers} == {Word.NOT_WORSE}
    assert {len(one.question.base) for one in answers} == {16}


# --- what does not compare ------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"agent": "0.2.0"}, "agent 0.1.0 → 0.2.0"),
        ({"machine_model": "Another"}, "machine +Another -Example -Board"),
        ({"preempt_rt": False}, "PREEMPT_RT on → off"),
    ],
)
def test_other_settings_are_said_and_not_compared(
    nights: Path, facts: dict[str, str | bool], told: str
) -> None:
    add(nights, 20, run(latencies(20, **WORSE), night=20, **facts))  # type: ignore[arg-type]
    check = checked(nights)
    answer = only(check)

    assert (answer.word, check.status) == (Word.NOT_COMPARED, 4)
    [said] = [one for one in answer.question.differs if told[:5] in one]
    assert set(said.split()) == set(told.split())


def test_a_longer_run_is_not_compared(nights: Path) -> None:
    add(nights, 20, run(latencies(20) * 2, night=20))
    answer = only(checked(nights))

    assert answer.word is Word.NOT_COMPARED
    assert "20 nights longer or shorter" in sentence_of(answer)


def test_a_night_whose_run_does_not_count_is_not_compared(nights: Path) -> None:
    bad = replace(run(latencies(20), night=20), caveats=(make("load_died", ""),))
    add(nights, 20, bad)
    answer = only(checked(nights))

    assert answer.word is Word.NOT_COMPARED
    assert "no run counts" in sentence_of(answer)


def test_nights_that_do_not_count_are_in_no_baseline(nights: Path) -> None:
    bad = replace(run(latencies(20, **WORSE), night=20), caveats=(make("load_died"),))
    add(nights, 20, bad)
    add(nights, 21, run(latencies(21), night=21))

    assert len(only(checked(nights)).question.base) == 20


def test_a_copy_of_a_night_is_no_night(nights: Path) -> None:
    shutil.copytree(nights / "night-19", nights / "night-20")
    answer = only(checked(nights))

    assert answer.word is Word.NOT_COMPARED
    assert "a copy of another result" in sentence_of(answer)


# --- a hard deadline ------------------------------------------------------------------


def test_a_missed_deadline_is_an_alarm_whatever_p_is(tmp_path: Path) -> None:
    lab(tmp_path / "n", 3)
    check = checked(tmp_path / "n", deadline_ns=40_500)
    answer = only(check)
    maximum = answer.question.new[0].max_ns

    assert maximum > 40_500
    assert (answer.word, answer.misses, check.status) == (Word.MISSED, 1, 1)
    assert "missed its deadline of 40.5 us once" in sentence_of(answer)
    assert only(checked(tmp_path / "n", deadline_ns=maximum)).misses == 0


# --- virtual boards -------------------------------------------------------------------


def test_a_virtual_board_is_identical_or_changed_exactly(tmp_path: Path) -> None:
    place = tmp_path / "n"
    same = on_board(run(latencies(1)))
    add(place, 1, same)
    add(place, 2, replace(same, started_at="2026-11-09T02:00:00Z"))
    assert only(checked(place)).word is Word.IDENTICAL

    other = on_board(run(latencies(2), night=12), kernel_digest="e" * 64)
    add(place, 3, other)
    check = checked(place)
    assert (only(check).word, check.status) == (Word.TOO_FEW_SEEDS, 4)
    assert "board's kernel" in sentence_of(only(check))
    assert "--seeds 3" in sentence_of(only(check))


def of_seeds(night: int, seeds: int, *, kernel: str, worst_ns: int) -> list[RunRecord]:
    """Return the runs of a virtual board in a night, one with each seed."""
    return [
        on_board(
            replace(made, run=replace(made.run, id=f"{seed:03}-idle", seed=seed)),
            seed=seed,
            kernel_digest=kernel * 64,
        )
        for seed in range(1, seeds + 1)
        for made in [
            run(
                latencies(int(kernel, 16) * 10 + seed, worst_ns=worst_ns),
                night=night,
                release=f"6.12.{kernel}",
            )
        ]
    ]


def test_a_virtual_board_whose_new_kernel_is_late_with_each_seed_is_worse(
    tmp_path: Path,
) -> None:
    place = tmp_path / "n"
    for night in range(6):  # nights of one kernel have equal results
        kernel = "a" if night < 3 else "b"
        add(place, night, *of_seeds(night, 3, kernel=kernel, worst_ns=40_000))
    equal = checked(place)
    add(place, 6, *of_seeds(6, 3, kernel="c", worst_ns=400_000))

    assert (only(equal).word, equal.status) == (Word.IDENTICAL, 0)
    for latest in (1, 2, None):
        check = checked(place, latest=latest)
        answer = only(check)
        assert (answer.word, check.status) == (Word.WORSE, 1)
        assert "max" in {one.figure for one in answer.worse}
        # Each result once, and of the newest nights those that are new.
        assert answer.effects[0].runs == (6, 3)
        assert "virtual µs" in sentence_of(answer)


def test_a_virtual_board_that_changed_as_another_seed_does_is_not_worse(
    tmp_path: Path,
) -> None:
    place = tmp_path / "n"
    for night, kernel in enumerate("abcd"):
        add(place, night, *of_seeds(night, 3, kernel=kernel, worst_ns=40_000))
    check = checked(place)

    assert (only(check).word, check.status) == (Word.CHANGED, 0)
    assert "would show" in sentence_of(only(check))


def test_a_kernel_that_moves_all_latencies_of_a_board_by_a_little_is_no_alarm(
    tmp_path: Path,
) -> None:
    place = tmp_path / "n"
    for night, kernel in enumerate("abc"):
        add(place, night, *of_seeds(night, 3, kernel=kernel, worst_ns=40_000))
    add(place, 3, *of_seeds(3, 3, kernel="d", worst_ns=45_000))
    check = checked(place)
    [maximum] = [one for one in only(check).effects if one.figure == "max"]
    written = check_json(check)["series"][0]["figures"]

    assert maximum.is_worse
    assert 1.01 < maximum.ratio < 1.1
    assert (only(check).word, check.status) == (Word.CHANGED, 0)
    assert all(one["detectable_ratio"] >= 1.1 for one in written)
    assert not any(one["worse"] for one in written)


def test_a_parameter_of_a_boards_kernel_is_compared_and_another_board_is_not(
    tmp_path: Path,
) -> None:
    place = tmp_path / "n"

    def night(number: int, definition: str, cpus: int, *words: str) -> RunRecord:
        same = "d" * 64
        return on_board(
            run(latencies(number), night=number, kernel_cmdline=" ".join(words)),
            cpus=cpus,
            input_digests=InputDigests(
                *(same, same, same, same, definition * 64, same, 1)
            ),
        )

    add(place, 0, night(0, "a", 2, "quiet"))
    add(place, 1, night(1, "b", 2, "quiet", "rcutree.kthread_prio=99"))
    [changed] = only(checked(place)).question.changed
    add(place, 2, night(2, "c", 4, "quiet"))
    other = only(checked(place))

    assert changed == "kernel command line +rcutree.kthread_prio=99"
    assert other.word is Word.NOT_COMPARED
    assert "board's board" in sentence_of(other)
    assert "c" * 13 not in sentence_of(other)


def test_boards_that_changed_and_machines_are_families_of_their_own(
    nights: Path,
) -> None:
    add(nights, 20, run(latencies(20), night=20))
    for night, kernel in ((19, "a"), (20, "b")):
        made = of_seeds(night, 3, kernel=kernel, worst_ns=40_000)
        keep(nights / f"night-{night}" / "pc", *made)
    machine, board = checked(nights).answers

    assert (machine.word, board.word) == (Word.NOT_WORSE, Word.CHANGED)
    assert machine.tests == len(machine.measures)
    assert board.tests == len(board.measures)


# --- the family -----------------------------------------------------------------------


def drawn(rng: random.Random, series: int, shift: float) -> list[Nights]:
    return [
        Nights(
            20,
            1,
            (
                Measure(
                    "max",
                    "maximum",
                    (
                        *(rng.gauss(0, 1) for _ in range(20)),
                        rng.gauss(shift if number == 0 else 0, 1),
                    ),
                ),
            ),
        )
        for number in range(series)
    ]


@pytest.mark.slow
def test_forty_equal_series_alarm_in_one_check_of_twenty_at_most() -> None:
    rng = random.Random(7)
    alarms = sum(
        any(one.is_worse for one in effects_of_nights(drawn(rng, 40, 0.0)))
        for _ in range(400)
    )

    # 400 / 21 are expected; six standard deviations more are never reached.
    assert alarms <= 400 / 21 + 6 * math.sqrt(400 / 21)


def test_a_large_shift_of_one_of_forty_is_found() -> None:
    rng = random.Random(8)
    found = [effects_of_nights(drawn(rng, 40, 9.0))[0].is_worse for _ in range(20)]

    assert sum(found) >= 18


def test_series_with_fewer_nights_are_tested_with_the_others() -> None:
    short = Nights(7, 4, (Measure("max", "maximum", (1.0, 1.1, 0.9) * 3 + (9.0, 9.1)),))
    long = Nights(20, 4, (Measure("max", "maximum", tuple(map(float, range(24)))),))
    effects = effects_of_nights([short, long])

    assert [one.runs for one in effects] == [(7, 4), (20, 4)]
    assert all(0 < one.p <= one.adjusted_p <= 1 for one in effects)
    assert effects[1].is_worse


def test_nothing_to_test_has_no_effects() -> None:
    assert effects_of_nights([]) == ()


# --- words ----------------------------------------------------------------------------


def test_changes_are_words() -> None:
    before = '{"kernel": "6.1", "kernel build": "#1", "line": "quiet a=1", "x": null}'
    after = '{"kernel": "6.2", "kernel build": "#2", "line": "quiet a=2", "x": true}'

    assert changes(before, after) == (
        *("kernel 6.1 → 6.2", "line -a=1 +a=2", "x unknown → on"),
    )


def test_json_and_junit_have_each_series(nights: Path) -> None:
    add(nights, 20, run(latencies(20, **WORSE), night=20))
    check = checked(nights)
    document = check_json(check)
    [series] = document["series"]

    assert (document["exit_status"], document["tests"]) == (1, 3)
    assert (series["word"], series["alarms"]) == ("WORSE", True)
    assert {one["figure"] for one in series["figures"]} == {"mean", "tail", "max"}
    assert '<failure type="WORSE"' in check_junit(check)
    assert 'failures="1"' in check_junit(check)
