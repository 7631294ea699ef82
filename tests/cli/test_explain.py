"""`rtscope explain` on a result whose paths a virtual board has recorded."""

import json
import struct
import weakref
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from fakes.commandline import Rtscope
from fakes.guestpaths import GUEST
from fakes.measurements import on_board, record, thread
from rtscope.boards.recording.replay import Replay
from rtscope.explain import directory as analysis
from rtscope.explain.instructions.eventway import explainer_of
from rtscope.host.errors import UsageError
from rtscope.host.process import Step
from rtscope.record.directory.records import RECORD, ResultDir, read_record
from rtscope.record.explanation import EXPLAINED
from rtscope.record.instructions.file import (
    BOUND,
    FILE,
    REPLAY,
    pack,
    parse_trace,
)
from rtscope.record.instructions.section import TraceSection
from rtscope.record.instructions.symbols import parse_symbols
from rtscope.record.model import TIMER, RunRecord

HEADER_BYTES = 48
WORST = [s for s in parse_trace(GUEST).sections if s.kind == 1]
# Of plugin/tests/guest.S as it was when the trace was recorded.
SYMBOLS = parse_symbols("80000000 T start\n80000040 T round\n800000a0 T trap\n")


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs with recorded paths, and one that was measured without."""
    monkeypatch.setattr(analysis, "symbols_of", lambda *_, **__: SYMBOLS)
    content, note = pack(GUEST, name=FILE)
    place = ResultDir(tmp_path / "result")
    place.path.mkdir()
    for repetition, load in enumerate(("idle", "memory", "os"), 1):
        kept = on_board(record([thread([9_000])], load=load, repetition=repetition))
        told = asdict(note) if load != "os" else {"reason": "--no-record"}
        assert kept.virtual is not None
        virtual = replace(kept.virtual, trace=told)
        if load != "os":
            place.attach(kept.run.id, FILE, content)
        place.save(replace(kept, campaign={}, virtual=virtual))
    return place.path


def test_every_run_with_paths_is_explained_and_the_others_are_named(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result, "-v")
    brief = rtscope("explain", result)

    assert said.status == 0, said.err
    assert "2 runs explained; the worst wake-up of all:" in brief.out
    assert len(brief.out.splitlines()) <= 22
    assert max(map(len, brief.out.splitlines()[:-1])) <= 80
    assert "001-idle on virtual board pc" in said.out
    assert "002-memory on virtual board pc" in said.out
    assert "=  latency" in said.out
    assert "003-os: no paths were recorded (--no-record)" in said.err


def test_whoever_waits_sees_how_many_wake_ups_are_explained(
    result: Path, tmp_path: Path
) -> None:
    steps: list[Step] = []

    analysis.explained_runs(
        result,
        "002-memory",
        worst=1,
        bound=False,
        cache=tmp_path,
        log=lambda _line: None,
        progress=steps.append,
    )

    what = "explaining 002-memory"
    counted = [Step(what, n, len(WORST), "wake-ups") for n, _ in enumerate(WORST, 1)]
    assert steps == [Step(what, 0, 1, "runs"), *counted]


@pytest.mark.parametrize("worst", [0, 1, 2])
def test_of_all_paths_only_those_that_will_be_drawn_are_kept(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worst: int
) -> None:
    """The longest path, of millions of records, is explained last and alone."""
    explain_path = explainer_of(TIMER)
    seen: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def explain(section: TraceSection, *words: Any, **traits: Any) -> Any:
        alive.append(sum(one() is not None for one in seen))
        seen.append(weakref.ref(section.values))
        return explain_path(section, *words, **traits)

    monkeypatch.setattr(analysis, "explainer_of", lambda _event: explain)
    explained = analysis.explained_runs(
        result,
        "002-memory",
        worst=worst,
        bound=False,
        cache=tmp_path,
        log=lambda _line: None,
    )

    latencies = [section.latency_ns for section in WORST]
    assert [one.latency_ns for one in explained.runs[0].explanations] == latencies
    assert len(alive) == len(WORST) >= 2
    assert alive == [max(0, worst - left) for left in range(len(WORST), 0, -1)]
    (kept,) = explained.wakeups
    assert [one.explanation.latency_ns for one in kept] == latencies[:worst]
    assert [one.title for one in kept] == [
        f"002-memory, worst wake-up {number}" for number in range(1, worst + 1)
    ]


def test_json_closes_the_sum_of_every_wake_up_and_lies_beside_the_record(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result, "--run", "002-memory", "--json")

    (document,) = json.loads(said.out)
    beside = result / "runs" / "002-memory" / EXPLAINED
    assert json.loads(beside.read_text()) == document
    assert not (result / "runs" / "001-idle" / EXPLAINED).exists()
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
    assert page.count("<svg") == 2 * (min(2, len(WORST)) + 1)  # ways, and the tail


@pytest.mark.parametrize(
    ("model", "preemptible"), [("full", True), ("voluntary", False), ("odd", None)]
)
def test_an_explanation_knows_whether_the_kernel_preempts(
    rtscope: Rtscope,
    result: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    preemptible: bool | None,
) -> None:
    file = result / "runs" / "001-idle" / RECORD
    document = json.loads(file.read_text())
    document["facts_before"]["preemption_model"] = {
        "value": model,
        "source": "/proc/version",
    }
    file.write_text(json.dumps(document))
    told: list[object] = []
    explain_path = explainer_of(TIMER)

    def explain(*path: Any, **traits: Any) -> Any:
        told.append(traits["preemptible"])
        return explain_path(*path, **traits)

    monkeypatch.setattr(analysis, "explainer_of", lambda _event: explain)

    assert rtscope("explain", result, "--run", "001-idle").status == 0
    assert set(told) == {preemptible}


def test_the_record_stays_as_it_was(rtscope: Rtscope, result: Path) -> None:
    before = {p: p.read_bytes() for p in result.rglob("*.*") if p.is_file()}

    rtscope("explain", result)

    assert {p: p.read_bytes() for p in before} == before


def test_a_run_without_paths_says_how_to_get_them(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result, "--run", "003-os")

    assert said.status == 2
    assert "--replay" in said.err


def test_a_run_on_a_machine_whose_events_were_not_kept_says_what_to_type(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    place = ResultDir(tmp_path / "r")
    place.path.mkdir()
    place.save(record([thread([9_000])]))

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
    content, note = pack(cut_short(GUEST), name=FILE)
    kept = read_record(run / RECORD)
    assert kept.virtual is not None
    virtual = replace(kept.virtual, trace=asdict(note))
    (run / FILE).write_bytes(content)
    ResultDir(result).save(replace(kept, virtual=virtual))

    before = rtscope("explain", run)
    (run / REPLAY).write_bytes(pack(GUEST, name=REPLAY)[0])
    after = rtscope("explain", run)

    assert "the begin of the path was not recorded" in before.out
    assert "the begin of the path was not recorded" not in after.out


def test_a_replay_is_enough(rtscope: Rtscope, result: Path) -> None:
    run = result / "runs" / "003-os"
    (run / REPLAY).write_bytes(pack(GUEST, name=REPLAY)[0])

    assert rtscope("explain", run).status == 0


def with_sections(raw: bytes) -> bytes:
    """Add to a trace a section PSD of 600 ns of CPU 0, and an interrupt of 80 ns."""
    count = struct.unpack_from("<I", raw, 12)[0]
    psd = struct.pack("<IIQQQQQII", 3, 0, 600, 3, 200, 800, 0, 0, 0)
    all_of_cpu = struct.pack("<IIQQQQQII", 4, 0, 0, 0, 0, 0, 2, 0, 0)
    timer = struct.pack("<QQQQ", 7 << 56 | 100, 1 << 63 | 5, 8 << 56 | 100, 80)
    head = raw[:12] + struct.pack("<I", count + 2) + raw[16:]
    return head + psd + all_of_cpu + timer


@pytest.fixture
def second_passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return which runs were booted again for their sections."""
    booted: list[str] = []

    def again(record: RunRecord, **_: object) -> Replay:
        booted.append(record.run.id)
        if "memory" in record.run.id:
            raise UsageError("002-memory: no sections of this kernel")
        raw = with_sections(GUEST)
        return Replay(raw, parse_trace(raw), ())

    monkeypatch.setattr(analysis, "replay_run", again)
    monkeypatch.setattr(analysis, "symbols_of", lambda *_, **__: SYMBOLS)
    return booted


