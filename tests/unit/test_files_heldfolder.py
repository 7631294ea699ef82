"""Temporary directories and what is left of those whose process was killed."""

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtscope.host.errors import HostError, RecordError, UsageError
from rtscope.host.files.heldfolders import (
    LOCK,
    held_folder,
    remove_abandoned,
    temporary_folder,
)

HOLD = """
import sys
from pathlib import Path
from rtscope.host.files.heldfolders import held_folder
with held_folder(Path(sys.argv[1]), prefix="x-") as place:
    (place / "part").write_text("some")
    print(place, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def held_by_another(parent: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """Start a process that holds a directory."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        try:
            yield Path(holder.stdout.readline().strip()), holder
        finally:
            holder.kill()


@pytest.mark.parametrize("why", [KeyboardInterrupt, OSError])
def test_it_is_removed_at_the_end_whatever_the_end_is(
    tmp_path: Path, why: type[BaseException]
) -> None:
    with contextlib.suppress(why), held_folder(tmp_path, prefix="x-") as place:
        (place / "source").mkdir()
        raise why

    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_has_left_is_removed_by_the_next_one(
    tmp_path: Path,
) -> None:
    with held_by_another(tmp_path) as (left, holder):
        holder.kill()
        holder.wait()
        assert (left / "part").exists()

        with held_folder(tmp_path, prefix="x-") as place:
            assert list(tmp_path.iterdir()) == [place]


def test_what_is_in_use_or_not_ones_own_is_left(tmp_path: Path) -> None:
    (tmp_path / "x-foreign").mkdir()
    (tmp_path / "x-link").symlink_to(tmp_path / "x-foreign")
    (tmp_path / "y-other").mkdir()
    (tmp_path / "y-other" / LOCK).touch()
    with held_by_another(tmp_path) as (held, _):
        assert remove_abandoned(tmp_path, prefix="x-") == []
        assert (held / "part").exists()
        assert (tmp_path / "y-other" / LOCK).exists()


def test_what_was_killed_before_it_had_a_lock_is_removed_when_it_is_old(
    tmp_path: Path,
) -> None:
    def made(*, old: bool = True, **more: str) -> Path:
        place = Path(tempfile.mkdtemp(dir=tmp_path, prefix="x-", **more))
        if "suffix" in more:
            (place / "file").touch()
        os.utime(place, (0, 0) if old else None)
        return place

    left = made()
    being_made, used, public = made(old=False), made(suffix="full"), made()
    public.chmod(0o755)
    called = tmp_path / "x-results"
    called.mkdir(mode=0o700)
    os.utime(called, (0, 0))

    assert remove_abandoned(tmp_path, prefix="x-") == [left]
    assert {*tmp_path.iterdir()} == {being_made, used, public, called}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_folder_is_empty_but_for_its_lock_and_leaves_nothing(
    temporary: Path,
) -> None:
    with temporary_folder("pack", error=RecordError) as place:
        assert place.name.startswith("rtscope-pack-")
        assert [path.name for path in place.iterdir()] == [LOCK]
        (place / "some").write_text("content")

    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    "came_of_it",
    [None, ValueError("no JSON"), RecordError("no record"), UsageError("empty")],
)
def test_whatever_comes_of_an_emptied_folder_the_error_names_it(
    temporary: Path, came_of_it: Exception | None
) -> None:
    def empty() -> None:
        with temporary_folder("x", error=HostError) as place:
            (place / LOCK).unlink()
            if came_of_it is not None:
                raise came_of_it

    with pytest.raises(HostError, match=r"rtscope-x-.* was removed or emptied"):
        empty()


@pytest.mark.parametrize("error", [ValueError("odd"), UsageError("no archive")])
def test_an_error_that_has_nothing_to_do_with_the_folder_stays(
    temporary: Path, error: Exception
) -> None:
    with pytest.raises(type(error)) as raised, temporary_folder("x", error=HostError):
        raise error

    assert raised.value is error


def test_an_error_of_a_file_elsewhere_stays(temporary: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/elsewhere/file")
    with pytest.raises(OSError, match="elsewhere"):  # noqa: SIM117
        with temporary_folder("x", error=HostError):
            raise full


@pytest.mark.parametrize("has_room", [True, False])
def test_a_full_disk_without_a_name_is_this_one_if_nothing_can_be_written(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, has_room: bool
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    def fill(_number: int, _begin: int, _bytes: int) -> None:
        if not has_room:
            raise full

    monkeypatch.setattr(os, "posix_fallocate", fill)
    expected = RecordError if has_room else HostError
    with pytest.raises(expected) as raised, temporary_folder("x", error=HostError):
        raise RecordError("cannot write") from full

    assert ("name another directory in TMPDIR" in str(raised.value)) is not has_room


def test_what_is_in_its_place_and_not_its_own_is_left(temporary: Path) -> None:
    with (
        contextlib.suppress(HostError),
        temporary_folder("x", error=HostError) as place,
    ):
        place.rename(temporary / "moved")
        place.write_text("somebody else's")

    assert place.read_text() == "somebody else's"


def test_a_folder_that_was_made_read_only_is_removed_too(temporary: Path) -> None:
    with temporary_folder("x", error=HostError) as place:
        place.chmod(0o500)

    assert not list(temporary.iterdir())
