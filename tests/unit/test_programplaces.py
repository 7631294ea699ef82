"""Where a kernel keeps what the plugin reads of a program, by its symbols."""

import pytest

from rtscope.boards.recording import programplaces
from rtscope.record.instructions.symbols import parse_symbols

CORE, KEEPER = 0xFFFFFFFF83D14380, 8


@pytest.mark.parametrize(
    ("name", "core"), [("tk_core", CORE), ("timekeeper_data", CORE), ("jiffies", 0)]
)
def test_the_kernels_clock_is_found_by_its_name_before_and_since_6_17(
    name: str, core: int
) -> None:
    offsets = {one: 1 for one in programplaces._TIMES} | {"keeper": KEEPER}
    symbols = parse_symbols(f"ffffffff81000000 T zap\n{CORE:x} b {name}\n")

    found = programplaces._times(symbols, offsets, "x86_64")

    assert found[:2] == (core, core and core + KEEPER)
