"""What another tool does not tell: no rate, no count and no 0 stand for it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.printed import render_brief, render_text
from rtscope.contract import ThreadResult
from rtscope.host.errors import UsageError
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import render_markdown
from rtscope.present.documents.shared import More
from rtscope.present.formats.data import render_csv, render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.record.foreign.model import NO_END_NS, ForeignRun, ForeignThread
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.episodes import late_samples, misses_of
from rtscope.stats.evidence import Claim, Verdict
from rtscope.stats.figures import percentiles
from rtscope.stats.runsets import run_sets
from rtscope.stats.summary import summarize
from rtscope.stats.verdict import judge
from rtscope.verbs.exchange.records import Stated, record_of
from rtscope.verbs.exchange.writers import WRITERS, ExportOptions

HOUR_NS = 3_600 * 10**9
CLAIM = Claim(1, HOUR_NS)

HISTOGRAM = ForeignThread(
    samples=5_000,
    min_ns=3_000,
    max_ns=11_000,
    step_ns=1_000,
    end_ns=NO_END_NS,
    buckets={3_000: 400, 4_000: 4_500, 5_000: 90, 11_000: 10},
)
EXTREMES = ForeignThread(
    samples=None, min_ns=498, max_ns=9_871, mean_ns=1_201, step_ns=1
)
"""As Xenomai's latency prints without -h, and latmus."""
QUIET = ForeignThread(
    samples=0, min_ns=None, max_ns=None, step_ns=1_000, threshold_ns=10_000
)
"""As hwlatdetect and osnoise print if nothing reached their threshold."""
BEYOND = ForeignThread(
    samples=1_000_000,
    min_ns=13_278,
    max_ns=278_611,
    mean_ns=23_697,
    step_ns=1,
    end_ns=1_000,
    overflow=1_000_000,
)
"""As cyclictest -N -h 1000 prints if every sample is beyond its histogram."""
SUMMARY = ForeignThread(
    samples=300_000,
    min_ns=1_000,
    max_ns=1_458_000,
    mean_ns=4_000,
    step_ns=1_000,
    overflow=300_000,
)
"""As cyclictest -q prints: no histogram."""


def record(
    directory: Path,
    *threads: ForeignThread,
    name: str = "x",
    duration_ns: int = 0,
    stated: Stated | None = None,
) -> RunRecord:
    run = ForeignRun(
        tool="a tool",
        format="a-tool",
        verified=True,
        measures="from here to there",
        threads=threads,
        duration_ns=duration_ns,
    )
    path = directory / name
    path.write_text(f"what {name} holds")
    return record_of(
        run, Source(path), stated or Stated(), run_id="001-x", repetition=1, command=()
    )


def in_all_formats(
    records: Sequence[RunRecord], *, deadline_ns: int | None = None
) -> Mapping[str, str]:
    """Return every text that a user can get of these records, by its format."""
    claim = None if deadline_ns is None else CLAIM
    model = build_model(records, deadline_ns=deadline_ns, claim=claim)
    options = ExportOptions(deadline_ns=deadline_ns)
    exports = ("junit", "ktap", "lava", "kcidb", "openmetrics", "csv")
    return {
        "text": render_text(model),
        "wide text": render_text(model, width=160),
        "brief": render_brief(model, more=More("rtscope report x")),
        "page": render_html(model),
        "Markdown": render_markdown(model),
        "JSON": render_json(model),
        "CSV": render_csv(model),
        **{f"export {name}": WRITERS[name](records, options) for name in exports},
    }


A_RATE = re.compile(r"less than once|fewer than one miss|episodes per hour|one per 0")
NO_TIME = re.compile(
    r'(?<![\d.,])0 s\b|time="0\.0*"|"observed_ns": 0\b|\bnan\b|\binf\b'
)


@pytest.mark.slow
@pytest.mark.parametrize("deadline_ns", [None, 30_000, 8_000])
@pytest.mark.parametrize(
    "threads",
    [[HISTOGRAM], [EXTREMES], [QUIET], [BEYOND], [SUMMARY], [HISTOGRAM, HISTOGRAM]],
)
def test_a_run_of_unknown_length_has_no_rate_and_no_time_in_any_format(
    tmp_path: Path, threads: Sequence[ForeignThread], deadline_ns: int | None
) -> None:
    one = record(tmp_path, *threads)
    for name, text in in_all_formats([one], deadline_ns=deadline_ns).items():
        shown = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.S)
        assert not NO_TIME.search(shown), (name, NO_TIME.search(shown))
        if name != "page":  # its definitions quote such sentences
            assert not A_RATE.search(shown), (name, A_RATE.search(shown))


