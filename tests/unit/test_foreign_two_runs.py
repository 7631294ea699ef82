"""Two outputs in one file: no numbers of one alone, or of both, without a word."""

from pathlib import Path

import pytest

from rtscope.host.errors import RecordError
from rtscope.record.foreign import read
from rtscope.record.foreign.source import Source

OUTPUTS = Path(__file__).parents[1] / "foreign"

CYCLICTEST = "T: 0 ( {tid}) P:80 I:1000 C: 9000 Min: 3 Act: 8 Avg: 5 Max: {worst}\n"
SIGNALTEST = "T: 0 ( {tid}) P:80 C: 9000 Min: 3 Act: 8 Avg: 5 Max: {worst}\n"
DEADLINE = "T: 0 ( {tid}) I:10000 C: 900 Min: 3 Act: 8 Avg: 5 Max: {worst}\n"
PAIR = (
    "#0: ID530, P80, CPU0, I1000; #1: ID{tid}, P80, CPU0, Cycles 1761\n"
    "#1 -> #0, Min 3, Cur 6, Avg 45, Max {worst}\n"
)


def _doubts(path: Path, text: str) -> set[str]:
    path.write_text(text)
    return {caveat.id for run in read(Source(path)) for caveat in run.caveats}


@pytest.mark.parametrize("form", [CYCLICTEST, SIGNALTEST, DEADLINE, PAIR])
def test_the_summary_of_a_later_run_contradicts(form: str, tmp_path: Path) -> None:
    one, two = form.format(tid=71, worst=924), form.format(tid=71, worst=24)
    assert "import_contradicts" in _doubts(tmp_path / "x", f"{one}next\n{two}")
    assert "import_contradicts" not in _doubts(tmp_path / "x", f"{two}\n{one}")


def test_lines_of_another_thread_are_another_run(tmp_path: Path) -> None:
    lines = [CYCLICTEST.format(tid=tid, worst=924) for tid in (71, 99)]
    assert "import_contradicts" in _doubts(tmp_path / "x", "".join(lines))


def test_a_thread_that_has_not_begun_is_no_other_run(tmp_path: Path) -> None:
    lines = [CYCLICTEST.format(tid=tid, worst=924) for tid in ("  0", 99)]
    assert "import_contradicts" not in _doubts(tmp_path / "x", "".join(lines))


def test_two_tables_of_oslat_contradict(tmp_path: Path) -> None:
    text = (OUTPUTS / "oslat-2.10.txt").read_text()
    assert "import_contradicts" in _doubts(tmp_path / "x", text + text)
    assert "import_contradicts" not in _doubts(tmp_path / "x", text)


@pytest.mark.parametrize("version", ["6.1", "6.12", "7.2"])
def test_two_histograms_of_rtla_are_refused_with_the_line(
    version: str, tmp_path: Path
) -> None:
    text = (OUTPUTS / f"rtla-{version}-timerlat-hist-irq.txt").read_text()
    with pytest.raises(RecordError, match=r"line \d+: a second histogram begins"):
        _doubts(tmp_path / "x", text + text)


@pytest.mark.parametrize("tracer", ["hwlat", "osnoise", "timerlat"])
def test_two_traces_of_a_tracer_contradict(tracer: str, tmp_path: Path) -> None:
    text = (OUTPUTS / f"tracer-6.12-{tracer}.txt").read_text()
    assert "import_contradicts" in _doubts(tmp_path / "x", text + text)
    assert "import_contradicts" not in _doubts(tmp_path / "x", text)


def test_periods_of_osnoise_without_noise_are_no_latency_of_zero(
    tmp_path: Path,
) -> None:
    line = "       osnoise/{0}-173     [00{0}] ....1     2.817499: 90000 {1} {2} {3}\n"
    silent = line.format(1, 0, "100.00000", "0 0 0 0 0 0")
    loud = line.format(0, 188, "99.79111", "21 12 0 22 0 1")
    path = tmp_path / "x"
    path.write_text(f"# tracer: osnoise\n{silent}{loud}{silent}")
    (run,) = read(Source(path))
    noisy, quiet = run.threads
    assert noisy.max_ns == 21_000
    assert (quiet.samples, quiet.min_ns, quiet.max_ns) == (0, None, None)
    assert quiet.threshold_ns == 5_000
