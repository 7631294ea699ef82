"""This machine as a target: its programs, and the agent for its processor."""

import resource
import sys
import tempfile
from pathlib import Path

import pytest

from rtscope.host.errors import TargetError
from rtscope.host.files.heldfolders import LOCK
from rtscope.machine import target
from rtscope.machine.target import agent_file
from rtscope.machine.target.local import LocalTarget


@pytest.fixture
def here(tmp_path: Path) -> LocalTarget:
    return LocalTarget(storage_dir=tmp_path, agent=Path("/bin/true"))


def test_a_program_that_is_not_installed_has_no_version(here: LocalTarget) -> None:
    assert here.first_line(["no-such-program"]) is None
    assert (
        here.first_line([sys.executable, "--version"])
        == f"Python {sys.version.split()[0]}"
    )


def test_a_program_that_cannot_run_is_not_taken_for_a_missing_one(
    here: LocalTarget,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(TargetError, match=r"Too many open files.*ulimit -n"):
            here.first_line([sys.executable, "--version"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_place_for_temporary_files_nothing_is_started(
    here: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(TargetError, match=r"gone: No such file.* TMPDIR"), here:
        pytest.fail("it was entered")


def test_what_a_killed_session_has_left_goes_with_the_next_one(
    here: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "rtscope-abcdefgh"
    left.mkdir(mode=0o700)
    (left / LOCK).touch()

    with here:
        (held,) = tmp_path.iterdir()
        assert (held / LOCK).exists()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("machine", ["{}", "../{}", ".", "", "x/../{}", "\x1b[31m"])
def test_the_name_of_a_machine_is_never_a_path(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board answers `uname -m` as it likes; the file is uploaded to it."""
    private = tmp_path / "private"
    for folder in (private, tmp_path / "agents" / "x"):
        folder.mkdir(parents=True)
        (folder / "rtscope-agent").write_text("secret")
    monkeypatch.setattr(target, "_AGENTS", tmp_path / "agents")

    with pytest.raises(TargetError, match="no agent for") as refused:
        agent_file(machine.format(private))
    with pytest.raises(TargetError):
        agent_file(machine.format("private"))

    assert "\x1b" not in str(refused.value)
    assert agent_file("x").read_text() == "secret"
