"""Times in files of other tools: spikes, overflows, values, gaps, samples."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rtscope.contract import ForeignBuckets, ThreadResult
from rtscope.host.errors import RecordError
from rtscope.present.model.build import build_model
from rtscope.record.foreign import read
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.episodes import misses_of
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.exchange.records import Stated, record_of

S, US = 10**9, 1000


def imported(
    text: str,
    tmp_path: Path,
    *,
    unit_ns: int | None = None,
    interval_ns: int = 0,
) -> RunRecord:
    path = tmp_path / "x"
    path.write_text(text)
    source = Source(path)
    (run,) = read(source, unit_ns=unit_ns)
    stated = Stated(interval_ns=interval_ns)
    return record_of(run, source, stated, run_id="001-x", repetition=1, command=())


def foreign_of(thread: ThreadResult) -> ForeignBuckets:
    assert thread.foreign is not None
    return thread.foreign


def ids_of(record: RunRecord) -> set[str]:
    return {caveat.id for caveat in all_caveats(record)}


def late_s(thread: ThreadResult) -> list[tuple[float, int]]:
    """When each longest latency was, in s, and its µs."""
    return [(w.expiry_ns / S, w.latency_ns // US) for w in thread.worst]


SUMMARY = (
    "T: 0 (  615) P:80 I:1000 C: {count} Min: 2 Act: 5 Avg: 3 Max: {highest}\n"
    "T: 1 (  616) P:80 I:1500 C: {count} Min: 2 Act: 5 Avg: 3 Max: 431\n"
)


def spikes(values: Sequence[tuple[int, int, int]], *, said: int | None = None) -> str:
    lines = [f"T:{t:2d} Spike:{us:8d}: TS: {at:12d}" for t, us, at in values]
    total = len(values) if said is None else said
    return "\n".join(["", *lines, f"spikes = {total}", "", ""])


THREE = [(0, 424, 5_000_000), (1, 431, 65_000_123), (0, 410, 125_000_000)]


def test_spikes_have_the_time_since_the_first_one(tmp_path: Path) -> None:
    text = SUMMARY.format(count=200_000, highest=424) + spikes(THREE)
    first, second = imported(text, tmp_path).result.threads

    assert late_s(first) == [(0, 424), (120, 410)]
    assert late_s(second) == [(60.000123, 431)]
    assert not foreign_of(first).times_from_start
    assert foreign_of(first).time_step_ns == US


def test_a_full_list_of_spikes_keeps_no_time_and_says_so(tmp_path: Path) -> None:
    text = SUMMARY.format(count=200_000, highest=900) + spikes(THREE, said=4000)
    record = imported(text, tmp_path)

    assert all(not thread.worst for thread in record.result.threads)
    assert "import_times_cut" in ids_of(record)


def test_a_spike_that_is_not_the_maximum_contradicts(tmp_path: Path) -> None:
    text = SUMMARY.format(count=200_000, highest=999) + spikes(THREE)

    assert "import_contradicts" in ids_of(imported(text, tmp_path))


def test_spikes_each_minute_are_found(tmp_path: Path) -> None:
    rng = random.Random(3)
    every = [
        (i % 2, 400 + rng.randint(0, 31 - i % 2), int((60 * i + rng.random()) * 1e6))
        for i in range(14)
    ]
    every[1] = (1, 431, every[1][2])
    highest = max(us for t, us, _ in every if t == 0)
    record = imported(
        SUMMARY.format(count=900_000, highest=highest) + spikes(every), tmp_path
    )
    said = [one.sentence for one in build_model([record]).late.values()]

    assert len(said) == 1
    assert said[0].startswith("The 14 longest latencies under unknown come every 60.")


HISTOGRAM = """\
# /dev/cpu_dma_latency set to 0us
# Histogram
000002 000100\t000200
000003 000900\t000800
# Total: 000001000 000001000
# Min Latencies: 00002 00002
# Avg Latencies: 00003 00003
# Max Latencies: 00403 00012
# Histogram Overflows: 00003 00001
# Histogram Overflow at cycle number:
# Thread 0: 00010 00400 00990
# Thread 1: 00777
"""


def test_cycles_of_overflows_are_times_with_the_interval(tmp_path: Path) -> None:
    record = imported(HISTOGRAM, tmp_path, interval_ns=1_000_000)
    first, second = map(foreign_of, record.result.threads)

    assert first.beyond_at_ns == (10_000_000, 400_000_000, 990_000_000)
    assert second.beyond_at_ns == (777_000_000,)
    assert first.time_step_ns == 1_000_000
    assert first.times_from_start


def test_cycles_without_an_interval_are_no_times(tmp_path: Path) -> None:
    record = imported(HISTOGRAM, tmp_path)

    assert all(not foreign_of(t).beyond_at_ns for t in record.result.threads)
    assert "import_times_unknown" in ids_of(record)


def test_a_list_of_overflows_may_leave_some_out(tmp_path: Path) -> None:
    text = HISTOGRAM.replace("00990\n", "# 00001 others\n")
    record = imported(text, tmp_path, interval_ns=1_000_000)

    assert foreign_of(record.result.threads[0]).beyond_at_ns == (
        10_000_000,
        400_000_000,
    )


ROWS = [(0, 0, 12), (1, 0, 9), (0, 1, 431), (1, 1, 8), (0, 2, 7), (1, 2, 40)]
HEADER = "Thread 0 Interval: 1000\nThread 1 Interval: 1000\n"


@pytest.mark.parametrize(
    ("form", "header"),
    [
        ("{0:8d}:{1:8d}:{2:8d}", HEADER),
        ("{0:8d}:{1:8d}:{2:8d}", "Max CPUs = 2\nOnline CPUs = 2\n" + HEADER),
        ("{0:8d}:{1:8d}:{2:8d}", ""),
        ("{0:8d}:{1:8d}:{2:8d}       0", HEADER),
        ("{0:8d}:{1:8d}:{2:8d}:       3", HEADER),
        ("{0:8d},{1:8d},{2:8d}", HEADER),
        ("{0:8d};{1:8d};{2:8d};", ""),
        ("{0}: {1}: {2}", ""),
    ],
)
def test_every_value_has_its_cycle_as_time(
    form: str, header: str, tmp_path: Path
) -> None:
    text = header + "".join(f"{form.format(*row)}\n" for row in ROWS)
    record = imported(text, tmp_path, interval_ns=1_000_000)
    first, second = record.result.threads

    assert late_s(first) == [(0.001, 431), (0.0, 12), (0.002, 7)]
    assert late_s(second) == [(0.002, 40), (0.0, 9), (0.001, 8)]


def test_of_many_values_the_longest_keep_their_times(tmp_path: Path) -> None:
    rng = random.Random(1)
    values = [rng.randint(0, 10**6) for _ in range(5000)]
    text = HEADER[:24] + "".join(f"0: {i}: {v}\n" for i, v in enumerate(values))
    (thread,) = imported(text, tmp_path).result.threads

    best = sorted(values, reverse=True)[:64]
    assert [us for _, us in late_s(thread)] == best
    assert all(values[w.seq] == w.latency_ns // US for w in thread.worst)


@pytest.mark.parametrize("deadline_us", [7.0, 8.5, 11.2, 12.0, 12.5, 39.999, 431.5])
def test_a_time_makes_no_cut_value_exact(deadline_us: float, tmp_path: Path) -> None:
    text = HEADER + "".join(f"{t}: {c}: {us}\n" for t, c, us in ROWS)
    record = imported(text, tmp_path, interval_ns=1_000_000)
    threads = tuple(replace(t, worst=()) for t in record.result.threads)
    untimed = replace(record, result=replace(record.result, threads=threads))
    counted, known = (
        misses_of(one, int(deadline_us * US)) for one in (untimed, record)
    )

    assert (known.late_samples, known.ambiguous) == (
        counted.late_samples,
        counted.ambiguous,
    )
    assert known.episodes >= counted.episodes


def test_of_spikes_the_time_into_the_run_is_unknown(tmp_path: Path) -> None:
    text = SUMMARY.format(count=200_000, highest=424) + spikes(THREE)
    model = build_model([imported(text, tmp_path)])

    assert "into the run" not in model.headline.where
    assert model.sections[0].worst_since == "since the first"


GAPS = """\
hwlatdetect:  test duration 600 seconds
   parameters:
        Latency threshold: 10us
        Sample window:     1000000us
