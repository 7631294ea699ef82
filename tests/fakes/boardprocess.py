"""
A process of one board on a machine that is fake: `python -m fakes.boardprocess`.

What befalls the board is in its address: `ssh:fails` cannot be reached, `ssh:dies` ends
by SIGKILL in its second run, `ssh:hangs` never ends one, `ssh:stubborn` not after
SIGINT either, `ssh:full` cannot write its record. A file `well` where it runs heals it.
Every process babbles: among its lines are some that tell nothing.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes import targets
from fakes.bootedboard import FakeBoard
from fakes.faketarget import FakeTarget
from rtscope.boards.runs import runner
from rtscope.host.errors import RecordError, TargetError
from rtscope.machine.target.address import Address
from rtscope.measure.assemble import Measured
from rtscope.record.directory.records import ResultDir
from rtscope.verbs.run import oneboard, run

PATCHED = pytest.MonkeyPatch()

COMMAND = (sys.executable, "-m", "fakes.boardprocess")


@contextlib.contextmanager
def opened(address: Address, **_: Any) -> Iterator[FakeTarget]:
    """Give a machine on which happens what its name says."""
    name = "well" if Path("well").exists() else address.host or "local"
    if name == "fails":
        raise TargetError("ssh:fails: no route to host; check the name")
    made = targets.target()
    made.name = f"ssh:{name}"
    runs = 0

    def begin_run() -> None:
        nonlocal runs
        runs += 1
        if name == "dies" and runs == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "stubborn":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        while name in ("hangs", "stubborn"):
            Path("hangs").touch()
            time.sleep(0.05)

    PATCHED.setattr(made, "begin_run", begin_run)
    if name == "full":
        PATCHED.setattr(ResultDir, "save", full)
    print("\x1b[31mwelcome", file=sys.stderr)
    yield made


def full(self: ResultDir, record: Measured, **_: Any) -> Path:
    """Fail as on a full disk."""
    raise RecordError(f"cannot write {self.path}: No space left on device")


BABBLE = b'babble\n[1]\n{"is": "plan"}\n{"is": "worst", "max_ns": null}\n'


def babble(taken_over: Callable[[], int] = oneboard._taken_over) -> int:
    """Take over the pipes; write what a library may write there."""
    lines = taken_over()
    os.write(lines, BABBLE)
    return lines


def main() -> int:
    """Run the process of one board."""
    PATCHED.setattr(oneboard, "_taken_over", babble)
    board = FakeBoard()
    board.results = [9_000] * 9
    PATCHED.setattr(run, "open_target", opened)
    PATCHED.setattr(run, "prepare_campaign", board.prepare)
    PATCHED.setattr(runner, "BoardRunner", lambda one, *_, **__: board.runner(one))
    return oneboard.main()


if __name__ == "__main__":
    sys.exit(main())
