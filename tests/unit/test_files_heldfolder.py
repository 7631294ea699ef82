"""Temporary directories and what is left of those whose process was killed."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtscope.host.files.heldfolders import LOCK, held_folder, remove_abandoned

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
