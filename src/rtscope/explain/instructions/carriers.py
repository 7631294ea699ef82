"""
Who carried an event from its sender to the thread that waits for it. Pure.

The call that woke the thread was made by the sender, or by a thread or an interrupt
that had the event before it. Each of them was woken by a call too, and so on, back to
the sender. A task carries an event from where it is woken to where it wakes the next
one; the sender from where it has read the clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtscope.explain.instructions.absences import (
    absences_of,
    left_in,
    task_at,
    tasks_of,
    wait_of,
)
from rtscope.explain.instructions.calls import Frame, Run, begun, plain
from rtscope.explain.instructions.contexts import Context, contexts_of
from rtscope.explain.instructions.deferred import Stay, left_to_thread, stays_of
from rtscope.explain.instructions.holders import IDLE
from rtscope.explain.instructions.path import Cpus, runs_of_all
from rtscope.explain.instructions.released import ON_THE_WAY, last_call_ns
from rtscope.explain.instructions.requested import (
    asked_in,
    begin_of,
    call_of,
    released_by,
    request_of,
    timers_in,
    transmits,
)
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
    entry: str = ""
    """The name of an interrupt."""
    entered_ns: int | None = None
    """When an interrupt began; it was asked for before, if the request is known."""
    asked_by: int | None = None
    """The CPU of whose instruction that is."""
    is_device: bool = False
    """It is no task: a device that takes its time between its store and its request."""
    until_later: bool = False
    """It asked for its interrupt when a later event had come."""
    timers: tuple[str, ...] = ()
    """The callbacks of the timer that ended this time, where that was no device's."""
    sends: bool = False
    """What waited for that timer was still with its sender."""
    was_awake: bool = False
    """Its call came before the event."""
    stays: tuple[Stay, ...] = ()
    """It is no task: what its CPU did while a poll was left to ksoftirqd."""

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
    awake_until_ns: int | None = None
    """When the thread went to sleep, if it was awake when the event was sent."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Where an instruction passed the event on."""

    at_ns: int
    cpu: int
    runs: Sequence[Run]
    contexts: Sequence[Context]
    at: int
    """The run that it is in."""


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
        waits = [one for one in absences if one.wait not in ON_THE_WAY]
        waits = [one for one in waits if one.end_ns > self._sent_ns]
        called_ns = last_call_ns(own, tasks.measured)
        # A call need not wait for what came while the thread waited for another event.
        self._waits = [one for one in waits if one.end_ns > called_ns] or waits
        self._thread = own.switches[-1].task if own.switches else 0
        self._sends = False

    def way(self) -> Way:
        """Return who carried the event."""
        if not self._waits:
            return Way((), None, is_known=True)
        wait, carriers = self._waits[-1], list[Carrier]()
        since_ns = max(wait.begin_ns, self._sent_ns)
        first = call = self._call_of(
            self._thread, since_ns, wait.end_ns, self._section.cpu
        )
        if call is None:  # it may have been woken for an earlier event
            times, cpu = (wait.begin_ns, wait.end_ns), self._section.cpu
            before = self._call_of(
                self._thread, wait.begin_ns, since_ns, cpu
            ) or self._called_before(self._thread, *times, cpu)
            return Way((), before, is_known=before is not None)
        found = self._made_by(call)
        while found is not None and len(carriers) < _MOST_CARRIERS:
            those, found = self._carriers(found)
            carriers += those
        is_known = bool(carriers) and carriers[-1].is_sender
        awake_until_ns = wait.begin_ns if wait.begin_ns > self._sent_ns else None
        way = tuple(reversed(carriers))
        return Way(way, first, is_known=is_known, awake_until_ns=awake_until_ns)

    def _called_before(
        self, task: int, slept_ns: int, arrived_ns: int, cpu: int
    ) -> Woken | None:
        """
        Return a call at the begin of the record, of a task that slept before it.

        All calls behind that are recorded: where none woke it, one did before.
        """
        first_ns = self._section.first_ns
        is_before = slept_ns <= first_ns < arrived_ns and bool(self._calls)
        return Woken(first_ns, cpu, task) if is_before else None

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
        return _Found(call.at_ns, call.cpu, runs, contexts_of(runs), at)

    def _carriers(self, found: _Found) -> tuple[list[Carrier], _Found | None]:
        """Return who passed the event on, and where he got it; None for the first."""
        end_ns, cpu = found.at_ns, found.cpu
        task = task_at(end_ns, cpu, self._switches)
        entry = _interrupt_of(found)
        if entry is not None:
            return self._left(found, task, entry) or self._interrupt(
                found, task, entry, begin_of(entry, found.runs, found.at)
            )
        if task.name.startswith(IDLE) and (left := _left_idle(found)) is not None:
            entry = found.contexts[left].frame or found.runs[left].frame
            return self._interrupt(found, task, entry, found.runs[left].begin_ns)
        if task.name.startswith(SENDER):
            begin_ns = self._read_ns(found)
            if self._sends and begin_ns > self._sent_ns + self._section.quantum_ns:
                return self._until_later(found, task)
            return [Carrier(cpu, begin_ns, end_ns, task, None)], None
        arrived_ns, slept_ns = self._stay(task, end_ns)
        woken = self._call_of(task.task, slept_ns, arrived_ns, cpu)
        skew_ns = self._section.quantum_ns
        if woken is None or woken.at_ns < self._sent_ns - skew_ns:
            # To a task that was awake already: by a call, or a store of its program.
            sent = self._sent_by(end_ns) or self._storing()
            begin_ns = min(self._sent_ns if sent is None else sent.at_ns, end_ns)
            woken = woken or self._called_before(task.task, slept_ns, arrived_ns, cpu)
            own = Carrier(cpu, begin_ns, end_ns, task, woken, was_awake=True)
            return [own], sent
        begin_ns = min(woken.at_ns, end_ns)
        return [Carrier(cpu, begin_ns, end_ns, task, woken)], self._made_by(woken)

    def _interrupt(
        self, found: _Found, task: TaskSwitch, entry: Frame, entered_ns: int
    ) -> tuple[list[Carrier], _Found | None]:
        """
        Return an interrupt, with the device that waited to ask for it.

        Another CPU may have handed the event on by it, as RPS does.
        """
        since_ns = self._sent_ns - self._section.quantum_ns
        of_device = request_of(
            self._section,
            self._runs_on,
            cpu=found.cpu,
            entered_ns=entered_ns,
            since_ns=since_ns,
        )
        asked = of_device or call_of(
            self._section,
            self._runs_on,
            cpu=found.cpu,
            times_ns=(entered_ns, found.at_ns),
            since_ns=since_ns,
        )
        begin_ns = entered_ns if asked is None else min(asked.at_ns, entered_ns)
        known = Carrier(
            *(found.cpu, begin_ns, found.at_ns, task, None),
            is_interrupt=True,
            entry=plain(entry.name).removeprefix("asm_"),
            entered_ns=entered_ns,
            asked_by=None if asked is None else asked.by,
        )
        if asked is None:
            return self._pending(known) or self._running(known)
        if asked.by is not None:
            self._sends |= of_device is not None
            runs = self._runs_on(asked.by)
            at = asked_in(runs, asked)
            if at is None:
                return [known], None
            contexts = contexts_of(runs)
            return [known], _Found(asked.at_ns, asked.by, runs, contexts, at)
        sent = self._sent_by(asked.at_ns)
        if sent is None:
            return [known], None
        begin_ns = min(sent.at_ns, asked.at_ns)
        waits = Carrier(
            *(found.cpu, begin_ns, asked.at_ns, task, None),
            is_device=True,
            timers=timers_in(found.runs[begun(found.runs, entered_ns) :]),
            sends=self._sends,
        )
        queued = None if waits.timers else self._queued(waits, sent)
        if queued is None:
            return [known, waits], sent
        return [known, replace(waits, begin_ns=queued.end_ns), queued], sent

    def _until_later(
        self, found: _Found, task: TaskSwitch
    ) -> tuple[list[Carrier], _Found | None]:
        """Return a device, or a queue, that kept the event until a sender used it."""
        sent = self._sent_by(found.at_ns)
        begin_ns = min(sent.at_ns if sent else self._sent_ns, found.at_ns)
        kept = Carrier(found.cpu, begin_ns, found.at_ns, task, None, is_device=True)
        if sent is not None and (queued := self._queued(kept, sent)) is not None:
            sends = Carrier(found.cpu, queued.end_ns, found.at_ns, task, None)
            return [sends, queued], sent
        return [replace(kept, until_later=True)], sent

    def _left(
        self, found: _Found, task: TaskSwitch, entry: Frame
    ) -> tuple[list[Carrier], _Found | None] | None:
        """Return an interrupt whose driver's poll was left to ksoftirqd, if it was."""
        runs, cpu = found.runs, found.cpu
        since_ns = self._sent_ns - self._section.quantum_ns
        left = left_to_thread(runs, found.at, since_ns)
        if left is None:
            return None
        asked = replace(found, at_ns=runs[left.asked].begin_ns, at=left.asked)
        asks = next(f for f in runs[asked.at].frame.chain() if f.role is Role.INTERRUPT)
        carriers, sent = self._interrupt(
            asked, task, asks, begin_of(asks, asked.runs, asked.at)
        )
        those, until_ns = list[Carrier](), found.at_ns
        if left.told != found.at:  # the end of a later one polls in the thread's place
            until_ns = begin_of(entry, found.runs, found.at)
            later = Carrier(
                *(cpu, until_ns, found.at_ns, task, None),
                is_interrupt=True,
                entry=plain(entry.name).removeprefix("asm_"),
                entered_ns=until_ns,
            )
            those = [later]
        stays = stays_of(
            *(runs, found.contexts, asked.at_ns, until_ns),
            lambda at_ns: task_at(at_ns, cpu, self._switches),
        )
        waits = Carrier(cpu, asked.at_ns, until_ns, task, None, stays=stays)
        return [*those, waits, *carriers], sent

    def _queued(self, waits: Carrier, sent: _Found) -> Carrier | None:
        """Return the time in which a sender's queue kept the event from its device."""
        own = sent.runs[begun(sent.runs, self._sent_ns) : sent.at]
        if any(transmits(run) for run in own):
            return None
        for cpu in {one.cpu for one in self._switches}:
            runs = self._runs_on(cpu)
            first = begun(runs, waits.begin_ns)
            for i in range(first, begun(runs, waits.end_ns)):
                if transmits(runs[i]) and (timers := released_by(runs, first, i)):
                    end_ns = runs[i].begin_ns
                    return replace(waits, end_ns=end_ns, timers=timers, sends=True)
        return None

    def _pending(self, known: Carrier) -> tuple[list[Carrier], _Found | None] | None:
        """Return an interrupt that was asked for before the event, and came later."""
        entered_ns = known.begin_ns
        before = request_of(
            self._section,
            self._runs_on,
            cpu=known.cpu,
            entered_ns=self._sent_ns,
            since_ns=self._section.first_ns,
        )
        if before is None:
            return None
        runs, sent = self._runs_on(known.cpu), self._storing()
        meanwhile = runs[begun(runs, before.at_ns) : begun(runs, self._sent_ns)]
        if any(Role.INTERRUPT in run.frame.within for run in meanwhile):
            return None  # that one was for what came before
        if sent is None or sent.at_ns >= entered_ns:
            return None
        return [replace(known, begin_ns=sent.at_ns)], sent

    def _storing(self) -> _Found | None:
        """Return where the sender was in its program when it had read the clock."""
        for cpu in {s.cpu for s in self._switches if s.name.startswith(SENDER)}:
            runs = self._runs_on(cpu)
            until = begun(runs, self._sent_ns + self._section.quantum_ns)
            own = (i for i in reversed(range(until)) if self._is_own(runs[i], cpu))
            if (at := next(own, None)) is not None:
                at_ns = max(self._sent_ns, runs[at].begin_ns)
                return _Found(at_ns, cpu, runs, contexts_of(runs), at)
        return None

    def _running(self, known: Carrier) -> tuple[list[Carrier], _Found | None]:
        """Return an interrupt that went on since before the event, and who sent it."""
        sent = self._sent_by(known.end_ns)
        if sent is None or sent.at_ns <= known.begin_ns:
            return [known], None
        begin_ns = min(sent.at_ns, known.end_ns)  # by the clock of another CPU
        return [replace(known, begin_ns=begin_ns, entered_ns=begin_ns)], sent

    def _sent_by(self, until_ns: int) -> _Found | None:
        """
        Return where the sender was done with the event; None if it was not seen.

        Of several it is the one that read the clock when the event was sent.
        """
        skew_ns = self._section.quantum_ns
        found = list[tuple[int, _Found]]()
        for cpu in sorted({s.cpu for s in self._switches if s.name.startswith(SENDER)}):
            runs = self._runs_on(cpu)
            end = self._done(runs, cpu)
            if end is None:
                continue
            one = _Found(runs[end].begin_ns, cpu, runs, contexts_of(runs), end)
            read_ns = self._read_ns(one)
            if read_ns <= until_ns + skew_ns:
                at_ns = max(read_ns, self._ran_ns(one, until_ns))
                found.append((abs(read_ns - self._sent_ns), replace(one, at_ns=at_ns)))
        return min(found, key=lambda one: one[0])[1] if found else None

    def _ran_ns(self, done: _Found, until_ns: int) -> int:
        """Return when a sender ran last before a time: another may have its CPU."""
        if done.at_ns <= until_ns:
            return done.at_ns
        runs, cpu, last = done.runs, done.cpu, begun(done.runs, until_ns) - 1
        at = next((i for i in range(last, -1, -1) if self._is_sender(runs[i], cpu)), 0)
        return until_ns if at == last else runs[at].begin_ns

    def _done(self, runs: Sequence[Run], cpu: int) -> int | None:
        """Return where a sender is in its program again, behind its call to send."""
        late_ns = self._sent_ns + self._section.quantum_ns
        read, slept = None, False
        for i in range(begun(runs, late_ns)):
            if _sleeps(runs[i]):
                slept = slept or self._is_sender(runs[i], cpu)
            elif slept and self._is_own(runs[i], cpu):
                read, slept = i, False
        if read is None:
            return None
        behind = range(read, len(runs))
        call = next((i for i in behind if runs[i].frame.name != USER), len(runs))
        return next(
            (i for i in behind[call - read :] if self._is_own(runs[i], cpu)), None
        )

    def _is_own(self, run: Run, cpu: int) -> bool:
        """Tell whether a run is of a sender's program."""
        return run.frame.name == USER and self._is_sender(run, cpu)

    def _is_sender(self, run: Run, cpu: int) -> bool:
        return task_at(run.begin_ns, cpu, self._switches).name.startswith(SENDER)

    def _stay(self, task: TaskSwitch, at_ns: int) -> tuple[int, int]:
        """
        Return when a task got a CPU after it had slept, and since when it had slept.

        It did not sleep where nobody woke it, or where it waited for a lock.
        """
        stays = sorted(
            (*stay, cpu)
            for cpu in {one.cpu for one in self._switches}
            for stay in self._stays_on(cpu, task.task)
            if stay[0] <= at_ns
        )
        if not stays:
            return at_ns, self._section.first_ns
        for before, stay in zip(stays[-2::-1], stays[:0:-1], strict=True):
            _, left_ns, cpu = before
            was_woken = self._call_of(task.task, left_ns, stay[0], stay[2])
            if was_woken and not self._goes_on(cpu, left_ns):
                return stay[0], left_ns
        return stays[0][0], self._section.first_ns

    def _goes_on(self, cpu: int, left_ns: int) -> bool:
        """Tell whether a task that leaves a CPU keeps the event that it carries."""
        runs = self._runs_on(cpu)
        before = range(begun(runs, left_ns) - 1, -1, -1)
        at = next((i for i in before if runs[i].frame.role is Role.SWITCH), None)
        return at is not None and wait_of([*left_in(runs[at])]) in ON_THE_WAY

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
        runs, first = found.runs, found.at
        for i in range(found.at, -1, -1):
            if _sleeps(runs[i]) and self._is_sender(runs[i], found.cpu):
                return runs[first].begin_ns
            if self._is_own(runs[i], found.cpu):
                first = i
        return min(self._sent_ns, found.at_ns)


def _sleeps(run: Run) -> bool:
    return Role.SLEEP in run.frame.within


def _interrupt_of(found: _Found) -> Frame | None:
    """Return the outermost interrupt that made a call; None if a task made it."""
    entries = [
        one for one in found.runs[found.at].frame.chain() if one.role is Role.INTERRUPT
    ]
    if found.contexts[found.at].role is Role.INTERRUPT:
        return found.contexts[found.at].frame
    return entries[-1] if entries else None


def _left_idle(found: _Found) -> int | None:
    """Return the run by which a CPU left idle for a softirq; None if it had not."""
    idle = next(
        (i for i in range(found.at, -1, -1) if Role.IDLE in found.runs[i].frame.within),
        None,
    )
    return None if idle is None or idle == found.at else idle + 1
