"""
Who carried an event from its sender to the thread that waits for it. Pure.

The call that woke the thread was made by the sender, or by a thread or an interrupt
that had the event before it. Each of them was woken by a call too, and so on, back to
the sender. A task carries an event from where it is woken to where it wakes the next
one; the sender from where it has read the clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.explain.instructions.absences import (
    Wait,
    absences_of,
    task_at,
    tasks_of,
)
from rtscope.explain.instructions.calls import Frame, Run, begun
from rtscope.explain.instructions.contexts import Context, contexts_of
from rtscope.explain.instructions.path import Cpus, runs_of_all
from rtscope.explain.instructions.roles import Role
from rtscope.record.instructions.section import (
    TaskSwitch,
    TraceSection,
    Woken,
    wakes_of_tasks,
)
from rtscope.record.instructions.symbols import USER, SymbolTable

SENDER = "rtscope-ev/"
"""How the agent's threads that send events are called: `agent/measure/sampler.c`."""
_MOST_CARRIERS = 8


@dataclass(frozen=True, slots=True)
class Carrier:
    """A task or an interrupt that had the event for a time of its CPU."""

    cpu: int
    begin_ns: int
    end_ns: int
    """Where it made the call that woke the next one."""
    task: TaskSwitch
    """The one that had the CPU at the end."""
    call: Woken | None
    """The call that woke it; None if it was awake, or is an interrupt."""
    is_interrupt: bool = False

    @property
    def is_sender(self) -> bool:
        """Tell whether it is the thread that sent the event."""
        return self.task.name.startswith(SENDER) and not self.is_interrupt


@dataclass(frozen=True, slots=True)
class Way:
    """What led to the wake-up of the thread."""

    carriers: tuple[Carrier, ...]
    """In the order of the event."""
    call: Woken | None
    """The call that woke the thread; None if it did not sleep."""
    is_known: bool
    """The first of them is the sender."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A call that woke a task, and what made it."""

    call: Woken
    runs: Sequence[Run]
    contexts: Sequence[Context]
    at: int


class Search:
    """What is asked to find the carriers of the event that woke a path's thread."""

    def __init__(self, section: TraceSection, symbols: SymbolTable, cpus: Cpus) -> None:
        """Take the runs of all CPUs."""
        self._section = section
        own, others = cpus
        self._switches = others.switches
        self._runs_on = runs_of_all(own.runs, others)
        self._calls = wakes_of_tasks(section)
        self._sent_ns = section.last_ns - section.latency_ns
        tasks = tasks_of(section.cpu, own.switches, own.runs)
        absences = absences_of(
            others.section, symbols, own.runs, tasks, others.switches
        )
        self._waits = [
            one
            for one in absences
            if one.wait is not Wait.CPU and one.end_ns > self._sent_ns
        ]
        self._thread = own.switches[-1].task if own.switches else 0

    def way(self) -> Way:
        """Return who carried the event."""
        if not self._waits:
            return Way((), None, is_known=True)
        wait, carriers = self._waits[0], list[Carrier]()
        since_ns = max(wait.begin_ns, self._sent_ns)
        first = call = self._call_of(
            self._thread, since_ns, wait.end_ns, self._section.cpu
        )
        while call is not None and len(carriers) < _MOST_CARRIERS:
            found = self._made_by(call)
            if found is None:
                break
            one, call = self._carrier(found)
            carriers.append(one)
        is_known = bool(carriers) and carriers[-1].is_sender
        return Way(tuple(reversed(carriers)), first, is_known=is_known)

    def _call_of(
        self, task: int, since_ns: int, until_ns: int, cpu: int
    ) -> Woken | None:
        """Return the first call that woke a task of a CPU between two times of that."""
        for one in self._calls:
            skew_ns = 0 if one.cpu == cpu else self._section.quantum_ns
            if (
                one.task == task
                and since_ns - skew_ns <= one.at_ns <= until_ns + skew_ns
            ):
                return one
        return None

    def _made_by(self, call: Woken) -> _Found | None:
        runs = self._runs_on(call.cpu)
        at = begun(runs, call.at_ns)
        if at == len(runs) or runs[at].begin_ns != call.at_ns:
            return None
        return _Found(call, runs, contexts_of(runs), at)

    def _carrier(self, found: _Found) -> tuple[Carrier, Woken | None]:
        """Return who made a call, and the call that woke him; None for the first."""
        end_ns, cpu = found.call.at_ns, found.call.cpu
        task = task_at(end_ns, cpu, self._switches)
        entry = _interrupt_of(found)
        if entry is not None:
            begin_ns = _begin_of(entry, found)
            return Carrier(cpu, begin_ns, end_ns, task, None, is_interrupt=True), None
        if task.name.startswith(SENDER):
            begin_ns = self._read_ns(found)
            return Carrier(cpu, begin_ns, end_ns, task, None), None
        arrived_ns, slept_ns = self._stay(task, end_ns)
        woken = self._call_of(task.task, slept_ns, arrived_ns, cpu)
        skew_ns = self._section.quantum_ns
        if woken is None or woken.at_ns < self._sent_ns - skew_ns:
            begin_ns = min(self._sent_ns, end_ns)
            return Carrier(cpu, begin_ns, end_ns, task, None), None
        begin_ns = min(woken.at_ns, end_ns)
        return Carrier(cpu, begin_ns, end_ns, task, woken), woken

    def _stay(self, task: TaskSwitch, at_ns: int) -> tuple[int, int]:
        """Return when a task got its CPU last, and when it had left one before that."""
        stays = sorted(
            stay
            for cpu in {one.cpu for one in self._switches}
            for stay in self._stays_on(cpu, task.task)
            if stay[0] <= at_ns
        )
        if not stays:
            return at_ns, self._section.first_ns
        left_ns = stays[-2][1] if len(stays) > 1 else self._section.first_ns
        return stays[-1][0], left_ns

    def _stays_on(self, cpu: int, task: int) -> Iterator[tuple[int, int]]:
        """Yield when a task got a CPU, and when it left it."""
        mine = [s for s in self._switches if s.cpu == cpu and not s.changed]
        ends = [*(one.at_ns for one in mine[1:]), self._section.last_ns]
        for one, left_ns in zip(mine, ends, strict=False):
            if one.task == task:
                yield one.at_ns, left_ns

    def _read_ns(self, found: _Found) -> int:
        """
        Return when the sender had read the clock, by the time of its CPU.

        It does so in its program, behind the end of its sleep.
        """
        runs, at = found.runs, found.at
        slept = (i for i in range(at, -1, -1) if Role.SLEEP in runs[i].frame.within)
        last = next(slept, None)
        if last is None:
            return min(self._sent_ns, found.call.at_ns)
        own = (i for i in range(last, at) if runs[i].frame.name == USER)
        first = next(own, at)
        return runs[first].begin_ns


def _interrupt_of(found: _Found) -> Frame | None:
    """Return the outermost interrupt that made a call; None if a task made it."""
    entries = [
        one for one in found.runs[found.at].frame.chain() if one.role is Role.INTERRUPT
    ]
    if found.contexts[found.at].role is Role.INTERRUPT:
        return found.contexts[found.at].frame
    return entries[-1] if entries else None


def _begin_of(entry: Frame, found: _Found) -> int:
    """Return when an interrupt began that is not over at a call."""
    at = found.at
    while at > 0 and entry in found.runs[at - 1].frame.chain():
        at -= 1
    return found.runs[at].begin_ns
