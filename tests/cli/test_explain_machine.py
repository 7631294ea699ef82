"""`rtscope explain` on a run whose events were kept, and on anybody's trace."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.measurements import SECOND_NS, record, thread
from fakes.tracefiles import Page, Record, dat_file, switch_payload, waking_payload
from fakes.traces import tracing
from rtscope.contract import Wakeup
from rtscope.record.directory.records import ResultDir
from rtscope.record.events.writer import TRACE
from rtscope.record.explanation import EXPLAINED

DUE = 1_000 * SECOND_NS
TID = 1000
HOG, THREAD = (b"hog", 200, 19), (b"rtscope/0", TID, 49)
WAY = Page(
    DUE - 500_000,
    [
        Record(100_000, switch_payload(THREAD, HOG, state=1)),
        Record(401_000, waking_payload(b"rtscope/0", TID, 49, by=200)),
        Record(4_000_000, switch_payload(HOG, THREAD)),
        Record(300_000, switch_payload(THREAD, HOG, state=1)),
    ],
)
CONTENT = dat_file([[WAY]], cmdlines=b"200 hog\n1000 rtscope/0\n")
TEXT = """\
  hog-200 [000] d.h1. 10.000502: sched_waking: comm=a/0 pid=77 prio=49 target_cpu=000
  hog-200 [000] d..2. 10.004506: sched_switch: prev_comm=hog prev_pid=200 \
prev_prio=19 prev_state=S ==> next_comm=a/0 next_pid=77 next_prio=49
"""


def whole(text: str) -> str:
    """Return text without the ends of lines that a terminal needs."""
    return " ".join(text.split())


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A run of 2 wake-ups, of which the trace has the later one."""
    late = Wakeup(0, 7, DUE, DUE + 4_003_000)
    early = Wakeup(0, 3, DUE - 10**9, DUE - 10**9 + 9_000)
    measured = replace(thread([9_000, 4_003_000], priority=50), worst=(late, early))
    place = ResultDir(tmp_path / "result")
    place.path.mkdir()
    kept = record([measured], load="os")
    place.attach(kept.run.id, TRACE, CONTENT)
    place.save(kept)
    return place.path


def test_the_worst_wake_up_of_a_machine_is_explained_from_its_events(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result)

    assert said.status == 0, said.err
    assert "001-os on local: 1 worst wake-up explained" in said.out
    assert "1 more without recorded events" in whole(said.out)
    assert "nother task, hog (real-time, priority 80)" in whole(said.out)
    assert "virtual" not in said.out


def test_json_lies_beside_the_record_and_page_and_trace_are_written(
    rtscope: Rtscope, result: Path, tmp_path: Path
) -> None:
    page, trace = tmp_path / "why.html", tmp_path / "why.pftrace"
    said = rtscope("explain", result, "--json", "--html", page, "--perfetto", trace)

    (document,) = json.loads(said.out)
    assert json.loads((result / "runs/001-os" / EXPLAINED).read_text()) == document
    assert document["target"] == "local"
    first, second = document["wakeups"]
    assert sum(first["parts"].values()) == first["latency_ns"] == 4_003_000
    assert first["segments"][first["dominant_segment"]]["cause"] == "another task"
    assert second["segments"] == []
    assert "virtual" not in page.read_text()
    assert trace.stat().st_size > 100


