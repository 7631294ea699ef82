"""The tables of a survey, from kernels that were measured one after the other."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rtscope.present.words import NOTHING
from rtscope.verbs.sweep.ranking import Cause, RankedLoad, Ranking, Standing
from surveytable import (
    all_loads,
    in_part,
    joined,
    lines_of,
    missed_by_the_usual,
    not_run,
    read_ranking,
    totals,
)

RT, ORDINARY = "debian-6.12-rt", "debian-6.12"


def standing(worst_ns: int, title: str = "") -> Standing:
    return Standing(
        worst_ns=worst_ns,
        p999_ns=None,
        missed=0,
        operations=None,
        run="001",
        cause=Cause(title, worst_ns // 2) if title else None,
    )


def ranking(kernel: str, usual_ns: int, fork_ns: int) -> Ranking:
    return Ranking(
        (kernel,),
        (
            RankedLoad(
                "stress-ng:fork", {kernel: standing(fork_ns, "locks in fork")}, {}
            ),
            RankedLoad("idle", {kernel: standing(usual_ns, "the tick")}, {}),
            RankedLoad(
                "stress-ng:env", {}, {kernel: "it ended"}, {kernel: standing(70_000)}
            ),
            RankedLoad("stress-ng:efivar", {}, {kernel: "skipped | no EFI"}),
        ),
        releases={kernel: "6.12.1"},
    )


def test_each_kernel_has_its_columns_and_the_first_one_the_order() -> None:
    both = joined([ranking(RT, 9_000, 50_000), ranking(ORDINARY, 90_000, 30_000)])

    assert list(totals(both))[1:] == [
        (RT, "6.12.1", "2", "1", "1", "9.00", "1"),
        (ORDINARY, "6.12.1", "2", "1", "1", "90.0", "0"),
    ]
    assert list(all_loads(both))[1:] == [
        ("fork", "50.0", "locks in fork", "25.0", "30.0", "locks in fork", "15.0"),
        ("**idle**", "9.00", "the tick", "4.50", "90.0", "the tick", "45.0"),
    ]
    assert list(missed_by_the_usual(both, RT))[1:] == [
        ("fork", "50.0", "locks in fork", "25.0", NOTHING)
    ]
    assert list(missed_by_the_usual(both, ORDINARY))[1:] == []
    assert [row[:3] for row in in_part(both)][1:] == [
        ("env", RT, "70.0"),
        ("env", ORDINARY, "70.0"),
    ]
    assert list(not_run(both))[1:] == [
        ("efivar", "skipped | no EFI", "skipped | no EFI")
    ]


def test_two_results_of_one_kernel_are_refused() -> None:
    with pytest.raises(ValueError, match="two results have the same kernel"):
        joined([ranking(RT, 9_000, 1), ranking(RT, 9_000, 2)])


def test_a_bar_in_a_reason_does_not_end_its_cell() -> None:
    lines = list(lines_of(not_run(ranking(RT, 9_000, 50_000))))

    assert lines[-1] == "| efivar | skipped \\| no EFI |"


def test_a_result_is_read_as_the_survey_has_written_it(tmp_path: Path) -> None:
    made = ranking(RT, 9_000, 50_000)
    file = tmp_path / "survey.json"
    file.write_text(json.dumps({**asdict(made), "answer": "none", "checks": {}}))

    assert read_ranking(file) == made
