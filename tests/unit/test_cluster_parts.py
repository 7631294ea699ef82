"""Temporary files that go away while a part is on its way to a worker of a cluster."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rtscope.boards.parts.cache import Part
from rtscope.host.errors import HostError
from rtscope.host.files.heldfolders import LOCK
from rtscope.verbs.sweep.cluster import dask
from rtscope.verbs.sweep.cluster.dask import DaskScheduler, take_part

PART = Part(Path("/qemu"), {"name": "qemu", "digest": "a" * 64})


def _replace(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.mkdir()


FAULTS: dict[str, Callable[[Path], None]] = {
    "it is deleted": shutil.rmtree,
    "its lock is deleted": lambda place: (place / LOCK).unlink(),
    "another folder is in its place": _replace,
}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


class _NoClient:
    """A client that sends nothing; what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise AssertionError(f"{name} was asked of the client")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_part_whose_file_is_removed_is_not_sent(
    fault: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export_then_fault(file: Path, _part: Part) -> None:
        file.write_bytes(b"part")
        FAULTS[fault](file.parent)

    client = _NoClient()
    scheduler = DaskScheduler.__new__(DaskScheduler)
    scheduler._client = client  # no cluster is needed to see that nothing is sent
    monkeypatch.setattr(dask, "export_part", export_then_fault)
    with pytest.raises(HostError, match=r"rtscope-part-.* was removed or emptied"):
        scheduler.send(PART, "b" * 64, worker="tcp://far:1")

    assert client.asked == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_worker_says_that_the_file_of_its_part_was_removed(
    fault: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_then_fault(file: Path, *, pin: str, cache: Path) -> None:
        assert file.read_bytes() == b"part"
        FAULTS[fault](file.parent)

    monkeypatch.setattr(dask, "import_part", import_then_fault)
    why = take_part(b"part", "qemu", "b" * 64)

    assert "was removed or emptied while rtscope used it" in why
    assert "name another directory in TMPDIR" in why


def test_a_worker_without_a_place_for_temporary_files_names_it(
    temporary: Path,
) -> None:
    temporary.rmdir()

    why = take_part(b"part", "qemu", "b" * 64)

    assert f"cannot write temporary files: {temporary}: No such file" in why
