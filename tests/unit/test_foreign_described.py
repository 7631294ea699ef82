"""Formats that were read after their description: no output of the program was had."""

from pathlib import Path

import pytest

from fakes.foreign import (
    DESCRIBED,
    HWLATDETECT,
    OSNOISE,
    OSNOISE_TOP,
    RTEVAL,
    TIMERLAT,
    TIMERLAT_TOP,
    UNVERIFIED,
    XENOMAI,
)
from rtscope.host.errors import RecordError
from rtscope.record.foreign import read
from rtscope.record.foreign.model import ForeignRun
from rtscope.record.foreign.source import Source
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.exchange.records import Stated, record_of

Threads = list[tuple[int | None, int | None, int | None, int, dict[int, int]]]


@pytest.fixture
def reading(tmp_path: Path) -> Source:
    return Source(tmp_path / "x")


def runs_of(source: Source, text: str) -> dict[str, ForeignRun]:
    source.path.write_text(text)
    return {run.variant: run for run in read(source)}


def told(run: ForeignRun) -> Threads:
    """Samples, minimum, maximum, overflow and buckets, in us."""

    def us(ns: int | None) -> int | None:
        return None if ns is None else ns // 1000

    return [
        (
            *(t.samples, us(t.min_ns), us(t.max_ns), t.overflow),
            {low // 1000: count for low, count in t.buckets.items()},
        )
        for t in run.threads
    ]


def test_timerlat_has_a_run_for_each_of_its_latencies(reading: Source) -> None:
    runs = runs_of(reading, TIMERLAT)
    assert list(runs) == ["irq", "thread", "user"]
    assert told(runs["irq"]) == [
        (6000, 0, 3, 0, {0: 5990, 3: 10}),
        (6000, 0, 3, 0, {0: 5000, 3: 1000}),
    ]
    assert told(runs["thread"])[0] == (6000, 3, 57, 10, {3: 5000, 7: 990})
    assert [t.cpu for t in runs["user"].threads] == [0, 2]
    assert runs["user"].duration_ns == 600 * 10**9
    assert runs["irq"].caveats
    assert not runs["thread"].caveats


def test_nanoseconds_and_wide_buckets_of_timerlat_are_seen(reading: Source) -> None:
    text = TIMERLAT.replace("microseconds (us)", "nanoseconds (ns)")
    for old, new in (("\n3  ", "\n200"), ("\n7  ", "\n500")):
        text = text.replace(old, new)
    (first, *_) = runs_of(reading, text)["thread"].threads
    assert first.step_ns == 100
    assert list(first.buckets) == [200, 500]


def test_of_a_screen_of_timerlat_the_last_state_counts(reading: Source) -> None:
    runs = runs_of(reading, TIMERLAT_TOP)
    assert told(runs["thread"]) == [(4000, 2, 31, 4000, {}), (4001, 2, 18, 4001, {})]
    assert runs["irq"].duration_ns == 5 * 10**9


def test_osnoise_is_no_wakeup(reading: Source) -> None:
    run = runs_of(reading, OSNOISE)["noise"]
    assert told(run)[0] == (1101, 0, 5, 0, {0: 1000, 1: 100, 5: 1})
    assert [c.id for c in run.caveats] == ["import_other_quantity"]


def test_a_summary_of_osnoise_counts_periods(reading: Source) -> None:
    run = runs_of(reading, OSNOISE_TOP)["period"]
    assert told(run) == [(4, 0, 900, 4, {}), (4, 0, 0, 4, {})]
    assert run.threads[0].mean_ns == 2_193_000 // 4
    assert run.metadata == {"longest single noise": "310 us"}
    assert [c.id for c in run.caveats] == ["import_other_quantity", "import_no_minimum"]
    hardware = OSNOISE_TOP.replace("Operating System Noise", "Hardware-related Noise")
    assert runs_of(reading, hardware)["hardware"].tool == "rtla hwnoise"


@pytest.mark.parametrize(
    ("rows", "width"), [("0 3 6", 3), ("3 6", 1), ("3 6 max 7", 3), ("0 1 7", 1)]
)
def test_the_width_of_buckets_follows_from_the_rows(
    reading: Source, rows: str, width: int
) -> None:
    """Wider ones are claimed only where they must be, and the end never too late."""
    shown, _, highest = rows.partition(" max ")
    lows = shown.split()
    text = "\n".join(
        [
            "# RTLA timerlat histogram\nIndex   Thr-000",
            *(f"{low}   1" for low in lows),
            f"over: 0\ncount: {len(lows)}\nmin: {lows[0]}",
            f"max: {highest or lows[-1]}\n",
        ]
    )
    (thread,) = runs_of(reading, text)["thread"].threads
    assert thread.step_ns == width * 1000
    assert thread.end_ns == (int(lows[-1]) + 1) * 1000


def test_hwlatdetect_lists_gaps(reading: Source) -> None:
    (run,) = runs_of(reading, HWLATDETECT).values()
    assert told(run) == [(2, 14, 32, 0, {14: 1, 32: 1})]
    assert run.duration_ns == 120 * 10**9


def test_xenomai_counts_what_it_missed(reading: Source) -> None:
    (run,) = runs_of(reading, XENOMAI).values()
    assert told(run) == [(49001, 0, 9, 0, {0: 48000, 1: 1000, 9: 1})]
    assert run.threads[0].missed_periods == 2
    assert run.threads[0].interval_ns == 100_000


def test_timerlat_of_rteval_is_refused(reading: Source) -> None:
    with pytest.raises(RecordError, match="import the output of rtla itself"):
        runs_of(
            reading,
            RTEVAL.replace("cyclictest ", "timerlat ", 1).replace(
                "</cyclictest>", "</timerlat>"
            ),
        )


def test_rteval_has_a_thread_for_each_core(reading: Source) -> None:
    (run,) = runs_of(reading, RTEVAL).values()
    assert told(run) == [
        (1000, 3, 12, 0, {3: 900, 12: 100}),
        (1000, 4, 4000, 1, {4: 999}),
    ]
    assert (run.threads[0].interval_ns, run.facts) == (
        100_000,
        {"kernel_release": "6.12.0-rt"},
    )


def test_entities_in_xml_are_refused(reading: Source) -> None:
    text = RTEVAL.replace("<rteval", '<!DOCTYPE x [<!ENTITY a "b">]><rteval', 1)
    with pytest.raises(RecordError, match="entities"):
        runs_of(reading, text)


@pytest.mark.parametrize("name", DESCRIBED)
def test_what_was_only_read_about_limits_every_verdict(
    reading: Source, name: str
) -> None:
    for run in runs_of(reading, DESCRIBED[name]).values():
        record = record_of(
            run, reading, Stated(), run_id="001-x", repetition=1, command=()
        )
        raised = {caveat.id for caveat in all_caveats(record)}
        assert ("import_unverified" in raised) is (name in UNVERIFIED)
        assert "import_contradicts" not in raised
