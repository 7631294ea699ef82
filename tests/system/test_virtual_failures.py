"""A board that fails is told with its reason, soon, and leaves nothing behind."""

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rig import (
    NEEDS_APT,
    PATIENCE_S,
    RISCV,
    Program,
    alive,
    arguments_of,
    children_of,
    rtscope,
    until,
)

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts import initrd
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import own_qemu
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host import process
from rtscope.host.errors import BoardError, UsageError
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
]

MEASURE = (
    "rtscope-agent measure --duration-ns 100000000 --worst 1 >/out/measure.jsonl\n"
)

SHORT = BootTimeout(duration_ns=NS_PER_S // 10, boot_ns=8 * NS_PER_S, still_s=5.0)


@pytest.fixture(scope="module")
def board() -> Prepared:
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    return prepare(get_board("jh7110"), RISCV, context=context)


@pytest.fixture
def private_tmp(private_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Also for this process, which has asked for the name of the place before."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    return private_tmp


def reason_of(
    prepared: Prepared, script: str = MEASURE, timeout: BootTimeout = SHORT
) -> str:
    with pytest.raises(BoardError) as failed:
        boot(prepared, Job(script), seed=1, timeout=timeout, stopped=lambda: False)
    return str(failed.value)


def with_kernel(prepared: Prepared, content: bytes, to: Path) -> Prepared:
    to.write_bytes(content)
    return replace(prepared, kernel=replace(prepared.kernel, image=to))


def with_archives(prepared: Prepared, to: Path, content: bytes) -> Prepared:
    to.write_bytes(content)
    return replace(prepared, archives=(to,))


def on(prepared: Prepared, **changes: object) -> Prepared:
    return replace(prepared, board=replace(prepared.board, **changes))  # type: ignore[arg-type]


def with_init(prepared: Prepared, script: bytes, to: Path) -> Prepared:
    """Add an archive whose first process takes the place of ours."""
    to.write_bytes(initrd.pack({"init": initrd.File(script, runs=True)}))
    return replace(prepared, archives=(*prepared.archives, to))


def with_qemu(prepared: Prepared, script: str) -> Prepared:
    return replace(
        prepared, qemu=replace(prepared.qemu, prefix=("/bin/sh", "-c", script))
    )


@pytest.fixture(autouse=True)
def _nothing_is_left(private_tmp: Path) -> Iterator[None]:
    yield
    assert list(private_tmp.iterdir()) == []
    assert children_of(os.getpid()) == []


def test_a_board_that_takes_longer_than_the_user_waits_is_ended(
    tmp_path: Path,
) -> None:
    words = (
        *("run", "-t", "virtual:jh7110", "--kernel", RISCV),
        *("--load", "idle", "--duration", "1s"),
    )
    with rtscope(*words, "--host-limit", "1s", "--out", tmp_path / "out") as program:
        done = program.finish(PATIENCE_S)

    assert done.status == 3
    assert "it has not ended within 1 s of host time" in " ".join(done.stderr.split())
    assert "--host-limit" in done.stderr


def test_a_panic_is_told_with_its_message(board: Prepared, tmp_path: Path) -> None:
    told = reason_of(
        with_init(board, b"#!/bin/busybox sh\nexit 3\n", tmp_path / "init")
    )

    assert told.startswith("jh7110: the board's first process ended (0x300)")
    assert "Kernel panic - not syncing: Attempted to kill init!" in told


def test_a_board_without_init_says_what_its_kernel_needs(
    board: Prepared, tmp_path: Path
) -> None:
    empty = with_archives(board, tmp_path / "a", initrd.pack({"x": initrd.File(b"")}))

    assert "no program to start" in reason_of(empty)


def test_programs_of_another_architecture_are_told(
    board: Prepared, tmp_path: Path
) -> None:
    foreign = initrd.pack(
        {"init": initrd.File(Path("/bin/true").read_bytes(), runs=True)}
    )

    told = reason_of(with_archives(board, tmp_path / "a", foreign))

    assert "it is not a kernel for riscv64 programs" in told


def test_a_board_with_too_little_memory_says_how_much_it_has(board: Prepared) -> None:
    memory, words = {
        "jh7110-6.12-rt": ("48M", "ran out of its memory of 48M"),
        "debian-6.12": ("128M", "has the board enough memory (128M)?"),
    }[RISCV]

    assert words in reason_of(on(board, memory=memory))


def test_a_truncated_kernel_is_given_up_by_the_time_of_the_board(
    board: Prepared, tmp_path: Path
) -> None:
    half = board.kernel.image.read_bytes()[: 3 << 20]

    told = reason_of(with_kernel(board, half, tmp_path / "kernel"))

    assert "8 s of its own time and has not begun to measure" in told
    assert "its kernel has printed nothing" in told


def test_a_job_that_never_measures_is_given_up_by_the_time_of_the_board(
    board: Prepared,
) -> None:
    assert "has not begun to measure" in reason_of(board, "sleep 1000\n")


def test_a_device_for_results_that_is_not_there_is_named(board: Prepared) -> None:
    told = reason_of(on(board, results="vport9p9"))

    assert "could not send its results: there is no device /dev/vport9p9" in told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cpu": "z80"}, "does not know its CPU z80"),
        ({"machine": "pdp11"}, "does not know its machine pdp11"),
        ({"memory": "900000G"}, "the board has 900000G besides QEMU, this machine"),
    ],
)
def test_what_qemu_refuses_is_told(
    board: Prepared, changes: dict[str, str], words: str
) -> None:
    assert words in reason_of(on(board, **changes))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -KILL $$", "QEMU was killed (SIGKILL), probably because memory ran out"),
        ("kill -SEGV $$", "QEMU died by the signal SIGSEGV"),
        ("exec sleep 600", "QEMU did not begin to run it within 1 s"),
        ("echo Could not load plugin x: undefined symbol: y >&2; exit 1", "refused"),
        ("echo rom: overlap >&2; exit 1", "exit status 1); it printed: rom: overlap"),
        ("exit 0", "No such file"),
    ],
)
def test_a_qemu_that_dies_or_hangs_is_told(
    board: Prepared, script: str, words: str
) -> None:
    impatient = replace(SHORT, still_s=1.0)

    assert words in reason_of(with_qemu(board, script), timeout=impatient)


