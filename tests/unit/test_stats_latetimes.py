"""Times of the latest wake-ups of records, and the sentence about their distance."""

import random
import re
from dataclasses import replace

import pytest

from fakes.measurements import record, thread, ticks_of
from rtscope.contract import ForeignBuckets, ThreadResult
from rtscope.present.model.build import build_model
from rtscope.present.model.overtime import LateOverTime
from rtscope.record.model import Imported, RunRecord
from rtscope.stats.latetimes import late_times, timing_of

S = 10**9
INTERVAL = S // 20
"""A wake-up every 50 ms: a minute has 1,200."""


def latencies(
    *, minutes: int, every_s: float | None, spikes_ns: int = 500_000, seed: int = 1
) -> list[int]:
    """Wake-ups of some microseconds, and long ones at a distance or by chance."""
    rng = random.Random(seed)
    count = minutes * 60 * S // INTERVAL
    values = [rng.randint(3_000, 9_000) for _ in range(count)]
    if every_s is None:
        places = rng.sample(range(count), minutes)
    else:
        places = [
            int((i + 0.4 + rng.gauss(0, 0.01)) * every_s * S) // INTERVAL
            for i in range(int(minutes * 60 // every_s))
        ]
    for place in places:
        values[min(place, count - 1)] = spikes_ns + rng.randint(0, spikes_ns // 5)
    return values


def run(*threads: ThreadResult) -> RunRecord:
    return record(threads)


def with_few_kept(values: list[int]) -> RunRecord:
    """A run with the maxima of each second, and the times of four wake-ups."""
    whole = thread(values, interval_ns=INTERVAL, worst_kept=len(values))
    return record([replace(whole, worst=whole.worst[:4])], ticks=ticks_of([whole]))


def spiked(every_s: float | None, *, minutes: int = 12, seed: int = 1) -> ThreadResult:
    values = latencies(minutes=minutes, every_s=every_s, seed=seed)
    return thread(values, interval_ns=INTERVAL, worst_kept=64)


def sentence_of(*records: RunRecord) -> str:
    model = build_model(records)
    (late,) = model.late.values()
    assert late.sentence in model.findings
    return late.sentence


def test_a_spike_each_minute_is_named_with_its_distance_and_p() -> None:
    said = sentence_of(run(spiked(60.0)))

    said_s = re.fullmatch(
        r"The 12 latest wake-ups under idle come every ([\d.]+) s \(p = 0\.0\d+\)\.",
        said,
    )
    assert said_s is not None
    assert float(said_s[1]) == pytest.approx(60, rel=0.01)


def test_spikes_by_chance_have_no_distance_and_the_periods_tried_are_named() -> None:
    said = sentence_of(run(spiked(None)))

    assert said.startswith("No steady distance found between the latest wake-ups")
    assert "would have been seen" in said


def test_several_runs_are_tested_together() -> None:
    runs = [
        replace(one, run=replace(one.run, id=f"00{seed}-idle", repetition=seed))
        for seed in (1, 2, 3)
        for one in [run(spiked(60.0, minutes=6, seed=seed))]
    ]

    assert "in each of 3 runs (p = " in sentence_of(*runs)


def test_late_wakeups_of_all_cpus_at_once_are_one_event() -> None:
    values = latencies(minutes=12, every_s=60.0)
    cpus = [thread(values, cpu=cpu, interval_ns=INTERVAL) for cpu in range(4)]
    timing = timing_of([run(*cpus)])

    assert timing is not None
    assert timing.events == 12


def test_a_cut_list_gives_only_wakeups_that_no_unlisted_one_exceeds() -> None:
    few = thread([5_000, 9_000, 8_000, 7_000] * 50, cpu=0, worst_kept=3)
    many = thread(list(range(1_000, 20_000, 100)), cpu=1)

    found = late_times(run(few, many)).events
    assert all((event.latency_ns or 0) > 9_000 for event in found)


@pytest.mark.slow
def test_where_too_few_wakeups_are_kept_whole_seconds_are_tested() -> None:
    values = latencies(minutes=12, every_s=60.0)
    timing = timing_of([with_few_kept(values)])

    assert timing is not None
    assert timing.seconds
    assert timing.step_ns == S
    assert timing.steady.found is not None
    assert timing.steady.found.period_ns / S == pytest.approx(60, rel=0.02)


@pytest.mark.slow
def test_whole_seconds_limit_the_periods_and_the_report_says_so() -> None:
    values = latencies(minutes=12, every_s=None)

    said = sentence_of(with_few_kept(values))
    assert "the times are known to 1 s" in said


@pytest.mark.parametrize("kept", [0, 3, 7])
def test_too_few_times_say_nothing(kept: int) -> None:
    values = latencies(minutes=2, every_s=None)
    records = [run(thread(values, interval_ns=INTERVAL, worst_kept=kept))]

    assert timing_of(records) is None
    assert not build_model(records).late


def beyond(at_s: list[float]) -> RunRecord:
    """A run of another tool with times of latencies beyond its histogram."""
    own = thread([5_000] * 1200, interval_ns=INTERVAL, worst_kept=0)
    foreign = ForeignBuckets(
        step_ns=1000,
        end_ns=400_000,
        beyond_at_ns=tuple(int(at * S) for at in at_s),
        time_step_ns=INTERVAL,
        times_from_start=False,
    )
    made = run(own)
    told = replace(own, foreign=foreign, start_ns=0, end_ns=0)
    source = Imported(
        "x", "", "table", verified=True, file="x", sha256="a" * 64, measures="x"
    )
    return replace(
        made,
        imported=source,
        result=replace(made.result, start_ns=0, end_ns=0, threads=(told,)),
    )


def test_latencies_beyond_a_histogram_have_times_and_no_latency() -> None:
    one = beyond([60.0 * i + 0.1 * (i % 3) for i in range(12)])
    timing = timing_of([one])

    assert timing is not None
    assert timing.steady.found is not None
    assert {event.latency_ns for run in timing.times for event in run.events} == {None}


def test_the_chart_marks_the_cycles_of_a_distance_only() -> None:
    for every_s, marked in ((60.0, True), (None, False)):
        model = build_model([run(spiked(every_s))])
        (late,) = model.late.values()
        content = late.chart.content

        assert isinstance(content, LateOverTime)
        assert bool(content.cycles_s) == marked
        assert len(content.seconds) == late.timing.events
        assert late.chart in model.charts
