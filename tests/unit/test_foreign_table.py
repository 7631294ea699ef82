"""Columns and tables of latencies and time stamps, as people write them."""

import random
from pathlib import Path

import pytest

from rtscope.host.errors import RecordError
from rtscope.record.foreign import column, format_of, read
from rtscope.record.foreign.model import Asked
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.latetimes import timing_of
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.exchange.records import Stated, record_of

US, MS, S = 1_000, 1_000_000, 1_000_000_000


def imported(
    text: str,
    tmp_path: Path,
    *,
    unit_ns: int | None = None,
    asked: Asked | None = None,
) -> RunRecord:
    path = tmp_path / "x.csv"
    path.write_text(text)
    source = Source(path)
    (run,) = read(source, unit_ns=unit_ns, asked=asked)
    stated = Stated(interval_ns=asked.interval_ns if asked else 0)
    return record_of(run, source, stated, run_id="001-x", repetition=1, command=())


def values_of(record: RunRecord) -> list[int]:
    """Every latency of all threads, ascending, in ns."""
    return sorted(
        low
        for thread in record.result.threads
        for low, count in thread.histogram
        for _ in range(count)
    )


def ids_of(record: RunRecord) -> set[str]:
    return {caveat.id for caveat in all_caveats(record)}


def details(record: RunRecord, caveat_id: str) -> str:
    return " ".join(c.detail for c in all_caveats(record) if c.id == caveat_id)


THREE = [3_000, 4_000, 90_000]


@pytest.mark.parametrize(
    ("text", "unit_ns"),
    [
        ("3\n4\n90\n", US),
        ("3000\n90000\n4000\n", 1),
        ("0.003\n0.004\n0.09\n", MS),
        ("3e-6\n4e-6\n9e-5\n", S),
        ("latency_us\n3\n4\n90\n", None),
        ("Latency (µs)\n3\n4\n90\n", None),
        ("latency [ns]\n3000\n4000\n90000\n", None),
        ("wakeup latency in ms\n0.003\n0.004\n0.09\n", None),
        ("latencyNs\n3000\n4000\n90000\n", None),
        ("# jitter (us)\n3\n4\n90\n", None),
        ("% exported by a script\n% latency_us\n3\n4\n90\n", None),
        ("3 us\n4 us\n90us\n", None),
        ("3us\n4us\n90us\n", None),
        ('"latency_us"\n"3"\n"4"\n"90"\n', None),
        ("// latency/us\n3.0\n4.0\n90.0\n\n", None),
        ("time_s;latency_us\n0.1;3\n0.2;4\n0.3;90\n", None),
        ("time [s],latency [us]\n0.1,3\n0.2,4\n0.3,90\n", None),
        ("timestamp_ns\tlatency_ns\n1\t3000\n2\t4000\n3\t90000\n", None),
        ("t;Latenz;latency (ms)\n1;a;0,003\n2;b;0,004\n3;c;0,09\n", None),
        ("latency_us;n\n3;1\n4;1\n90;1\n", None),
        ("latency_us,count\n3,1\n4,1\n5,0\n90,1\n", None),
        ("bin_us count\n3 1\n4 1\n90 1\n", None),
        ("id,latency_us\n1,3\n2,4\n3,90\n", None),
        ('iteration,"latency, in us"\n1,3\n2,4\n3,90\n', None),
        ("cpu;latency_us\n0;3\n1;4\n0;90\n", None),
        ("date;delay_us\n2026-01-02 03:04:05.5;3\n2026-01-02 03:04:06;4\n;90\n", None),
        ("latency_us,\n3,\n4,\n90,\n", None),
        ("latency in us\n3,0\n4,0\n90,0\n", None),
        ("\N{ZERO WIDTH NO-BREAK SPACE}latency_us\r\n3\r\n4\r\n90\r\n", None),
    ],
)
def test_a_column_whose_meaning_is_certain_is_read(
    text: str, unit_ns: int | None, tmp_path: Path
) -> None:
    assert values_of(imported(text, tmp_path, unit_ns=unit_ns)) == THREE


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("1;3;9\n2;4;9\n3;90;8\n", Asked(column="2")),
        ("1,3\n2,4\n3,90\n", Asked(column="2", time_column="1:ms")),
        ("3 1\n4 1\n90 1\n", Asked(column="1", count_column="2")),
        ("a_us,b_us\n9,3\n9,4\n9,90\n", Asked(column="b_us")),
        ("latency_max,latency_min\n3,1\n4,1\n90,2\n", Asked(column="latency_max:us")),
        ("min avg max\n1 2 3\n1 2 4\n1 2 90\n", Asked(column="max")),
    ],
)
def test_a_column_may_be_asked_for(text: str, asked: Asked, tmp_path: Path) -> None:
    record = imported(text, tmp_path, unit_ns=US, asked=asked)

    assert values_of(record) == THREE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3\n4\n90\n", "no unit of column '1'"),
        ("latency\n3\n4\n90\n", "add --unit us"),
        ("1;3\n2;4\n3;90\n", "several columns without a heading"),
        ("1 3\n2 4\n3 90\n", "--column 2 --unit us"),
        ("latency_min_us,latency_max_us\n3,4\n4,5\n", "several columns may be"),
        ("a_us,b_us\n3,4\n4,5\n", "1 'a_us', first '3'; 2 'b_us', first '4'"),
        ("time_s,name\n1,x\n2,y\n", None),
        ('n;latency_us\n1;"1,234"\n2;"5,678"\n', "thousands or decimals"),
        ("timestamp\n1\n2\n3\n", "no unit of the time stamps"),
    ],
)
def test_what_is_not_certain_is_refused_with_the_command_to_type(
    text: str, said: str | None, tmp_path: Path
) -> None:
    if said is None:
        record = imported(text, tmp_path)
        assert "import_interval_taken_off" in ids_of(record)
        return
    with pytest.raises(RecordError, match=said.replace("(", r"\(")):
        imported(text, tmp_path)


