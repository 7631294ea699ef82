"""
The view of a campaign in progress, on standard error.

On a terminal: where the campaign is, the time left, and each CPU's maximum. Elsewhere:
a line for each run. Standard output is the result's alone.
"""

import time

from rich.console import Console, Group
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from rtscope.cli.redrawn import Redrawn
from rtscope.contract import KernelMessage, LoadTick, Tick
from rtscope.measure.execute import Event, Heard, RunBegins, RunEnds, Settling, TunedNow
from rtscope.measure.plan import Plan
from rtscope.record.model import Run
from rtscope.report.escape import printable
from rtscope.report.words import virtual_word
from rtscope.tuning.campaign import Tuned
from rtscope.units import format_duration, format_us

MAX_CPUS_SHOWN = 16

# What a run takes besides its own time: start, facts, and ending the load.
OVERHEAD_NS = 2_000_000_000


class LiveView(Redrawn):
    """Draws what `execute` says. A context manager; call it with each event."""

    def __init__(self, console: Console, plan: Plan) -> None:
        super().__init__(console, left="{task.fields[left]} left")
        self._left_ns = plan.total_ns + OVERHEAD_NS * len(plan.runs)
        self._plan = plan
        total = max(1, self._left_ns)
        self._task = self._bar.add_task("starting", total=total, left="")
        self._total_ns = total
        self._run: Run | None = None
        self._head = ""
        self._maxima: dict[int | None, int] = {}
        self._tick: Tick | None = None
        self._note = ""
        self._since = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case Settling():
                self._head = "letting the machine settle"
                self._since = time.monotonic()
                self._say(f"letting the machine settle for {_span(event.duration_ns)}")
            case TunedNow():
                self._console.print(
                    f"rtscope: {_tuned_sentence(event.tuned)}",
                    markup=False,
                    soft_wrap=True,
                )
            case RunBegins():
                self._begin(event)
            case Heard():
                self._hear(event)
            case RunEnds():
                self._end(event)

    def _say(self, text: str) -> None:
        if not self._console.is_terminal:
            self.talk(text)

    def _begin(self, event: RunBegins) -> None:
        self._run = event.run
        self._head = f"{event.number} of {event.of}: {printable(event.run.load)}"
        self._maxima, self._tick, self._note = {}, None, ""
        self._since = time.monotonic()
        self._say(f"{self._head}, {_span(event.run.duration_ns)}")

    def _hear(self, event: Heard) -> None:
        match event.line:
            case Tick():
                self._tick = event.line
                for cpu in event.line.cpus:
                    self._maxima[cpu.cpu] = max(
                        cpu.max_ns, self._maxima.get(cpu.cpu, 0)
                    )
            case KernelMessage():
                if event.line.level <= 4:
                    self._note = f"kernel: {printable(event.line.text, limit=100)}"
            case LoadTick():
                pass

    def _end(self, event: RunEnds) -> None:
        self._left_ns -= self._budget_ns(event.record.run)
        worst = max(
            (t.max_ns for t in event.record.result.threads if t.max_ns is not None),
            default=None,
        )
        self._run = None
        self._say(f"  maximum {format_us(worst)} {virtual_word([event.record])}us")

    def _budget_ns(self, run: Run) -> int:
        return self._plan.measuring_ns(run) + self._plan.warmup_ns + OVERHEAD_NS

    def _picture(self) -> Group:
        spent_ns = (time.monotonic() - self._since) * 1e9
        budget_ns = 0.0
        if self._run is not None:
            budget_ns = self._budget_ns(self._run)
        left_ns = max(0.0, self._left_ns - min(spent_ns, budget_ns))
        self._bar.update(
            self._task,
            completed=self._total_ns - left_ns,
            description=self._head,
            left=_span(int(left_ns)) if left_ns >= 1e9 else "0 s",
        )
        parts: list[Table | Text | Progress] = [self._bar]
        if self._tick is not None:
            parts.append(self._table(self._tick))
        if self._note:
            parts.append(Text(self._note, style="yellow"))
        return Group(*parts)

    def _table(self, tick: Tick) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for heading in ("CPU", "maximum, us", "last second, us", "samples", "skipped"):
            table.add_column(heading, justify="right")
        shown = sorted(
            tick.cpus, key=lambda cpu: self._maxima.get(cpu.cpu, 0), reverse=True
        )[:MAX_CPUS_SHOWN]
        for cpu in shown:
            table.add_row(
                "any" if cpu.cpu is None else str(cpu.cpu),
                format_us(self._maxima.get(cpu.cpu, 0)),
                format_us(cpu.max_ns),
                f"{cpu.samples:,}",
                Text(f"{cpu.skipped:,}", style="yellow" if cpu.skipped else ""),
            )
        if len(tick.cpus) > MAX_CPUS_SHOWN:
            table.caption = f"the {MAX_CPUS_SHOWN} worst of {len(tick.cpus)} CPUs"
        return table


def _span(duration_ns: int) -> str:
    whole_s = max(1, round(duration_ns / 1e9)) * 1_000_000_000
    return format_duration(whole_s)


def _tuned_sentence(tuned: Tuned) -> str:
    """Say in a line what --tuned changed, and what it could not."""
    changed = ", ".join(tuned.changed) or "nothing had to be changed"
    reasons = {r.wish.check: r.reason for r in tuned.tuning.refused}
    failed = {**tuned.plan.impossible, **reasons}
    told = "".join(f"; not {name}: {why}" for name, why in failed.items())
    if tuned.undone_by:
        told += f"; {tuned.undone_by} runs and will undo some of it: stop it first"
    return printable(f"for the measurement, put back after it: {changed}{told}")
