"""What `app check` says of cycles: findings, 40 lines, JSON, JUnit and the page."""

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from fakes import cycling, traces, watching
from fakes import printed as terminal
from rtscope.contract import CycleRuns, CyclesEnd, Line, WatchCost
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.model import Cause, Explanation, Part, Segment
from rtscope.host.errors import ContractError
from rtscope.present.render.page import page_of
from rtscope.verbs.app import watchedcycles
from rtscope.verbs.app.check import FailOn, examined_junit, status_of
from rtscope.verbs.app.checktext import (
    MAX_LINES,
    disturbance,
    examined_blocks,
    examined_row,
)
from rtscope.verbs.app.cycles import Cycle
from rtscope.verbs.app.cycletables import (
    JudgedCycles,
    cycle_lines,
    cycle_words,
    cycles_row,
    longest_words,
)
from rtscope.verbs.app.deadlines import UNSEEN
from rtscope.verbs.app.lateness import cycles_by_yield, with_cycles
from rtscope.verbs.app.model import OUTSIDE, Examined, Unseen
from rtscope.verbs.app.page import examined_document
from rtscope.verbs.app.rules import examine
from rtscope.verbs.app.watchedcycles import (
    CycleRecording,
    explained_cycles,
    recording_of,
)
from unit.test_app_rules import seen, thread

TID = cycling.TID
NAMES = {TID: "cycle"}


def recorded(
    *lines: CycleRuns, ending: CyclesEnd | None = None
) -> tuple[Examined, JudgedCycles]:
    end = ending or cycling.end(lines)
    every: Sequence[Line] = (cycling.begin(), *lines, end)
    recording = recording_of(every)
    examined = with_cycles(examine(seen(thread(TID))), end, recording.threads)
    return examined, JudgedCycles(0, end, recording.threads, NAMES, {TID: "why <b>"})


def printed(examined: Examined, shown: JudgedCycles) -> list[str]:
    lines = list(cycle_lines(shown))
    blocks = examined_blocks(examined, width=100, everything=False, cycles=lines)
    return terminal.printed(blocks, width=100).splitlines()


@pytest.mark.parametrize(("yields", "unseen"), [(400, True), (40, False)])
def test_cycles_that_yields_end_are_not_those_that_wake_ups_begin(
    yields: int, unseen: bool
) -> None:
    calls = (watching.call("sched_yield", yields),)
    watched = [replace(watching.thread(TID), calls=calls)]
    examined = examine(
        seen(thread(TID, policy="deadline", priority=0), watched=watched)
    )
    recording = recording_of(
        [cycling.begin(), cycling.periodic(100), cycling.end([cycling.periodic(100)])]
    )

    by_yield = cycles_by_yield(examined, recording.threads)
    made = {} if by_yield else recording.threads
    shown = JudgedCycles(
        0, recording.end, made, NAMES, {}, dict.fromkeys(by_yield, UNSEEN)
    )

    assert by_yield == ({TID} if unseen else set())
    said = str(list(cycle_lines(shown)))
    assert (f"not seen, because {UNSEEN}" in said) == unseen
    known = with_cycles(examined, recording.end, made).unseen
    assert (UNSEEN in [one.cause for one in known]) == unseen


def test_cycles_on_time_are_no_finding() -> None:
    examined, shown = recorded(cycling.periodic(400))

    assert examined.findings == ()
    assert status_of(examined, FailOn.LOW) == 0
    lines = printed(examined, shown)
    assert len(lines) <= MAX_LINES
    text = "\n".join(lines)
    assert "400 cycles, every 1,000 µs by a timer set to a time, none missed" in text
    assert "longest cycle: why <b>" in text


def test_missed_periods_are_a_finding_with_their_count() -> None:
    rows = cycling.periodic(100).runs
    examined, _ = recorded(CycleRuns((*rows[:50], *rows[53:])))

    (one,) = examined.findings
    assert (one.id, one.tid, one.count) == ("RA17", TID, 3)
    assert one.detail == "3 periods without a cycle, the period is 1 ms"
    assert status_of(examined, FailOn.HIGH) == 1


@pytest.mark.parametrize(("ends_ms", "weight"), [(0, "medium"), (2, "high")])
def test_a_thread_that_nobody_woke_was_not_late(ends_ms: int, weight: str) -> None:
    ms = cycling.MS
    rows = [
        (TID, 0, 0, 0, at * ms, at * ms + 5, at * ms + 50, 45, 0, 0)
        for at in (*range(1, 50), *range(52, 99))
    ]
    rows[-1] = (*rows[-1][:6], rows[-1][6] + ends_ms * ms, *rows[-1][7:])
    examined, _ = recorded(CycleRuns(tuple(rows)))

    (one,) = examined.findings
    assert (one.id, one.weight) == ("RA17", weight)
    assert one.detail.startswith("2 periods without a wake-up, ")


