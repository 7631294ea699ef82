"""Parts of boards: complete or absent, found again, and never changed unnoticed."""

import errno
import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rtscope.boards.parts.cache import (
    NotBuiltError,
    all_parts,
    build_part,
    cache_dir,
    find_part,
    locked,
    only_builder,
    open_to_others,
    part_key,
    read_part,
    verify,
)
from rtscope.host.errors import BoardError

PATIENCE_S = 60


def silent(_text: str) -> None:
    pass


def fail(text: str) -> None:
    raise AssertionError(text)


def never(_work: Path) -> Mapping[str, Any]:
    raise AssertionError


class Stop(Exception):
    """Instead of a wait that has no end."""


def stop(text: str) -> None:
    raise Stop(text)


def one_file(work: Path) -> Mapping[str, Any]:
    (work / "a").write_text("1")
    return {"note": 1}


def test_the_cache_is_where_the_specification_says() -> None:
    assert cache_dir({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/rtscope")
    assert cache_dir({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/rtscope")
    assert cache_dir({"HOME": "/h"}) == Path("/h/.cache/rtscope")


def test_a_part_is_built_once(tmp_path: Path) -> None:
    with locked(tmp_path, log=silent):
        part = build_part(tmp_path, "p", inputs={"x": 1}, build=one_file)
        again = build_part(tmp_path, "p", inputs={"x": 1}, build=never)

    assert part == again
    assert part.file("a").read_text() == "1"
    assert part.size_bytes == 1
    assert all_parts(tmp_path) == [part]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_and_leaves_no_half_of_a_part(
    code: int, tmp_path: Path
) -> None:
    def full(work: Path) -> Mapping[str, Any]:
        one_file(work)
        raise OSError(code, os.strerror(code))

    told = f"no space left in {tmp_path}: .* set XDG_CACHE_HOME to another directory"
    with pytest.raises(BoardError, match=told), locked(tmp_path, log=silent):
        build_part(tmp_path, "p", inputs={"x": 1}, build=full)

    assert list((tmp_path / "parts").iterdir()) == []
    with locked(tmp_path, log=silent):
        assert build_part(tmp_path, "p", inputs={"x": 1}, build=one_file).size_bytes


def test_without_the_lock_a_part_is_found_and_none_is_built(tmp_path: Path) -> None:
    with locked(tmp_path, log=silent):
        there = build_part(tmp_path, "part", inputs=1, build=one_file)

    def build(_work: Path) -> Mapping[str, Any]:
        raise AssertionError

    ask = partial(build_part, tmp_path, "part", build=build, may_build=False)
    assert ask(inputs=1).path == there.path
    with pytest.raises(NotBuiltError):
        ask(inputs=2)


def test_other_inputs_give_another_part(tmp_path: Path) -> None:
    with locked(tmp_path, log=silent):
        one = build_part(tmp_path, "p", inputs={"x": 1}, build=one_file)
        two = build_part(tmp_path, "p", inputs={"x": 2}, build=one_file)

    assert one.path != two.path
    assert one.digest == two.digest


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fails(work: Path) -> Mapping[str, Any]:
        one_file(work)
        raise BoardError("no")

    with locked(tmp_path, log=silent), pytest.raises(BoardError, match="no"):
        build_part(tmp_path, "p", inputs={}, build=fails)

    assert list((tmp_path / "parts").iterdir()) == []


def test_what_a_killed_builder_left_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / "parts" / ".building-xyz"
    left.mkdir(parents=True)
    (left / "half").touch()

    with locked(tmp_path, log=silent):
        pass

    assert not left.exists()


def test_a_cache_that_belongs_to_another_is_told(tmp_path: Path) -> None:
    # Even root cannot open a directory for writing.
    (tmp_path / "lock").mkdir()

    with (
        pytest.raises(BoardError, match=r"cannot write .*lock: .*XDG_CACHE_HOME"),
        locked(tmp_path, log=silent),
    ):
        pass


def test_a_second_builder_says_that_it_waits(tmp_path: Path) -> None:
    with (
        locked(tmp_path, log=silent),
        pytest.raises(Stop, match="waiting"),
        locked(tmp_path, log=stop),
    ):
        pass


def test_others_build_while_one_compiles(tmp_path: Path) -> None:
    def compiles(work: Path) -> Mapping[str, Any]:
        with open_to_others(tmp_path), locked(tmp_path, log=fail):
            build_part(tmp_path, "other", inputs={}, build=one_file)
        return one_file(work)

    with locked(tmp_path, log=silent), only_builder(tmp_path, "p", log=fail):
        build_part(tmp_path, "p", inputs={}, build=compiles)

    assert {part.name for part in all_parts(tmp_path)} == {"other", "p"}


def test_who_wants_what_another_one_compiles_waits_for_it(tmp_path: Path) -> None:
    built = threading.Event()
    said: list[str] = []

    def second() -> None:
        with locked(tmp_path, log=silent), only_builder(tmp_path, "p", log=say):
            build_part(tmp_path, "p", inputs={}, build=never)

    def say(text: str) -> None:
        said.append(text)
        built.set()

    def compiles(work: Path) -> Mapping[str, Any]:
        with open_to_others(tmp_path):
            other.start()
            assert built.wait(PATIENCE_S)
        return one_file(work)

    other = threading.Thread(target=second)
    with locked(tmp_path, log=silent), only_builder(tmp_path, "p", log=fail):
        build_part(tmp_path, "p", inputs={}, build=compiles)
    other.join(PATIENCE_S)

    assert not other.is_alive()
    assert said == ["another rtscope builds p: waiting for it"]


def test_the_lock_is_held_again_after_a_compilation_that_failed(tmp_path: Path) -> None:
    with locked(tmp_path, log=silent):
        with pytest.raises(BoardError), open_to_others(tmp_path):
            raise BoardError("no")
        with pytest.raises(Stop, match="waiting"), locked(tmp_path, log=stop):
            pass


@pytest.mark.parametrize("change", ["content", "mode", "more", "less"])
def test_a_changed_part_is_noticed(tmp_path: Path, change: str) -> None:
    with locked(tmp_path, log=silent):
        part = build_part(tmp_path, "p", inputs={}, build=one_file)
    verify(part)

    match change:
        case "content":
            part.file("a").write_text("2")
        case "mode":
            part.file("a").chmod(0o755)
        case "more":
            part.file("b").touch()
        case _:
            part.file("a").unlink()

    with pytest.raises(BoardError, match="was changed"):
        verify(part)


def test_a_part_holds_no_links(tmp_path: Path) -> None:
    def link(work: Path) -> Mapping[str, Any]:
        (work / "l").symlink_to("/etc/passwd")
        return {}

    with locked(tmp_path, log=silent), pytest.raises(BoardError, match="regular"):
        build_part(tmp_path, "p", inputs={}, build=link)


def test_a_damaged_manifest_says_what_to_delete(tmp_path: Path) -> None:
    with locked(tmp_path, log=silent):
        part = build_part(tmp_path, "p", inputs={}, build=one_file)
    part.file("manifest.json").write_text("{")

    with pytest.raises(BoardError, match="delete it"):
        read_part(part.path)


def test_nothing_is_found_where_nothing_was_built(tmp_path: Path) -> None:
    assert find_part(tmp_path, "p", part_key({})) is None
    assert all_parts(tmp_path) == []
