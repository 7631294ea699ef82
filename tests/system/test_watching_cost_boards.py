"""The stated cost of a wake-up, beside a thread that measures its own: exact."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from agentinside import watch_inside
from rig import NEEDS_APT

from rtscope.boards.catalogue import get_arch, get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.program import program_of
from rtscope.host.units import NS_PER_MS, NS_PER_S
from rtscope.machine.target import agent_file
from rtscope.verbs.app.lateness import WAKEUP, WAKEUP_BESIDE, with_cycles
from rtscope.verbs.app.rules import examine

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "measures.c"
DURATION_NS = 2500 * NS_PER_MS
SETTLE_NS = 3 * NS_PER_S
"""What the kernel still does after its boot holds a CPU for 0.1 ms at a time."""
BEFORE_NS = 300 * NS_PER_MS
"""In which the agent begins to record, and measures what a wake-up is without it."""
SETTLED_NS = 100 * NS_PER_MS
"""From the begin of all watching."""
NEAR_NS = {WAKEUP: 400, WAKEUP_BESIDE: 1500}
"""Each of the medians lies on one of several paths of the kernel, which has more of
them where it interrupts itself."""


@pytest.mark.parametrize("of", [WAKEUP, WAKEUP_BESIDE])
@pytest.mark.parametrize("kernel", ["debian-6.12-rt", "debian-6.12"])
def test_the_stated_cost_of_a_wake_up_is_what_a_thread_measures_of_its_own(
    kernel: str, of: str, tmp_path: Path
) -> None:
    out = tmp_path / "measures"
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    subprocess.run([*zig, "-O1", "-g", "-static", "-o", out, SOURCE], check=True)
    board = get_board("pc")
    context = BuildContext(cache=cache_dir(os.environ), agent=agent_file, log=print)
    seen = watch_inside(
        prepare(board, kernel, context=context),
        program_of(
            [str(out), *(["beside"] if of == WAKEUP_BESIDE else [])],
            get_arch(board.arch),
        ),
        settle_ns=SETTLE_NS,
        duration_ns=DURATION_NS,
    )

    recording, observation = seen.recording, seen.observation
    whole = with_cycles(examine(observation), recording.end, recording.threads)
    cost = whole.observation.watch.end.costs[of]
    stated_ns = cost.counted_ns - cost.plain_ns
    blocks = [tuple(map(int, line.split())) for line in seen.said.splitlines()]
    (thread,) = observation.watch.threads
    begin_ns = max(recording.begin.from_ns, thread.from_ns)
    end_ns = min(recording.end.to_ns, thread.to_ns)
    unwatched = [
        late for _, until, late in blocks if until < recording.begin.from_ns - BEFORE_NS
    ]
    watched = [
        late
        for since, until, late in blocks
        if since > begin_ns + SETTLED_NS and until < end_ns
    ]
    assert len(unwatched) >= 5
    assert len(watched) >= 5
    added_ns = min(watched) - min(unwatched)
    assert added_ns > 10_000
    assert stated_ns == pytest.approx(added_ns, abs=NEAR_NS[of])
