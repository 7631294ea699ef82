"""A stored result is taken for equal inputs alone, and only if it is one of ours."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.fulldisk import full_but_for
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.runs import store as stored
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.store import (
    KEY,
    KEY_BYTES,
    Kind,
    Origin,
    Stored,
    StoredResults,
    Took,
    earlier_boots,
    open_stored,
    state_dir,
)
from rtscope.record.model import InputDigests

INPUTS = InputDigests(
    kernel="k", initrd="i", qemu="q", plugin="p", board="b", campaign="c", seed=1
)
BOOTED = Booted({"measure.jsonl": b"{}"}, {}, "a" * 64, "b" * 64, 1.0, None)
READ_ONLY = os.strerror(errno.EROFS)
ORIGIN = Origin("2026-11-23T08:00:00+00:00")

Open = Callable[[], StoredResults]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> Open:
    """Open the results of this installation; again, as another rtscope would."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def again() -> StoredResults:
        found = open_stored(log=said.append)
        assert found is not None, said
        return found

    return again


def only_file(results: StoredResults) -> Path:
    (path,) = results.folder.glob("*/*")
    return path


def test_a_result_is_found_again_by_its_inputs(opened: Open, said: list[str]) -> None:
    opened().keep(INPUTS, None, BOOTED, ORIGIN)

    assert opened().find(INPUTS, None) == Stored(BOOTED, ORIGIN)
    assert opened().find(replace(INPUTS, seed=2), None) is None
    assert said == []


def test_results_lie_beside_their_key_alone(opened: Open, tmp_path: Path) -> None:
    opened().keep(INPUTS, None, BOOTED, ORIGIN)

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert all(path.is_relative_to(state_dir()) for path in files)


def test_other_recordings_of_the_same_run_are_other_results(opened: Open) -> None:
    results = opened()
    results.keep(INPUTS, Recording(16), BOOTED, ORIGIN)

    assert results.find(INPUTS, Recording(16)) is not None
    assert results.find(INPUTS, Recording(16, layout={"task": "4"})) is None
    assert results.find(INPUTS, None) is None


def test_a_result_of_another_installation_is_left_aside(
    opened: Open, said: list[str]
) -> None:
    theirs = opened()
    theirs.keep(INPUTS, None, BOOTED, ORIGIN)
    (state_dir() / KEY).unlink()
    ours = opened()

    assert ours.find(INPUTS, None) is None
    ours.keep(INPUTS, None, BOOTED, ORIGIN)
    assert theirs.find(INPUTS, None) == ours.find(INPUTS, None)
    assert said == []


def test_a_result_that_another_installation_has_signed_is_left_aside(
    opened: Open, said: list[str]
) -> None:
    theirs = opened()
    theirs.keep(INPUTS, None, BOOTED, ORIGIN)
    (state_dir() / KEY).unlink()
    ours = opened()
    shutil.copytree(theirs.folder, ours.folder)

    assert ours.find(INPUTS, None) is None
    assert "not computed by this installation" in said[0]


@pytest.mark.parametrize("at", [0, 80, -1])
def test_a_changed_byte_anywhere_is_seen(
    opened: Open, said: list[str], at: int
) -> None:
    results = opened()
    results.keep(INPUTS, None, BOOTED, ORIGIN)
    content = bytearray(only_file(results).read_bytes())
    content[at] ^= 1
    only_file(results).write_bytes(content)

    assert results.find(INPUTS, None) is None
    assert len(said) == 1


def test_a_result_under_the_name_of_other_inputs_is_left_aside(
    opened: Open, said: list[str]
) -> None:
    results = opened()
    results.keep(INPUTS, None, BOOTED, ORIGIN)
    path, other = only_file(results), replace(INPUTS, seed=2)
    place = results.folder / other.digest[:2] / f"{other.digest}-plain"
    place.parent.mkdir(exist_ok=True)
    shutil.copy(path, place)

    assert results.find(other, None) is None
    assert "other inputs" in said[0]


def test_a_full_disk_is_told_and_is_no_error(
    opened: Open, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "write_atomically", full_but_for())

    results = opened()
    for seed in range(3):
        results.keep(replace(INPUTS, seed=seed), None, BOOTED, ORIGIN)

    # Hundreds of results need no line each.
    assert len(said) == 1
    assert "No space left on device: results are not stored there" in said[0]
    assert opened().find(INPUTS, None) is None


