"""`rtscope sweep remedies` on a board that is not booted."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from rtscope.cli import run, sweep
from rtscope.explain.model import Cause
from rtscope.record.explanation import (
    EXPLAINED,
    SCHEMA,
    Explained,
    Segment,
    Wakeup,
    write_explained,
)
from rtscope.record.resultdir import open_records
from rtscope.virtual import runner

RUN = ("run", "--target", "virtual:pc", "--load", "idle", "--interval", "1ms")
SEEDS = tuple(range(1, 9))
Explain = Callable[[Cause, str], None]


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    """A board in place of those that boot, and what it measured in `out`."""
    made = FakeBoard()
    monkeypatch.setattr(run, "prepare_campaign", made.prepare)
    monkeypatch.setattr(sweep, "prepare_campaign", made.prepare)
    monkeypatch.setattr(runner, "BoardRunner", lambda one, *_, **__: made.runner(one))
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def record(rtscope: Rtscope, board: FakeBoard) -> Explain:
    """Measure, and write an explanation beside the worst of eight seeds."""

    def made(cause: Cause, name: str) -> None:
        board.results = [20_000 + seed for seed in SEEDS]
        said = rtscope(*RUN, "--kernel", "debian-6.12", "--seeds", "8", "--out", "out")
        assert said.status == 0, said.err
        worst = open_records(Path("out"))[-1]
        segment = Segment(begin_ns=0, end_ns=9_000, cause=str(cause), name=name)
        wakeup = Wakeup(
            cpu=0,
            latency_ns=worst.max_ns or 0,
            attributed_share=1.0,
            sentence="",
            dominant_segment=0,
            segments=(segment,),
            notes=(),
        )
        explained = Explained(
            schema=SCHEMA, result_digest=worst.result_digest, wakeups=(wakeup,)
        )
        write_explained(Path("out/runs") / worst.run.id / EXPLAINED, explained)

    return made


def test_each_remedy_is_measured_beside_the_original(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.PREEMPTION_OFF, "rcu_do_batch")
    base = [20_000 + seed for seed in SEEDS]
    halved = [10_000 + seed for seed in SEEDS]
    board.results = [base[0], *base, *halved, *base, *base]

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 0, said.err
    assert "tried: PREEMPT_RT, rcu_nocbs=all, isolcpus=1" in " ".join(said.err.split())
    text = " ".join(said.out.split())
    assert "idle, late by preemption off in rcu_do_batch: PREEMPT_RT lowers" in text
    assert "to 0.5 times" in text
    page = Path("tried/sweep.html").read_text()
    assert "preemption off in rcu_do_batch" in page
    assert "PREEMPT_RT, rcu_nocbs=all, isolcpus=1" in page
    assert "PREEMPT_RT lowers the worst to 0.5 times" in page
    assert "<script" not in page

    told = rtscope("sweep", "--resume", "tried", "--json")

    result = json.loads(told.out)
    assert result["diagnoses"][0]["remedies"][0] == "PREEMPT_RT"
    assert "lowers the worst to 0.5 times" in result["answer"]
    assert (
        Path("tried/sweep.html").read_text().split("check")[0] == page.split("check")[0]
    )


def test_remedies_that_do_not_help_are_called_so(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.OTHER_TASK, "kworker")
    board.results = [5_000]

    said = rtscope("sweep", "remedies", "out", "--out", "tried", "-q")

    assert "none of 1 remedy lowers the worst" in said.out


def test_without_a_known_remedy_nothing_is_measured(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.OWN_CODE, "main")

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 0, said.err
    assert "no remedy is known: the program's own code in main" in " ".join(
        said.out.split()
    )
    assert not Path("tried").exists()


def test_a_record_of_a_machine_is_refused_with_what_to_type(
    rtscope: Rtscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = {"schema": 2, "campaign": {"run": [{"load": ["idle"]}]}, "command": []}
    Path("out").mkdir()
    Path("out/campaign.json").write_text(json.dumps(document))

    said = rtscope("sweep", "remedies", "out")

    assert said.status == 2
    assert "measured on a machine (local)" in " ".join(said.err.split())
    assert "rtscope run --tuned ID" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("remedies",), "rtscope sweep remedies RECORD"),
        (("survey", "out"), "only sweep remedies takes a RECORD"),
        (("remedies", "out", "--kernel", "debian-6.12"), "leave out --kernel"),
    ],
)
def test_a_wrong_command_is_refused(
    rtscope: Rtscope, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("sweep", *words)

    assert said.status == 2
    assert why in " ".join(said.err.split())
