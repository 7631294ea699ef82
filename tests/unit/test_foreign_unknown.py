"""Unknown, none and zero in the files of other tools are three things."""

from pathlib import Path

import pytest

from fakes import foreigncases
from fakes.foreign import OSNOISE, TIMERLAT, TIMERLAT_TOP
from rtscope.host.errors import RecordError
from rtscope.record.foreign import read
from rtscope.record.foreign.model import ForeignRun
from rtscope.record.foreign.source import Source
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.exchange.records import Stated, record_of

Numbers = list[tuple[int | None, int | None, int | None, int | None]]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "x")


def runs_of(source: Source, text: str) -> list[ForeignRun]:
    source.path.write_text(text)
    return read(source)


def numbers(run: ForeignRun) -> Numbers:
    """Samples, minimum, average and maximum of each thread, in ns."""
    return [(t.samples, t.min_ns, t.mean_ns, t.max_ns) for t in run.threads]


def caveats(source: Source, run: ForeignRun) -> set[str]:
    """Return the caveats of the record that is made of a run."""
    record = record_of(run, source, Stated(), run_id="001-x", repetition=1, command=())
    return {one.id for one in all_caveats(record)}


def test_xenomai_without_a_histogram_keeps_its_numbers(source: Source) -> None:
    (run,) = runs_of(source, foreigncases.XENOMAI_PLAIN)
    assert numbers(run) == [(None, 498, 1201, 9871)]
    assert run.threads[0].missed_periods == 2
    assert run.threads[0].interval_ns == 200_000
    assert run.duration_ns == 2 * 10**9
    (counted,) = (c for c in run.caveats if c.id == "import_no_count")
    assert counted.detail == "about 10,000, estimated from 2 s at 200 us"
    raised = caveats(source, run)
    assert "import_no_histogram" in raised
    assert "import_contradicts" not in raised


def test_latmus_is_read(source: Source) -> None:
    (run,) = runs_of(source, foreigncases.LATMUS)
    assert (run.tool, numbers(run)) == ("latmus", [(None, 1182, 1313, 3899)])
    (thread,) = run.threads
    assert (thread.cpu, thread.priority, thread.interval_ns) == (1, 98, 1_000_000)


@pytest.mark.parametrize("text", [foreigncases.XENOMAI_PLAIN, foreigncases.LATMUS])
def test_xenomai_without_its_last_line_has_the_best_and_the_worst(
    source: Source, text: str
) -> None:
    whole = runs_of(source, text)[0].threads[0]
    (run,) = runs_of(source, text[: text.index("---|--")])
    assert numbers(run) == [(None, whole.min_ns, None, whole.max_ns)]
    assert {"import_cut_short", "import_no_count"} <= caveats(source, run)


def test_a_second_of_latmus_is_enough(source: Source) -> None:
    lines = foreigncases.LATMUS.split("\n")
    (run,) = runs_of(source, "\n".join(lines[1:4]) + "\n")
    assert numbers(run) == [(None, 1211, None, 2476)]


@pytest.mark.parametrize("unit_ns", [None, 1])
def test_samples_that_are_all_beyond_the_histogram_are_counted(
    source: Source, unit_ns: int | None
) -> None:
    source.path.write_text(foreigncases.ALL_BEYOND)
    (run,) = read(source, unit_ns=unit_ns)
    step = unit_ns or 1000
    assert numbers(run) == [(1000, 13278 * step, 23697 * step, 278_611 * step)]
    assert (run.threads[0].overflow, run.threads[0].end_ns) == (1000, 0)
    raised = caveats(source, run)
    assert "import_no_histogram" in raised
    assert "import_contradicts" not in raised


def test_with_rows_of_zeros_all_samples_may_be_beyond_them(source: Source) -> None:
    rows = "".join(f"{row:06} 000000\n" for row in range(100))
    text = foreigncases.ALL_BEYOND.replace("# Min", f"{rows}# Min", 1)
    (run,) = runs_of(source, text)
    assert numbers(run) == [(1000, 13_278_000, 23_697_000, 278_611_000)]
    assert run.threads[0].end_ns == 100_000
    assert "import_contradicts" not in caveats(source, run)


