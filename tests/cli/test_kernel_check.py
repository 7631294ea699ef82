"""What `rtscope kernel check` prints of its outcomes."""

from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from rtscope.boards.runs.diagnosis import BuiltKernel, SmokeTest
from rtscope.record.directory.records import create
from rtscope.verbs.kernel import check as kernelcheck

WORST_US = {
    "idle": "1,404",
    "cpu": "11,606",
    "os": "6,143",
    "memory": "7,329",
    "storage": "4,709",
}


def test_a_kernel_that_does_not_boot_has_no_clean_log_and_its_end_line_by_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    dead = BuiltKernel("dead", "6.12.1", "d0", "c0", preempt_rt=True)
    problem = "001-idle: it panics; the end of its console:\n  Kernel panic - not"

    kernelcheck.print_outcomes([SmokeTest(dead, {}, (), (problem,))])

    out = capsys.readouterr().out
    assert "clean" not in out
    assert "dead: 001-idle: it panics; the end of its console:\n" in out
    assert "dead:   Kernel panic - not\n" in out


@pytest.mark.parametrize("columns", [80, 200])
def test_where_room_is_short_names_give_way_and_figures_do_not(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "jh7110-6.1-rt-debug"
    kernel = BuiltKernel(
        name, "6.1.176-rt64", "4a338a7c80b46186", "c0", preempt_rt=True
    )
    worst = {load: int(us.replace(",", "")) * 1000 for load, us in WORST_US.items()}

    kernelcheck.print_outcomes([SmokeTest(kernel, worst, (), ())])

    heading, row, *_ = capsys.readouterr().out.splitlines()
    assert len(row) <= columns
    assert name in row
    assert [word for word in row.split() if word[0].isdigit() and "," in word] == [
        *WORST_US.values()
    ]
    assert all(load in heading for load in WORST_US)


def test_results_of_an_earlier_check_are_refused_before_anything_is_built(
    rtscope: Rtscope, here: Path
) -> None:
    create(here / "results/pc", {}, command=("rtscope", "kernel", "check"))

    said = rtscope("kernel", "check", "pc-6.12-rt", "--out", "results")

    assert said.status == 2
    assert "results/pc already holds a campaign" in " ".join(said.err.split())
