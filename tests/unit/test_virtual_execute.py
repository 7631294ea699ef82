"""What a virtual board measured is kept, with what a full disk left of its files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.fulldisk import full_but_for
from fakes.measurements import on_board, record, thread
from rtscope.board.catalogue import get_board
from rtscope.board.kernels import Kernel
from rtscope.board.prepare import Prepared
from rtscope.board.qemu import Qemu
from rtscope.campaign import Campaign
from rtscope.errors import BoardError, RecordError, UsageError
from rtscope.measure.audit import Audited
from rtscope.measure.execute import RunEnds
from rtscope.record import resultdir
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import ResultDir, create
from rtscope.virtual import execute
from rtscope.virtual.boot import Booted
from rtscope.virtual.execute import execute_on_board
from rtscope.virtual.inputs import Asked
from rtscope.virtual.prepare import Ready, asked_of
from rtscope.virtual.recordings import Recorded, stream_of

STREAM = (Path(__file__).parents[2] / "format/plugin-v1/riscv64.trace").read_bytes()
BOARD = get_board("pc")
CAMPAIGN = Campaign(target="virtual:pc")
RUN = "001-idle"
FILES = {"audit.json", "kernel.log", "worst.trace.gz"}

PREPARED = Prepared(
    BOARD,
    Qemu((), version="1", digest=""),
    plugin=Path("/plugin.so"),
    kernel=Kernel("debian-6.12-rt", Path("/kernel"), "a" * 64),
    archives=(),
    parts=(),
)

Measure = Callable[..., RunRecord]


@pytest.fixture
def store(tmp_path: Path) -> ResultDir:
    return create(tmp_path / "out", {}, command=(), rtscope="0")


@pytest.fixture
def measure(
    store: ResultDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Measure:
    """Measure once, on a board that answers at once; return what was yielded."""
    made = on_board(record([thread([9_000])]))
    prepared = PREPARED
    booted = Booted(
        files={"kernel.log": b"<6>booted\n"},
        counts={},
        initrd_digest="",
        plugin_digest="",
        host_seconds=1.0,
        stream=STREAM,
    )

    def record_of(*_: object, trace: dict[str, Any], **__: object) -> RunRecord:
        virtual = {**made.extra["virtual"], "trace": trace}
        return replace(made, extra={"virtual": virtual})

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(execute, "boot", lambda *_, **__: booted)
    monkeypatch.setattr(execute, "audit_board", lambda _: Audited(b"{}", ()))
    monkeypatch.setattr(execute, "record_of", record_of)

    def run(**settings: object) -> RunRecord:
        campaign = replace(CAMPAIGN, **settings)  # type: ignore[arg-type]
        asked = asked_of(made.run, campaign, BOARD, ("rtscope",))
        ended: list[RunRecord] = []

        def say(event: object) -> None:
            if isinstance(event, RunEnds):
                ended.append(event.record)

        ready = Ready(((asked, prepared),))
        (kept,) = execute_on_board(ready, store, say=say)
        assert ended == store.records() == [kept]
        return kept

    return run


def test_a_board_that_fails_ends_the_others_unless_somebody_takes_that(
    store: ResultDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = on_board(record([thread([9_000])]))
    last = replace(made, run=replace(made.run, id="002-cpu", load="cpu"))
    runs = [asked_of(one.run, CAMPAIGN, BOARD, ()) for one in (made, last)]
    ready = Ready(tuple((asked, PREPARED) for asked in runs))

    def measure(asked: Asked, *_: object) -> RunRecord:
        if asked.run.id == made.run.id:
            raise BoardError("it panics")
        return last

    def say(_event: object) -> None:
        pass

    monkeypatch.setattr(execute, "_measure", measure)
    failures: list[tuple[str, str]] = []

    def failed(run: str, error: BoardError) -> None:
        failures.append((run, str(error)))

    assert list(execute_on_board(ready, store, say=say, failed=failed)) == [last]
    assert failures == [(made.run.id, "it panics")]
    with pytest.raises(BoardError, match="it panics"):
        list(execute_on_board(ready, store, say=say))


def beside(store: ResultDir) -> set[str]:
    return {path.name for path in store.run_dir(RUN).iterdir()} - {"record.json"}


def lost(kept: RunRecord) -> list[str]:
    return [one.detail for one in kept.caveats if one.id == "file_not_kept"]


def test_what_the_record_names_lies_beside_it(
    store: ResultDir, measure: Measure
) -> None:
    kept = measure()

    assert beside(store) == FILES
    assert lost(kept) == []
    assert stream_of(Recorded(kept, store.run_dir(RUN))).sections


def test_a_disk_that_is_full_for_the_paths_does_not_lose_the_run(
    store: ResultDir, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.attach(RUN, "worst.trace.gz", b"of an earlier try")
    write = full_but_for("record.json", "audit.json", "kernel.log")
    monkeypatch.setattr(resultdir, "write_atomically", write)

    kept = measure()

    assert beside(store) == FILES - {"worst.trace.gz"}
    assert lost(kept) == ["worst.trace.gz: No space left on device"]
    with pytest.raises(UsageError, match="gz could not be written: No space left on"):
        stream_of(Recorded(kept, store.run_dir(RUN)))


def test_a_disk_with_room_for_the_record_alone_keeps_it_with_what_is_missing(
    store: ResultDir, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resultdir, "write_atomically", full_but_for("record.json"))

    kept = measure()

    assert beside(store) == set()
    assert [one.split(":")[0] for one in lost(kept)] == sorted(FILES)


def test_a_run_counts_as_done_only_when_its_files_are_there(
    store: ResultDir, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resultdir, "write_atomically", full_but_for(*FILES))

    with pytest.raises(RecordError, match=r"cannot write .*record.json"):
        measure()

    assert beside(store) == FILES
    assert not store.done_ids()


def test_paths_of_an_earlier_try_are_not_taken_for_those_of_a_run_without(
    store: ResultDir, measure: Measure
) -> None:
    store.attach(RUN, "worst.trace.gz", b"of an earlier try")

    kept = measure(record=False)

    assert beside(store) == FILES - {"worst.trace.gz"}
    assert kept.extra["virtual"]["trace"] == {"why": "--no-record"}