def test_the_extremes_below_a_histogram_count_if_columns_are_missing(
    source: Source,
) -> None:
    text = (
        "# Histogram\n000002 000010\t000010\n000004 000001\t000001\n"
        "# Min Latencies: 00002 00002 00003 00003\n"
        "# Avg Latencies: 00002 00002 00004 00004\n"
        "# Max Latencies: 00004 00004 00009 00007\n"
        "# Histogram Overflows: 00000 00000 00000 00000\n"
    )
    (run,) = runs_of(source, text)
    assert max(t.max_ns or 0 for t in run.threads) == 9000
    assert [t.samples for t in run.threads] == [11, 11, None, None]
    assert "import_contradicts" in caveats(source, run)


def test_a_histogram_without_its_last_lines_is_not_damaged(source: Source) -> None:
    text = foreigncases.IDLE
    (run,) = runs_of(source, text[: text.index("# Min")])
    assert numbers(run) == [(100_000, 6000, None, 15_000)]
    raised = caveats(source, run)
    assert "import_cut_short" in raised
    assert "import_contradicts" not in raised


def test_words_behind_the_last_lines_are_no_threads(source: Source) -> None:
    text = foreigncases.IDLE.replace("Latencies: 00015", "Latencies: 00015 # 3 us ago")
    (run,) = runs_of(source, text)
    assert numbers(run) == [(100_000, 6000, 7000, 15_000)]
    assert "import_contradicts" not in caveats(source, run)


@pytest.mark.parametrize(
    ("line", "average"),
    [
        ("T: 0 ( 5407) P:80 I: 1100 C: 2047066 Min: 7 Act: 15 Max: 59", None),
        ("T: 0 ( 3431) P:99 I: 100 O: 0 C: 2047066 Min: 7 Act: 15 Max: 59", None),
        ("T: 0 (5407) P:80 I:1100 C:2047066 Min:7 Act:15 Avg:9 Max:59", 9000),
        ("T:0 (5407) P:80 I:1100 C:2047066 Min:7 Act:-15 Avg:9 Max:59", 9000),
        ("T: 0 (54) P:80 I:1100 C:2047066 Min: 7 Act: 9 Avg: 9 Max: 59 Spike: 9", 9000),
    ],
)
def test_a_summary_of_any_age_is_read(
    source: Source, line: str, average: int | None
) -> None:
    (run,) = runs_of(source, f"{line}\n")
    assert numbers(run) == [(2_047_066, 7000, average, 59_000)]


def test_a_summary_that_lacks_a_part_is_named(source: Source) -> None:
    whole = "T: 0 ( 1) P:80 I:1000 C: 9 Min: 2 Act: 2 Avg: 2 Max: 3\n"
    (run,) = runs_of(source, f"# x\n{whole}T: 1 ( 2) P:80 I:1000 C: 9 Min: 2\n")
    (cut,) = (c for c in run.caveats if c.id == "import_cut_short")
    assert cut.detail == "line 3: T: 1 has no Act, Max"
    with pytest.raises(RecordError, match="line 2: T: 1 has no Act, Max"):
        runs_of(source, "# Histogram\nT: 1 ( 2) P:80 I:1000 C: 9 Min: 2\n")


LEFT_OUT_THREADS = {
    "cyclictest": foreigncases.LEFT_OUT,
    "gap without dots": foreigncases.LEFT_OUT.replace("...\n", ""),
    "first ones": "\n".join(foreigncases.LEFT_OUT.split("\n")[5:]),
    "values": "".join(f"       {t}: {n:7}: {9:7}\n" for n in range(9) for t in (0, 3)),
    "signaltest": (
        "T: 0 (1) P:80 C: 20 Min: 7 Act: 15 Avg: 9 Max: 59\n"
        "T: 3 (4) P:80 C: 20 Min: 7 Act: 15 Avg: 9 Max: 59\n"
    ),
    "cyclicdeadline": (
        "T: 0 (1) I:1000 C: 20 Min: 7 Act: 15 Avg: 9 Max: 59\n"
        "T: 2 (4) I:1000 C: 20 Min: 7 Act: 15 Avg: 9 Max: 59\n"
    ),
    "pairs": "".join(
        f"#{n - 1}: ID1, P99, CPU0, I1000; #{n}: ID2, P99, CPU0, Cycles 20\n"
        f"#{n} -> #{n - 1}, Min    1, Cur    4, Avg    4, Max   12\n"
        for n in (1, 5)
    ),
    "json": """{
  "file_version": 1,
  "cmdline:": "cyclictest -q --json=x",
  "rt_test_version:": "2.4",
  "num_threads": 3,
  "resolution_in_ns": 0,
  "thread": {
    "0": {"cycles": 9, "min": 1, "max": 3, "avg": 2.0, "cpu": 0, "node": 0},
    "2": {"cycles": 9, "min": 1, "max": 3, "avg": 2.0, "cpu": 2, "node": 0}
  }
}
""",
}


