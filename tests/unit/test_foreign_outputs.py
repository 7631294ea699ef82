"""Real outputs of other tools against statistics worked out in another way."""

import json
import math
import re
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from rtscope.contract import ThreadResult
from rtscope.host.errors import RecordError
from rtscope.record.foreign import cyclictest, format_of, read
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord, record_from_json, record_to_json
from rtscope.stats.figures import percentiles
from rtscope.stats.runcaveats import all_caveats
from rtscope.stats.summary import summarize
from rtscope.verbs.exchange import records
from rtscope.verbs.exchange.records import Stated, record_of

OUTPUTS = Path(__file__).parent.parent / "foreign"

TEXTS = sorted(OUTPUTS.glob("cyclictest-*.txt"))
HISTOGRAMS = [path for path in TEXTS if "# Histogram" in path.read_text()]
LEFT_OUT = OUTPUTS / "rteval-3.8-left-out.xml"
EVERY = sorted({p for p in OUTPUTS.iterdir() if p.suffix != ".md"} - {LEFT_OUT})
DOCUMENTS = sorted(
    path
    for pattern in ("*test-*.json", "cyclicdeadline-*.json")
    for path in OUTPUTS.glob(pattern)
)


UNSTATED = Stated()


def imported(path: Path, tmp_path: Path, stated: Stated = UNSTATED) -> RunRecord:
    """Import a copy of a file of one run."""
    (record,) = every_run(path, tmp_path, stated)
    return record


def every_run(
    path: Path, tmp_path: Path, stated: Stated = UNSTATED
) -> Sequence[RunRecord]:
    """Import a copy of a file under a name that tells nothing."""
    copy = tmp_path / "x"
    shutil.copyfile(path, copy)
    source = Source(copy)
    return [
        record_of(run, source, stated, run_id="001-x", repetition=1, command=())
        for run in read(source)
    ]


def ids(path: Path) -> str:
    return path.stem


def columns_of(text: str, threads: int) -> list[list[int]]:
    """Every sample of each thread, one by one."""
    samples: list[list[int]] = [[] for _ in range(threads)]
    for row in re.findall(r"^(\d+ [\d\t]+)$", text, re.M):
        value, *counts = [int(word) for word in row.split()]
        for own, count in zip(samples, counts, strict=False):
            own += [value * 1000] * count
    return samples


def foot(text: str, name: str) -> list[int]:
    return [int(w) for w in re.findall(rf"# {name}: (.*)", text)[0].split()]


def agrees(thread: ThreadResult, samples: list[int], beyond: int) -> None:
    """Compare a thread with the list of all its samples."""
    assert (thread.samples, thread.overflow) == (len(samples) + beyond, beyond)
    found = summarize([thread])
    if beyond:
        assert (found.stdev_ns, thread.sum_ns) == (None, None)
        return
    assert thread.sum_ns == sum(samples)
    assert found.mean_ns == pytest.approx(statistics.fmean(samples))
    assert found.stdev_ns == pytest.approx(statistics.pstdev(samples))
    assert thread.foreign is not None
    last_ns = thread.foreign.step_ns - 1
    for figure, pct in percentiles():
        if (at_most_ns := figure.of_summary(found)) is not None:
            at_least_ns = sorted(samples)[math.ceil(len(samples) * pct / 100) - 1]
            assert at_most_ns == min(at_least_ns + last_ns, found.max_ns)


