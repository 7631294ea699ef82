"""What `rtscope compare` prints, and the status that it ends with."""

import json
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.measurements import on_board, record, thread
from rtscope.record.directory.records import create
from rtscope.record.model import RunRecord


def keep(place: Path, *records: RunRecord) -> Path:
    store = create(place, {}, command=("rtscope", "run"))
    for kept in records:
        store.save(kept)
    return place


def run(max_us: int, *, rt: bool = True) -> RunRecord:
    made = record(
        [thread([5_000] * 99 + [max_us * 1_000])],
        kernel="k-rt" if rt else "k",
        repetition=1 if rt else 2,
        facts={"preempt_rt": rt},
    )
    return on_board(made, kernel_digest=("a" if rt else "e") * 64)


def test_a_published_table_is_set_beside_in_each_form(
    rtscope: Rtscope, here: Path
) -> None:
    both = keep(here / "out", run(40), run(400, rt=False))
    asked = ("compare", both, "--published", "starfive-visionfive2")
    table = rtscope(*asked, "--html", here / "beside.html")
    assert table.status == 0
    assert "compare the ratios, not the" in table.out
    assert "9,162" not in table.out  # the os load was not measured
    assert "<h1>StarFive VisionFive 2" in (here / "beside.html").read_text()
    assert rtscope(*asked, "--format", "markdown").out.startswith("# StarFive")
    assert json.loads(rtscope(*asked, "--json").out)["published"]["cpus"] == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--published", "list"], "starfive-jh7110-devkit, starfive-visionfive2"),
        (
            ["--published", "starfive-visionfive2", "--deadline", "1ms"],
            "a published maximum has no count of misses",
        ),
        (["--published", "scheduler-talk-x86-64"], "no load in common"),
    ],
)
def test_what_cannot_be_set_beside_is_told(
    rtscope: Rtscope, here: Path, words: list[str], told: str
) -> None:
    both = keep(here / "out", run(40), run(400, rt=False))
    said = rtscope("compare", both, *words)
    assert said.status == 2
    assert told in said.err


def test_one_result_with_two_kernels_is_compared_by_itself(
    rtscope: Rtscope, here: Path
) -> None:
    said = rtscope("compare", keep(here / "out", run(40), run(400, rt=False)))
    assert said.status == 0
    assert "Wake-up latency of k-rt and k compared" in said.out
    assert "TOO FEW SEEDS" in said.out


def test_a_determinism_failure_ends_with_status_3(rtscope: Rtscope, here: Path) -> None:
    before, after = keep(here / "before", run(40)), keep(here / "after", run(41))
    said = rtscope("compare", before, after)
    assert said.status == 3
    assert "DETERMINISM FAILURE" in said.out
    assert rtscope("compare", before, before).status == 2
    again = keep(here / "again", run(40))
    assert "IDENTICAL" in rtscope("compare", before, again).out
