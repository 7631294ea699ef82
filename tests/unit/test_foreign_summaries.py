"""Extremes without a histogram: stress-ng --cyclic, tables of benchmarks."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rtscope.host.errors import RecordError
from rtscope.record.foreign import read
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.exchange.records import Stated, record_of

US = 1000


def imported(
    text: str, tmp_path: Path, *, unit_ns: int | None = None
) -> Sequence[RunRecord]:
    path = tmp_path / "x"
    path.write_text(text)
    source = Source(path)
    return [
        record_of(run, source, Stated(), run_id="001-x", repetition=1, command=())
        for run in read(source, unit_ns=unit_ns)
    ]


CYCLIC = """\
stress-ng: info:  [27594] dispatching hogs: 1 cyclic
stress-ng: info:  [27595] {0}: sched SCHED_FIFO: 20000 ns delay, 10000 samples
stress-ng: info:  [27595] {0}:   mean: 5242.86 ns, mode: 4880 ns
stress-ng: info:  [27595] {0}:   min: 3050 ns, max: 44818 ns, std.dev. 1142.92
stress-ng: info:  [27595] {0}: latency percentiles:
stress-ng: info:  [27595] {0}:   25.00%:       4881 ns
stress-ng: info:  [27595] {0}:   99.99%:      44818 ns
"""

DISTRIBUTION = """\
stress-ng: info:  [27595] {0}: latency distribution (1000 ns intervals):
stress-ng: info:  [27595] {0}: (for the first 3 buckets of 1000 ns)
stress-ng: info:  [27595] {0}: latency (ns)     frequency
stress-ng: info:  [27595] {0}:            0             0
stress-ng: info:  [27595] {0}:         3000          9000
stress-ng: info:  [27595] {0}:         4000           900
"""


@pytest.mark.parametrize("name", ["cyclic", "stress-ng-cyclic"])
@pytest.mark.parametrize("before", ["", "Nov 27 12:00:00 host ", "$ stress-ng\n"])
def test_extremes_and_percentiles_of_stress_ng_are_kept(
    name: str, before: str, tmp_path: Path
) -> None:
    lines = CYCLIC.format(name).splitlines(keepends=True)
    text = (
        before + before.rstrip("\n").join(lines)
        if "$" not in before
        else (before + "".join(lines))
    )
    (record,) = imported(text, tmp_path)
    (thread,) = record.result.threads

    assert (thread.samples, thread.min_ns, thread.max_ns) == (10_000, 3_050, 44_818)
    assert (record.run.policy, record.run.interval_ns) == ("fifo", 20_000)
    assert record.imported is not None
    told = record.imported.told["percentiles of stress-ng, 27595"]
    assert told == "25.00 %: 4,881 ns, 99.99 %: 44,818 ns"
    assert "import_no_histogram" in {c.id for c in all_caveats(record)}


def test_a_distribution_of_stress_ng_is_a_histogram(tmp_path: Path) -> None:
    text = (CYCLIC + DISTRIBUTION).format("cyclic")
    (record,) = imported(text, tmp_path)
    (thread,) = record.result.threads

    assert thread.histogram == ((3_000, 9_000), (4_000, 900))
    assert thread.overflow == 100


def test_stress_ng_without_cyclic_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no format"):
        imported("stress-ng: info:  [27594] dispatching hogs: 1 cpu\n" * 3, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "test,min_us,avg_us,max_us\nidle,2,3.5,40\nload,3,9.25,431\n",
        "test;min [us];mean [us];max [us];dev [us]\nidle;2;3,5;40;1\n"
        "load;3;9,25;431;7\n",
        "test  min(us)  avg(us)  max(us)\nidle  2  3.5  40\nload  3  9.25  431\n",
        "| test | Min (us) | Max (us) | Avg (us) |\n|---|---:|---:|---:|\n"
        "| idle | 2 | 40 | 3.5 |\n"
        "| load | 3 | 431 | 9.25 |\n",
        "# test\tmin_us\tmax_us\taverage_us\tmedian_us\nidle\t2\t40\t3.5\t3\n"
        "load\t3\t431\t9.25\t9\n",
        "min_us,avg_us,max_us,test\n2,3.5,40,idle\n3,9.25,431,load\n",
    ],
)
def test_each_row_of_extremes_is_a_run(text: str, tmp_path: Path) -> None:
    runs = imported(text, tmp_path)
    found = [
        (r.run.variant, t.min_ns, t.foreign and t.foreign.mean_ns, t.max_ns, t.samples)
        for r in runs
        for t in r.result.threads
    ]

    assert found == [
        ("idle", 2 * US, 3_500, 40 * US, None),
        ("load", 3 * US, 9_250, 431 * US, None),
    ]


def test_a_count_of_samples_is_kept(tmp_path: Path) -> None:
    text = "name,samples,min,mean,max\na,1000,1,2,9\nb,2000,1,2,8\n"
    runs = imported(text, tmp_path, unit_ns=US)

    assert [t.samples for r in runs for t in r.result.threads] == [1_000, 2_000]


def test_median_and_deviation_stay_words_of_the_file(tmp_path: Path) -> None:
    text = "name,min_us,mean_us,max_us,stddev,median\na,1,2,9,0.5,2\nb,1,2,8,0.4,2\n"
    runs = imported(text, tmp_path)

    assert runs[0].imported is not None
    assert runs[0].imported.told == {"stddev": "0.5", "median": "2"}


def test_windows_of_one_run_are_no_runs(tmp_path: Path) -> None:
    text = "t,latency_min (ms),latency_max (ms),latency_mean (ms)\n1,1,9,2\n2,1,8,2\n"

    with pytest.raises(RecordError, match="several columns may be the latency"):
        imported(text, tmp_path)


def test_extremes_without_a_unit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="add --unit us"):
        imported("name,min,mean,max\na,1,2,9\nb,1,2,8\n", tmp_path)
