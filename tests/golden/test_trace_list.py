"""The listing of a recorded path, to the character."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from fakes.guestpaths import GUEST
from fakes.measurements import on_board, record, thread
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.symbols import NO_SYMBOLS, SymbolTable, parse_symbols
from rtscope.verbs.board.trace import path_of, print_head, print_path

LISTS = Path(__file__).parent / "trace"

# Of plugin/tests/guest.S as it was when the trace was recorded.
SYMBOLS = parse_symbols("80000000 T start\n80000040 T round\n800000a0 T trap\n")


def listing(symbols: SymbolTable, *, limit: int) -> str:
    trace = parse_trace(GUEST)
    kept = on_board(record([thread([1_000])]), board="bare", kernel="guest")
    console = Console(file=io.StringIO(), width=100, highlight=False)
    with console.capture() as captured:
        print_head(console, kept, trace)
        for number, section in enumerate(trace.sections, 1):
            path = path_of(section, symbols, cpu=None)
            print_path(console, path, number, limit=limit)
    return captured.get()


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
