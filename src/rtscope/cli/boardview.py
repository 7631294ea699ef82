"""
The view of a campaign on a virtual board, on standard error.

On a terminal: the board that runs now, how far each is in its own time, and how long
it may take still. Elsewhere: a line for each run that is done.
"""

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from rtscope.cli.redrawn import Redrawn
from rtscope.measure.execute import Event, RunBegins, RunEnds
from rtscope.measure.plan import Plan
from rtscope.record.model import Run
from rtscope.report.escape import printable
from rtscope.units import NS_PER_S, format_duration, format_us
from rtscope.virtual.execute import BoardProgress, Boots

ENOUGH_NS = NS_PER_S // 5
"""Of measured virtual time, before its speed is taken for that of the rest."""


class BoardView(Redrawn):
    """Draws what `execute_on_board` says. A context manager; call it with events."""

    def __init__(self, console: Console, plan: Plan) -> None:
        super().__init__(console, left="{task.fields[left]}")
        self._runs = {run.id: run for run in plan.runs}
        self._boots = Boots({})
        self._at_once = 1
        self._host_s: list[float] = []
        self._head = ""
        self._task = self._bar.add_task("preparing", total=len(plan.runs), left="")

    def __call__(self, event: Event | Boots) -> None:
        """Take note of an event."""
        match event:
            case Boots():
                self._boots = event
                self._at_once = max(self._at_once, len(event.progress))
            case RunBegins():
                self._head = f"{event.number} of {event.of}: {_name(event.run)}"
            case RunEnds():
                self._end(event)
            case _:
                pass

    def _end(self, event: RunEnds) -> None:
        record = event.record
        self._host_s.append(record.host_seconds or 0.0)
        worst = max(
            (t.max_ns for t in record.result.threads if t.max_ns is not None),
            default=None,
        )
        if not self._console.is_terminal:
            self.talk(f"{self._head}: maximum {format_us(worst)} us")

    def _picture(self) -> Group:
        done = len(self._host_s)
        boots = self._boots.progress
        running = sum(_part_done(p, self._runs[name]) for name, p in boots.items())
        of = f"{done} of {len(self._runs)} runs done" if boots or done else "preparing"
        self._bar.update(
            self._task, completed=done + running, description=of, left=self._left()
        )
        return Group(self._bar, *([self._table()] if boots else []))

    def _left(self) -> str:
        """Estimate the rest from the runs that are done: there is no other measure."""
        waiting = len(self._runs) - len(self._host_s) - len(self._boots.progress)
        if not self._host_s:
            return ""
        mean_s = sum(self._host_s) / len(self._host_s)
        rest_s = [
            max(0.0, mean_s - progress.host_s)
            for progress in self._boots.progress.values()
        ]
        left_s = (sum(rest_s) + mean_s * waiting) / self._at_once
        return f"about {_span(max(left_s, *rest_s, 1.0))} left"

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
        for heading, justify in (
            ("run", "left"),
            ("now", "left"),
            ("virtual s", "right"),
            ("host s", "right"),
            ("left", "right"),
        ):
            table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        for name in sorted(self._boots.progress):
            table.add_row(*_row(self._boots.progress[name], self._runs[name]))
        return table


def _row(boot: BoardProgress, run: Run) -> tuple[Text, str, str, str, str]:
    phase, virtual, left = "starting", "", ""
    if boot.progress is not None:
        measured_ns = _measured_ns(boot)
        if measured_ns is None:
            phase, virtual = "booting", f"{boot.progress.virtual_ns / NS_PER_S:.1f}"
        else:
            phase = "measuring" if measured_ns < run.duration_ns else "ending"
            shown_ns = min(measured_ns, run.duration_ns)
            whole = run.duration_ns / NS_PER_S
            virtual = f"{shown_ns / NS_PER_S:.1f} of {whole:g}"
            left = _left_of(boot, measured_ns, run)
    return Text(_name(run)), phase, virtual, f"{boot.host_s:.0f}", left


def _left_of(boot: BoardProgress, measured_ns: int, run: Run) -> str:
    """Estimate from the mean speed so far; nothing while too little is measured."""
    if boot.progress is None or not ENOUGH_NS <= measured_ns < run.duration_ns:
        return ""
    per_virtual_ns = boot.host_s / boot.progress.virtual_ns
    return _span((run.duration_ns - measured_ns) * per_virtual_ns)


def _measured_ns(boot: BoardProgress) -> int | None:
    progress = boot.progress
    if progress is None or progress.measuring_since_ns is None:
        return None
    return progress.virtual_ns - progress.measuring_since_ns


def _part_done(boot: BoardProgress, run: Run) -> float:
    return min(1.0, (_measured_ns(boot) or 0) / run.duration_ns)


def _name(run: Run) -> str:
    words = [run.load, *([run.kernel] if run.kernel else [])]
    if run.repetition > 1:
        words.append(f"repetition {run.repetition}")
    return printable(", ".join(words), limit=48)


def _span(seconds: float) -> str:
    return format_duration(max(1, round(seconds)) * NS_PER_S)
