"""What a virtual board measured is kept, with what a full disk left of its files."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fakes.fulldisk import full_but_for
from fakes.measurements import measured, on_board, record, thread
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.runs import runner
from rtscope.boards.runs.assemble import campaign_digest
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.prepare import PreparedCampaign, RunRequest, request_for
from rtscope.boards.runs.runner import BoardRunner
from rtscope.boards.runs.store import StoredResults
from rtscope.explain.directory import Recorded, stream_of
from rtscope.host.errors import (
    BoardError,
    ContractError,
    MeasurementError,
    RecordError,
    UsageError,
)
from rtscope.measure.assemble import Measured
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.execute import Event, RunFinished, execute
from rtscope.measure.plan import Plan
from rtscope.measure.settings import AuditResult
from rtscope.record.directory import records as stored
from rtscope.record.directory.records import ResultDir, create
from rtscope.record.model import InputDigests, RunRecord

STREAM = (Path(__file__).parents[2] / "format/plugin-v2/riscv64.trace").read_bytes()
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
    return create(tmp_path / "out", {}, command=())


@pytest.fixture
def measure(
    store: ResultDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Measure:
    """Measure once, on a board that answers at once; return what was yielded."""
    made = on_board(record([thread([9_000])]))
    booted = Booted(
        files={"kernel.log": b"<6>booted\n"},
        counts={},
        initrd_digest="",
        plugin_digest="",
        host_seconds=1.0,
        stream=STREAM,
    )

    def measured_on_board(
        *_: object,
        trace: dict[str, Any],
        attachments: dict[str, bytes | None],
        **__: object,
    ) -> Measured:
        assert made.virtual is not None
        virtual = replace(made.virtual, trace=trace)
        return measured(replace(made, virtual=virtual), attachments)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "boot", lambda *_, **__: booted)
    monkeypatch.setattr(runner, "_audit", lambda _: AuditResult(b"{}", ()))
    monkeypatch.setattr(runner, "measured_on_board", measured_on_board)

    def run(**settings: object) -> RunRecord:
        campaign = replace(CAMPAIGN, **settings)  # type: ignore[arg-type]
        request = request_for(made.run, campaign, BOARD, ("rtscope",))
        told: list[str] = []

        def on_event(event: Event) -> None:
            told.append(type(event).__name__)
            if isinstance(event, RunFinished):
                assert store.records() == [event.record]

        boards = BoardRunner(PreparedCampaign(((request, PREPARED),)))
        (kept,) = execute(plan_of(made), boards, store, on_event=on_event)
        assert [name for name in told if name != "BoardsProgress"] == [
            "RunStarted",
            "RunFinished",
        ]
        assert store.records() == [kept]
        return kept

    return run


def plan_of(*records: RunRecord) -> Plan:
    runs = tuple(one.run for one in records)
    return Plan(runs, settle_ns=0, warmup_ns=0, boots_each=True)


def nobody_listens(_event: Event) -> None:
    pass


@pytest.mark.parametrize("error", [BoardError, MeasurementError, ContractError])
def test_a_board_that_fails_ends_the_others_unless_somebody_takes_that(
    store: ResultDir, monkeypatch: pytest.MonkeyPatch, error: type[MeasurementError]
) -> None:
    made = on_board(record([thread([9_000])]))
    last = replace(made, run=replace(made.run, id="002-cpu", load="cpu"))
    runs = [request_for(one.run, CAMPAIGN, BOARD, ()) for one in (made, last)]
    prepared = PreparedCampaign(tuple((request, PREPARED) for request in runs))
    plan = plan_of(made, last)

    def measure(request: RunRequest, *_: object) -> Measured:
        if request.run.id == made.run.id:
            raise error("it panics")
        return measured(last)

    monkeypatch.setattr(BoardRunner, "_measure", lambda _, *words: measure(*words))
    failures: list[tuple[str, str]] = []

    def failed(run: str, error: MeasurementError) -> None:
        failures.append((run, str(error)))

    tolerant = BoardRunner(prepared, failed=failed)
    (kept,) = execute(plan, tolerant, store, on_event=nobody_listens)
    assert kept.run == last.run
    assert failures == [(made.run.id, "it panics")]
    with pytest.raises(error, match="it panics"):
        list(execute(plan, BoardRunner(prepared), store, on_event=nobody_listens))


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
    monkeypatch.setattr(stored, "write_atomically", write)

    kept = measure()

    assert beside(store) == FILES - {"worst.trace.gz"}
    assert lost(kept) == ["worst.trace.gz: No space left on device"]
    with pytest.raises(UsageError, match="gz could not be written: No space left on"):
        stream_of(Recorded(kept, store.run_dir(RUN)))


def test_a_disk_with_room_for_the_record_alone_keeps_it_with_what_is_missing(
    store: ResultDir, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "write_atomically", full_but_for("record.json"))

    kept = measure()

    assert beside(store) == set()
    assert [one.split(":")[0] for one in lost(kept)] == sorted(FILES)


def test_a_run_counts_as_done_only_when_its_files_are_there(
    store: ResultDir, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "write_atomically", full_but_for(*FILES))

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
    assert kept.virtual is not None
    assert kept.virtual.trace == {"reason": "--no-record"}


@dataclass
class Boots:
    """Boots of a board that answers at once, and the results stored of them."""

    results: StoredResults
    stream: bytes | None = None
    count: int = 0
    told: list[tuple[bool, str]] = field(default_factory=list)
    """Of each measured run: when its stored result was computed, and its worker."""

    def __call__(
        self,
        campaign: Campaign,
        *,
        reuse: bool,
        own: bool = False,
        checks: str | None = None,
    ) -> None:
        """Measure once; to check another run, if one is named."""
        made = on_board(record([thread([9_000])]))
        request = request_for(made.run, campaign, BOARD, ("rtscope",))
        qemu = Part(Path("/qemu"), {"name": "qemu-x86_64", "digest": "a" * 64})
        board = replace(PREPARED, parts=() if own else (qemu,))
        boards = BoardRunner(
            PreparedCampaign(((request, board),)),
            results=self.results,
            reuse=reuse,
            again={made.run.id: checks} if checks else {},
        )
        with boards.start(plan_of(made), nobody_listens) as pending:
            ((_, measure),) = list(pending)
            measure()


@pytest.fixture
def boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boots:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Boots(StoredResults(tmp_path / "results", b"key", print))

    def boot(*_: object, **__: object) -> Booted:
        made.count += 1
        return Booted({}, {}, "a" * 64, "b" * 64, 1.0, made.stream)

    def inputs(request: RunRequest, *_: object) -> InputDigests:
        same = dict.fromkeys(("kernel", "qemu", "plugin", "board"), "a")
        campaign = campaign_digest(request.run, request.campaign)
        return InputDigests(**same, initrd="i", campaign=campaign, seed=1)

    def measured_on_board(*_: object, reused: str, **__: object) -> Measured:
        made.told.append((bool(reused), reused))
        return measured(on_board(record([thread([9_000])])))

    monkeypatch.setattr(runner, "boot", boot)
    monkeypatch.setattr(runner, "inputs_before", inputs)
    monkeypatch.setattr(runner, "inputs_of", inputs)
    monkeypatch.setattr(runner, "_audit", lambda _: AuditResult(b"{}", ()))
    monkeypatch.setattr(runner, "measured_on_board", measured_on_board)
    return made


PLAIN = replace(CAMPAIGN, record=False)


def test_a_stored_result_is_taken_only_when_asked(boots: Boots) -> None:
    boots(PLAIN, reuse=False)
    boots(PLAIN, reuse=False)
    assert boots.count == 2

    boots(PLAIN, reuse=True)

    assert boots.count == 2
    assert [reused for reused, _ in boots.told] == [False, False, True]
    assert boots.told[-1][1].startswith("20")


def test_other_inputs_boot(boots: Boots) -> None:
    boots(PLAIN, reuse=True)
    boots(replace(PLAIN, warmup_ns=5), reuse=True)

    assert boots.count == 2


def test_ones_own_qemu_always_boots_as_its_libraries_have_no_digest(
    boots: Boots,
) -> None:
    boots(PLAIN, reuse=True, own=True)
    boots(PLAIN, reuse=True, own=True)

    assert boots.count == 2


def test_what_checks_a_stored_result_boots(boots: Boots) -> None:
    boots(PLAIN, reuse=True)
    boots(PLAIN, reuse=True, checks="first")

    assert boots.count == 2


def test_cut_paths_are_not_stored_as_the_next_boot_may_have_whole_ones(
    boots: Boots,
) -> None:
    boots.stream = STREAM
    boots(PLAIN, reuse=True)
    boots.stream = None
    boots(PLAIN, reuse=True)
    boots(PLAIN, reuse=True)

    assert boots.count == 2


def test_what_booted_with_other_inputs_than_expected_is_not_stored(
    boots: Boots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "inputs_of", lambda *_: None)

    boots(PLAIN, reuse=True)
    boots(PLAIN, reuse=True)

    assert boots.count == 2