MONITOR_STOPS = """
import json, socket, sys, time
monitor = socket.socket(socket.AF_UNIX)
while monitor.connect_ex(sys.argv[1]):
    time.sleep(0.05)
for command in ("qmp_capabilities", "stop"):
    time.sleep(float(sys.argv[2]) if command == "stop" else 0)
    monitor.sendall(json.dumps({"execute": command}).encode())
sys.stdin.read()
"""


def test_a_machine_that_its_monitor_stops_is_told(
    board: Prepared, tmp_path: Path
) -> None:
    """It keeps what it had measured to itself: its result would come at its end."""
    monitor = tmp_path / "monitor"
    stops = [sys.executable, "-c", MONITOR_STOPS, str(monitor), "2"]
    own = f'exec {shlex.join(board.qemu.prefix)} "$@"'
    watched = f"{own} -qmp unix:{monitor},server=on,wait=off"
    prefix = ("/bin/sh", "-c", watched, "sh")
    stopped = replace(board, qemu=replace(board.qemu, prefix=prefix))
    with Program(stops):
        told = reason_of(stopped, "sleep 900000\n", timeout=LONG)

    assert "its time stands still at " in told
    assert "no timer is set, or QEMU was stopped" in told


LONG = BootTimeout(
    duration_ns=100 * NS_PER_S, boot_ns=1_000_000 * NS_PER_S, still_s=3.0
)


def test_a_qemu_that_is_stopped_is_told_and_ended(board: Prepared) -> None:
    own = shlex.join(board.qemu.prefix)
    script = f'(sleep 2; kill -STOP $$) & exec {own} "$@"'
    prefix = ("/bin/sh", "-c", script, "sh")
    stopped = replace(board, qemu=replace(board.qemu, prefix=prefix))

    assert "or QEMU was stopped" in reason_of(stopped, "sleep 900000\n", timeout=LONG)


def test_an_own_qemu_must_have_what_the_plugin_replaces(
    board: Prepared, tmp_path: Path
) -> None:
    program = tmp_path / "qemu"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(board.qemu.prefix)} "$@"\n')
    program.chmod(0o755)
    needy = tmp_path / "plugin,of another.so"
    known = b"bql_mutex_lock_func\0"
    needy.write_bytes(
        board.plugin.read_bytes().replace(known, known.replace(b"func", b"gone"))
    )

    found = own_qemu(program, board.board, plugin=board.plugin)
    with pytest.raises(UsageError, match="does not export bql_mutex_lock_gone, which"):
        own_qemu(program, board.board, plugin=needy)

    assert found.version.startswith("10.")


@pytest.mark.usefixtures("root")
def test_a_full_disk_is_the_reason_and_not_what_follows_from_it(
    board: Prepared, private_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = sum(path.stat().st_size for path in board.archives) + (64 << 10)
    small = private_tmp / "small"
    small.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={room}", "none", str(small))
    if process.run(mount, timeout_s=PATIENCE_S).status:
        pytest.skip("cannot mount here")
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(small))
        told = reason_of(board, "head -c 300000 /dev/zero >/out/much\n")
        assert f"no space left in {small}" in told
    finally:
        process.run(("umount", str(small)), timeout_s=PATIENCE_S)
        small.rmdir()


def qemus_of(pid: int) -> list[int]:
    return [
        child
        for child in children_of(pid)
        if any("qemu-system" in word for word in arguments_of(child))
        and "-icount" in arguments_of(child)
    ]


@pytest.mark.usefixtures("board")
@pytest.mark.parametrize(
    "signo", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name
)
def test_no_qemu_outlives_the_program(
    signo: signal.Signals, private_tmp: Path, tmp_path: Path
) -> None:
    words = ("--target", "virtual:jh7110", "--kernel", RISCV, "--duration")
    campaign = (*words, "10m", "--load", "idle,cpu", "--out", tmp_path / "out")
    with rtscope("run", *campaign) as program:
        until(lambda: len(qemus_of(program.pid)) >= 1, what="a QEMU")
        qemus = qemus_of(program.pid)
        program.send(signo)
        done = program.finish()
        until(lambda: not alive(qemus), what="no QEMU is left")

    if signo is signal.SIGKILL:  # of which nobody is left to clear away
        for left in private_tmp.iterdir():
            shutil.rmtree(left)
    else:
        assert done.status == 130
        assert "Traceback" not in done.stderr


def test_a_board_whose_files_somebody_removes_is_told(
    board: Prepared, private_tmp: Path
) -> None:
    emptied = with_qemu(
        board, f"rm -rf {shlex.quote(str(private_tmp))}/rtscope-board-*"
    )

    assert "was removed or emptied while rtscope used it" in reason_of(emptied)
