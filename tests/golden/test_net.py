"""Every verb says and writes what `tests/net` holds; `make net` shows what differs."""

from datetime import datetime
from pathlib import Path

import pytest

from net import families
from net.cases import Case, all_cases
from net.outcome import run_case, verb_of
from net.run import DIGESTS, differences, held

MAN = Path(__file__).parents[2] / "docs/man"

OTHERS = {"board-build", "board-image", "board-export", "board-import", "kernel-check"}
OTHERS |= {"app-start", "board-write", "cyclictest", "test", "history-parquet"}
"""
Verbs that fetch, boot, write a disk or become a program: of these only help and
refusals. So of one whose library decides the bytes.
"""

NAMES = [case.name for case in all_cases()]


DEAREST = {
    *("pack/small", "pack/board", "search/new", "redacted/pack", "import/many"),
    *(f"report/board-{how}" for how in ("html", "verbose", "charts")),
    *("report/board-deadline-verbose", "results/report-html"),
    *(f"run-machine/{how}" for how in ("idle", "resume-complete", "verbose")),
    *(f"kernel-build/{what}" for what in ("config-diff", "build", "package")),
    *(f"sweep/{how}" for how in ("full", "new", "remedies-new", "stored-verbose")),
    *("sweep/stored-json", "sweep/remedies-verbose", "sweep/remedies-json"),
    *("run-board/seeds", "run-board/json", "export/csv", "compare/kernels-html"),
}
"""These few take two thirds of the time of all."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=pytest.mark.slow if case.name in DEAREST else (),
        )
        for case in all_cases()
    ],
)
def test_a_case_gives_what_is_held(case: Case) -> None:
    assert differences(case.name, run_case(case)) == []


@pytest.mark.parametrize("number", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_families_have_the_p_values_that_are_held(number: int) -> None:
    assert families.differing(number) == []


def test_a_written_date_is_held_as_it_is_on_every_day() -> None:
    asked = datetime.now().date().isoformat()
    case = Case("dated", (f"report nights/{asked}",), (), "", 100)
    assert asked in run_case(case).err


def test_nothing_is_held_of_a_case_that_is_gone() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) >= DEAREST
    assert held(DIGESTS).keys() == set(NAMES)


def test_no_case_is_an_error_of_rtscope_itself() -> None:
    crashed = 70
    statuses = {name: about["status"] for name, about in held(DIGESTS).items()}
    assert not [name for name, one in statuses.items() if crashed in (one, *_list(one))]


def test_each_verb_has_its_help_a_wrong_usage_and_a_case() -> None:
    pages = {page.stem.removeprefix("rtscope-") for page in MAN.glob("rtscope-*.1")}
    assert pages
    usage = {name.rpartition("-")[0] for name in NAMES if name.startswith("usage/")}
    assert {f"help/{verb}" for verb in pages} <= set(NAMES)
    assert {f"usage/{verb}" for verb in pages} <= usage
    typed = {
        verb_of(command).replace(" ", "-")
        for case in all_cases()
        if not case.name.startswith(("help/", "usage/"))
        for command in case.commands
    }
    assert pages - typed == OTHERS


def _list(one: object) -> list[object]:
    return one if isinstance(one, list) else []
