"""What every system test needs: the machine as it was, whatever happens in between."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import JOURNAL_DIR, RT_RUNTIME, native_agent

BESIDE = frozenset(
    {
        "test_board_boot",
        "test_demo_boards",
        "test_kernel_build",
        "test_recording",
        "test_thread_list_boards",
        "test_virtual_failures",
        "test_virtual_run",
    }
)
"""Files that neither measure nor change this machine, however busy it is."""


def group_of(nodeid: str) -> str:
    """Return what one process of xdist runs: all tests of this machine, or the rest."""
    return "beside" if Path(nodeid.partition("::")[0]).stem in BESIDE else "here"


def pytest_configure() -> None:
    """Take Ctrl-C, which a shell has its jobs in the background ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let `-n 2` never run two tests of this machine at once."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    scheduler = LoadScopeScheduling(config, log)
    # Marks would say it too, but xdist 3.8 does not see them with pytest 9.2.
    scheduler._split_scope = group_of
    return scheduler


@pytest.fixture(scope="module", autouse=True)
def _those_beside_give_way(request: pytest.FixtureRequest) -> None:
    """Some tests of this machine are about an end that comes within two seconds."""
    if "PYTEST_XDIST_WORKER" in os.environ and group_of(request.node.nodeid) != "here":
        os.setpriority(os.PRIO_PROCESS, 0, 10)


@pytest.fixture(scope="session", autouse=True)
def _the_agent_is_built() -> None:
    native_agent()


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory on a disk that other users can enter: pytest's own they cannot."""
    made = Path(tempfile.mkdtemp(prefix="system-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def private_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TMPDIR of its own, so that what a program leaves there can be seen."""
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setenv("TMPDIR", str(made))
    return made


@pytest.fixture
def root() -> None:
    """Skip what only root can set up."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it sets up users, limits, cgroups or the clock")


@pytest.fixture
def rt_runtime(root: None) -> Iterator[str]:
    """The kernel's setting that the tests have rtscope change; put back at the end."""
    before = RT_RUNTIME.read_text()
    assert before.strip() != "-1", "left changed by an earlier test"
    yield before
    subprocess.run([native_agent(), "restore"], check=False, capture_output=True)
    with contextlib.suppress(OSError):  # busy with threads that are just ending
        RT_RUNTIME.write_text(before)


@pytest.fixture
def public_agent(scratch: Path) -> Path:
    """The agent where any user can run it."""
    copy = scratch / "rtscope-agent"
    shutil.copy(native_agent(), copy)
    copy.chmod(0o755)
    return copy


@pytest.fixture(autouse=True)
def _no_journal_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    # Beside these tests others may just have killed what holds its journal.
    if request.path.stem not in BESIDE:
        assert [path for path in JOURNAL_DIR.glob("journal.*") if is_left(path)] == []


def is_left(journal: Path) -> bool:
    """Whether nobody holds a journal any more; others may measure here meanwhile."""
    try:
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        return False
    return journal.exists()
