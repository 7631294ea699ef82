"""Where a kernel keeps what the plugin reads of a program, by its symbols."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramView
from rtscope.boards.recording import programplaces, programseen
from rtscope.boards.recording.programuses import ProgramUses
from rtscope.host.errors import BoardError
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


def test_a_program_is_not_watched_on_a_kernel_whose_timers_are_not_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blind = ProgramView(task="", preempt="", hooks=(), fields=(), time=(0, 0))
    monkeypatch.setattr(programseen, "program_view", lambda *_, **__: blind)
    prepared = SimpleNamespace(kernel=SimpleNamespace(name="mine"))

    with pytest.raises(BoardError, match=r"mine: .*tk_core.*CONFIG_KALLSYMS_ALL"):
        programseen.outside_view(
            cast(Prepared, prepared),
            cast(ProgramUses, SimpleNamespace(uses=())),
            (0, 1),
            cache=tmp_path,
            log=print,
        )
