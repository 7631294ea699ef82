"""What the guard of a load wrote, on each architecture, loads for ever."""

from pathlib import Path

import pytest

from rtscope.contract import (
    LoadEnd,
    LoadHello,
    LoadTick,
    LoadWindow,
    dump_line,
    parse_line,
)
from rtscope.measure.loadproof import LoadProof
from rtscope.measure.loads import get_load

FORMAT = Path(__file__).parent.parent.parent / "format"
STREAMS = sorted(FORMAT.glob("v*/loads/*.jsonl"))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_the_output_of_a_guard_loads_and_names_who_did_not_work(path: Path) -> None:
    lines = [parse_line(line) for line in path.read_bytes().splitlines()]
    windows = [line for line in lines if isinstance(line, LoadWindow)]
    ticks = [line for line in lines if isinstance(line, LoadTick)]

    assert isinstance(lines[0], LoadHello)
    assert isinstance(lines[-1], LoadEnd)
    assert all(parse_line(dump_line(line)) == line for line in lines)
    span = (windows[0].from_ns, windows[-1].to_ns)
    proof = LoadProof(get_load("custom"), ("sh",), windows, span)
    assert {c.id for c in proof.caveats(ended_early=False)} == {
        "worker_died",
        "worker_stopped",
        "worker_idle",
    }
    assert len(ticks) >= len(windows) - 1


def test_every_architecture_has_a_stream() -> None:
    names = {path.stem for path in STREAMS}
    assert names == {"x86_64", "aarch64", "armv7l", "riscv64"}