def test_the_length_is_null_in_json_and_empty_in_csv(tmp_path: Path) -> None:
    model = build_model([record(tmp_path, HISTOGRAM)])
    assert json.loads(render_json(model))["rows"][0]["observed_ns"] is None
    assert render_csv(model).splitlines()[-1].endswith(",1,1,")


def test_a_claim_about_time_is_neither_held_nor_refuted(tmp_path: Path) -> None:
    for deadline_ns in (2_000, 30_000):
        judged = judge(
            [record(tmp_path, replace(HISTOGRAM, step_ns=1))],
            deadline_ns=deadline_ns,
            claim=CLAIM,
        )
        assert judged.verdict is Verdict.NOT_SHOWN


def test_a_known_and_an_unknown_length_make_an_unknown_one(tmp_path: Path) -> None:
    stated = Stated(load="idle")
    runs = [
        record(tmp_path, HISTOGRAM, duration_ns=HOUR_NS, stated=stated),
        record(tmp_path, HISTOGRAM, name="y", stated=stated),
    ]
    (row,) = build_model(runs).rows
    assert row.observed_ns is None


def the_thread(one: RunRecord) -> ThreadResult:
    (thread,) = one.result.threads
    return thread


def test_extremes_without_a_count_are_kept(tmp_path: Path) -> None:
    one = record(tmp_path, EXTREMES, duration_ns=2 * 10**9)
    found = summarize([the_thread(one)])
    assert (found.min_ns, found.mean_ns, found.max_ns) == (498, 1_201, 9_871)
    assert found.samples is None
    assert found.stdev_ns is None
    assert {one.of_summary(found) for one, _ in percentiles()} == {None}
    for name, text in in_all_formats([one]).items():
        assert "woke up" not in text, name
        assert "Nothing was measured" not in text, name
    row = json.loads(render_json(build_model([one])))["rows"][0]
    assert row["summary"]["samples"] is None
    assert row["summary"]["max_ns"] == 9_871


def test_no_average_is_made_of_averages_whose_counts_are_unknown(
    tmp_path: Path,
) -> None:
    one = record(tmp_path, EXTREMES, replace(EXTREMES, mean_ns=9_000))
    assert summarize(one.result.threads).mean_ns is None


def test_a_deadline_above_such_a_maximum_is_met_and_below_it_missed(
    tmp_path: Path,
) -> None:
    one = record(tmp_path, EXTREMES)
    assert late_samples(the_thread(one), 9_871) == (0, 0)
    missed = misses_of(one, 5_000)
    assert (missed.total, missed.exact) == (1, False)
    judged = judge([one], deadline_ns=5_000)
    assert judged.verdict is Verdict.NO
    assert judged.findings[0].sentence.startswith("at least 1 miss ")


def test_a_count_that_is_unknown_supports_no_verdict_that_it_held(
    tmp_path: Path,
) -> None:
    one = record(tmp_path, EXTREMES, duration_ns=HOUR_NS)
    judged = judge([one], deadline_ns=30_000)
    assert judged.verdict is Verdict.NOT_SHOWN
    assert "unknown number of wake-ups" in judged.findings[0].sentence


def test_nothing_found_above_a_threshold_is_an_answer(tmp_path: Path) -> None:
    one = record(tmp_path, QUIET, duration_ns=HOUR_NS)
    for name, text in in_all_formats([one]).items():
        assert "woke up" not in text, name
        assert "Nothing was measured" not in text, name
        assert "no samples" not in text, name
    for name in ("text", "page", "Markdown"):
        assert "no latency of 10.0 µs or more" in in_all_formats([one])[name]
    row = json.loads(render_json(build_model([one])))["rows"][0]
    assert (row["summary"], row["threshold_ns"]) == (None, 10_000)


