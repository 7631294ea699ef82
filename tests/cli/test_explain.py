"""`rtscope explain` on a result whose paths a virtual board has recorded."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.measurements import on_board, record, thread
from rtscope.cli import explainruns as explain
from rtscope.resultdir import RECORD, ResultDir, read_record
from rtscope.symbols import parse_symbols
from rtscope.trace import parse_trace
from rtscope.virtual.stream import AGAIN, FILE, pack

RAW = (Path(__file__).parents[2] / "format/plugin-v1/riscv64.trace").read_bytes()
HEADER_BYTES = 48
WORST = [s for s in parse_trace(RAW).sections if s.kind == 1]
# Of plugin/tests/guest.S as it was when the trace was recorded.
SYMBOLS = parse_symbols("80000000 T start\n80000040 T round\n800000a0 T trap\n")


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs with recorded paths, and one that was measured without."""
    monkeypatch.setattr(explain, "symbols_of", lambda *_, **__: SYMBOLS)
    content, note = pack(RAW, name=FILE)
    place = ResultDir(tmp_path / "result")
    for repetition, load in enumerate(("idle", "memory", "os"), 1):
        kept = on_board(record([thread([9_000])], load=load, repetition=repetition))
        told = asdict(note) if load != "os" else {"why": "--no-record"}
        virtual = {**kept.extra["virtual"], "trace": told}
        if load != "os":
            place.attach(kept.run.id, FILE, content)
        place.save(replace(kept, extra={"virtual": virtual}))
    return place.path


def test_every_run_with_paths_is_explained_and_the_others_are_named(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result)

    assert said.status == 0, said.err
    assert "001-idle on virtual board pc" in said.out
    assert "002-memory on virtual board pc" in said.out
    assert "=  latency" in said.out
    assert "003-os: no paths were recorded (--no-record)" in said.err


def test_json_closes_the_sum_of_every_wake_up_and_lies_beside_the_record(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result, "--run", "002-memory", "--json")

    (document,) = json.loads(said.out)
    beside = result / "runs" / "002-memory" / explain.EXPLAINED
    assert json.loads(beside.read_text()) == document
    assert not (result / "runs" / "001-idle" / explain.EXPLAINED).exists()
    assert [w["latency_ns"] for w in document["wakeups"]] == [
        s.latency_ns for s in WORST
    ]
    for wakeup in document["wakeups"]:
        parts = sum(wakeup["parts"].values())
        assert parts + wakeup["residual_ns"] == wakeup["latency_ns"]
        assert 0 <= wakeup["attributed_share"] <= 1
        assert wakeup["sentence"]


def test_the_page_is_written_where_it_is_asked_for(
    rtscope: Rtscope, result: Path, here: Path
) -> None:
    said = rtscope("explain", result, "--html", "page.html", "--worst", "2")

    assert said.status == 0, said.err
    page = (here / "page.html").read_text()
    assert page.count("<svg") == 2 * min(2, len(WORST))


def test_the_record_stays_as_it_was(rtscope: Rtscope, result: Path) -> None:
    before = {p: p.read_bytes() for p in result.rglob("*.*") if p.is_file()}

    rtscope("explain", result)

    assert {p: p.read_bytes() for p in before} == before


def test_a_run_without_paths_says_how_to_get_them(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result, "--run", "003-os")

    assert said.status == 2
    assert "--again" in said.err


def test_a_run_on_a_machine_whose_events_were_not_kept_says_what_to_type(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    ResultDir(tmp_path / "r").save(record([thread([9_000])]))

    said = rtscope("explain", tmp_path / "r")

    assert said.status == 2
    assert "no events were kept" in said.err
    assert "rtscope run --explain" in said.err


def test_explaining_again_gives_the_same(rtscope: Rtscope, result: Path) -> None:
    assert rtscope("explain", result, "--json") == rtscope("explain", result, "--json")


def cut_short(raw: bytes) -> bytes:
    """Say of the first path that the ring was too short for it."""
    data = bytearray(raw)
    flags = HEADER_BYTES + 48
    assert data[flags] == 0
    data[flags] = 1
    return bytes(data)


def test_a_path_that_was_cut_is_taken_from_a_second_pass(
    rtscope: Rtscope, result: Path
) -> None:
    run = result / "runs" / "001-idle"
    content, note = pack(cut_short(RAW), name=FILE)
    kept = read_record(run / RECORD)
    virtual = {**kept.extra["virtual"], "trace": asdict(note)}
    (run / FILE).write_bytes(content)
    ResultDir(result).save(replace(kept, extra={"virtual": virtual}))

    before = rtscope("explain", run)
    (run / AGAIN).write_bytes(pack(RAW, name=AGAIN)[0])
    after = rtscope("explain", run)

    assert "the recorded path begins later than it should" in before.out
    assert "the recorded path begins later than it should" not in after.out


def test_a_second_pass_is_enough(rtscope: Rtscope, result: Path) -> None:
    run = result / "runs" / "003-os"
    (run / AGAIN).write_bytes(pack(RAW, name=AGAIN)[0])

    assert rtscope("explain", run).status == 0
