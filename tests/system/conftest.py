"""What every system test needs: the machine as it was, whatever happens in between."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import PATIENCE_S, RT_RUNTIME, native_agent, state_home

from rings import leftovers
from rtscope.machine.target.address import hold_alone

BESIDE = frozenset(
    {
        "test_app_boards",
        "test_app_outside",
        "test_app_unit_boots",
        "test_audit_boards",
        "test_bisect",
        "test_bisect_program",
        "test_board_boot",
        "test_board_image",
        "test_bound",
        "test_clocks",
        "test_completion",
        "test_cost",
        "test_culprits",
        "test_culprits_boards",
        "test_culprits_matrix",
        "test_demo_boards",
        "test_events_boards",
        "test_full_tmp",
        "test_fuzz",
        "test_guest_stops",
        "test_kernel_build",
        "test_library_statistics",
        "test_low_resolution",
        "test_net_boards",
        "test_outside",
        "test_outside_allocations",
        "test_outside_offences",
        "test_outside_waits",
        "test_planted_sections",
        "test_program_phases",
        "test_recording",
        "test_safe_stressors",
        "test_shield_boards",
        "test_shortest_path",
        "test_sweep",
        "test_sweep_cluster",
        "test_test_verb",
        "test_thread_list_boards",
        "test_timer_elsewhere",
        "test_unit_differential",
        "test_unit_verify",
        "test_virtual_failures",
        "test_virtual_isolation",
        "test_virtual_run",
        "test_wakeup_parts",
        "test_watching_cost_boards",
    }
)
"""Files that neither measure nor change this machine, however busy it is."""

WATCHING = frozenset(
    {
        "test_app_calls",
        "test_app_check",
        "test_app_cycles",
        "test_app_denials",
        "test_app_languages",
        "test_app_locks",
        "test_app_places",
        "test_app_stacks",
        "test_app_start",
        "test_app_unit",
        "test_checked_program",
        "test_exercises_checked",
        "test_inspecting_without_root",
        "test_thread_list",
    }
)
"""Files that watch programs of their own on this machine, and change none of it."""

_LOOKED_AT = {
    "here": leftovers.Machine.ALL,
    "watching": leftovers.Machine.OF_AGENTS,
}
"""What the tests of this machine may not leave; those beside leave nothing there."""


def group_of(nodeid: str) -> str:
    """
    Return what one process of xdist runs, one test after the other.

    That is a file, or all of this machine: those that measure or change it, `here`, and
    those that watch programs there, `watching`.
    """
    stem = Path(nodeid.partition("::")[0]).stem
    if stem in WATCHING:
        return "watching"
    return stem if stem in BESIDE else "here"


def pytest_configure() -> None:
    """Take Ctrl-C, which a shell has its jobs in the background ignore, and HUP."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Ignored here as by `nohup`, and not by the programs that a test starts.
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Never run two tests at once of which one measures or changes this machine."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    scheduler = LoadScopeScheduling(config, log)
    # Marks would say it too, but xdist 3.8 does not see them with pytest 9.2.
    scheduler._split_scope = group_of
    return scheduler


@pytest.fixture(scope="module", autouse=True)
def _those_beside_give_way(request: pytest.FixtureRequest) -> None:
    """Some tests of this machine are about an end that comes within two seconds."""
    group = group_of(request.node.nodeid)
    if "PYTEST_XDIST_WORKER" in os.environ and group not in _LOOKED_AT:
        os.setpriority(os.PRIO_PROCESS, 0, 10)


@pytest.fixture(scope="session", autouse=True)
def _the_agent_is_built() -> None:
    native_agent()
    state_home()  # before a test looks what is left in a TMPDIR of its own


@pytest.fixture(scope="session")
def go_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go's own library, compiled once for all programs."""
    return tmp_path_factory.mktemp("go-cache")


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


@pytest.fixture(scope="session")
def session_tmp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where these tests, and no others, make temporary files."""
    tmp_path_factory.getbasetemp()  # pytest's own stay where they are
    made = Path(tempfile.mkdtemp(prefix="rtscope-tests-"))
    made.chmod(0o1777)
    before, tempfile.tempdir = tempfile.tempdir, str(made)
    yield made
    tempfile.tempdir = before
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def session_mark(session_tmp: Path) -> Iterator[str]:
    """What marks the processes of these tests."""
    with leftovers.marked(session_tmp) as mark:
        yield mark


@pytest.fixture(scope="module", autouse=True)
def _this_machine_alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Another run of these tests, on the same machine, waits for this file's end."""
    with contextlib.ExitStack() as held:
        group = group_of(request.node.nodeid)
        if group in _LOOKED_AT:
            held.enter_context(hold_alone(f"tests {group}", lambda _: None))
        yield


@pytest.fixture
def cpus_alone() -> Iterator[None]:
    """
    Hold the CPUs of this machine: they stay, or are the test's to take offline.

    The kernel moves a thread from a CPU that goes offline, pinned or not.
    """
    with hold_alone("tests cpus", lambda _: None):
        yield


@pytest.fixture(autouse=True)
def _cpus_stay_for_those_that_watch(request: pytest.FixtureRequest) -> None:
    if group_of(request.node.nodeid) == "watching":
        request.getfixturevalue("cpus_alone")


@pytest.fixture(scope="module", autouse=True)
def _no_file_of_tests_leaves_anything(
    request: pytest.FixtureRequest,
    _this_machine_alone: None,
    _the_agent_is_built: None,
    session_tmp: Path,
    session_mark: str,
) -> Iterator[None]:
    yield from _leaves_nothing(request, session_tmp, session_mark)


@pytest.fixture(autouse=True)
def _no_test_leaves_anything(
    request: pytest.FixtureRequest, session_tmp: Path, session_mark: str
) -> Iterator[None]:
    yield from _leaves_nothing(request, session_tmp, session_mark)


def _leaves_nothing(
    request: pytest.FixtureRequest, folder: Path, mark: str
) -> Iterator[None]:
    group = group_of(request.node.nodeid)
    looked_at = _LOOKED_AT.get(group, leftovers.Machine.NOTHING)
    before = leftovers.seen(folder, mark, looked_at)
    yield
    # An agent that is just ending still puts back.
    assert not leftovers.left_after(
        before, folder, mark, looked_at, patience_s=PATIENCE_S
    )
