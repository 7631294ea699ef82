"""No program on a virtual board reads a clock that goes backwards, on any CPU."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rtscope.board.buildcontext import BuildContext
from rtscope.board.cache import cache_dir
from rtscope.board.catalogue import get_board
from rtscope.board.initrd import Job
from rtscope.board.prepare import prepare
from rtscope.target import agent_file
from rtscope.units import NS_PER_S
from rtscope.virtual.boot import BootTimeout, boot

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        shutil.which("apt-get") is None, reason="needs apt to fetch QEMU and kernels"
    ),
]

ROOT = Path(__file__).parents[2]
HANDED = int(os.environ.get("RTSCOPE_TEST_HANDED", "100000"))
"""Readings of each clock; ten million take some five minutes for each board."""
TIMEOUT = BootTimeout(100 * NS_PER_S, boot_ns=300 * NS_PER_S)


def program(into: Path, arch: str) -> bytes:
    """Compile tests/clocks for a board, with the C library of the agent's compiler."""
    made = into / "clocks"
    cache = ROOT / "agent/build/zig-cache"
    places = (f"ZIG_{of}_CACHE_DIR={cache}" for of in ("LOCAL", "GLOBAL"))
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl")
    source = str(ROOT / "tests/clocks/clocks.c")
    words = ("env", *places, *zig, "-g0", "-s", "-static", "-O2", "-pthread")
    subprocess.run([*words, "-o", str(made), source], check=True)
    return made.read_bytes()


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("jh7110", "jh7110-6.12-rt"), ("pc", "debian-6.12-rt"), ("pc", "debian-6.12")],
)
def test_no_clock_goes_backwards_from_cpu_to_cpu(
    tmp_path: Path, name: str, kernel: str
) -> None:
    board = get_board(name)
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    script = (
        f"cp /job/clocks . && chmod +x clocks\n./clocks {HANDED} >/out/clocks.json\n"
    )
    job = Job(script, files={"clocks": program(tmp_path, board.arch)})

    booted = boot(
        prepare(board, kernel, context=context),
        job,
        seed=1,
        timeout=TIMEOUT,
        stopped=lambda: False,
    )

    found = json.loads(booted.text("clocks.json"))
    assert set(found) == {"monotonic", "counter"}
    for clock in found.values():
        assert clock["handed"] >= HANDED
        assert (clock["backwards"], clock["worst"]) == (0, 0)
