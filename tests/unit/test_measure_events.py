"""What wakes the threads: its names and options, and events that never come."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.contract import HwlatWindows, ThreadEvent, ThreadResult, result_digest
from rtscope.explain.directory import explained_runs
from rtscope.host.errors import UsageError
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.events import (
    describe,
    event_names,
    get_event,
    parse_event,
)
from rtscope.measure.plan import make_plan, measure_args
from rtscope.present.documents.pages import render_html
from rtscope.present.model.build import build_model
from rtscope.present.model.rows import Row, rows_of
from rtscope.present.model.side_by_side import by_variant, side_by_side
from rtscope.record.caveats.catalogue import Effect, kind_of
from rtscope.record.directory.records import create
from rtscope.record.model import RunRecord, record_from_json, record_to_json
from rtscope.stats.conditions import conditions_of
from rtscope.stats.episodes import misses_of
from rtscope.stats.exposure import watched
from rtscope.stats.integrity import check_thread
from rtscope.stats.runcaveats import lint
from rtscope.stats.runsets import run_sets
from rtscope.stats.summary import observed_ns, summarize
from rtscope.stats.verdict import judge
from rtscope.verbs.exchange.writers.verdicts import cases

US = 1_000


def of_event(
    latencies_ns: list[int], *, lost: int = 0, full: int = 0, **counts: int
) -> ThreadResult:
    """Return a thread that was woken by events, of which some never came."""
    unsent = counts.get("unsent", 0)
    made = thread(latencies_ns, activations=len(latencies_ns) + lost + full + unsent)
    event: dict[str, Any] = {
        "name": "futex",
        "stimulus_cpu": 1,
        "stimulus_tid": 2000,
        "stimulus_policy": "fifo",
        "stimulus_priority": 98,
        "sent": len(latencies_ns) + lost,
        "unsent": 0,
        "stimulus_late_ns": 7 * US,
        "lost": lost,
        "full": full,
        "doubled": 0,
        "reordered": 0,
        **counts,
    }
    return replace(made, missed_periods=lost + full, event=ThreadEvent(**event))


def of_run(one: ThreadResult, event: str = "futex", repetition: int = 1) -> RunRecord:
    made = record([one], repetition=repetition)
    return replace(made, run=replace(made.run, event=event))


# --- names and options ------------------------------------------------------------


def test_options_of_an_event_are_recorded_in_one_order_and_without_defaults() -> None:
    assert parse_event("futex") == "futex"
    assert parse_event("mq:priority=7:cpu=same") == "mq:cpu=same:priority=7"
    assert parse_event("sem:cpu=other") == "sem"
    assert parse_event("raw:to=eth1:from=eth0") == "raw:from=eth0:to=eth1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("futx", "futex"),
        ("hwlat:threshold=0", "microseconds, 1 to"),
        ("hwlat:cpu=1", "cpu"),
        ("timerlat:cpu=1", "has no options"),
        ("udp:width=5", "width"),
        ("timer:cpu=same", "no options"),
        ("futex:cup=same", "cpu"),
        ("futex:cpu", "cpu="),
        ("futex:cpu=x", "same, other"),
        ("futex:priority=100", "1 to 99"),
        ("futex:cpu=1:cpu=2", "once"),
        ("pty:from=a:to=b", "from"),
        ("raw:from=a", "both"),
        ("raw:from=a/b:to=c", "interface"),
        ("raw:from=abcdefgh-16-char:to=c", "at most 15 characters"),
        ("", "event"),
    ],
)
def test_a_wrong_event_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_event(text)


def test_the_list_names_every_event() -> None:
    text = "\n".join(describe())

    for name in event_names():
        event = get_event(name)
        assert f"{name}: {event.title}" in text
        assert event.stimulus in text
        assert event.path in text
        assert event.places in text


# --- campaigns and records without an event stay as they were -----------------------


def test_a_campaign_without_an_event_does_not_name_one() -> None:
    assert "event" not in to_dict(Campaign())["run"][0]
    (run, *_) = make_plan(Campaign()).runs
    assert run.event == "timer"
    assert "--event" not in measure_args(run, Campaign())
    assert b'"event"' not in record_to_json(record([thread([1])]))


def test_a_record_of_an_event_is_read_as_it_was_written() -> None:
    one = of_run(of_event([5 * US], lost=1), "futex:cpu=same")

    assert record_from_json(record_to_json(one), name="one") == one


def test_each_event_is_a_run_of_its_own() -> None:
    table = RunTable(loads=("idle",), events=("timer", "futex:cpu=same"))
    campaign = from_dict(to_dict(Campaign(runs=(table,))), source="a test")
    runs = make_plan(campaign).runs

    assert [run.id for run in runs] == ["001-idle-timer", "002-idle-futex-cpu-same"]
    args = measure_args(runs[1], campaign)
    assert args[args.index("--event") + 1] == "futex:cpu=same"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"run": [{"event": "futex", "policy": "deadline"}]}, "another policy"),
        ({"run": [{"event": "futex,futex"}]}, "twice"),
    ],
)
def test_what_makes_no_sense_with_an_event_is_refused(
    tables: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        from_dict(tables, source="a test")


def test_answers_to_events_may_be_traced_on_a_machine() -> None:
    tables = {"run": [{"event": "futex"}], "campaign": {"explain": True}}

    campaign = from_dict(tables, source="a test")

    assert "--event" in measure_args(make_plan(campaign).runs[0], campaign)
    assert campaign.explain


# --- events that never come ---------------------------------------------------------


def test_samples_and_lost_events_make_up_what_was_sent() -> None:
    good = of_event([5 * US] * 10, lost=2, full=3, unsent=4)
    assert good.event is not None

    assert list(check_thread(good)) == []
    for wrong in (
        replace(good, event=replace(good.event, lost=1)),
        replace(good, event=replace(good.event, unsent=9)),
        replace(good, missed_periods=4),
    ):
        assert [c.id for c in check_thread(wrong)][:1] == ["identity_broken"]


def test_a_lost_event_misses_every_deadline() -> None:
    lost, in_time = of_event([5 * US] * 2000, lost=1), of_event([5 * US] * 2000)

    assert misses_of(of_run(lost), 10**9).total == 1
    assert misses_of(of_run(lost), 10**9).episodes == 1
    assert misses_of(of_run(in_time), 10**9).total == 0
    for one, word in ((lost, "NO"), (in_time, "HELD IN TEST")):
        judged = judge([of_run(one)], deadline_ns=10**9)
        assert judged.verdict.value == word
        assert "event futex" in judged.findings[0].sentence


def test_a_period_that_the_stimulus_missed_is_no_miss_and_a_caveat() -> None:
    one = of_run(of_event([5 * US] * 2000, unsent=2))

    assert misses_of(one, 10 * US).total == 0
    assert "events_unsent" in {c.id for c in lint(one)}


@pytest.mark.parametrize("kind", ["lost", "full", "doubled", "reordered"])
def test_each_oddity_of_events_has_its_caveat(kind: str) -> None:
    counts = {kind: 3}

    found = {c.id: c.detail for c in lint(of_run(of_event([US] * 9, **counts)))}
    assert found[f"events_{kind}"].startswith("3 beside")
    assert "missed_periods" not in found


def test_an_interrupt_that_became_one_with_the_next_is_no_lost_event() -> None:
    thread = of_event([US] * 9, lost=3)
    assert thread.event is not None
    uio = replace(thread, event=replace(thread.event, name="uio"))

    found = {c.id: c.detail for c in lint(of_run(uio, "uio"))}
    assert found["events_merged"].startswith("3 beside")
    assert "events_lost" not in found
    assert misses_of(of_run(uio, "uio"), 10 * US).total == 3


@pytest.mark.parametrize("kind", ["stuck_ns", "silent_ns"])
def test_a_way_that_was_interrupted_makes_no_result(kind: str) -> None:
    silence: Any = {kind: 3_000_000_000}
    interrupted = of_event([US] * 9, lost=1, **silence)
    assert interrupted.event is not None
    merged = replace(interrupted, event=replace(interrupted.event, name="uio"))
    waited = of_event([US] * 9 + [2_900_000_000], lost=1, **silence)
    briefly = of_event([US] * 9, lost=1, **{kind: 900_000_000})

    found = {c.id: c for c in lint(of_run(interrupted))}
    assert found["events_interrupted"].detail == "3 s at most"
    assert kind_of(found["events_interrupted"]).effect is Effect.INVALID
    for other in (merged, waited, briefly, of_event([US])):
        assert "events_interrupted" not in {c.id for c in lint(of_run(other))}


def test_no_average_claims_to_know_how_long_a_lost_event_took() -> None:
    assert summarize([of_event([US], lost=1)]).mean_with_missed_periods_ns is None
    assert summarize([of_event([US])]).mean_with_missed_periods_ns == US


# --- what compares, and what is explained -------------------------------------------


def test_runs_of_different_events_do_not_compare() -> None:
    sets = {
        event: [of_run(of_event([US + n]), event, n) for n in (1, 2)]
        for event in ("futex", "pipe")
    }

    with pytest.raises(UsageError, match="different events"):
        run_sets(sets, deadline_ns=None)


def test_a_report_names_events_and_sets_different_ones_not_side_by_side() -> None:
    def rows(*events: str) -> tuple[Row, ...]:
        return rows_of(
            [of_run(of_event([US + n]), e, n) for n, e in enumerate(events, 1)]
        )

    assert [row.name for row in rows("futex")] == ["idle · event futex"]
    assert side_by_side(by_variant(rows("futex", "pipe"))) is None
    assert [row.name for row in rows_of([record([thread([US])])])] == ["idle"]


def test_where_the_stimulus_runs_is_a_condition() -> None:
    here = of_run(of_event([US]))
    there = of_run(of_event([US], stimulus_cpu=2))

    assert conditions_of(here) == conditions_of(of_run(of_event([US])))
    assert conditions_of(here) != conditions_of(there)


def test_a_bound_of_latency_is_of_timers_alone(tmp_path: Path) -> None:
    store = create(tmp_path / "out", to_dict(Campaign()), command=())
    store.save(on_board(of_run(of_event([US]))))

    with pytest.raises(UsageError, match="woken by the event futex"):
        explained_runs(store.path, None, worst=1, bound=True, cache=tmp_path, log=print)


def polled(policy: str, *, throttled: bool) -> RunRecord:
    made = record([thread([4_000, 90_000])], facts={"rt_throttling": throttled})
    return replace(made, run=replace(made.run, event="poll", policy=policy))


@pytest.mark.parametrize(
    ("policy", "throttled", "raised"),
    [("fifo", True, True), ("fifo", False, False), ("other", True, False)],
)
def test_a_rule_that_ends_a_busy_loop_is_a_caveat(
    policy: str, throttled: bool, raised: bool
) -> None:
    found = [one.id for one in lint(polled(policy, throttled=throttled))]

    assert ("poll_throttled" in found) == raised


def test_a_busy_loop_has_gaps_and_no_wake_ups() -> None:
    model = build_model([polled("other", throttled=False)])

    assert model.title.startswith("Gaps in a busy loop of ")
    assert model.headline.where.startswith("was the longest gap: ")
    assert not any("wake" in chart.description for chart in model.charts)
    assert parse_event("poll") == "poll"
    with pytest.raises(UsageError, match="the event poll has no options"):
        parse_event("poll:cpu=1")


# --- holes that the kernel's tracer finds -------------------------------------------


def with_holes(
    holes_ns: list[int], *, silent: int = 0, threshold_us: int = 10
) -> RunRecord:
    """Return a run of the tracer hwlat, which looks for a quarter of each interval."""
    one = thread(holes_ns, activations=len(holes_ns) + silent)
    hwlat = HwlatWindows(threshold_us * US, one.interval_ns // 4, silent)
    one = replace(one, missed_periods=0, missed_periods_sum_ns=0, hwlat=hwlat)
    made = record([one])
    return replace(made, run=replace(made.run, event="hwlat:threshold=10"))


def test_intervals_without_a_hole_are_no_samples_and_no_missed_periods() -> None:
    made = with_holes([12 * US, 40 * US], silent=98)
    (one,) = made.result.threads

    assert list(check_thread(one)) == []
    assert one.samples == 2
    assert record_from_json(record_to_json(made), name="one") == made
    assert observed_ns([one]) == 100 * one.interval_ns // 4
    assert watched([[one]]).longest_ns == 100 * one.interval_ns // 4
    assert one.hwlat is not None
    broken = replace(one, hwlat=replace(one.hwlat, silent=90))
    assert [caveat.id for caveat in check_thread(broken)] == ["identity_broken"]
    (found,) = (c for c in lint(made) if c.id == "hwlat_unreported")
    assert "none above 10 us in 98 of 100 intervals" in found.detail
    assert "at most 25% of each" in found.detail


def test_holes_that_differ_in_number_alone_have_another_digest() -> None:
    digests = {
        result_digest(with_holes([], silent=count).result.threads) for count in (98, 99)
    }

    assert len(digests) == 2


@pytest.mark.parametrize(
    ("holes_us", "deadline_us", "verdict", "below"),
    [
        ([], 11, "NOT SHOWN", False),
        ([12], 12, "NOT SHOWN", False),
        ([12], 11, "NO", False),
        ([], 10, "NOT SHOWN", True),
    ],
)
def test_a_deadline_is_judged_from_the_threshold_on(
    holes_us: list[int], deadline_us: int, verdict: str, below: bool
) -> None:
    """A hole of less than 11 us is reported as 10 us, which is not above 10."""
    made = with_holes([us * US for us in holes_us], silent=2000)

    judged = judge([made], deadline_ns=deadline_us * US)

    (finding,) = judged.findings
    assert judged.verdict.value == verdict
    assert ("looks for latencies of 11 us or more only" in finding.sentence) == below
    assert ("only holes above a threshold" in finding.sentence) == (verdict != "NO")


@pytest.mark.parametrize(
    ("holes_us", "deadline_us", "result"),
    [([], 10, "unknown"), ([], 11, "pass"), ([12], 11, "fail")],
)
def test_a_deadline_that_the_tracer_does_not_look_for_passes_in_no_export(
    holes_us: list[int], deadline_us: int, result: str
) -> None:
    made = with_holes([us * US for us in holes_us], silent=2000)

    (case,) = cases([made], deadline_us * US)

    assert case.result == result
    assert ("11 us or more only" in case.error) == (result == "unknown")


def test_a_report_of_holes_says_what_was_looked_for() -> None:
    none = build_model([with_holes([], silent=1000)])
    some = build_model([with_holes([12 * US], silent=999)])

    assert none.title.startswith("Holes with interrupts off of ")
    assert "11" in none.headline.maximum
    assert some.headline.where.startswith("was the longest hole: ")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (with_holes([12 * US] * 20), ("Holes with", "The worst reported holes")),
        (polled("other", throttled=False), ("Gaps in", "Share of intervals")),
        (of_run(of_event([US] * 20)), ("Event latency", "Share of events with")),
    ],
)
def test_a_page_calls_what_was_measured_by_its_name(
    made: RunRecord, says: tuple[str, ...]
) -> None:
    page = render_html(build_model([made]))
    words = re.sub(r"<dl.*?</dl>|<[^>]*>", " ", page, flags=re.DOTALL)

    assert all(one in words for one in says)
    assert "ake-up latency" not in words
    assert "worst wake-ups" not in words


def test_runs_of_different_events_have_latencies_alone_in_common() -> None:
    model = build_model([of_run(of_event([US])), record([thread([US])])])

    assert model.title.startswith("Latency of ")


@pytest.mark.parametrize(
    ("event", "run", "asked", "said"),
    [
        ("hwlat", {"interval": "10ms"}, {}, "must have 100 ms"),
        ("hwlat", {"interval": "1s"}, {"explain": True}, "leave explain"),
        ("hwlat", {"interval": "1s"}, {"parts": True}, "leave parts"),
        ("timerlat", {"interval": "50us", "policy": "other"}, {}, "from 100us to 1s"),
        ("timerlat", {"interval": "2s", "policy": "other"}, {}, "from 100us to 1s"),
        ("timerlat", {"policy": "other"}, {"parts": True}, "leave parts or timerlat"),
        ("timerlat", {"policy": "fifo"}, {}, "write policy other"),
    ],
)
def test_what_a_tracer_cannot_do_is_refused_before_a_run(
    event: str, run: dict[str, Any], asked: dict[str, Any], said: str
) -> None:
    document = {"campaign": asked, "run": [{"event": event, "duration": "10s", **run}]}

    with pytest.raises(UsageError, match=said):
        from_dict(document, source="a test")