@pytest.mark.parametrize("name", LEFT_OUT_THREADS)
def test_threads_that_are_left_out_are_unknown_and_not_quiet(
    source: Source, name: str
) -> None:
    (run,) = runs_of(source, LEFT_OUT_THREADS[name])
    assert all(thread.samples for thread in run.threads)
    details = [c.detail for c in run.caveats if c.id == "import_left_out"]
    assert any("of at least" in detail for detail in details)
    assert "import_contradicts" not in caveats(source, run)


def test_three_of_eighteen_threads_are_three(source: Source) -> None:
    (run,) = runs_of(source, foreigncases.LEFT_OUT)
    assert [t.max_ns for t in run.threads] == [5000, 4000, 7000]
    assert [t.mean_ns for t in run.threads] == [1000, 1000, 1000]


def test_threads_of_a_whole_listing_leave_no_doubt(source: Source) -> None:
    text = foreigncases.LEFT_OUT.replace("...\n", "").replace("T:17", "T: 2")
    (run,) = runs_of(source, text)
    assert not run.caveats


@pytest.mark.parametrize("dots", ["...", "[...]", "…", "<snip>", "(skipped 15 lines)"])
def test_lines_that_stand_for_others_are_a_doubt(source: Source, dots: str) -> None:
    text = foreigncases.IDLE.replace("000008 004990\n", f"{dots}\n")
    (run,) = runs_of(source, text)
    assert "import_left_out" in caveats(source, run)


def test_nothing_found_by_hwlatdetect_is_a_result(source: Source) -> None:
    (run,) = runs_of(source, foreigncases.NOTHING_FOUND)
    (thread,) = run.threads
    assert (thread.samples, thread.threshold_ns) == (0, 10_000)
    assert (run.duration_ns, run.watched_share) == (3600 * 10**9, 0.5)
    assert "it watched 50% of the time" in run.caveats[0].detail
    assert "import_threshold_unknown" not in caveats(source, run)


@pytest.mark.parametrize(
    ("change", "threshold_ns"),
    [
        (("Latency threshold: 10us", "Latency threshold: 25us"), 25_000),
        (("   detector: tracer\n", ""), 10_000),
        (("        Latency threshold: 10us\n", ""), None),
    ],
)
def test_the_threshold_is_that_of_the_file(
    source: Source, change: tuple[str, str], threshold_ns: int | None
) -> None:
    (run,) = runs_of(source, foreigncases.NOTHING_FOUND.replace(*change))
    assert run.threads[0].threshold_ns == threshold_ns
    unknown = "import_threshold_unknown" in caveats(source, run)
    assert unknown is (threshold_ns is None)


@pytest.mark.parametrize(
    ("command", "threshold_ns"),
    [
        ("$ hwlatdetect --duration=60 --threshold=3\n", 3000),
        ("# hwlatdetect --threshold 7 --duration 60\n", 7000),
        ("+ sudo hwlatdetect --duration=1h\n", 10_000),
    ],
)
def test_a_command_names_the_threshold(
    source: Source, command: str, threshold_ns: int
) -> None:
    text = foreigncases.NOTHING_FOUND.replace("        Latency threshold: 10us\n", "")
    (run,) = runs_of(source, command + text)
    assert run.threads[0].threshold_ns == threshold_ns


def test_gaps_that_are_counted_but_not_listed_are_kept(source: Source) -> None:
    text = foreigncases.NOTHING_FOUND.replace("Below threshold", "326us")
    (run,) = runs_of(source, text.replace("recorded: 0", "recorded: 5"))
    assert numbers(run) == [(5, 0, None, 326_000)]
    assert "import_no_minimum" in caveats(source, run)