def test_a_bound_takes_a_second_pass_once_and_stays_beside_the_record(
    rtscope: Rtscope, result: Path, second_passes: list[str]
) -> None:
    words = ("explain", result, "--run", "001-idle", "--json")
    first = rtscope(*words, "--bound")
    again = rtscope(*words, "--bound")
    later = rtscope(*words)

    assert first.status == 0, first.err
    assert second_passes == ["001-idle"]
    assert first.out == again.out == later.out
    ((bound,),) = ([one["bounds"]] for one in json.loads(first.out))
    (psd,) = bound[0]["sections"]
    (timer,) = bound[0]["interrupts"]
    assert (psd["section"], psd["duration_ns"]) == ("PSD", 600)
    assert (timer["vector"], timer["longest_ns"]) == ("the timer interrupt", 80)
    assert bound[0]["bound_ns"] == 600 + 80
    assert (result / "runs" / "001-idle" / BOUND).is_file()


def test_a_bound_is_printed_beside_the_maximum_and_in_the_report(
    rtscope: Rtscope, result: Path, here: Path, second_passes: list[str]
) -> None:
    text = rtscope("explain", result, "--bound", "--html", "page.html")
    report = rtscope("report", result, "-v")

    assert text.status == 0, text.err
    assert second_passes == ["001-idle", "002-memory", "003-os"]
    assert "002-memory: no sections of this kernel" in text.err
    assert "observed critical sections: 0.680 virtual µs on CPU 0" in " ".join(
        text.out.split()
    )
    assert "no proof" in text.out
    assert "Latency bound from" in (here / "page.html").read_text()
    told = " ".join(report.out.split())
    bound = "latency bound from observed critical sections: 0.680 virtual µs (no proof)"
    assert bound in told
    assert "exceeded its bound" in told


def test_a_run_without_sections_is_refused_if_it_is_the_only_one(
    rtscope: Rtscope, result: Path, second_passes: list[str]
) -> None:
    said = rtscope("explain", result, "--run", "002-memory", "--bound")
    assert said.status == 2
    assert "no sections of this kernel" in said.err
    assert second_passes == ["002-memory"]
    assert not (result / "runs" / "002-memory" / EXPLAINED).exists()