Starting test
test finished
Max Latency: 326us
Samples recorded: 3
Samples exceeding threshold: 3
"""


@pytest.mark.parametrize(
    "form",
    [
        "ts: {0}, inner:{1}, outer:{2}",
        "ts:{0}, inner:{1}, outer:{2}",
        "ts: {0}, inner: {1}, outer: {2}, cpu:1, count:9",
    ],
)
def test_gaps_have_their_times(form: str, tmp_path: Path) -> None:
    rows = [
        ("1767225677.956426641", 18, 0),
        ("1767225737.956426641", 0, 326),
        ("1767225797.9", 20, 19),
    ]
    text = GAPS + "".join(f"{form.format(*row)}\n" for row in rows)
    (thread,) = imported(text, tmp_path).result.threads

    assert [us for _, us in late_s(thread)] == [326, 20, 18]
    assert [at for at, _ in late_s(thread)] == pytest.approx([60, 119.943573359, 0])
    assert foreign_of(thread).time_step_ns == S
    assert not foreign_of(thread).times_from_start


SAMPLES = "0;100.000000100;3\n1;100.000200000;4\n0;100.001000000;90\n1;101.5;x\n"


def test_samples_of_jitterdebugger_have_cpus_and_times(tmp_path: Path) -> None:
    record = imported(SAMPLES, tmp_path, unit_ns=US)
    first, second = record.result.threads

    assert (first.cpu, second.cpu) == (0, 1)
    assert late_s(first) == [(0.0009999, 90), (0.0, 3)]
    assert record.imported is not None
    assert record.imported.told["lines not understood"] == "1"
    assert record.run.duration_ns == 999_900


def test_samples_without_a_unit_are_refused_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="add --unit us"):
        imported(SAMPLES, tmp_path)


TEXT = (
    "T: 0 ( 1021) A: 0 C:      {0} Min:         2 Avg:    2.97 Max:        {1}\n"
    "T: 1 ( 1022) A: 3 C:      {0} Min:         1 Avg:    3.22 Max:        13\n"
)


def test_the_last_screen_of_jitterdebugger_counts(tmp_path: Path) -> None:
    record = imported(TEXT.format(10, 9) + TEXT.format(10_123, 46), tmp_path)
    first, second = record.result.threads

    assert (first.samples, first.min_ns, first.max_ns) == (10_123, 2 * US, 46 * US)
    assert (second.cpu, foreign_of(second).mean_ns) == (3, 3220)


@pytest.mark.parametrize("text", [TEXT.format(0, 0), "T: 0 (1) A: 0 C: 5 Min: 1\n"])
def test_no_sample_and_no_line_are_told_apart(text: str, tmp_path: Path) -> None:
    if "Avg" in text:
        assert imported(text, tmp_path).result.threads[0].max_ns is None
    else:
        with pytest.raises(RecordError, match="no format"):
            imported(text, tmp_path)
