"""A second pass is the same run, or refused with the reason."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.recording import replay
from rtscope.boards.recording.replay import Replay, replay_run
from rtscope.boards.runs.boot import Booted
from rtscope.contract import AgentResult, parse_line, result_digest
from rtscope.host.errors import MeasurementError
from rtscope.measure.campaign.file import to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.record.model import RunRecord

FORMAT = Path(__file__).parents[2] / "format"
STREAM = (FORMAT / "plugin-v2/riscv64.trace").read_bytes()
ANSWER = (FORMAT / "v2/x86_64.jsonl").read_bytes()
PREPARED = Prepared(
    get_board("pc"),
    Qemu((), version="1", digest=""),
    plugin=Path("/cache/plugin-of-then.so"),
    kernel=Kernel("debian-6.12-rt", Path("/cache/kernel"), "a" * 64),
    archives=(),
    parts=(),
)
INITRD_THEN = "b" * 64

Pass = Callable[..., Replay]


@pytest.fixture
def then() -> RunRecord:
    """The run whose result the board answers again, measured with another plugin."""
    results = [parse_line(line) for line in ANSWER.splitlines()]
    (result,) = [line for line in results if isinstance(line, AgentResult)]
    kept = on_board(record([thread([9_000])], load="idle"))
    return replace(
        kept,
        campaign=to_dict(Campaign(target="virtual:pc")),
        result_digest=result_digest(result.threads),
    )


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def second_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> Pass:
    """A pass with today's plugin: that of then is gone."""
    ours = tmp_path / "plugin-of-today.so"
    ours.write_bytes(b"a plugin")
    booted = Booted(
        files={"measure.jsonl": ANSWER},
        counts={},
        initrd_digest=INITRD_THEN,
        plugin_digest=hashlib.sha256(ours.read_bytes()).hexdigest(),
        host_seconds=1.0,
        stream=STREAM,
    )

    def boot(prepared: Prepared, *_: object, **__: object) -> Booted:
        assert prepared.plugin == ours
        return booted

    prepared = replace(PREPARED, plugin=ours)
    monkeypatch.setattr(replay, "prepare_replay", lambda *_, **__: prepared)
    monkeypatch.setattr(replay, "plugin_of_ours", lambda: ours)
    monkeypatch.setattr(
        replay, "find_kernel_layout", lambda *_, **__: {"switched": "1"}
    )
    monkeypatch.setattr(replay, "boot", boot)
    return lambda kept: replay_run(kept, windows=(), cache=tmp_path, log=said.append)


def test_a_second_pass_with_another_plugin_that_gives_the_same_result_is_kept(
    then: RunRecord, second_pass: Pass, said: list[str]
) -> None:
    assert second_pass(then).raw == STREAM
    assert said[0].startswith("001-idle: with today's plugin (")


def test_a_plugin_that_takes_turns_in_another_way_is_told_as_the_reason(
    then: RunRecord, second_pass: Pass
) -> None:
    kept = replace(then, result_digest="0" * 64)

    with pytest.raises(MeasurementError, match="not the same run: the plugin of this"):
        second_pass(kept)


def test_another_job_of_the_board_is_told_before_another_plugin(
    then: RunRecord, second_pass: Pass
) -> None:
    assert then.virtual is not None
    virtual = replace(then.virtual, initrd_digest="0" * 64)
    kept = replace(then, result_digest="0" * 64, virtual=virtual)

    with pytest.raises(MeasurementError, match="gives the board another job"):
        second_pass(kept)
