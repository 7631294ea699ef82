"""What rtscope writes, it reads: a writer has the bound of its reader."""

import dataclasses
from pathlib import Path

import pytest

from fakes.measurements import record, thread
from rtscope.host.errors import RecordError, UsageError
from rtscope.record import pack as packing
from rtscope.record.directory import journal, place
from rtscope.record.directory.journal import FAILED, STEPS, Journal, Tried, read_journal
from rtscope.record.directory.records import ResultDir, create
from rtscope.verbs.test import baseline as baselines
from unit.test_test_judge import TEST, seen


@pytest.mark.slow
@pytest.mark.parametrize("number", [100, 1_000, 20_000])
def test_reasons_that_are_too_long_for_their_list_are_cut(
    tmp_path: Path, number: int
) -> None:
    whys = {
        f"{at:05}/run": f"{at} " + "why \u00b5 " * 40_000 for at in range(number // 200)
    }
    whys |= {f"{at:05}/other": "w" * 1_500 for at in range(number)}
    FAILED.write(tmp_path, whys)
    again = FAILED.read(tmp_path)

    assert again.keys() == whys.keys()
    assert all(whys[run].startswith(why.rstrip("…")) for run, why in again.items())
    if number > 10_000:
        assert again["00001/other"].endswith("w…")


def test_a_list_that_cannot_be_short_enough_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAILED.write(tmp_path, {"a": "b"})
    monkeypatch.setattr(journal, "MAX_LIST_BYTES", 1_000)
    with pytest.raises(RecordError, match="more than the 1,000 bytes of any list of"):
        FAILED.write(tmp_path, {f"run {at}": "why" for at in range(1_000)})

    assert FAILED.read(tmp_path) == {"a": "b"}


def test_a_full_journal_takes_no_line_and_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_JOURNAL_BYTES", 2_000)
    steps = Journal(tmp_path / STEPS)

    def fill() -> None:
        for at in range(100):
            steps.add(Tried(f"k{at}", why="it does not build"))

    with pytest.raises(RecordError, match="full, with 2,000 bytes at most; start"):
        fill()

    kept = read_journal(tmp_path / STEPS).steps
    assert 5 < len(kept) < 30
    assert (tmp_path / STEPS).stat().st_size <= 2_000


@pytest.mark.parametrize("kind", [place.CAMPAIGN, place.SWEEP, place.SEARCH])
def test_a_question_too_long_to_read_again_is_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: place.Kind
) -> None:
    monkeypatch.setattr(place, "MAX_DOCUMENT_BYTES", 5_000)
    place.write_document(tmp_path, kind, {"loads": ["idle"]}, command=("rtscope",))
    before = (tmp_path / kind.file).read_bytes()
    with pytest.raises(RecordError, match="more than the 5,000 bytes of any"):
        place.write_document(tmp_path, kind, {"loads": ["x" * 6_000]}, command=())

    assert (tmp_path / kind.file).read_bytes() == before
    assert place.read_document(tmp_path, kind).asked == {"loads": ["idle"]}


@pytest.mark.parametrize(("bound", "value"), [("MAX_FILES", 4), ("MAX_BYTES", 9 << 20)])
def test_an_archive_has_no_more_than_its_reader_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    results = create(tmp_path / "results", {}, command=())
    one = record([thread([1_000] * 10)], "idle")
    results.save(one)
    for name in ("kernel.log", "audit.json", "worst.trace.gz"):
        results.attach(one.run.id, name, b"x" * 700_000)
    monkeypatch.setattr(packing, bound, value)
    limits = dataclasses.replace(
        packing._BOUNDS, max_files=packing.MAX_FILES, max_bytes=packing.MAX_BYTES
    )
    monkeypatch.setattr(packing, "_BOUNDS", limits)
    made = packing.pack(
        tmp_path / "r.rtscope.tar.gz",
        packing.collect(results.path),
        name="r",
        limit_bytes=1 << 30,
        notes={},
        left_out={},
    )
    (tmp_path / "into").mkdir()
    folder = packing.unpack(tmp_path / "r.rtscope.tar.gz", tmp_path / "into")

    assert ResultDir(folder).records() == [one]
    assert made.left_out
    assert all("an archive has at most" in why for why in made.left_out.values())


def test_records_that_no_archive_can_hold_are_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_FILES", 2)
    files = {f"runs/{n:03}-idle/record.json": b"{}" for n in range(3)}
    with pytest.raises(UsageError, match="pack the directories of some runs apart"):
        packing.pack(
            *(tmp_path / "r.rtscope.tar.gz", files),
            name="r",
            limit_bytes=1 << 30,
            notes={},
            left_out={},
        )


def test_a_baseline_has_as_many_cycles_as_its_reader_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len(baselines.baseline_text(TEST, [seen()]))
    monkeypatch.setattr(baselines, "MAX_BYTES", whole - 1)
    path = tmp_path / "base.json"
    path.write_text(baselines.baseline_text(TEST, [seen()]))
    before = baselines.read_baseline(path)
    (kept,) = before.starts[0].threads

    assert path.stat().st_size < whole
    assert 0 <= len(kept.response_ns) < kept.cycles
    found = baselines.differences(TEST, [seen()], before, tolerance=None)
    assert list(found) == []
    found = baselines.differences(TEST, [seen()], before, tolerance=0.0)
    assert list(found) == []