def test_periods_within_a_late_cycle_are_not_said_to_have_no_cycle() -> None:
    rows = cycling.periodic(100).runs
    late = (*rows[49][:6], rows[49][4] + 3_400_000, *rows[49][7:])
    examined, _ = recorded(CycleRuns((*rows[:49], late, *rows[53:])))

    (one,) = examined.findings
    assert (one.id, one.count) == ("RA17", 1)
    assert one.detail == (
        "1 ended after the next was due, 3 more periods began meanwhile: skipped, or "
        "made up without a sleep, the period is 1 ms"
    )


def test_what_could_not_be_recorded_is_never_clean() -> None:
    denied = cycling.end(tracing=traces.tracing(cause="permission"))
    examined, shown = recorded(ending=denied)

    assert [one.ids for one in examined.unseen] == [("RA16", "RA17")]
    assert status_of(examined, FailOn.LOW) == 3
    text = "\n".join(printed(examined, shown))
    assert "not everything could be checked" in text
    assert "not seen: RA16, RA17: tracing is for root alone" in text
    assert cycles_row(shown)["recorded"] is False


def test_a_thread_that_did_not_wake_up_has_no_latency() -> None:
    examined, shown = recorded()

    assert f"thread {TID} cycle: no wake-up was seen" in "\n".join(
        printed(examined, shown)
    )
    row = cycles_row(shown)
    assert row["threads"] == []
    assert row["threads_without_wakeup"] == [TID]


def test_everything_has_the_cycles_of_each_thread() -> None:
    _, shown = recorded(cycling.periodic(400))
    many = replace(shown, names={TID + n: f"worker{n}" for n in range(20)})

    brief = terminal.printed(cycle_lines(many))
    whole = terminal.printed(cycle_lines(many, everything=True))

    assert "and 18 more threads: see -v" in brief
    assert [n for n in range(20) if f" worker{n}:" not in whole] == []
    assert "see -v" not in whole


def test_everything_has_the_whole_sentence_of_the_longest_cycle() -> None:
    _, shown = recorded(cycling.periodic(400))
    words = [f"part{number}" for number in range(3000)]
    long = replace(shown, longest={TID: " ".join(words)})

    whole = terminal.printed(cycle_lines(long, width=None, everything=True)).split()

    assert [one for one in words if one not in whole] == []


def test_everything_has_the_whole_cause_of_what_was_not_seen() -> None:
    cause = " ".join(f"call{number}" for number in range(2000))
    examined, _ = recorded(cycling.periodic(400))
    one = Unseen(("RA09",), "calls", cause, cause)
    blocks = examined_blocks(
        replace(examined, unseen=(one,)), width=None, everything=True
    )

    words = terminal.printed(blocks).split()

    assert words.count("call0") == words.count("call1999") == 2


def test_lost_events_are_a_caveat() -> None:
    lines = (cycling.periodic(10),)
    examined, shown = recorded(*lines, ending=cycling.end(lines, losses=2))

    text = "\n".join(printed(examined, shown))
    assert "caveat: the kernel lost events 2 times" in text


def test_runs_that_did_not_arrive_are_no_recording() -> None:
    end = cycling.end((cycling.periodic(10),))

    with pytest.raises(ContractError, match="not complete"):
        recording_of((cycling.begin(), cycling.periodic(9), end))


def test_data_has_every_number_of_the_cycles() -> None:
    _, shown = recorded(cycling.periodic(400))

    (row,) = json.loads(json.dumps(cycles_row(shown)))["threads"]
    assert (row["tid"], row["thread"], row["cycles"]) == (TID, "cycle", 400)
    assert row["period"]["period_ns"] == cycling.MS
    assert row["latency_ns"]["percentiles"]["99"] == 20
    assert row["latency_ns"]["percentiles"]["99.9"] is None
    assert row["response_ns"]["buckets"] == [[120, 121, 400]]
    assert row["longest"]["response_ns"] == 120


def test_junit_has_a_case_for_each_rule_and_an_error_for_what_was_not_seen() -> None:
    denied = cycling.end(tracing=traces.tracing(cause="permission"))
    examined, _ = recorded(ending=denied)

    root = ElementTree.fromstring(examined_junit(examined))
    cases = {case.get("name", "").split()[0]: case for case in root.iter("testcase")}
    assert cases["RA17"].find("error") is not None
    assert cases["RA05"].find("error") is None
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert suite.get("tests") == str(len(cases))


