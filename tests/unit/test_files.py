"""A file gets its name when all of it is there."""

import os
from pathlib import Path

import pytest

from rtscope.errors import BoardError
from rtscope.files import new_file


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
