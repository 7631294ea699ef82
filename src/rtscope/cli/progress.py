"""
The progress of a campaign, and of what it waits for before, on standard error.

On a terminal: the current run, the time left, and below it the maximum of each CPU of
a machine, the virtual time of each running board, or the workers of a cluster.
Elsewhere: a line for each run. Standard output carries only the result.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from rtscope.cli.streams import never_wait_for_readers
from rtscope.contract import KernelMessage, Line, Tick
from rtscope.host.escape import printable
from rtscope.host.process import Step
from rtscope.host.units import NS_PER_S, format_duration, format_us, plural
from rtscope.measure.execute import (
    BoardProgress,
    BoardsProgress,
    Event,
    LineReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    SettingsChanged,
    Settling,
    WorkerProgress,
    WorkersProgress,
)
from rtscope.measure.plan import Plan
from rtscope.measure.settings import CampaignTuning
from rtscope.record.model import Run

REFRESH_PER_S = 2

MAX_CPUS_SHOWN = 16

OVERHEAD_NS = 2 * NS_PER_S
"""Overhead of a run on a machine: start, facts, and the end of the load."""

ENOUGH_NS = NS_PER_S // 5
"""Measured virtual time that is enough to estimate the speed of the rest."""


SAY_EVERY_S = 30.0
"""A line of what one waits for, where there is no terminal."""


class Waiting:
    """
    Draws the steps of downloads and compilations. A context manager; call it.

    On a terminal a bar that vanishes, elsewhere a line every half minute.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[amount]}", markup=False),
            console=console,
            expand=True,
            transient=True,
            refresh_per_second=REFRESH_PER_S,
        )
        self._task: TaskID | None = None
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def __call__(self, step: Step) -> None:
        """Take note of a step."""
        if not self._console.is_terminal:
            self._say(step)
        elif step.about and step.done >= step.about and step.unit == "bytes":
            self._clear()
        else:
            self._draw(step)

    def over(self, log: Callable[[str], None]) -> Callable[[str], None]:
        """Return the same log, for lines that would stand in the way of the bar."""

        def write(text: str) -> None:
            self._clear()
            log(text)

        return write

    def _say(self, step: Step) -> None:
        now = time.monotonic()
        if now - self._said >= SAY_EVERY_S:
            self._said = now
            text = f"{printable(step.what)}: {_amount(step)}"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _draw(self, step: Step) -> None:
        if self._task is None:
            self._task = self._bar.add_task("", amount="")
        self._bar.update(
            self._task,
            description=printable(step.what),
            completed=min(step.done, step.about),
            total=step.about or None,
            amount=_amount(step),
        )
        self._bar.start()  # no more than once

    def _clear(self) -> None:
        """Leave the terminal to the next line, and to the next bar."""
        if self._task is not None:
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None


def _amount(step: Step) -> str:
    if step.unit == "bytes":
        of = f" of {step.about / 1e6:,.0f}" if step.about else ""
        return f"{step.done / 1e6:,.0f}{of} MB"
    of = f" of about {step.about:,}" if 0 < step.about >= step.done else ""
    return f"{step.done:,}{of} {step.unit}"