def test_what_no_board_shows_is_named_and_decides_no_status() -> None:
    observation = recorded(cycling.periodic(400))[0].observation
    watch = observation.watch
    begin = replace(watch.begin, events=(watching.event("signal", cause=OUTSIDE),))
    outside = replace(watch, begin=begin, from_outside=True)
    examined = examine(replace(observation, watch=outside))

    assert [(one.ids, one.by_nature) for one in examined.unseen] == [(("RA21",), True)]
    assert status_of(examined, FailOn.LOW) == 0
    assert examined_row(examined)["disturbance"] is None
    root = ElementTree.fromstring(examined_junit(examined))
    (case,) = (one for one in root.iter("testcase") if "RA21" in one.get("name", ""))
    assert case.find("skipped") is not None
    assert case.find("error") is None
    text = "\n".join(
        str(words) for words in examined_blocks(examined, width=80, everything=False)
    )
    assert "not seen: RA21" in text
    assert "cost it nothing" in text


def test_the_page_has_a_histogram_of_each_time_and_no_script() -> None:
    examined, shown = recorded(cycling.periodic(400))

    page = page_of(examined_document(examined, shown, {}))

    assert page.count("<svg") == 3
    assert "<script" not in page
    assert "Cycles of cycle" in page
    assert page.count("wake-up latency") >= 2
    assert "Longest cycle" in page
    assert "Waits inside the kernel" not in page
    assert "The watching used 0.10 % of a CPU, and copied 0 stacks." in page


def test_a_cycle_is_explained_in_the_words_of_a_wake_up() -> None:
    cycle = Cycle(
        *(0, 20_000, 120_000),
        ran_ns=90_000,
        waits=0,
        timed_waits=0,
        preempted=1,
        slept=True,
        timed=True,
    )
    segments = (
        Segment(Part.A, 0, 20_000, Cause.INTERRUPTS_OFF, "f"),
        Segment(Part.E, 20_000, 120_000, Cause.OWN_CODE, "cycle"),
    )
    whole = Explanation(cpu=0, sequence=-1, latency_ns=120_000, segments=segments)

    (thread,) = recording_of(
        (cycling.begin(), cycling.periodic(9), cycling.end((cycling.periodic(9),)))
    ).threads.values()

    words = longest_words(thread, cycle, whole)

    assert words.startswith(
        "120 µs from its time to its end: 20.0 µs until it got the CPU, 90.0 µs on it, "
        "10.0 µs preempted or waiting. "
    )
    assert "nterrupts off in f: 20.0 µs" in words
    assert "the program's own code and calls (cycle): 100 µs" in words
    longer = replace(thread, cut_longest_ns=1_090_000)
    assert longest_words(longer, cycle, whole).startswith(
        "1,090 µs, without a trace that explains it; of those with one: 120 µs from"
    )


def test_without_a_trace_no_cycle_is_explained() -> None:
    lines = (cycling.begin(), cycling.end())
    recording: CycleRecording = recording_of(lines)

    assert explained_cycles(recording, NAMES, MachineTraits()) == (recording, {})


def test_a_cycle_that_its_events_contradict_is_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = list(cycling.periodic(400).runs)
    rows[200] = (*rows[200][:6], rows[200][6] + 3 * cycling.MS, *rows[200][7:])
    lines = (CycleRuns(tuple(rows)),)
    (kept,) = traces.tracing().kept
    around = replace(
        kept,
        seq=TID,
        expiry_ns=rows[200][3],
        wake_ns=rows[200][6],
        from_ns=rows[200][3] - 5,
        to_ns=rows[200][6] + 5,
    )
    tracing = replace(traces.tracing(), kept=(around,))
    end = cycling.end(lines, tracing=tracing)
    recording = recording_of((cycling.begin(), *lines, end))
    assert recording.threads[TID].worst.response_ns > 3 * cycling.MS
    explained = SimpleNamespace(is_withdrawn=True)
    monkeypatch.setattr(watchedcycles, "dat_trace", lambda *_args, **_given: None)
    monkeypatch.setattr(
        watchedcycles,
        "_explained",
        lambda *_args: SimpleNamespace(whole=SimpleNamespace(explanation=explained)),
    )

    left, longest = explained_cycles(replace(recording, trace=b"x"), NAMES)

    assert longest == {}
    thread = left.threads[TID]
    assert thread.withdrawn == 1
    assert thread.worst.response_ns == 120
    shown = JudgedCycles(0, end, left.threads, NAMES, {})
    text = json.dumps(cycles_row(shown)) + "".join(printed(seen_with(left), shown))
    assert "3000120" not in text
    assert "3,000" not in text
    assert "1 more whose events contradict them" in cycle_words(thread)
    assert seen_with(left).findings == ()