def test_gaps_without_the_summary_may_not_be_all(source: Source) -> None:
    text = foreigncases.NOTHING_FOUND
    text = text[: text.index("test finished")] + "ts: 12.5, inner:14, outer:9\n"
    (run,) = runs_of(source, text)
    raised = caveats(source, run)
    assert "import_cut_short" in raised
    assert "import_contradicts" not in raised


def test_rtla_without_a_summary_has_the_extremes_of_its_rows(source: Source) -> None:
    irq, thread = runs_of(source, foreigncases.NO_SUMMARY)
    assert numbers(irq) == [(155, 0, None, 2000), (253, 0, None, 2000)]
    assert numbers(thread) == [(155, 1000, None, 9000), (253, 1000, None, 9000)]
    assert not {"import_contradicts", "import_cut_short"} & caveats(source, thread)


def test_osnoise_without_a_summary_has_the_extremes_of_its_rows(source: Source) -> None:
    (run,) = runs_of(source, OSNOISE[: OSNOISE.index("count:")])
    assert numbers(run) == [(1101, 0, None, 5000), (1700, 0, None, 1000)]
    assert "import_contradicts" not in caveats(source, run)


def test_without_a_summary_a_maximum_beyond_the_rows_is_the_least(
    source: Source,
) -> None:
    text = foreigncases.NO_SUMMARY.replace(
        "over:         0         0", "over:         0         7"
    )
    _, thread = runs_of(source, text)
    assert numbers(thread)[0] == (162, 1000, None, 10_000)
    raised = caveats(source, thread)
    assert "import_maximum_least" in raised
    assert "import_contradicts" not in raised


def test_rows_of_rtla_without_the_line_below_them_may_not_be_all(
    source: Source,
) -> None:
    text = foreigncases.NO_SUMMARY
    _, thread = runs_of(source, text[: text.index("over:")])
    assert numbers(thread)[0] == (155, 1000, None, 9000)
    assert "import_cut_short" in caveats(source, thread)


def without_index(text: str) -> str:
    """Return what --no-index prints: the first six columns are left out."""
    return "\n".join(
        line if line.startswith(("#", "ALL")) else line[6:] for line in text.split("\n")
    )


def test_rtla_without_an_index_has_the_numbers_of_its_summary(source: Source) -> None:
    whole = {run.variant: numbers(run) for run in runs_of(source, TIMERLAT)}
    runs = runs_of(source, without_index(TIMERLAT))
    assert {run.variant: numbers(run) for run in runs} == whole
    assert not any(t.buckets for run in runs for t in run.threads)
    assert "import_contradicts" not in caveats(source, runs[0])


def test_rtla_without_index_and_summary_is_refused(source: Source) -> None:
    with pytest.raises(RecordError, match="--no-index"):
        runs_of(source, without_index(foreigncases.NO_SUMMARY))


def test_rtla_without_a_header_is_read_by_its_last_lines(source: Source) -> None:
    whole = {run.variant: numbers(run) for run in runs_of(source, TIMERLAT)}
    runs = runs_of(source, TIMERLAT[TIMERLAT.index("\n0    ") + 1 :])
    assert {run.variant: numbers(run) for run in runs} == whole
    assert all(t.cpu is None for run in runs for t in run.threads)
    assert "import_unit_assumed" in caveats(source, runs[0])


def test_rtla_without_header_and_summary_has_columns(source: Source) -> None:
    text = foreigncases.NO_SUMMARY
    (run,) = runs_of(source, text[text.index("\n0    ") + 1 :])
    assert run.variant == "column"
    assert [t.samples for t in run.threads] == [155, 155, 253, 253]
    assert "import_other_quantity" in caveats(source, run)


def test_a_title_that_another_character_precedes_is_read(source: Source) -> None:
    assert len(runs_of(source, f"1{TIMERLAT}")) == 3


