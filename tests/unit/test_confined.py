"""The guard of the fuzzer sees what a reader does outside its folder, and only that."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz.confined import OutsideError, confined


@pytest.mark.parametrize(
    "act",
    [
        lambda there: Path(there, "x").write_bytes(b""),
        lambda there: Path(there, "x").mkdir(),
        lambda there: Path(there, "old").unlink(),
        lambda there: Path(there, "old").rename(Path(there, "new")),
        lambda there: Path(there, "old").chmod(0o600),
        lambda there: Path(there, "link").symlink_to("/"),
        lambda _: subprocess.run([sys.executable, "-V"], check=True),
    ],
    ids=["write", "mkdir", "remove", "rename", "chmod", "link", "program"],
)
def test_what_changes_something_elsewhere_is_noticed(
    tmp_path: Path, act: Callable[[Path], object]
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    (other / "old").touch()

    with pytest.raises(OutsideError), confined(mine):
        act(other)


def test_a_name_that_leads_out_of_the_folder_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "out").symlink_to(tmp_path)

    with pytest.raises(OutsideError, match="x"), confined(tmp_path / "mine"):
        (tmp_path / "mine" / "out" / "x").touch()


def test_work_in_the_folder_is_allowed(tmp_path: Path) -> None:
    with confined(tmp_path):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            Path(folder, "a", "b").mkdir(parents=True)
            Path(folder, "a", "b", "c").write_text("x")
        with tempfile.TemporaryFile(dir=tmp_path) as file:
            file.write(b"x")
        shutil.rmtree(tmp_path / "none", ignore_errors=True)
        Path(os.devnull).read_bytes()
    assert list(tmp_path.iterdir()) == []
