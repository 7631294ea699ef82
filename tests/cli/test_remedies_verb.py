"""`rtscope sweep remedies` on a board that is not booted."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from pages.jsonkeys import keys_without_words
from rtscope.boards.runs import runner
from rtscope.explain.model import Cause
from rtscope.record.directory.records import open_records
from rtscope.record.explanation import (
    EXPLAINED,
    SCHEMA,
    Explained,
    Segment,
    Wakeup,
    write_explained,
)
from rtscope.verbs.run import run
from rtscope.verbs.sweep import sweep

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
    headings = ("rtscope sweep --json", "rtscope sweep remedies --json")
    assert keys_without_words(result, *headings) == []
    assert result["diagnoses"][0]["remedies"][0] == "PREEMPT_RT"
    assert "lowers the worst to 0.5 times" in result["answer"]
    assert (
        Path("tried/sweep.html").read_text().split("check")[0] == page.split("check")[0]
    )


def test_the_qemu_of_a_record_that_came_by_mail_is_not_run(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.PREEMPTION_OFF, "rcu_do_batch")
    path = Path("out/campaign.json")
    document = json.loads(path.read_text())
    document["campaign"]["target"]["qemu"] = "out/qemu"
    path.write_text(json.dumps(document))
    board.plan = None

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 2
    assert "measured with a QEMU of its own (out/qemu)" in said.err
    assert board.plan is None
    assert not Path("tried").exists()


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
    text = " ".join(said.out.split())
    assert "nothing to try: the program's own code in main: the program ran" in text
    assert not Path("tried").exists()


def test_a_remedy_that_the_original_has_is_named_and_nothing_is_measured(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.NOT_REALTIME, "kworker")

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 0, said.err
    text = " ".join(said.out.split())
    assert "the thread is not real-time in kworker: policy fifo: the original" in text
    assert not Path("tried").exists()


def test_a_remedy_that_the_board_does_not_have_is_named_and_the_others_go_on(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.FAIR_SERVER, "kworker")
    board.refuses = {"fair_server": "this machine has no /sys/x"}

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 0, said.err
    missing = "fair_server: not possible here: this machine has no /sys/x"
    assert missing in said.err
    assert missing in said.out
    page = Path("tried/sweep.html").read_text()
    assert missing in page
    assert "remedy: isolcpus=1" in page
    cells = {one.name for one in Path("tried/cells").iterdir() if open_runs(one)}
    assert cells == {"000-base", "001-remedy-isolcpus-1"}

    board.refuses = {}  # nobody looks at the board again
    again = rtscope("sweep", "--resume", "tried", "--json")

    assert again.status == 0, again.err
    found = json.loads(again.out)
    assert [cell["name"] for cell in found["cells"]] == ["base", "remedy: isolcpus=1"]
    (one,) = found["diagnoses"]
    assert one["remedies"] == ["isolcpus=1"]
    assert f"fair_server: {one['not_tried']['fair_server']}" == missing


def test_a_later_part_of_the_remedies_may_be_impossible_too(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.FAIR_SERVER, "kworker")
    board.refuses = {"fair_server": "it has no debugfs"}
    words = ("sweep", "remedies", "out", "--out", "tried", "--only", "isolcpus*")
    assert rtscope(*words).status == 0

    said = rtscope("sweep", "--resume", "tried")

    assert said.status == 0, said.err
    assert "fair_server: not possible here: it has no debugfs" in said.out


def test_a_remedy_that_changes_nothing_on_the_board_is_one_that_it_has(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.FAIR_SERVER, "kworker")
    board.good = {"fair_server": "off"}

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 0, said.err
    assert "fair_server: the original has it" in said.out
    assert not open_runs(Path("tried/cells/002-remedy-fair_server"))


def test_if_no_remedy_is_possible_nothing_is_measured(
    rtscope: Rtscope, board: FakeBoard, record: Explain
) -> None:
    record(Cause.TIMER_INTERRUPT, "watchdog_timer_fn")
    board.refuses = {"watchdog": "it has none"}

    said = rtscope("sweep", "remedies", "out", "--out", "tried")

    assert said.status == 0, said.err
    text = " ".join(said.out.split())
    assert (
        "nothing to try: the timer interrupt in watchdog_timer_fn: watchdog: " in text
    )
    assert "not possible here: it has none" in text
    assert not Path("tried").exists()


def test_a_sweep_file_that_names_such_a_check_still_ends_before_its_first_run(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    board.refuses = {"watchdog": "it has none"}
    Path("my.toml").write_text(
        'base.target.address = "virtual:pc"\n'
        '[[axis]]\nname = "a"\nlevel = [{ name = "b", target.tuned = "watchdog" }]\n'
    )

    said = rtscope("sweep", "my.toml", "--out", "tried")

    assert said.status == 3
    assert "pc: --tuned: watchdog: it has none; nothing was measured" in " ".join(
        said.err.split()
    )
    assert not Path("tried").exists()


def open_runs(cell: Path) -> list[Path]:
    """Return the records of a cell."""
    return list(cell.glob("runs/*/record.json"))


def campaign_at(path: Path, **target: str) -> None:
    path.mkdir(parents=True)
    campaign = {"target": target, "run": [{"load": ["idle"]}]}
    document = {"schema": 2, "campaign": campaign, "command": []}
    (path / "campaign.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("nowhere", "no campaign there: it has no campaign.json; name the --out of"),
        ("empty", "no campaign there: it has no campaign.json; name the --out of"),
        ("file", "a file, and no result directory"),
        ("packed", "an archive; unpack it with tar -xzf packed"),
        (
            "out/campaign.json",
            "a part of the result out; type rtscope sweep remedies out",
        ),
        (
            "out/runs/001-idle",
            "a part of the result out; type rtscope sweep remedies out",
        ),
        ("sweep", "rtscope sweep remedies sweep/cells/000-base"),
        ("imported", "imported from another tool, or without its campaign.json"),
        ("out", "has no finished run; continue with rtscope run --resume out"),
        ("mine", "measured with a QEMU of its own (/tmp/qemu)"),
        ("other", "no such board: 'nothing'"),
    ],
)
def test_what_is_no_result_of_a_board_is_refused_with_what_to_type(
    rtscope: Rtscope,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record: str,
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "sweep", "imported/runs/001"):
        Path(name).mkdir(parents=True)
    Path("file").write_text("x")
    Path("packed").write_bytes(b"\x1f\x8b\x08")
    Path("sweep/sweep.json").write_text("{}")
    Path("imported/runs/001/record.json").write_text("{}")
    campaign_at(Path("out"), address="virtual:pc")
    campaign_at(Path("mine"), address="virtual:pc", qemu="/tmp/qemu")
    campaign_at(Path("other"), address="virtual:nothing")
    if record == "out/runs/001-idle":
        Path(record).mkdir(parents=True)
        (Path(record) / "record.json").write_text("{}")

    said = rtscope("sweep", "remedies", record)

    assert said.status == 2, said.err
    assert why in " ".join(said.err.split())
    assert not list(tmp_path.glob("rtscope-sweep-*"))


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
        (("survey", "out"), "only rtscope sweep remedies takes a RECORD"),
        (("remedies", "out", "--kernel", "debian-6.12"), "leave out --kernel"),
    ],
)
def test_a_wrong_command_is_refused(
    rtscope: Rtscope, words: tuple[str, ...], why: str
) -> None:
    said = rtscope("sweep", *words)

    assert said.status == 2
    assert why in " ".join(said.err.split())
