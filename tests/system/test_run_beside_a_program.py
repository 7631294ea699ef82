"""
A real-time program of the user loses no wake-up to `rtscope run`.

On a virtual board, whose time is exact: on each CPU runs a program that is less urgent
than the agent's threads, from before the agent begins until after it has ended.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from rig import NEEDS_APT

from rtscope.boards.catalogue import get_arch, get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.program import ROOT, program_of
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.script import agent_line
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "periodic.c"
KERNELS = ("debian-6.12-rt", "debian-6.12")
"""With PREEMPT_RT, and one that may keep a CPU while it is in a call."""
PERIOD_NS = 2_000_000
"""Of the program, whose threads have priority 70."""
CYCLES = 1500
STARTING = 100
"""Cycles in which the program itself still begins."""
MOST_NS = PERIOD_NS // 2
BEFORE_S = 1
MEASURING = (
    *("measure", "--policy", "fifo", "--priority", "80", "--worst", "10"),
    *("--interval-ns", "200000", "--duration-ns", str(NS_PER_S)),
)
"""As `rtscope run` calls the agent; `--explain` adds `--trace`."""
BEGUN = "run.jsonl"


def _script(command: str, measuring: str, cpus: int) -> str:
    programs = [
        f"taskset -c {cpu} chroot /{ROOT} {command} plain {CYCLES} /cycles-{cpu} "
        "</dev/null &"
        for cpu in range(cpus)
    ]
    kept = [f"cp /{ROOT}/cycles-{cpu} /out/" for cpu in range(cpus)]
    lines = [
        *programs,
        f"sleep {BEFORE_S}",
        f"{measuring} >/out/{BEGUN}",
        "wait",
        *kept,
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("more", [(), ("--trace",)])
def test_a_less_urgent_program_loses_no_wakeup_to_the_measuring(
    tmp_path: Path, kernel: str, more: Sequence[str]
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    out = tmp_path / "periodic"
    subprocess.run(["gcc", "-O1", "-static", "-o", out, SOURCE], check=True)
    board = get_board("pc")
    program = program_of([str(out)], get_arch(board.arch))
    booted = boot(
        prepare(
            board,
            kernel,
            context=BuildContext(cache=cache_dir(), agent=agent_file, log=print),
        ),
        Job(
            _script(
                program.command[0],
                agent_line(*MEASURING, *more),
                board.cpus,
            ),
            tree=program.tree,
        ),
        seed=1,
        timeout=BootTimeout(0, 30 * NS_PER_S),
        stopped=lambda: False,
    )

    assert '"result"' in booted.text(BEGUN)
    for cpu in range(board.cpus):
        rows = [
            tuple(map(int, line.split()))
            for line in booted.text(f"cycles-{cpu}").splitlines()
        ]
        assert len(rows) == CYCLES
        late_ns = {due: at - due for due, at, _ in rows[STARTING:]}
        assert max(late_ns.values()) < MOST_NS, late_ns