def test_a_trace_without_a_record_is_explained(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    for name, content in (("t.dat", CONTENT), ("t.txt", TEXT.encode())):
        file = tmp_path / name
        file.write_bytes(content)
        said = rtscope("explain", "--trace", file)

        assert said.status == 0, said.err
        assert "worst wake-up of a real-time thread" in whole(said.err)
        assert "nother task, hog (real-time, priority 80)" in whole(said.out)
        assert "the expiry of the timer is unknown" in whole(said.out)
        assert "sequence" not in said.out


def test_the_wake_up_can_be_chosen_by_thread_and_time(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    file = tmp_path / "t.txt"
    file.write_text(TEXT)
    for words in (("--thread", "a/0"), ("--thread", "77"), ("--at", "10.002")):
        assert rtscope("explain", "--trace", file, *words).status == 0
    for words in (("--thread", "b"), ("--at", "99.5"), ("--at", "soon")):
        said = rtscope("explain", "--trace", file, *words)
        assert said.status == 2
        assert said.err.startswith("rtscope: ")


@pytest.mark.parametrize(
    ("content", "status", "why"),
    [
        (b"", 3, "empty"),
        (b"hello\n", 3, "neither a trace.dat file nor text"),
        (CONTENT[:200], 3, "damaged or cut short"),
        (b" a-1 [000] d.... 1.000001: cpu_idle: state=1 cpu_id=0\n", 2, "sched_waking"),
    ],
)
def test_files_that_explain_nothing_say_why(
    rtscope: Rtscope, tmp_path: Path, content: bytes, status: int, why: str
) -> None:
    file = tmp_path / "t"
    file.write_bytes(content)
    said = rtscope("explain", "--trace", file)

    assert said.status == status
    assert why in said.err


@pytest.mark.parametrize(
    "words",
    [(), ("r", "--trace", "t"), ("r", "--thread", "x"), ("r", "--at", "1.0")],
)
def test_wrong_combinations_say_what_to_type(
    rtscope: Rtscope, words: tuple[str, ...]
) -> None:
    said = rtscope("explain", *words)

    assert said.status == 2
    assert "--trace" in said.err


def toggle(at_us: int, name: str, caller: str, *, task: str = "hog-200") -> str:
    """Return a preemptirq event of 10 s and some microseconds."""
    where = f"caller={caller}+0x1c/0x80 parent=its_user+0x4/0x10"
    return f"  {task} [000] ..... 10.{at_us:06}: {name}: {where}\n"


def timer(at_us: int, what: str) -> str:
    return f"  hog-200 [000] d.h.. 10.{at_us:06}: local_timer_{what}: vector=236\n"


WOKEN, SWITCHED = TEXT.splitlines(keepends=True)
TOGGLED = "".join(
    (
        toggle(0, "irq_enable", "before"),
        toggle(100, "preempt_disable", "a_lock"),
        toggle(400, "preempt_enable", "a_lock"),
        toggle(500, "irq_disable", "irqentry_enter"),
        timer(501, "entry"),
        WOKEN,
        timer(510, "exit"),
        toggle(511, "irq_enable", "irqentry_exit"),
        toggle(4480, "preempt_disable", "schedule"),
        toggle(4490, "irq_disable", "__schedule"),
        SWITCHED,
        toggle(4510, "irq_enable", "finish_task_switch", task="a/0-77"),
        toggle(4520, "preempt_enable", "schedule", task="a/0-77"),
    )
)


def test_a_trace_with_preemptirq_events_tells_what_its_sections_could_combine_to(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    file = tmp_path / "t.txt"
    file.write_text(TOGGLED)

    ((document,),) = [
        json.loads(rtscope("explain", "--trace", file, "--bound", "--json").out)
    ]
    (bound,) = document["bounds"]
    sections = {one["section"]: one["duration_ns"] for one in bound["sections"]}
    assert sections == {"POID": 300_000, "PSD": 40_000, "ST": 30_000}
    assert bound["sections"][0]["callers"] == ["a_lock", "its_user"]
    (tick,) = bound["interrupts"]
    assert (tick["vector"], tick["longest_ns"]) == ("local_timer 236", 10_000)
    assert bound["bound_ns"] == 300_000 + 40_000 + 10_000

    said = rtscope("explain", "--trace", file, "--bound")
    assert "observed critical sections: 350 µs on CPU 0" in whole(said.out)
    assert "virtual" not in said.out


def test_a_trace_without_preemptirq_events_has_no_sections_and_says_why(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    file = tmp_path / "t.txt"
    file.write_text(TEXT)
    said = rtscope("explain", "--trace", file, "--bound")

    assert said.status == 2
    assert "has no irq_disable, irq_enable, preempt_disable" in whole(said.err)
    assert "CONFIG_TRACE_PREEMPT_TOGGLE" in said.err


def test_a_machines_run_cannot_be_booted_again_for_its_sections(
    rtscope: Rtscope, result: Path
) -> None:
    said = rtscope("explain", result, "--bound")
    assert said.status == 2
    assert "boots only runs of virtual boards" in whole(said.err)


def test_without_events_the_counters_around_a_wake_up_are_told_and_no_cause(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    kept = record([thread([7_000])], load="os")
    traced = replace(kept.result, tracing=tracing(cause="permission"))
    place = ResultDir(tmp_path / "result")
    place.path.mkdir()
    place.save(replace(kept, result=traced))

    said = rtscope("explain", place.path)

    assert said.status == 0, said.err
    text = whole(said.out)
    assert "CPU 0 woke 7.00 µs late; the cause is unknown" in text
    assert "the cause cannot be determined" in text
    assert "Local timer interrupts 107" in text


def test_a_trace_that_was_refused_says_why_and_what_to_do(
    rtscope: Rtscope, tmp_path: Path
) -> None:
    kept = record([thread([7_000])], load="os")
    refused = replace(tracing(cause="permission"), counter_deltas=())
    place = ResultDir(tmp_path / "result")
    place.path.mkdir()
    place.save(replace(kept, result=replace(kept.result, tracing=refused)))

    said = rtscope("explain", place.path)

    assert said.status == 2
    assert "tracing is for root alone; run as root or with sudo" in whole(said.err)