def seen_with(recording: CycleRecording) -> Examined:
    return with_cycles(examine(seen(thread(TID))), recording.end, recording.threads)


def test_what_could_not_be_judged_is_not_seen() -> None:
    odd = CycleRuns(
        tuple(
            (TID, 0, 0, 0, at, at + 5, at + 50, 45, 0, 0)
            for at in (number**3 * 1_000 for number in range(1, 40))
        )
    )
    examined, _ = recorded(odd)
    assert [(one.ids, one.remedy) for one in examined.unseen] == [
        (("RA17",), "give its period: --period 5ms")
    ]
    assert status_of(examined, FailOn.LOW) == 3

    asleep, _ = recorded()
    assert [one.ids for one in asleep.unseen] == [("RA17",)]

    seldom, _ = recorded(CycleRuns(odd.runs[:4]))
    (one,) = seldom.unseen
    assert one.cause == "4 cycles are too few to find a period"
    assert one.remedy.startswith("watch for longer: --duration")


def test_a_sleep_for_an_interval_was_judged_and_misses_nothing() -> None:
    runs, now = [], 0
    for number in range(1, 300):
        due = now + cycling.MS
        now = due + 50_000 + number * 7_919 % 90_000
        runs.append(
            (TID, 0, due - cycling.MS + 900, due, due + 5, due + 9, now, 9, 0, 1)
        )
    examined, shown = recorded(CycleRuns(tuple(runs)))

    assert examined.findings == ()
    assert examined.unseen == ()
    text = " ".join(" ".join(printed(examined, shown)).split())
    assert "nothing is due, so nothing is missed" in text
    assert "% longer than the interval it asks for" in text
    period = cycles_row(shown)["threads"][0]["period"]
    assert period["basis"] == "interval"
    assert period["missed"] is None


def test_the_cost_of_a_wake_up_is_of_all_watching_together() -> None:
    lines = (cycling.periodic(10),)
    end = replace(cycling.end(lines), wakeup_plain_ns=20_000, wakeup_recorded_ns=24_000)
    costs = {"wakeup": WatchCost(25_000, 33_000, 0)}
    observed = seen(thread(TID), end=replace(watching.end(), costs=costs))
    light = examine(observed)
    assert "it adds in µs: a wake-up 8.0" in disturbed(light)

    whole = with_cycles(
        light, end, recording_of((cycling.begin(), *lines, end)).threads
    )
    assert "it adds in µs: a wake-up 12.0" in disturbed(whole)


def test_the_cost_of_a_wake_up_that_interrupts_a_thread_is_stated_by_itself() -> None:
    lines = (cycling.periodic(10),)
    end = replace(
        cycling.end(lines),
        wakeup_plain_ns=20_000,
        wakeup_recorded_ns=24_000,
        wakeup_beside_plain_ns=21_000,
        wakeup_beside_recorded_ns=40_000,
    )
    costs = {
        "wakeup": WatchCost(25_000, 33_000, 0),
        "wakeup_beside": WatchCost(26_000, 36_000, 0),
    }
    observed = seen(thread(TID), end=replace(watching.end(), costs=costs))
    cycles = recording_of((cycling.begin(), *lines, end)).threads

    stated = disturbed(with_cycles(examine(observed), end, cycles))
    assert "a wake-up 12.0, one that interrupts a thread 29.0" in stated

    unknown = replace(end, wakeup_beside_recorded_ns=0)
    stated = disturbed(with_cycles(examine(observed), unknown, cycles))
    assert "a wake-up 12.0" in stated
    assert "interrupts" not in stated


def disturbed(examined: Examined) -> str:
    return " ".join(" ".join(lines) for lines in disturbance(examined))


def test_the_advice_fits_what_the_thread_does_already() -> None:
    rows = cycling.periodic(100).runs
    (absolute,) = recorded(CycleRuns((*rows[:50], *rows[53:])))[0].findings
    assert "TIMER_ABSTIME" not in absolute.kind.remedy

    # it asks for the rest of each period, which varies
    asks = [
        (*row[:2], row[3] - 400_000 - row[3] % 99_991, *row[3:9], 1) for row in rows
    ]
    (relative,) = recorded(CycleRuns((*asks[:50], *asks[53:])))[0].findings
    assert "TIMER_ABSTIME" in relative.kind.remedy
    assert relative.weight is absolute.weight
