"""
Several boards in one campaign, each an sshd of its own, and a virtual one beside them.

Five of them are places of a lab, which labgrid's own programs keep.

What befalls one is struck while all measure: nothing here is about a latency.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, RT_RUNTIME, Done, arguments_of, is_trial, rtscope, until

from fakes.lab import lab, service
from fakes.sshd import SSHD, Board, board, client_of
from rtscope.record.directory.records import open_records

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(SSHD is None, reason="needs openssh-server"),
]

DISK = "66m"
"""More than a campaign wants to see free."""

SHORT = ("--warmup", "50ms", "--policy", "other", "--interval", "1ms")

# One run of each board is done when the other is struck, which may be late.
TWO_RUNS = """
[[run]]
load = "idle"
duration = "8s"

[[run]]
load = "idle"
duration = "40s"
"""

WAKE_UPS = 2_000
"""Of a thread with an interval of 1 ms: its agent has told of a second by then."""


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    path.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(path)]
    subprocess.run(mount, check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path) -> None:
    """Fill a disk to its last byte."""
    with (
        (path / "stuffing").open("wb", buffering=0) as file,
        contextlib.suppress(OSError),
    ):
        while True:
            file.write(bytes(1 << 16))


def kill(pids: list[int], signo: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signo)


def told(done: Done) -> dict[str, Any]:
    boards = json.loads(done.stdout)["boards"]
    return {
        one["board"].removeprefix("ssh-").removeprefix("lab-"): one for one in boards
    }


NAMES = ("well", "rebooted", "killed", "frozen", "full", "calm", "quiet")
PLACES = NAMES[2:]
UNHARMED = ("well", "calm", "quiet")
STRUCK = tuple(name for name in NAMES if name not in UNHARMED)


def target_of(name: str) -> str:
    return f"lab:{name}" if name in PLACES else f"ssh:{name}"


def folder_of(out: Path, name: str) -> Path:
    return out / "boards" / target_of(name).replace(":", "-")


@NEEDS_APT
def test_a_board_that_is_struck_loses_its_own_run_and_resume_measures_it(
    tmp_path: Path, private_tmp: Path, root: None
) -> None:
    out, runs = tmp_path / "out", tmp_path / "runs.toml"
    runs.write_text(TWO_RUNS)
    with contextlib.ExitStack() as held:
        disk = held.enter_context(small_disk(folder_of(out, "full")))
        boards = {
            name: held.enter_context(board(tmp_path / name))
            for name in NAMES
            if name != "rebooted"
        }
        exports = {name: {"NetworkService": service(boards[name])} for name in PLACES}
        rack = held.enter_context(lab(tmp_path / "lab", exports))
        before = held.enter_context(contextlib.ExitStack())
        boards["rebooted"] = before.enter_context(board(tmp_path / "before"))
        environ = {**rack.environ, "PATH": client_of(tmp_path / "bin", boards)}
        targets = ",".join([*map(target_of, NAMES), "virtual:pc"])
        kernel = "debian-6.12-rt"
        words = ("run", runs, "--target", targets, *SHORT, "--kernel", kernel)
        with rtscope(*words, "--json", "--out", out, env=environ) as program:
            frozen: list[int] = []

            def freeze() -> None:
                frozen.extend(boards["frozen"].sessions())
                kill(frozen, signal.SIGSTOP)

            def reboot() -> None:
                one = boards["rebooted"]
                kill([*one.processes(), *one.sessions()])
                before.close()

            strikes: dict[str, Callable[[], object]] = {
                "killed": lambda: kill(boards["killed"].sessions()),
                "frozen": freeze,
                "full": lambda: fill(disk),
                "rebooted": reboot,
            }

            def all_struck() -> bool:
                """Strike each board as soon as its first run is done."""
                for name in list(strikes):
                    place = folder_of(out, name) / "runs"
                    if list(place.glob("001-*/record.json")):
                        strikes.pop(name)()
                return not strikes or not program.running

            until(all_struck, what="each board has its first run")
            try:
                done = program.finish()
            finally:
                kill(frozen, signal.SIGCONT)
        assert done.status == 3, done.stderr
        assert "Traceback" not in done.stderr
        seen = told(done)
        assert {n: (b["state"], b["runs"]) for n, b in seen.items()} == {
            **{name: ("failed", 1) for name in STRUCK},
            **dict.fromkeys((*UNHARMED, "virtual-pc"), ("done", 2)),
        }, {n: b["why"] for n, b in seen.items()}
        assert "No space left" in seen["full"]["why"]
        assert "lost the connection" in seen["frozen"]["why"]
        kept = {one: one.read_bytes() for one in out.rglob("record.json")}
        assert len(kept) == 2 * (len(UNHARMED) + 1) + len(STRUCK)
        until(lambda: rack.acquired() == [], what="all places are given back")
        for one in boards.values():
            until(partial(_is_idle, one), what="no agent is left")

        (disk / "stuffing").unlink()
        boards["rebooted"] = held.enter_context(board(tmp_path / "after"))
        environ["PATH"] = client_of(tmp_path / "bin", boards)
        with rtscope("run", "--resume", out, "--json", env=environ) as program:
            again = program.finish()

        assert again.status == 0, again.stderr
        assert {(b["state"], b["runs"]) for b in told(again).values()} == {("done", 2)}
        assert "ssh-well" not in again.stderr
        assert all(one.read_bytes() == content for one, content in kept.items())
        assert rack.acquired() == []
        for name in NAMES:
            assert len(open_records(folder_of(out, name))) == 2
        assert (out / "report.html").stat().st_size > 10_000
    assert list(private_tmp.iterdir()) == []


def test_ctrl_c_ends_all_boards_and_puts_settings_back(
    tmp_path: Path, rt_runtime: str
) -> None:
    out, lab = tmp_path / "out", tmp_path / "lab.toml"
    lab.write_text(
        '[[board]]\ntarget = "ssh:a"\nsettings = { rt_throttling = "off" }\n'
        '[[board]]\ntarget = "ssh:b"\n'
    )
    with board(tmp_path / "a") as a, board(tmp_path / "b") as b:
        path = client_of(tmp_path / "bin", {"a": a, "b": b})
        words = ("run", "--lab", lab, "--load", "idle", "--duration", "10m", *SHORT)
        with rtscope(*words, "--out", out, env={"PATH": path}) as p:
            until(lambda: RT_RUNTIME.read_text() != rt_runtime, what="a setting")
            until(lambda: both_measure(a, b), what="both boards measure")
            p.send(signal.SIGINT)
            done = p.finish()

        assert done.status == 130, done.stderr
        assert RT_RUNTIME.read_text() == rt_runtime
        assert done.stderr.rstrip().endswith("rtscope: interrupted")
        assert len(list(out.rglob("interrupted.json"))) == 2
        until(lambda: not [*a.processes(), *b.processes()], what="nothing is left")


def both_measure(*boards: Board) -> bool:
    """Whether an agent has measured on each board, beyond a trial."""
    return all(
        any(
            "measure" in words and not is_trial(words) and _wake_ups(pid) >= WAKE_UPS
            for pid in one.processes()
            if (words := arguments_of(pid))
        )
        for one in boards
    )


def _wake_ups(pid: int) -> int:
    """Return how often the thread of a process has slept that did most often."""
    most = 0
    with contextlib.suppress(OSError):  # one may end meanwhile
        for status in Path("/proc").glob(f"{pid}/task/*/status"):
            text = status.read_text().partition("\nvoluntary_ctxt_switches:")[2]
            most = max(most, int(text.partition("\n")[0] or 0))
    return most


def _is_idle(one: Board) -> bool:
    return not one.processes()