@pytest.mark.parametrize(
    ("command", "threshold_ns"),
    [("", 5000), ("$ rtla osnoise hist -T 10 -d 1m\n", 10_000)],
)
def test_no_noise_is_a_result(source: Source, command: str, threshold_ns: int) -> None:
    head = (
        "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n"
        "# Duration:   0 00:01:00\n"
    )
    silent = (
        f"{head}Index   CPU-000\nover:         0\ncount:        0\n"
        "min:          -\navg:          -\nmax:          -\n"
    )
    for text in (silent, f"{head}Index\nover:\ncount:\nmin:\navg:\nmax:\n"):
        (run,) = runs_of(source, command + text)
        assert [(t.samples, t.threshold_ns) for t in run.threads] == [(0, threshold_ns)]
        assert run.duration_ns == 60 * 10**9
        assert "import_contradicts" not in caveats(source, run)


@pytest.mark.parametrize(
    ("command", "threshold_ns"),
    [("", 5000), ("$ rtla osnoise top -T 10 -d 1m\n", 10_000)],
)
def test_a_screen_without_noise_is_a_result(
    source: Source, command: str, threshold_ns: int
) -> None:
    """Its zeros are no latency: none was found above the threshold."""
    silent = command + (
        "Operating System Noise\nduration:   0 00:01:00 | time is in us\n"
        "CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single\n"
        "  0 #60         60000000            0  100.00000            0            0"
        "            0            0            0            0            0\n"
    )
    (run,) = runs_of(source, silent)
    found = [(t.samples, t.max_ns, t.threshold_ns) for t in run.threads]
    assert found == [(0, None, threshold_ns)]
    assert run.duration_ns == 60 * 10**9
    assert "import_no_minimum" not in caveats(source, run)


def test_no_histogram_in_json_is_an_empty_one(source: Source) -> None:
    text = (
        '{"file_version": 1, "cmdline:": "cyclictest -q", "rt_test_version:": "2.4", '
        '"num_threads": 1, "resolution_in_ns": 0, "thread": {"0": {"histogram": null, '
        '"cycles": 10, "min": 1, "max": 3, "avg": 2.0, "cpu": 0, "node": 0}}}'
    )
    (run,) = runs_of(source, text)
    assert [(t.samples, t.max_ns, t.buckets) for t in run.threads] == [(10, 3000, {})]


def test_no_sample_of_timerlat_is_no_result(source: Source) -> None:
    (run,) = runs_of(source, "# RTLA timerlat histogram\nIndex\nover:\ncount:\n")
    assert [(t.samples, t.threshold_ns) for t in run.threads] == [(0, None)]


def test_dashes_stand_for_the_latency_that_is_missing(source: Source) -> None:
    text = (
        "                      Timer Latency\n"
        "  0 00:00:05   |  IRQ Timer Latency (us) |  Thread Timer Latency (us) |"
        "  Ret user Timer Latency (us)\n"
        "CPU COUNT      |  cur  min  avg  max |  cur  min  avg  max |  cur  min  avg  "
        "max\n"
        "  0 #4000      |    3    0    1   12 |    -    -    -    - |    9    2    6   "
        "31\n"
        "  1 #4001      |    1    0    1   10 |    7    2    6   18 |    8    3    7   "
        "21\n"
    )
    runs = {run.variant: run for run in runs_of(source, text)}
    assert [t.cpu for t in runs["thread"].threads] == [1]
    assert [t.max_ns for t in runs["user"].threads] == [31_000, 21_000]
    assert len(runs_of(source, TIMERLAT_TOP)) == 2


def test_a_pair_without_its_first_line_keeps_its_numbers(source: Source) -> None:
    (run,) = runs_of(source, "#1 -> #0, Min    1, Cur    4, Avg    4, Max   12\n")
    assert numbers(run) == [(None, 1000, 4000, 12_000)]
    assert "import_no_count" in caveats(source, run)


def test_a_summary_of_oslat_without_its_table_keeps_its_numbers(source: Source) -> None:
    (run,) = runs_of(
        source,
        "        Core:\t 0 1\nCounter Freq:\t 2496 2496 (Mhz)\n"
        "     Minimum:\t 1 1 (us)\n     Average:\t 1.998 2.001 (us)\n"
        "     Maximum:\t 19 21 (us)\n     Max-Min:\t 18 20 (us)\n"
        "    Duration:\t 59.9 59.9 (sec)\n",
    )
    assert numbers(run) == [(None, 1000, 1998, 19_000), (None, 1000, 2001, 21_000)]
    assert {"import_no_count", "import_other_quantity"} <= caveats(source, run)
