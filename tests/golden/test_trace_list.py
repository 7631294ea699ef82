"""The listing of a recorded path, to the character."""

from itertools import chain
from pathlib import Path

import pytest

from fakes.guestpaths import GUEST
from fakes.measurements import on_board, record, thread
from fakes.printed import printed
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.symbols import NO_SYMBOLS, SymbolTable, parse_symbols
from rtscope.verbs.board.trace import head_of, path_blocks, path_of

LISTS = Path(__file__).parent / "trace"

# Of plugin/tests/guest.S as it was when the trace was recorded.
SYMBOLS = parse_symbols("80000000 T start\n80000040 T round\n800000a0 T trap\n")


def listing(symbols: SymbolTable, *, limit: int) -> str:
    trace = parse_trace(GUEST)
    kept = on_board(record([thread([1_000])]), board="bare", kernel="guest")
    paths = (path_of(section, symbols, cpu=None) for section in trace.sections)
    listed = (path_blocks(path, n, limit=limit) for n, path in enumerate(paths, 1))
    return printed(chain((head_of(kept, trace),), *listed), width=100)


@pytest.mark.parametrize(
    ("name", "symbols"), [("named", SYMBOLS), ("unnamed", NO_SYMBOLS)]
)
def test_the_recorded_trace_is_listed_as_before(
    name: str, symbols: SymbolTable, rewrite: bool
) -> None:
    text = listing(symbols, limit=20)
    expected = LISTS / f"{name}.txt"
    if rewrite:
        LISTS.mkdir(exist_ok=True)
        expected.write_text(text)

    assert text == expected.read_text()
    assert max(map(len, text.splitlines())) <= 100