@pytest.mark.parametrize("path", HISTOGRAMS, ids=ids)
def test_a_histogram_of_cyclictest_has_exact_statistics(
    path: Path, tmp_path: Path
) -> None:
    text = path.read_text()
    lows, highs = foot(text, "Min Latencies"), foot(text, "Max Latencies")
    beyond = foot(text, "Histogram Overflows")
    threads = imported(path, tmp_path).result.threads

    assert len(threads) == len(lows)
    for place, samples in enumerate(columns_of(text, len(lows))):
        agrees(threads[place], samples, beyond[place])
        assert threads[place].min_ns == lows[place] * 1000
        assert threads[place].max_ns == highs[place] * 1000


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("*-values.txt")), ids=ids)
def test_a_stream_of_values_has_exact_statistics(path: Path, tmp_path: Path) -> None:
    lines = re.findall(r"^ *(\d+): +(\d+): +(\d+)$", path.read_text(), re.M)
    for place, thread in enumerate(imported(path, tmp_path).result.threads):
        own = [int(us) * 1000 for number, _, us in lines if int(number) == place]
        agrees(thread, own, 0)
        assert (thread.min_ns, thread.max_ns) == (min(own), max(own))


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("*-summary.txt")), ids=ids)
def test_a_summary_is_kept_as_it_says(path: Path, tmp_path: Path) -> None:
    said = re.findall(r"I:(\d+) C: *(\d+) Min: *(\d+) .*Max: *(\d+)", path.read_text())
    threads = imported(path, tmp_path).result.threads
    found = [
        (t.interval_ns // 1000, t.samples, (t.min_ns or 0) // 1000, t.max_ns or 0)
        for t in threads
    ]
    assert found == [
        (int(i), int(c), int(low), int(high) * 1000) for i, c, low, high in said
    ]
    assert all(t.sum_ns is None and not t.histogram for t in threads)


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_json_of_rt_tests_has_exact_statistics(path: Path, tmp_path: Path) -> None:
    document = json.loads(path.read_text())
    step_ns = 1 if document.get("resolution_in_ns") else 1000
    threads = imported(path, tmp_path).result.threads

    assert len(threads) == len(document["thread"])
    for thread, told in zip(threads, document["thread"].values(), strict=True):
        one = {**told, **told.get("receiver", {}), **told.get("sender", {})}
        counted = one.get("cycles", one.get("samples"))
        assert thread.samples is not None
        assert thread.samples == counted
        assert thread.min_ns == one["min"] * step_ns
        assert thread.max_ns == one["max"] * step_ns
        if "histogram" in one:
            samples = [
                int(value) * step_ns
                for value, count in one["histogram"].items()
                for _ in range(count)
            ]
            agrees(thread, samples, thread.samples - len(samples))
        else:
            found = summarize([thread])
            assert found.mean_ns == pytest.approx(one["avg"] * step_ns, abs=1)
            assert found.stdev_ns is None


@pytest.mark.slow
@pytest.mark.parametrize("path", EVERY, ids=ids)
def test_a_real_output_is_recognised_and_contradicts_nothing(
    path: Path, tmp_path: Path
) -> None:
    assert format_of(Source(path))
    for record in every_run(path, tmp_path):
        raised = {caveat.id for caveat in all_caveats(record)}
        assert "import_contradicts" not in raised
        assert "settings_differ" not in raised
        assert "import_unverified" not in raised
        assert {"imported", "import_load_unknown"} <= raised
        assert record_from_json(record_to_json(record), name="x") == record


def test_the_maximum_below_the_interval_leaves_no_missed_period(tmp_path: Path) -> None:
    path = OUTPUTS / "cyclictest-2.10.json"
    unknown = imported(path, tmp_path)
    assert None in {t.missed_periods for t in unknown.result.threads}
    assert "import_missed_periods" in {c.id for c in all_caveats(unknown)}
    known = imported(path, tmp_path, Stated(interval_ns=10_000_000))
    assert {t.missed_periods for t in known.result.threads} == {0}


def test_what_is_known_of_the_run_is_kept(tmp_path: Path) -> None:
    record = imported(OUTPUTS / "cyclictest-2.10.json", tmp_path)
    assert record.imported is not None
    assert (record.imported.tool, record.imported.version) == ("cyclictest", "2.10")
    assert (record.run.interval_ns, record.run.duration_ns) == (10**6, 3 * 10**9)
    assert (record.run.priority, record.run.policy) == (80, "unknown")
    assert record.facts_before["preempt_rt"].value is False
    assert record.started_at.startswith("2026-11-23T")
    assert [t.cpu for t in record.result.threads] == [0, 1]


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("jitterdebugger-*")), ids=ids)
def test_jitterdebugger_has_exact_statistics(path: Path, tmp_path: Path) -> None:
    document = json.loads(path.read_text())
    step_ns = document["sysinfo"]["resolution_in_ns"]
    threads = imported(path, tmp_path).result.threads
    for thread, one in zip(threads, document["cpu"].values(), strict=True):
        samples = [
            int(value) * step_ns
            for value, count in one["histogram"].items()
            for _ in range(count)
        ]
        agrees(thread, samples, one["count"] - len(samples))
        assert thread.missed_periods == 0
        assert (thread.min_ns, thread.max_ns) == (
            one["min"] * step_ns,
            one["max"] * step_ns,
        )


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("oslat-*")), ids=ids)
def test_oslat_has_its_last_bucket_open(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    rows = {
        int(upper): int(count)
        for upper, count in re.findall(r'"?(\d+)(?: \(us\)|"):\s+(\d+)', text)
        if upper != "0"
    }
    (thread,) = imported(path, tmp_path).result.threads
    assert thread.samples == sum(rows.values())
    assert dict(thread.histogram) == {
        (upper - 1) * 1000: n for upper, n in rows.items() if n and upper < 32
    }
    assert thread.overflow == rows[32]
    said = re.search(r'Maximum:\s+(\d+)|"max": (\d+)', text)
    assert said is not None
    assert thread.max_ns == int(said[1] or said[2]) * 1000


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("p*test-*.txt")), ids=ids)
def test_pairs_of_threads_are_kept_as_they_say(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    cycles = [int(n) for n in re.findall(r"Cycles (\d+)", text)]
    said = re.findall(r"Min +(\d+), .*Avg +(\d+), Max +(\d+)", text)
    threads = imported(path, tmp_path).result.threads
    assert [t.samples for t in threads] == cycles
    for thread, (low, mean, high) in zip(threads, said, strict=True):
        found = summarize([thread])
        assert (found.min_ns, found.mean_ns, found.max_ns) == (
            *(int(low) * 1000, int(mean) * 1000, int(high) * 1000),
        )


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("rtla-*-hist*")), ids=ids)
def test_histograms_of_rtla_have_exact_statistics(path: Path, tmp_path: Path) -> None:
    lines = path.read_text().splitlines()
    unit_ns = 1 if "(ns)" in lines[1] else 1000
    (names,) = [line.split()[1:] for line in lines if line.startswith("Index")]
    rows = [list(map(int, line.split())) for line in lines if line[:1].isdigit()]
    feet = {
        words[0]: dict(zip(names, words[1:], strict=True))
        for words in map(str.split, lines[: len(rows) + 9])
        if words[0] in ("over:", "count:", "min:", "avg:", "max:")
    }
    threads = [t for record in every_run(path, tmp_path) for t in record.result.threads]

    assert len(threads) == len(names)
    in_runs = sorted(names, key=lambda name: "ITUC".index(name[0]))
    for name, thread in zip(in_runs, threads, strict=True):
        assert thread.cpu == int(name[4:])
        at = names.index(name) + 1
        samples = [row[0] * unit_ns for row in rows for _ in range(row[at])]
        agrees(thread, samples, int(feet["over:"][name]))
        assert thread.samples == int(feet["count:"][name])
        if not thread.samples:
            continue
        assert thread.min_ns == int(feet["min:"][name]) * unit_ns
        assert thread.max_ns == int(feet["max:"][name]) * unit_ns


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("rtla-*-top*")), ids=ids)
def test_of_screens_of_rtla_the_last_one_is_kept_as_it_says(
    path: Path, tmp_path: Path
) -> None:
    text = path.read_text()
    unit_ns = 1 if "(ns)" in text else 1000
    said = dict(re.findall(r"^ *(\d+) #(\d+ .*)$", text, re.M))  # the last of each
    runs = every_run(path, tmp_path)
    for place, record in enumerate(runs):
        for thread in record.result.threads:
            count, *words = said[str(thread.cpu)].replace("|", "").split()
            assert thread.samples == int(count)
            low, mean, high = (
                [float(word) * unit_ns for word in words[4 * place + 1 : 4 * place + 4]]
                if "Timer" in text
                else [0, float(words[1]) * 1000 // int(count), float(words[3]) * 1000]
            )
            assert (thread.min_ns, thread.max_ns) == (low, high)
            assert summarize([thread]).mean_ns == pytest.approx(mean, abs=1)
    assert runs


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("hwlatdetect-*")), ids=ids)
def test_gaps_of_hwlatdetect_are_those_that_it_lists(
    path: Path, tmp_path: Path
) -> None:
    text = path.read_text()
    listed = re.findall(r"^ts: .*inner:(\d+), outer:(\d+)", text, re.M)
    (thread,) = imported(path, tmp_path).result.threads
    gaps_ns = [1000 * max(map(int, pair)) for pair in listed]
    assert thread.samples == len(gaps_ns)
    if gaps_ns:
        agrees(thread, gaps_ns, 0)


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("rteval-3.?*")), ids=ids)
def test_rteval_has_exact_statistics(path: Path, tmp_path: Path) -> None:
    if path == LEFT_OUT:
        with pytest.raises(RecordError, match="left all numbers out"):
            imported(path, tmp_path)
        return
    cores = re.findall(r'<core id="(\d+)".*?</core>', path.read_text(), re.S)
    texts = re.findall(r"<core id=.*?</core>", path.read_text(), re.S)
    threads = imported(path, tmp_path).result.threads
    assert [t.cpu for t in threads] == [int(cpu) for cpu in cores]
    for thread, text in zip(threads, texts, strict=True):
        samples = [
            int(us) * 1000
            for us, count in re.findall(r'index="(\d+)" value="(\d+)"', text)
            for _ in range(int(count))
        ]
        agrees(thread, samples, 0)
        said = dict(re.findall(r'<(\w+) unit="us">([\d.]+)<', text))
        found = summarize([thread])
        assert found.stdev_ns is not None
        assert found.mean_ns == pytest.approx(float(said["mean"]) * 1000)
        # rteval divides by N - 1.
        sample = found.stdev_ns * math.sqrt(len(samples) / (len(samples) - 1))
        assert sample == pytest.approx(float(said["standard_deviation"]) * 1000)


@pytest.mark.parametrize("name", ["cyclictest-2.10-histogram.txt", "rteval-3.8.xml"])
def test_more_buckets_than_memory_has_room_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in (cyclictest, records):
        monkeypatch.setattr(module, "MAX_BUCKETS", 20)
    with pytest.raises(RecordError, match="over 20 buckets that are not empty"):
        imported(OUTPUTS / name, tmp_path)


def test_half_a_character_in_json_is_refused(tmp_path: Path) -> None:
    text = (OUTPUTS / "cyclictest-2.10.json").read_text()
    (tmp_path / "y").write_text(text.replace('"vm"', '"\\ud800"'))
    with pytest.raises(RecordError, match="damaged"):
        imported(tmp_path / "y", tmp_path)
