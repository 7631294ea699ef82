"""A path that is no file of its kind is refused by every verb that reads or writes."""

import os
import socket
from pathlib import Path

import pytest

from fakes.commandline import Rtscope

READING = [
    "import {}",
    "report {}",
    "compare {} {}",
    "explain {}",
    "explain --trace {}",
    "pack {}",
    "history check {}",
    "history index {}",
    "export csv {}",
    "audit --config {}",
    "audit --root {} --observe 0",
    "audit --unit ./{}",
    "kernel show ./{}",
    "kernel verify --image {}",
    "kernel verify --config {}",
    "kernel verify --config good --against {}",
    "run {}",
    "run --bundle {}",
    "run --resume {}",
    "sweep {} --dry-run",
    "sweep remedies {}",
    "sweep --resume {}",
    "bisect --resume {}",
    "bisect --good {} --bad b",
    "board build pc --lockfile {}",
]
WRITING = [
    "audit --config good --capture {}",
    "report made --html {}",
    "report made --summary {}",
    "export csv made --out {}",
    "pack made --out {}",
]
LONG = f"{'x' * 300}.toml"


def odd(place: Path) -> list[str]:
    """Make files of each kind that reading could wait for."""
    os.mkfifo(place / "fifo.toml")
    (place / "dev.toml").symlink_to("/dev/zero")
    (place / "loop.toml").symlink_to("loop.toml")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.toml")
    with (place / "sparse.toml").open("wb") as file:
        file.truncate(1 << 40)
    (place / "good").write_text("CONFIG_PREEMPT_RT=y\n")
    return ["fifo.toml", "dev.toml", "loop.toml", "socket.toml", "sparse.toml", LONG]


@pytest.mark.slow
@pytest.mark.parametrize("command", READING)
def test_what_cannot_be_read_is_refused_at_once(
    rtscope: Rtscope, here: Path, command: str
) -> None:
    for name in odd(here):
        said = rtscope(*command.replace("{}", name).split())

        assert said.status in (2, 3), f"{name}: {said.err}"
        assert said.err
        assert "internal error" not in said.err
        assert "Symlink loop" not in said.err  # it is Python's, and names no remedy


@pytest.mark.parametrize("command", WRITING)
def test_what_cannot_be_written_is_refused_and_stays(
    rtscope: Rtscope, here: Path, command: str
) -> None:
    odd(here)
    (here / "directory").mkdir()
    for name in ("fifo.toml", "/dev/full", "directory", "loop.toml", LONG):
        before = os.path.lexists(name) and os.lstat(name)
        said = rtscope(*command.replace("{}", name).split())

        assert said.status in (2, 3), f"{name}: {said.err}"
        assert "internal error" not in said.err
        assert (os.path.lexists(name) and os.lstat(name).st_ino) == (
            before and before.st_ino
        )