class LiveDisplay:
    """Draws the events of `execute`. A context manager; call it with each event."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("", left="")
        self._live: Live | None = None
        self._head = ""
        self._since = time.monotonic()
        self._run: Run | None = None
        self._maxima: dict[int | None, int] = {}
        self._tick: Tick | None = None
        self._note = ""
        self._boards: Mapping[str, BoardProgress] = {}
        self._workers: Mapping[str, WorkerProgress] = {}
        self._names = {run.id: name_of(run) for run in plan.runs}
        self._at_once = 1
        self._failed = 0
        self._done: list[Run] = []
        self._took_s: list[float] = []
        """Host time of each boot that took some: not of a stored result."""
        self._said = self._since

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

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case Settling():
                self._head = "settling"
                self._since = time.monotonic()
                self._log(f"{self._head} for {_span(event.duration_ns)}")
            case SettingsChanged():
                text = f"rtscope: {settings_text(event.tuned)}"
                self._console.print(text, markup=False, soft_wrap=True)
            case RunStarted():
                self._start(event)
            case LineReceived():
                self._receive(event.line)
            case BoardsProgress():
                self._boards = event.boards
                self._at_once = max(self._at_once, len(event.boards))
            case WorkersProgress():
                self._workers = event.workers
                self._at_once = max(1, sum(map(boards_of, event.workers.values())))
            case RunFailed():
                self._failed += 1
            case RunFinished():
                self._finish(event)

    def log(self, text: str) -> None:
        """Print a message of rtscope, on a terminal above what is drawn."""
        self._console.print(f"rtscope: {text}", markup=False, highlight=False)

    def _log(self, text: str) -> None:
        """Print a line if the output is no terminal."""
        if not self._console.is_terminal:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _start(self, event: RunStarted) -> None:
        number = f"{event.number} of {event.of}"
        if self._plan.boots_each:  # already measured, in parallel with others
            self._head = f"{number}: {name_of(event.run)}"
            return
        self._head = f"{number}: {printable(event.run.load)}"
        self._run, self._since = event.run, time.monotonic()
        self._maxima, self._tick, self._note = {}, None, ""
        self._log(f"{self._head}, {_span(event.run.duration_ns)}")

    def _receive(self, line: Line) -> None:
        match line:
            case Tick():
                self._tick = line
                for cpu in line.cpus:
                    highest_ns = self._maxima.get(cpu.cpu, 0)
                    self._maxima[cpu.cpu] = max(cpu.max_ns, highest_ns)
            case KernelMessage() if line.level <= 4:
                self._note = f"kernel: {printable(line.text, limit=100)}"

    def _finish(self, event: RunFinished) -> None:
        record = event.record
        self._done.append(record.run)
        if record.virtual is None or not record.virtual.reused:
            self._took_s.append(record.host_duration_s or 0.0)
        self._run = None
        head = f"{self._head}:" if self._plan.boots_each else " "
        self._log(f"{head} maximum {format_us(record.max_ns)} us{self._now_and_then()}")

    def _now_and_then(self) -> str:
        """Return the time left of boards in words, every half minute of a log."""
        now = time.monotonic()
        if not self._plan.boots_each or now - self._said < SAY_EVERY_S:
            return ""
        self._said = now
        left = self._left_of_boards()
        return f", {left}" if left else ""

    def _picture(self) -> Group:
        parts: list[RenderableType] = [self._bar]
        if self._plan.boots_each:
            self._update_bar_of_boards()
            if self._boards:
                parts.append(self._table_of_boards())
            if self._workers:
                parts.append(table_of_workers(self._workers, self._names))
        else:
            self._update_bar_of_machine()
            if self._tick is not None:
                parts.append(self._table_of_cpus(self._tick))
            if self._note:
                parts.append(Text(self._note, style="yellow"))
        return Group(*parts)

    def _update_bar_of_machine(self) -> None:
        """Estimate from time: a run on a machine takes its duration."""
        total_ns = self._plan.total_ns + OVERHEAD_NS * len(self._plan.runs)
        left_ns = total_ns - sum(map(self._budget_ns, self._done))
        if self._run is not None:
            spent_ns = (time.monotonic() - self._since) * NS_PER_S
            left_ns -= min(int(spent_ns), self._budget_ns(self._run))
        left_ns = max(0, left_ns)
        self._bar.update(
            self._task,
            total=max(1, total_ns),
            completed=total_ns - left_ns,
            description=self._head,
            left=f"{_span(left_ns) if left_ns >= NS_PER_S else '0 s'} left",
        )

    def _budget_ns(self, run: Run) -> int:
        return self._plan.measuring_ns(run) + self._plan.warmup_ns + OVERHEAD_NS

    def _update_bar_of_boards(self) -> None:
        """Estimate from runs: those done show the speed of a board on this machine."""
        runs = {run.id: run for run in self._plan.runs}
        done, of = len(self._done), len(runs)
        parts = (_part_done(one, runs[name]) for name, one in self._boards.items())
        started = self._boards or self._workers or done
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.update(
            self._task,
            total=of,
            completed=done + self._failed + sum(parts),
            description=f"{done} of {of} runs done{failed}" if started else "preparing",
            left=self._left_of_boards(),
        )

    def _left_of_boards(self) -> str:
        if not self._took_s:
            return ""
        mean_s = sum(self._took_s) / len(self._took_s)
        over = len(self._done) + self._failed
        waiting = len(self._plan.runs) - over - len(self._boards)
        rest_s = [max(0.0, mean_s - one.host_s) for one in self._boards.values()]
        left_s = (sum(rest_s) + mean_s * waiting) / self._at_once
        return f"about {_span(max(left_s, *rest_s, 1.0) * NS_PER_S)} left"

    def _table_of_cpus(self, tick: Tick) -> Table:
        figures = ("maximum, us", "last second, us", "samples", "missed periods")
        headings = ("CPU", *figures)
        table = _plain_table(*headings, numbers=headings, wraps=headings)
        table.header_style = "dim"
        worst_first = sorted(
            tick.cpus, key=lambda cpu: self._maxima.get(cpu.cpu, 0), reverse=True
        )
        for cpu in worst_first[:MAX_CPUS_SHOWN]:
            table.add_row(
                "any" if cpu.cpu is None else str(cpu.cpu),
                format_us(self._maxima.get(cpu.cpu, 0)),
                format_us(cpu.max_ns),
                f"{cpu.samples:,}",
                Text(
                    f"{cpu.missed_periods:,}",
                    style="yellow" if cpu.missed_periods else "",
                ),
            )
        if len(tick.cpus) > MAX_CPUS_SHOWN:
            table.caption = f"the {MAX_CPUS_SHOWN} worst of {len(tick.cpus)} CPUs"
        return table

    def _table_of_boards(self) -> Table:
        runs = {run.id: run for run in self._plan.runs}
        times = ("virtual s", "host s", "left")
        table = _plain_table("run", "phase", *times, numbers=times)
        table.header_style = "dim"
        for name in sorted(self._boards):
            table.add_row(*_board_row(self._boards[name], runs[name]))
        return table


def _board_row(board: BoardProgress, run: Run) -> tuple[Text, str, str, str, str]:
    phase, virtual, left = "starting", "", ""
    measured_ns = board.measured_ns
    if measured_ns is not None:
        phase = "measuring" if measured_ns < run.duration_ns else "ending"
        shown_ns = min(measured_ns, run.duration_ns)
        virtual = f"{shown_ns / NS_PER_S:.1f} of {run.duration_ns / NS_PER_S:g}"
        left = _left_of_board(board, measured_ns, run)
    elif board.virtual_ns is not None:
        phase, virtual = "booting", f"{board.virtual_ns / NS_PER_S:.1f}"
    return Text(name_of(run)), phase, virtual, f"{board.host_s:.0f}", left


def _left_of_board(board: BoardProgress, measured_ns: int, run: Run) -> str:
    """Estimate from the mean speed so far; empty before enough is measured."""
    if not board.virtual_ns or not ENOUGH_NS <= measured_ns < run.duration_ns:
        return ""
    host_s_per_ns = board.host_s / board.virtual_ns
    return _span((run.duration_ns - measured_ns) * host_s_per_ns * NS_PER_S)


def _part_done(board: BoardProgress, run: Run) -> float:
    return min(1.0, (board.measured_ns or 0) / run.duration_ns)


def name_of(run: Run) -> str:
    """Return a run in words: its load, and what else tells it from others."""
    words = [run.load, *([run.kernel] if run.kernel else [])]
    if run.variant:
        words.append(run.variant)
    if run.repetition > 1:
        words.append(f"repetition {run.repetition}")
    return printable(", ".join(words), limit=48)


def _span(duration_ns: float) -> str:
    return format_duration(max(1, round(duration_ns / NS_PER_S)) * NS_PER_S)


def settings_text(tuned: CampaignTuning) -> str:
    """Return a line with the settings that --tuned changed or could not change."""
    changed = ", ".join(tuned.changed) or "no change needed"
    reasons = {r.change.check: r.reason for r in tuned.result.refused}
    failed = {**tuned.plan.impossible, **reasons}
    text = "".join(f"; not changed: {name}: {why}" for name, why in failed.items())
    if tuned.undone_by:
        text += f"; {tuned.undone_by} will undo some of it: stop it first"
    return printable(f"changed for the measurement, restored after it: {changed}{text}")


# --- the workers of a cluster -------------------------------------------------------

MAX_WORKERS_SHOWN = 16
LAST = "computes"


def boards_of(worker: WorkerProgress) -> int:
    """Return how many runs a worker computes at the same time now."""
    return 0 if worker.is_gone or worker.refused else worker.boards


def table_of_workers(
    workers: Mapping[str, WorkerProgress], names: Mapping[str, str]
) -> Group:
    """Return the table; `names` are those of runs, by their ids."""
    numbers = ("boards", "done", "failed")
    # The last column alone is cut where the terminal is narrow.
    table = _plain_table("worker", *numbers, LAST, numbers=numbers, wraps=[LAST])
    table.header_style = "dim"
    # What is wrong is last, where it stays when the others come and go.
    last = sorted(workers, key=lambda name: (boards_of(workers[name]) == 0, name))
    for name in last[:MAX_WORKERS_SHOWN]:
        worker = workers[name]
        table.add_row(
            printable(name.partition("://")[2] or name, limit=28),
            f"{boards_of(worker)}",
            f"{worker.done:,}",
            f"{worker.failed:,}",
            _doing(worker, names),
        )
    more = [workers[name] for name in last[MAX_WORKERS_SHOWN:]]
    if not more:
        return Group(table)
    return Group(table, f"and {plural(len(more), 'more worker')}: {_states(more)}")


def _doing(worker: WorkerProgress, names: Mapping[str, str]) -> Text:
    """Return what a worker computes, or why it does not, in one line."""
    if worker.is_gone:
        text, style = "gone: others compute its runs", "yellow"
    elif worker.refused:
        text, style = f"no more runs: {printable(worker.refused)}", "yellow"
    else:
        text, style = _runs(worker, names), ""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _runs(worker: WorkerProgress, names: Mapping[str, str]) -> str:
    if not worker.runs:
        return ""
    first, *others = worker.runs
    more = [f"{len(others)} more"] if others else []
    if worker.waiting:
        more.append(f"{worker.waiting} waiting")
    counts = f" (+ {', '.join(more)})" if more else ""
    return f"{names.get(first, '')}{counts}"


def _states(workers: list[WorkerProgress]) -> str:
    counts = Counter(map(_state, workers))
    verbs = {
        "compute": ("computes", "compute"),
        "gone": ("is gone", "are gone"),
        "no more": ("gets no more", "get no more"),
    }
    return ", ".join(
        f"{counts[state]} {one if counts[state] == 1 else many}"
        for state, (one, many) in verbs.items()
        if counts[state]
    )


def _state(worker: WorkerProgress) -> str:
    if worker.is_gone:
        return "gone"
    return "no more" if worker.refused else "compute"


def _plain_table(
    *headings: str, numbers: Collection[str] = (), wraps: Collection[str] = ()
) -> Table:
    """Return an empty table without lines: numbers on the right, some wrap."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(
            heading,
            justify="right" if heading in numbers else "left",
            no_wrap=heading not in wraps,
        )
    return table
