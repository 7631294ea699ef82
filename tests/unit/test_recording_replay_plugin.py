"""A second pass takes the plugin that measured, or says that it is another."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import IMAGE, Kernel
from rtscope.boards.parts.buildcontext import AGENT_ARCHIVE, PLUGIN, USERLAND_ARCHIVE
from rtscope.boards.parts.cache import Part, build_part, locked
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu, Recording
from rtscope.boards.recording import replay
from rtscope.boards.recording.replay import find_plugin, prepare_replay, select_plugin
from rtscope.host.errors import BoardError
from rtscope.record.model import RunRecord

THEN, TODAY = b"the plugin of then", b"the plugin of today"
ASKED = Recording(worst=3, sections={"schedule": 1})


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "today.so"
    path.write_bytes(TODAY)
    monkeypatch.setattr(replay, "plugin_of_ours", lambda: path)
    return path


def kept_with(parts: Mapping[str, Part]) -> RunRecord:
    """Return the record of a run that these parts booted."""
    kept = on_board(record([thread([9_000])]))
    assert kept.virtual is not None
    virtual = replace(
        kept.virtual,
        kernel="k",
        part_digests={name: part.digest for name, part in parts.items()},
        plugin_digest=digest(THEN),
    )
    campaign = {
        "target": {"address": "virtual:pc"},
        "kernel": {"append": ["nohz=off"]},
    }
    return replace(kept, virtual=virtual, campaign=campaign)


@pytest.fixture
def parts(tmp_path: Path) -> Mapping[str, Part]:
    """What booted then, all in the cache."""
    notes = {"program": "q", "loader": "l", "version": "10.0.2", "release": "6.12"}
    files = {
        "qemu-x86_64": "q",
        "plugin-x86_64": PLUGIN,
        "userland-x86_64": USERLAND_ARCHIVE,
        "agent-x86_64": AGENT_ARCHIVE,
        "kernel-k-x86_64": IMAGE,
    }

    def part(name: str, file: str) -> Part:
        def build(work: Path) -> Mapping[str, Any]:
            (work / file).write_bytes(THEN)
            return notes

        return build_part(tmp_path, name, inputs=name, build=build)

    with locked(tmp_path, log=print):
        return {name: part(name, file) for name, file in files.items()}


def on(tmp_path: Path, plugin: Path, *, refuses: str = "none") -> Prepared:
    """Return a board whose QEMU refuses a plugin with this in its options."""
    qemu = tmp_path / "qemu"
    qemu.write_text(f'#!/bin/sh\ncase "$*" in *{refuses}*) exit 1; esac\n')
    qemu.chmod(0o755)
    return Prepared(
        get_board("pc"),
        Qemu((str(qemu),), version="10.0.2", digest=""),
        plugin=plugin,
        kernel=Kernel("k", Path("/kernel"), "a" * 64),
        archives=(),
        parts=(),
    )


def test_the_plugin_that_measured_is_found_by_its_digest(
    tmp_path: Path, parts: Mapping[str, Part]
) -> None:
    assert find_plugin(digest(TODAY), cache=tmp_path) is None
    found = find_plugin(digest(THEN), cache=tmp_path)
    assert found == parts["plugin-x86_64"].file(PLUGIN)


def test_what_booted_then_boots_again_and_todays_plugin_if_only_that_is_gone(
    tmp_path: Path, parts: Mapping[str, Part], ours: Path
) -> None:
    kept = kept_with(parts)
    plugin = parts["plugin-x86_64"]

    prepared = prepare_replay(kept, cache=tmp_path)
    assert prepared.plugin == plugin.file(PLUGIN)
    assert prepared.board.append[-1] == "nohz=off"

    plugin.path.rename(tmp_path / "gone")
    assert prepare_replay(kept, cache=tmp_path).plugin == ours

    parts["agent-x86_64"].path.rename(tmp_path / "gone too")
    with pytest.raises(BoardError, match="agent-x86_64: not in "):
        prepare_replay(kept, cache=tmp_path)


def test_what_booted_in_a_qemu_of_ones_own_does_not_boot_again(
    tmp_path: Path, parts: Mapping[str, Part]
) -> None:
    rest = {name: part for name, part in parts.items() if "qemu" not in name}

    with pytest.raises(BoardError, match="001-idle: cannot be replayed: it was"):
        prepare_replay(kept_with(rest), cache=tmp_path)


def test_todays_plugin_is_not_worth_a_word_if_it_measured(
    tmp_path: Path, ours: Path
) -> None:
    said: list[str] = []
    prepared = on(tmp_path, ours, refuses="plugin")

    found = select_plugin(
        prepared, ASKED, measured_digest=digest(TODAY), log=said.append
    )

    assert (found, said) == (prepared, [])


@pytest.mark.usefixtures("ours")
def test_the_plugin_that_measured_is_taken_before_todays_and_that_is_said(
    tmp_path: Path, parts: Mapping[str, Part]
) -> None:
    said: list[str] = []
    prepared = on(tmp_path, parts["plugin-x86_64"].file(PLUGIN), refuses="progress=")

    found = select_plugin(
        prepared, ASKED, measured_digest=digest(THEN), log=said.append
    )

    assert found == prepared
    assert said == [
        f"with the plugin that measured ({digest(THEN)[:12]}), not today's "
        f"({digest(TODAY)[:12]})"
    ]


def test_a_plugin_that_does_not_know_what_is_asked_of_it_gives_way_to_todays(
    tmp_path: Path, parts: Mapping[str, Part], ours: Path
) -> None:
    said: list[str] = []
    prepared = on(tmp_path, parts["plugin-x86_64"].file(PLUGIN), refuses="schedule=1")

    found = select_plugin(
        prepared, ASKED, measured_digest=digest(THEN), log=said.append
    )

    assert found == replace(prepared, plugin=ours)
    assert said == [
        f"with today's plugin ({digest(TODAY)[:12]}): the original one "
        f"({digest(THEN)[:12]}) cannot record this; a replay with another result "
        "is rejected"
    ]


def test_that_the_plugin_that_measured_is_gone_is_said(
    tmp_path: Path, ours: Path
) -> None:
    said: list[str] = []
    prepared = on(tmp_path, ours)

    found = select_plugin(
        prepared, ASKED, measured_digest=digest(THEN), log=said.append
    )

    assert found == prepared
    assert "is no longer in the cache; a replay with another result" in said[0]