def test_a_deadline_below_the_threshold_is_not_judged_by_it(tmp_path: Path) -> None:
    quiet = replace(QUIET, step_ns=1)
    one = record(tmp_path, quiet, duration_ns=HOUR_NS)
    judged = judge([one], deadline_ns=5_000)
    assert judged.verdict is Verdict.NOT_SHOWN
    assert "10 us or more only" in judged.findings[0].sentence


def test_one_thread_that_found_something_leaves_no_answer_of_nothing(
    tmp_path: Path,
) -> None:
    one = record(tmp_path, QUIET, replace(HISTOGRAM, threshold_ns=3_000))
    (row,) = build_model([one]).rows
    assert row.threshold_ns is None
    assert row.summary is not None
    assert row.summary.max_ns == 11_000


@pytest.mark.parametrize("thread", [BEYOND, SUMMARY])
def test_no_percentile_is_made_of_samples_in_no_bucket(
    tmp_path: Path, thread: ForeignThread
) -> None:
    found = summarize([the_thread(record(tmp_path, thread))])
    assert (found.samples, found.max_ns) == (thread.samples, thread.max_ns)
    assert {one.of_summary(found) for one, _ in percentiles()} == {None}


def test_percentiles_below_the_end_of_the_histogram_stay(tmp_path: Path) -> None:
    cut = replace(HISTOGRAM, end_ns=10_000, overflow=10, buckets={4_000: 4_990})
    found = summarize([the_thread(record(tmp_path, replace(cut, min_ns=4_000)))])
    assert found.ranks.percentile_ns(99) == 4_999
    assert found.ranks.percentile_ns(99.9) is None


OTHER = replace(HISTOGRAM, buckets={3_000: 300, 4_000: 4_600, 5_000: 90, 11_000: 10})


def loads_of(records: Sequence[RunRecord]) -> list[str]:
    return [row.load for row in build_model(records).rows]


def test_two_unknown_loads_are_two(tmp_path: Path) -> None:
    runs = [record(tmp_path, HISTOGRAM, name="idle.log"), record(tmp_path, OTHER)]
    assert loads_of(runs) == ["unknown (idle.log)", "unknown (x)"]
    assert len(judge(runs, deadline_ns=30_000).findings) == 2


def test_the_unknown_load_of_one_file_needs_no_name(tmp_path: Path) -> None:
    assert loads_of([record(tmp_path, HISTOGRAM)]) == ["unknown"]


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    one, other = record(tmp_path, HISTOGRAM), record(tmp_path, OTHER)
    assert other.imported is not None
    imported = replace(other.imported, sha256="0" * 64)
    first, second = loads_of([one, replace(other, imported=imported)])
    assert first != second
    assert second == "unknown (x, 00000000)"


@pytest.mark.parametrize("load", ["memory", "unknown"])
def test_loads_that_the_user_calls_the_same_are_pooled(
    tmp_path: Path, load: str
) -> None:
    stated = Stated(load=load)
    runs = [
        record(tmp_path, HISTOGRAM, stated=stated),
        record(tmp_path, OTHER, name="y", stated=stated),
    ]
    (row,) = build_model(runs).rows
    assert (row.load, row.runs) == (load, 2)
    assert len(judge(runs, deadline_ns=30_000).findings) == 1


def test_a_known_and_an_unknown_load_are_two(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, HISTOGRAM),
        record(tmp_path, OTHER, name="y", stated=Stated(load="idle")),
    ]
    assert sorted(loads_of(runs)) == ["idle", "unknown"]


def test_unknown_loads_are_not_compared(tmp_path: Path) -> None:
    runs = {
        "a": [record(tmp_path, HISTOGRAM)],
        "b": [record(tmp_path, OTHER, name="y.log")],
    }
    for compared in (build_comparison, run_sets):
        with pytest.raises(UsageError, match=r"y\.log.*rtscope import --load"):
            compared(runs)


def test_an_unknown_and_a_known_load_are_not_compared(tmp_path: Path) -> None:
    runs = {
        "a": [record(tmp_path, HISTOGRAM, stated=Stated(load="idle"))],
        "b": [record(tmp_path, OTHER, name="y.log")],
    }
    with pytest.raises(UsageError, match=r"y\.log"):
        build_comparison(runs)
