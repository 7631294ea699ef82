"""A traced run keeps its trace, and what tracing cost, or what a full disk left."""

from pathlib import Path

import pytest

from fakes import targets, traces
from fakes.faketarget import FakeTarget
from fakes.fulldisk import full_but_for
from fakes.story import StoryOf, ids
from fakes.targets import target
from rtscope.explain.events.run import why_untraced
from rtscope.record.directory import records as stored
from rtscope.record.model import record_from_json, record_to_json


def traced_target(*, pages: bool) -> FakeTarget:
    sent = [traces.trace_pages(0, 0, [traces.page(7)])] if pages else []
    said = traces.tracing(cause="" if pages else "lockdown")
    result = targets.traced_result(said)
    return target({"measure": [[targets.HELLO, *traces.FILES, *sent, result]]})


def test_a_traced_run_keeps_its_trace_beside_the_record(
    story: StoryOf,
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    list(told.run())

    trace = told.store.run_dir("001-idle") / "worst.trace.dat"
    assert told.target.log[-1] == "saved record.json worst.trace.dat"
    assert trace.read_bytes().startswith(b"\x17\x08\x44tracing6\0")
    measures = [line for line in told.target.log if line.startswith("root measure")]
    assert ["--trace" in line for line in measures] == [False, True, False]
    assert ["--duration-ns 1500000000" in line for line in measures] == [
        True,
        False,
        True,
    ]


def test_the_trace_of_an_earlier_try_is_not_taken_for_that_of_the_run(
    story: StoryOf,
) -> None:
    told = story("idle", on=traced_target(pages=False), explain=True)
    trace = told.store.attach("001-idle", "worst.trace.dat", b"of an earlier try")
    list(told.run())

    assert not trace.exists()


def test_a_disk_that_is_full_for_the_trace_does_not_lose_the_record(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    trace = told.store.attach("001-idle", "worst.trace.dat", b"of an earlier try")
    write = full_but_for("record.json", "audit.json")
    monkeypatch.setattr(stored, "write_atomically", write)
    (kept,) = told.run()

    lost = [one.detail for one in kept.caveats if one.id == "file_not_kept"]
    assert lost == ["worst.trace.dat: No space left on device"]
    assert told.target.log[-1] == "saved record.json"
    assert not trace.exists()
    assert told.store.records()[0].caveats == kept.caveats
    assert why_untraced(kept) == (
        "worst.trace.dat could not be written: No space left on device"
    )


def test_a_disk_with_room_for_the_record_alone_keeps_it_with_what_is_missing(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    monkeypatch.setattr(stored, "write_atomically", full_but_for("record.json"))
    (kept,) = told.run()

    lost = [one.detail for one in kept.caveats if one.id == "file_not_kept"]
    assert [one.split(":")[0] for one in lost] == ["audit.json", "worst.trace.dat"]
    (saved,) = told.store.records()
    assert saved.result == kept.result
    assert saved.caveats == kept.caveats


def test_a_run_counts_as_done_only_when_its_trace_is_there(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    written: list[str] = []

    def write(path: Path, content: bytes, *, hint: str = "") -> None:
        del hint
        written.append(path.name)
        path.write_bytes(content)

    monkeypatch.setattr(stored, "write_atomically", write)
    list(told.run())

    assert sorted(written[:-1]) == ["audit.json", "worst.trace.dat"]
    assert written[-1] == "record.json"


def test_what_tracing_cost_is_in_the_record_and_told(story: StoryOf) -> None:
    told = story("idle", on=traced_target(pages=False), explain=True)
    (kept,) = told.run()

    assert len(kept.untraced_runs) == 2
    assert "trace_refused" in ids(kept)
    assert record_from_json(record_to_json(kept), name="x").untraced_runs == (
        kept.result.threads,
        kept.result.threads,
    )


def test_without_explain_nothing_is_traced(story: StoryOf) -> None:
    told = story("idle")
    (kept,) = told.run()

    assert kept.untraced_runs == ()
    assert not any("--trace" in line for line in told.target.log)