def test_what_boots_took_here_is_known_afterwards(opened: Open) -> None:
    results, took = opened(), Took(Kind("pc", "idle", 12), 3.5)
    results.keep(INPUTS, None, BOOTED, ORIGIN, took=took)
    elsewhere = replace(ORIGIN, worker="tcp://w1")
    results.keep(replace(INPUTS, seed=2), None, BOOTED, elsewhere, took=took)
    results.keep(replace(INPUTS, seed=3), None, BOOTED, ORIGIN)
    for number, text in enumerate(["", "x\n[]\n", 'x\n{"took": 3}\n', "\n\xff\n"]):
        (only := results.folder / "aa").mkdir(exist_ok=True)
        (only / str(number)).write_text(text, encoding="latin-1")

    assert list(earlier_boots(state_dir())) == [took]
    assert results.find(INPUTS, None) == Stored(BOOTED, ORIGIN)


def test_a_result_that_is_not_to_be_trusted_goes_with_all_its_recordings(
    opened: Open,
) -> None:
    results = opened()
    for recording in (None, Recording(16)):
        results.keep(INPUTS, recording, BOOTED, ORIGIN)

    results.drop(INPUTS)

    assert not list(results.folder.glob("*/*"))


def test_the_results_that_were_not_used_for_longest_go_first(opened: Open) -> None:
    results = opened()
    for seed in range(4):
        results.keep(replace(INPUTS, seed=seed), None, BOOTED, ORIGIN)
    sizes = []
    for age, path in enumerate(sorted(results.folder.glob("*/*"))):
        os.utime(path, (age, age))
        sizes.append(path.stat().st_size)
    oldest = sorted(results.folder.glob("*/*"))[:2]

    results.prune(sum(sizes[2:]))

    assert not any(path.exists() for path in oldest)
    assert len(list(results.folder.glob("*/*"))) == 2


def test_what_is_no_result_is_never_removed(opened: Open, tmp_path: Path) -> None:
    """Somebody has put a link among the results, or keeps a file of theirs there."""
    results = opened()
    results.keep(INPUTS, None, BOOTED, ORIGIN)
    path = only_file(results)
    elsewhere = tmp_path / "elsewhere" / "ab"
    elsewhere.mkdir(parents=True)
    theirs = [elsewhere / path.name, path.parent / "notes.txt"]
    for file in theirs:
        file.write_text("theirs")
    (results.folder / "ab").symlink_to(elsewhere)
    (results.folder.parent / "0123456789ab").symlink_to(elsewhere.parent)
    (path.parent / f"{'0' * 64}-plain").symlink_to(elsewhere / path.name)

    results.prune(0)

    assert not path.exists()
    assert all(file.read_text() == "theirs" for file in theirs)


def test_what_a_killed_process_was_writing_goes_too(opened: Open) -> None:
    results = opened()
    results.keep(INPUTS, None, BOOTED, ORIGIN)
    path = only_file(results)
    path.rename(path.with_name(f".{path.name}.a8s_k2x0"))

    results.prune(0)

    assert not list(results.folder.glob("*/*"))


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be removed, as on a file system that is read-only."""

    def unlink(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, READ_ONLY)

    monkeypatch.setattr(Path, "unlink", unlink)


def test_results_that_cannot_be_removed_are_no_error(
    opened: Open, said: list[str], stuck: None
) -> None:
    key = state_dir()
    key.mkdir(parents=True)
    (key / KEY).write_bytes(bytes(KEY_BYTES))
    (key / KEY).chmod(0o600)
    results = opened()
    results.keep(INPUTS, None, BOOTED, ORIGIN)

    results.prune(0)
    results.drop(INPUTS)

    assert said == [f"{only_file(results)}: {READ_ONLY}: delete it, it may be wrong"]


def test_what_is_left_of_another_key_does_not_hinder_a_new_one(opened: Open) -> None:
    state_dir().mkdir(parents=True)
    (state_dir() / f".{KEY}.{os.getpid()}").write_text("of a killed process")

    opened().keep(INPUTS, None, BOOTED, ORIGIN)

    assert opened().find(INPUTS, None) is not None


def test_a_result_that_was_used_is_young_again(opened: Open) -> None:
    results = opened()
    results.keep(INPUTS, None, BOOTED, ORIGIN)
    os.utime(only_file(results), (5, 5))

    results.find(INPUTS, None)

    assert only_file(results).stat().st_mtime > 5


def test_a_key_that_others_can_read_is_no_key(opened: Open, said: list[str]) -> None:
    opened()
    key = state_dir() / KEY
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)

    assert open_stored(log=said.append) is None
    assert f"others can read or replace {key}" in said[0]


def test_without_a_place_for_the_key_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    assert open_stored(log=said.append) is None
    assert "results are not stored" in said[0]
