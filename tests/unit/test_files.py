"""Files are written as a whole; those from elsewhere are read within limits."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import AfterValidator, TypeAdapter, ValidationError

from rtscope.host.errors import BoardError, RecordError
from rtscope.host.files import first_mistake, new_file, read_bounded, write_atomically


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_text("old")

    with new_file(path, BoardError) as new:
        new.write_text("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_ends_halfway_leaves_the_old_file_and_nothing_beside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.tar"
    path.write_text("old")

    def write_half() -> None:
        with new_file(path, BoardError) as new:
            new.write_text("ne")
            raise OSError(28, "No space left on device")

    with pytest.raises(BoardError, match="No space left"):
        write_half()

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    with (
        pytest.raises(BoardError, match="not a regular file"),
        new_file(path, BoardError) as new,
    ):
        new.write_text("new")

    assert path.is_fifo()


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new and longer")

    assert path.read_bytes() == b"new and longer"
    assert names_in(tmp_path) == ["record.json"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027, 0o007, 0o002, 0o000, 0o137])
def test_a_file_follows_the_umask(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"old")
    before = os.umask(umask)
    try:
        write_atomically(path, b"new")
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_is_full_leaves_what_was_there(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "record.json"
    write_atomically(path, b"old")
    monkeypatch.setattr(os if call == "fsync" else Path, call, full)

    with pytest.raises(RecordError, match=r"No space left on device; free some space"):
        write_atomically(path, b"new")

    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["record.json"]


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file or directory"):
        write_atomically(tmp_path / "none" / "record.json", b"")


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "report.html"
    precious.write_text("precious")
    link.symlink_to(precious)

    write_atomically(link, b"page")

    assert precious.read_text() == "precious"
    assert not link.is_symlink()


def test_a_file_of_as_many_bytes_as_it_may_have_is_read(tmp_path: Path) -> None:
    path = tmp_path / "explain.json"
    path.write_bytes(b"four")

    assert read_bounded(path, limit=4, kind="explanation") == b"four"
    with pytest.raises(RecordError, match="4 bytes, more than the 3 bytes of any"):
        read_bounded(path, limit=3, kind="explanation")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: p.symlink_to("x")])
def test_what_is_no_file_is_not_read(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "explain.json"
    make(path)

    with pytest.raises(RecordError, match="not a regular file"):
        read_bounded(path, limit=4, kind="explanation")


def test_where_nothing_is_the_hint_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"No such file or directory; record again"):
        read_bounded(tmp_path / "no", limit=4, kind="stream", hint="; record again")


def test_the_first_mistake_is_in_our_words_alone() -> None:
    def refuse(value: int) -> int:
        raise ValueError(f"{value}: write 2")

    kind = TypeAdapter(dict[str, Annotated[int, AfterValidator(refuse)]])
    with pytest.raises(ValidationError) as caught:
        kind.validate_python({"seeds": 1})

    assert first_mistake(caught.value) == "seeds: 1: write 2"