def test_a_column_that_is_not_there_is_refused_with_those_that_are(
    tmp_path: Path,
) -> None:
    with pytest.raises(RecordError, match=r"no column 'lat': its columns are 1 'a'"):
        imported("a,b\n3,4\n4,5\n", tmp_path, asked=Asked(column="lat"))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,5", "2,25", "90"], [1_500, 2_250, 90_000]),
        (["1.5", "2.25", "90"], [1_500, 2_250, 90_000]),
        (['"1,234.5"', "2", "3"], [2_000, 3_000, 1_234_500]),
        (["1.234,5", "2,0", "3,0"], [2_000, 3_000, 1_234_500]),
        (["1'234", "2", "3"], [2_000, 3_000, 1_234_000]),
        (["1_234", "2", "3"], [2_000, 3_000, 1_234_000]),
        (['"1,234,567"', "2", "3"], [2_000, 3_000, 1_234_567_000]),
        (["+4", "2", "3"], [2_000, 3_000, 4_000]),
        (["0,125", "2", "3"], [125, 2_000, 3_000]),
    ],
)
def test_a_comma_has_one_meaning_in_a_file(
    cells: list[str], expected: list[int], tmp_path: Path
) -> None:
    rows = "".join(f"{place};{cell}\n" for place, cell in enumerate(cells))

    assert values_of(imported(f"nr;latency_us\n{rows}", tmp_path)) == expected


@pytest.mark.parametrize("empty", ["", "-", "NaN", "n/a", "NULL", "None"])
def test_rows_without_a_value_are_counted(empty: str, tmp_path: Path) -> None:
    text = f"nr,latency_us\n1,3\n2,{empty}\n3,4\n4,90\n"
    record = imported(text, tmp_path)

    assert values_of(record) == THREE
    assert details(record, "import_rows_left_out") == "rows without a value: 1"


def test_rows_that_are_not_understood_are_counted_and_the_first_is_named(
    tmp_path: Path,
) -> None:
    record = imported("latency_us\n3\n4\n90\n" + "oops\n" + "inf\n", tmp_path)

    assert values_of(record) == THREE
    assert "rows not understood: 2, the first in line 5" in details(
        record, "import_rows_left_out"
    )


def test_values_below_zero_count_as_zero_and_are_told(tmp_path: Path) -> None:
    record = imported("jitter_us\n-3\n5\n-0.5\n", tmp_path)

    assert values_of(record) == [0, 0, 5_000]
    assert details(record, "import_below_zero") == "2 of 3"


def test_a_histogram_has_as_many_samples_as_its_counts(tmp_path: Path) -> None:
    record = imported("latency_us,count\n2,1000000\n3,5\n400,1\n", tmp_path)
    (thread,) = record.result.threads

    assert thread.samples == 1_000_006
    assert thread.histogram == ((2_000, 1_000_000), (3_000, 5), (400_000, 1))


def test_each_cpu_is_a_thread(tmp_path: Path) -> None:
    record = imported("cpu,latency_us\n0,3\n3,4\n0,90\n", tmp_path)

    assert [(t.cpu, t.samples) for t in record.result.threads] == [(0, 2), (3, 1)]


