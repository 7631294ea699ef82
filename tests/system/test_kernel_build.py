"""Builds of a kernel that end before their time: interrupted, or on a full disk."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.fakelinux import make_programs, make_recipe

pytestmark = pytest.mark.system

RT = "CONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n"
PATIENCE_S = 300.0


@contextlib.contextmanager
def _build(folder: Path, cache: Path) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": path.rstrip(os.pathsep),
        "PATH": make_programs(folder / "bin"),
        "XDG_CACHE_HOME": str(cache),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "rtscope", "kernel", "build", "./my.toml"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as build:
        try:
            yield build
        finally:
            build.kill()


def _running(marker: Path) -> list[int]:
    """Return the processes whose working directory is below a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            where = (entry / "cwd").readlink()
        except OSError:
            continue  # it ended, or is a kernel thread
        if where.is_relative_to(marker):
            found.append(int(entry.name))
    return found


def _wait_for_compiler(parts: Path, build: subprocess.Popen[str]) -> None:
    """Wait until the compiler of the tree that takes ten minutes is at work."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(_name(pid) == "sleep" for pid in _running(parts)):
        assert build.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_a_build_that_is_interrupted_ends_all_its_processes_and_leaves_no_part(
    tmp_path: Path,
) -> None:
    make_recipe(tmp_path, RT)
    (tmp_path / "linux/slow").touch()
    cache = tmp_path / "cache"
    parts = cache / "rtscope/parts"
    with _build(tmp_path, cache) as build:
        _wait_for_compiler(parts, build)

        build.send_signal(signal.SIGINT)
        _out, err = build.communicate(timeout=PATIENCE_S)

    assert build.returncode == 130
    assert "Traceback" not in err
    assert list(parts.iterdir()) == []
    assert _running(parts) == []
    assert not (tmp_path / "linux/.config").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of 4 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "small", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine may not mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_during_the_build_is_told_and_nothing_is_left_on_it(
    tmp_path: Path, small_disk: Path
) -> None:
    make_recipe(tmp_path, RT)
    (tmp_path / "linux/fat").touch()
    # What is free is looked at first; here it is to run out in the middle.
    (tmp_path / "sitecustomize.py").write_text(
        "from rtscope.boards.kernels import build\nbuild.FREE_BYTES['virtual'] = 0\n"
    )
    with _build(tmp_path, small_disk) as build:
        _out, err = build.communicate(timeout=PATIENCE_S)

    assert build.returncode == 3
    assert "no space left in " in err
    assert "Traceback" not in err
    assert list((small_disk / "rtscope/parts").iterdir()) == []
