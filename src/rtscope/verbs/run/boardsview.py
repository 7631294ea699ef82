"""
The progress of a campaign over several boards, on standard error.

On a terminal: all runs in a bar, and below it a line for each board. Elsewhere: a line
for each run, behind the name of its board.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from rtscope.cli.progress import REFRESH_PER_S
from rtscope.cli.streams import never_wait_for_readers
from rtscope.host.escape import printable
from rtscope.host.units import NS_PER_S, format_duration, format_us
from rtscope.verbs.run.boardprocess import Ended

MAX_SHOWN = 24

WAITS, WORKS = "waiting", "preparing"


@dataclass(slots=True)
class _State:
    """How far one board is."""

    doing: str = WAITS
    runs: int = 0
    done: int = 0
    before: int = 0
    """Of the runs done, those that an earlier command has measured."""
    part: float = 0.0
    """Of the runs under way."""
    max_ns: int | None = None
    left_ns: int = 0
    since: float = 0.0
    ended: bool = False
    bad: bool = False

    @property
    def left(self) -> str:
        """The time left, where it follows from the plan."""
        spent_ns = (time.monotonic() - self.since) * NS_PER_S
        left_ns = self.left_ns - spent_ns
        if self.ended or left_ns < NS_PER_S:
            return ""
        return format_duration(round(left_ns / NS_PER_S) * NS_PER_S)


def _begun_with(done: int, runs: int) -> _State:
    if done >= runs:
        return _State("done", runs, done, done, ended=True)
    return _State(runs=runs, done=done, before=done)


class BoardsDisplay:
    """
    Draws what the processes of boards tell. A context manager.

    `runs` says of each board how many runs it has, and how many it wants.
    """

    def __init__(self, console: Console, runs: Mapping[str, tuple[int, int]]) -> None:
        self._console = console
        self._states = {name: _begun_with(*of) for name, of in runs.items()}
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("", left="")
        self._live: Live | None = None

    def __enter__(self) -> Self:
        never_wait_for_readers()
        if self._console.is_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._picture,
                refresh_per_second=REFRESH_PER_S,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def begun(self, name: str) -> None:
        """Note that the process of a board was started."""
        self._states[name].doing = WORKS
        self._log(name, WORKS)

    def told(self, name: str, said: Mapping[str, Any]) -> None:
        """Note what the process of a board tells."""
        state = self._states[name]
        text = printable(str(said.get("text", "")), limit=200)
        match said["is"]:
            case "plan":
                self._expect(state, said["left_ns"])
            case "phase":
                state.doing = text
                self._expect(state, said["left_ns"])
                self._log(name, text)
            case "run":
                state.doing = text
                self._expect(state, said["left_ns"])
                self._log(name, f"{text}, {format_duration(said['duration_ns'])}")
            case "boots":
                state.doing, state.part = text or state.doing, said["part"]
            case "worst":
                state.max_ns = max(said["max_ns"], state.max_ns or 0)
            case "done":
                state.done = state.before + said["number"]
                if said["max_ns"] is not None:
                    state.max_ns = max(said["max_ns"], state.max_ns or 0)
                self._log(name, f"{text}: maximum {format_us(said['max_ns'])} us")
            case "note":
                self.message(name, text)

    def message(self, name: str, text: str) -> None:
        """Print a message of a board, on a terminal above what is drawn."""
        said = printable(text.removeprefix("rtscope: "), limit=1000)
        line = f"rtscope: {name}: {said}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def ended(self, name: str, how: Ended) -> None:
        """Note how the campaign of a board ended."""
        state = self._states[name]
        state.ended, state.bad, state.part = True, bool(how.why), 0.0
        state.doing = printable(how.why, limit=200) or "done"
        if how.why:
            self.message(name, how.why)
        else:
            self._log(name, "done")

    def _expect(self, state: _State, left_ns: int) -> None:
        state.left_ns, state.since = left_ns, time.monotonic()

    def _log(self, name: str, text: str) -> None:
        if not self._console.is_terminal:
            line = f"{name}: {text}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _picture(self) -> Group:
        states = self._states.values()
        runs, done = (sum(getattr(s, key) for s in states) for key in ("runs", "done"))
        bad = sum(s.bad for s in states)
        well = sum(s.ended for s in states) - bad
        failed = f", {bad} failed" if bad else ""
        self._bar.update(
            self._task,
            total=max(1, runs),
            completed=done + sum(s.part for s in states),
            description=f"{done} of {runs} runs, {well} of {len(states)} boards done"
            f"{failed}",
            left="",
        )
        return Group(self._bar, self._table())

    def _table(self) -> Table:
        made = Table(box=None, pad_edge=False, header_style="dim")
        made.add_column("board", no_wrap=True)
        for heading in ("runs", "maximum, us", "left"):
            made.add_column(heading, justify="right", no_wrap=True)
        made.add_column("now", no_wrap=True)
        # Those that work first: the others need no look.
        order = sorted(
            self._states.items(), key=lambda one: (one[1].ended, one[1].doing == WAITS)
        )
        for name, state in order[:MAX_SHOWN]:
            made.add_row(
                name,
                f"{state.done} of {state.runs}",
                "" if state.max_ns is None else format_us(state.max_ns),
                state.left,
                Text(
                    state.doing,
                    style="yellow" if state.bad else "",
                    no_wrap=True,
                    overflow="ellipsis",
                ),
            )
        if len(order) > MAX_SHOWN:
            made.caption = f"{MAX_SHOWN} of {len(order)} boards"
        return made
