"""The live view of several boards: a line for each, those that work first."""

import io
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

from rtscope.cli.console import stderr_console
from rtscope.verbs.run.boardprocess import Ended
from rtscope.verbs.run.boardsview import MAX_SHOWN, BoardsDisplay

S = 1_000_000_000


def drawn(display: BoardsDisplay, console: Console) -> list[str]:
    """Return the lines of the picture without what is drawn of the bar."""
    with console.capture() as captured:
        console.print(display._picture())
    return [line.rstrip() for line in captured.get().splitlines()]


class Stream(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


Made = Callable[..., tuple[BoardsDisplay, Console]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Make a display on the console for messages."""
    for name, value in {"COLUMNS": "100", "LINES": "60", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)

    def make(*names: str, terminal: bool = True) -> tuple[BoardsDisplay, Console]:
        monkeypatch.setattr(sys, "stderr", Stream(terminal=terminal))
        console = stderr_console()
        return BoardsDisplay(console, dict.fromkeys(names, (0, 2))), console

    return make


def said_on(console: Console) -> str:
    """Return what was printed."""
    assert isinstance(console.file, Stream)
    return console.file.getvalue()


def test_each_board_has_its_runs_its_maximum_and_the_reason_where_it_failed(
    made: Made,
) -> None:
    display, console = made("a", "b", "c")
    for name in ("a", "b"):
        display.begun(name)
        display.told(name, {"is": "plan", "runs": 2, "left_ns": 40 * S})
    run = {"text": "1 of 2: idle", "left_ns": 40 * S, "duration_ns": 20 * S}
    display.told("a", {"is": "run", **run})
    display.told("a", {"is": "worst", "max_ns": 7_000})
    display.told("a", {"is": "worst", "max_ns": 5_000})
    display.told("b", {"is": "done", "text": "idle", "max_ns": 9_000, "number": 1})
    display.ended("b", Ended(3, "lost the connection\x1b[31m"))

    bar, head, *rows = drawn(display, console)

    assert bar.startswith("1 of 6 runs, 0 of 3 boards done, 1 failed")
    assert head.split() == ["board", "runs", "maximum,", "us", "left", "now"]
    assert [row.split()[0] for row in rows] == ["a", "c", "b"]
    assert rows[0].split()[1:5] == ["0", "of", "2", "7.00"]
    assert rows[0].endswith("1 of 2: idle")
    assert rows[1].split() == ["c", "0", "of", "2", "waiting"]
    assert "9.00" in rows[2]
    assert "lost the connection" in rows[2]
    assert "\x1b[31m" not in rows[2]


def test_a_rack_of_many_boards_fits_into_a_screen(made: Made) -> None:
    display, console = made(*(f"b{number}" for number in range(60)))

    assert len(drawn(display, console)) == MAX_SHOWN + 3
    assert "24 of 60 boards" in drawn(display, console)[-1]


def test_without_a_terminal_there_is_a_line_for_each_run(made: Made) -> None:
    display, console = made("a", terminal=False)
    display.begun("a")
    display.told("a", {"is": "done", "text": "idle", "max_ns": 9_000, "number": 1})
    display.ended("a", Ended(0))

    assert said_on(console) == "a: preparing\na: idle: maximum 9.00 us\na: done\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_an_address_is_printed_as_it_is(terminal: bool, made: Made) -> None:
    display, console = made("a", terminal=terminal)
    display.told("a", {"is": "phase", "text": "ssh:b: [x]", "left_ns": 0})
    display.message("a", "ssh:a: Could not resolve /mnt/x:key:y [red]")

    lines = [said_on(console), *drawn(display, console)]

    assert "rtscope: a: ssh:a: Could not resolve /mnt/x:key:y [red]\n" in lines[0]
    assert "ssh:b: [x]" in (lines[-1] if terminal else lines[0])


def test_what_was_measured_before_counts_as_done(made: Made) -> None:
    display, console = made()
    display = BoardsDisplay(console, {"a": (2, 2), "b": (1, 3)})
    display.begun("b")
    display.told("b", {"is": "plan", "runs": 2, "left_ns": 0})
    display.told("b", {"is": "done", "text": "idle", "max_ns": 9_000, "number": 1})

    bar, _, *rows = drawn(display, console)

    assert bar.startswith("4 of 5 runs, 1 of 2 boards done")
    assert [row.split() for row in rows] == [
        ["b", "2", "of", "3", "9.00", "preparing"],
        ["a", "2", "of", "2", "done"],
    ]


def test_a_run_without_a_sample_has_no_maximum(made: Made) -> None:
    display, console = made("a")
    display.begun("a")
    display.told("a", {"is": "done", "text": "idle", "max_ns": None, "number": 1})

    assert drawn(display, console)[-1].split() == ["a", "1", "of", "2", "preparing"]