def test_times_of_the_longest_are_kept_since_the_first_row(tmp_path: Path) -> None:
    record = imported(
        "time_s;latency_us\n1767225677.956426641;3\n1767225687.956426641;90\n", tmp_path
    )
    (thread,) = record.result.threads

    assert [(w.expiry_ns, w.latency_ns) for w in thread.worst] == [
        (10 * S, 90_000),
        (0, 3_000),
    ]
    assert record.run.duration_ns == 10 * S


def test_a_time_without_a_unit_is_no_time_and_the_option_is_named(
    tmp_path: Path,
) -> None:
    text = "time,latency_us\n1,3\n2,4\n3,90\n"
    record = imported(text, tmp_path)

    assert not record.result.threads[0].worst
    assert "--time-column time:s" in details(record, "import_times_unknown")
    named = imported(text, tmp_path, asked=Asked(time_column="time:s"))
    assert values_of(named) == THREE
    assert named.result.threads[0].worst[0].expiry_ns == 2 * S


def test_a_list_of_late_ones_alone_shows_their_distance(tmp_path: Path) -> None:
    rng = random.Random(4)
    rows = [
        f"{60 * i + rng.random():.3f};{400 + rng.random() * 50:.1f}" for i in range(12)
    ]
    record = imported("time_s;latency_us\n" + "\n".join(rows) + "\n", tmp_path)
    timing = timing_of([record])

    assert timing is not None
    assert timing.steady.found is not None
    assert timing.steady.found.period_ns / S == pytest.approx(60, rel=0.02)


def test_the_distance_of_rows_is_no_distance_of_late_ones(tmp_path: Path) -> None:
    rng = random.Random(4)
    rows = [f"{i / 10:.1f};{rng.random() * 50:.1f}" for i in range(90)]
    record = imported("time_s;latency_us\n" + "\n".join(rows) + "\n", tmp_path)
    timing = timing_of([record])

    assert timing is None or timing.steady.found is None


STAMPS = [0, 1_000, 2_000, 3_090, 4_000, 5_000]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("timestamp_us\n", Asked()),
        ("timestamp_us\n", Asked(interval_ns=MS)),
        ("", Asked(time_column="1:us")),
        ("", Asked(time_column="1:us", interval_ns=MS)),
        ("# time [us]\n", Asked()),
    ],
)
def test_of_time_stamps_the_interval_is_taken_off(
    text: str, asked: Asked, tmp_path: Path
) -> None:
    rows = "".join(f"{stamp}\n" for stamp in STAMPS)
    record = imported(text + rows, tmp_path, asked=asked)
    median = details(record, "import_interval_taken_off")

    assert values_of(record) == [0, 0, 0, 0, 90_000]
    assert record.run.interval_ns == MS
    assert median == ("" if asked.interval_ns else "1ms, the median")


def test_a_cycle_time_becomes_a_latency(tmp_path: Path) -> None:
    record = imported("cycle time [ms]\n1.0\n1.0\n1.25\n0.75\n1.0\n", tmp_path)

    assert values_of(record) == [0, 0, 0, 0, 250_000]
    assert record.imported is not None
    assert record.imported.measures == "column cycle time [ms] less the interval of 1ms"


def test_very_many_different_values_are_cut_to_a_larger_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 5_000
    monkeypatch.setattr(column, "MAX_VALUES", most)
    rng = random.Random(1)
    values = [rng.randrange(10**9) for _ in range(most + 1_000)]
    text = "latency_ns\n" + "".join(f"{value}\n" for value in values)
    (thread,) = imported(text, tmp_path).result.threads

    assert thread.foreign is not None
    step_ns = thread.foreign.step_ns
    assert step_ns in (10**5, 10**6)
    assert 900 <= len(thread.histogram) <= most
    assert thread.samples == len(values)
    assert thread.max_ns == max(values) // step_ns * step_ns


@pytest.mark.parametrize(
    "text",
    ["Hello, world\nthis is no table\n", "{}\n", "a b c\nd e f\n", "", "kernel: 1 2\n"],
)
def test_other_text_is_no_table(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)

    assert format_of(Source(path)) == ""


@pytest.mark.slow
def test_outputs_of_tools_are_no_tables() -> None:
    folder = Path(__file__).parent.parent / "foreign"
    outputs = [path for path in folder.iterdir() if path.suffix != ".md"]

    assert outputs
    assert all(format_of(Source(path)) != "table" for path in outputs)
