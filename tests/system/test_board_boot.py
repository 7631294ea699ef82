"""
A virtual board really boots, and gives the same result every time.

What is fetched stays in the user's own cache: the first call takes a minute, and a
later one needs no network.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from rig import NEEDS_APT

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared, write_initrd
from rtscope.boards.parts.qemu import Boot, command_line
from rtscope.boards.runs.boot import read_results
from rtscope.contract import (
    AgentResult,
    parse_line,
    require,
    result_digest,
)
from rtscope.host import process
from rtscope.machine.target import agent_file

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
]

PATIENCE_S = 300.0

SCRIPT = """\
rtscope-agent load --log /out/load.log --scratch /disk/work -- \
    stress-ng --dir 1 --no-rand-seed --temp-path /disk/work --timeout 60s \
    </dev/null >/out/load.jsonl &
rtscope-agent measure --priority 99 --duration-ns 200000000 >/out/measure.jsonl
status=$?
kill $!
exit $status
"""


# One CPU: the turns of several are bounded by the plugin, which has tests of its own.
BOARD = replace(get_board("pc"), cpus=1)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    return prepare(BOARD, "debian-6.12-rt", context=context)


def _boot(prepared: Prepared, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    write_initrd(folder / "initrd", prepared, Job(SCRIPT, disk=True))
    boot = Boot(
        kernel=prepared.kernel.image,
        initrd=folder / "initrd",
        console=folder / "console",
        results=folder / "results",
        seed=7,
        quantum=(),
    )
    line = command_line(prepared.qemu, BOARD, boot)
    done = process.run(line, timeout_s=PATIENCE_S)
    assert done.status == 0, done.stderr
    return read_results(folder / "results")


def _digest(out: dict[str, bytes]) -> str:
    lines = [parse_line(line) for line in out["measure.jsonl"].splitlines()]
    (result,) = (line for line in lines if isinstance(line, AgentResult))
    assert [
        (t.own.samples + require(t.missed_periods), t.policy) for t in result.threads
    ] == [(200, "fifo")]
    return result_digest(result.threads)


def test_a_board_measures_under_load_the_same_twice(
    prepared: Prepared, tmp_path: Path
) -> None:
    one = _boot(prepared, tmp_path / "one")
    two = _boot(prepared, tmp_path / "two")

    assert one["status"] == b"0\n", one["script.log"]
    assert one["disk"] == b"ext4\n", one["disk.log"]
    assert b"dispatching hogs: 1 dir" in one["load.log"]
    assert _digest(one) == _digest(two)
    assert one == two
