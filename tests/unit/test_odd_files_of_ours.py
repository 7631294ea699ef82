"""A file that rtscope looks for itself: not there, and there but unreadable, differ."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.measurements import record, thread
from rtscope.explain.directory import explained_runs
from rtscope.host.errors import RecordError, RtscopeError, UsageError
from rtscope.host.files.opening import is_there
from rtscope.record.directory.journal import FAILED, STEPS, read_journal
from rtscope.record.directory.place import CAMPAIGN, SEARCH, SWEEP
from rtscope.record.directory.records import INTERRUPTED, RECORD, create, open_records
from rtscope.record.events.dat import open_trace
from rtscope.record.explanation import EXPLAINED, find_explained
from rtscope.record.pack import collect


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def long_loop(path: Path) -> None:
    other = path.with_name("other")
    path.symlink_to(other.name)
    other.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def socket(path: Path) -> None:
    os.mknod(path, 0o140644)


ODD = [
    (loop, f"a link to {RECORD!r}, which leads in a circle"),
    (long_loop, "a link to 'other', which leads in a circle"),
    (dangling, "a link to 'nowhere', where nothing is"),
    (Path.mkdir, "a directory, not a regular file"),
    (fifo, "a FIFO, not a regular file"),
    (socket, "a socket, not a regular file"),
]
each = pytest.mark.parametrize(("make", "why"), ODD)
Make = Callable[[Path], None]


@each
@pytest.mark.parametrize("name", [RECORD, INTERRUPTED])
@pytest.mark.parametrize("place", ["", "runs/001-idle-r1"])
def test_a_record_that_cannot_be_read_is_named(
    tmp_path: Path, make: Make, why: str, name: str, place: str
) -> None:
    why = why.replace(RECORD, name)
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    make(folder / name)

    with pytest.raises(RecordError) as told:
        open_records(tmp_path)
    assert str(told.value).startswith(f"{folder / name}: {why}")


@each
def test_explain_and_pack_name_it_too(tmp_path: Path, make: Make, why: str) -> None:
    folder = tmp_path / "runs/001-idle-r1"
    folder.mkdir(parents=True)
    make(folder / RECORD)
    verbs: list[Callable[[Path], object]] = [
        collect,
        lambda path: explained_runs(
            path, None, worst=0, bound=False, cache=path, log=print
        ),
    ]
    for verb in verbs:
        with pytest.raises(RtscopeError) as told:
            verb(tmp_path)
        assert f"{RECORD}: {why}" in str(told.value)


@each
@pytest.mark.parametrize("file", [kind.file for kind in (CAMPAIGN, SWEEP, SEARCH)])
def test_a_document_of_a_directory_is_named(
    tmp_path: Path, make: Make, why: str, file: str
) -> None:
    make(tmp_path / file)

    with pytest.raises(RecordError) as told:
        open_records(tmp_path)
    assert str(told.value).startswith(f"{tmp_path / file}: {why.replace(RECORD, file)}")


@each
def test_lists_and_journals_are_named(tmp_path: Path, make: Make, why: str) -> None:
    make(tmp_path / FAILED.name)
    with pytest.raises(RecordError, match=why.replace(RECORD, FAILED.name)):
        FAILED.read(tmp_path)
    (tmp_path / "search").mkdir()
    make(tmp_path / "search" / STEPS)
    with pytest.raises(RecordError, match=why.replace(RECORD, STEPS)):
        read_journal(tmp_path / "search" / STEPS)


@each
def test_an_explanation_beside_a_record_is_named_in_the_log(
    tmp_path: Path, make: Make, why: str
) -> None:
    results = create(tmp_path / "r", {}, command=())
    one = record([thread([1_000] * 10)], "idle")
    path = results.save(one).with_name(EXPLAINED)
    make(path)
    said: list[str] = []

    for place in (results.path, path.parent, path.with_name(RECORD)):
        assert find_explained([place], [one], log=said.append) == {}
    why = why.replace(RECORD, EXPLAINED)
    assert [line.startswith(f"not shown: {path}: {why}") for line in said] == [True] * 3


@each
def test_what_a_user_names_is_there_too(tmp_path: Path, make: Make, why: str) -> None:
    path = tmp_path / "named"
    make(path)
    verbs: list[Callable[[Path], object]] = [open_records, open_trace]
    for verb in verbs if "directory" not in why else verbs[1:]:
        with pytest.raises(RecordError) as told:
            verb(path)
        assert str(path) in str(told.value)


def test_what_is_not_there_is_told_as_before(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        open_records(tmp_path / "nothing")
    with pytest.raises(UsageError, match="no record in it"):
        open_records(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        open_trace(tmp_path / "nothing")
    assert FAILED.read(tmp_path) == {}
    assert not is_there(tmp_path / "a" / "b")


def test_a_directory_that_nobody_may_look_into_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "lstat", refused)
    with pytest.raises(RecordError, match=r"cannot read .*: Permission denied"):
        open_records(tmp_path)
