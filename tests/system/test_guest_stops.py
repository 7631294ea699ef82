"""A guest of QEMU that is measured over ssh, and that its monitor stops meanwhile."""

import re
import time
from pathlib import Path

import pytest
from rig import (
    NEEDS_APT,
    Program,
    arguments_of,
    children_of,
    records_in,
    rtscope,
    until,
)

from fakes.sshd import SSHD
from fakes.sshguest import BUSYBOX, Guest, guest
from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import prepare
from rtscope.contract import LOST
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file
from rtscope.stats.runcaveats import all_caveats

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
    pytest.mark.skipif(
        SSHD is None or BUSYBOX is None, reason="needs openssh-server and busybox"
    ),
]

MEASURED_S = 3.0
DURATION_NS = 100 * NS_PER_S
REPORTED_WITHIN_S = 30.0

LOST_AT_MOST_S = 1.0
ON_ITS_WAY_S = 0.5
"""From the clock of the guest to this machine: its console, and its line over ssh."""


def measures(program: Program) -> bool:
    """Whether the agent of the run, and of no trial before it, has been started."""
    return any(
        "rtscope-agent measure " in words[-1] and str(DURATION_NS) in words[-1]
        for child in children_of(program.pid)
        if (words := arguments_of(child))
    )


def wait_for_the_measurement(program: Program, there: Guest) -> None:
    until(lambda: measures(program), what="an agent measures")
    since_s = there.up_s()
    until(lambda: there.up_s() > since_s + MEASURED_S, what="the guest goes on")
    assert program.running


def test_a_guest_that_its_monitor_stops_is_named_and_loses_at_most_a_second(
    tmp_path: Path,
) -> None:
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    prepared = prepare(get_board("pc"), "debian-6.12", context=context)
    out = tmp_path / "out"
    words = ["--target", "ssh:board", "--policy", "other", "--load", "idle"]
    times = ["--duration", "100s", "--warmup", "100ms"]
    with guest(tmp_path / "guest", prepared) as there:
        env = {"PATH": there.board.path}
        with rtscope("run", *words, *times, "--out", out, env=env) as program:
            wait_for_the_measurement(program, there)
            there.stop()
            stopped, up_s = time.monotonic(), there.up_s()
            done = program.finish()
            ended_s = time.monotonic() - stopped

        assert there.up_s() == up_s
    assert done.status == 3
    assert ended_s < REPORTED_WITHIN_S
    assert "lost the connection to the machine" in done.stderr
    assert re.search(r"; its first [0-9.]+ s \(maximum .* are in ", done.stderr)
    kept = records_in(out)["idle"]
    assert kept.result.stopped == LOST
    lost_s = up_s - kept.result.end_ns / NS_PER_S
    assert lost_s < LOST_AT_MOST_S + ON_ITS_WAY_S
    assert "result_rebuilt" in {caveat.id for caveat in all_caveats(kept)}
    assert not list(out.glob("runs/*/record.json"))
