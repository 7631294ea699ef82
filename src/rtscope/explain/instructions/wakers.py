"""
Who made the measured thread wait, and who ended that wait: which task, when. Pure.

A wait ends with a call of `try_to_wake_up`. The last one before the thread had its CPU
again is of the thread: it puts a thread of its kind into a queue, or asks for an
interrupt by which the thread's CPU does. Another task that the CPU switched to behind
that call may have been the one that it woke: then the call proves nothing.

The calls of `waits.toml` make a thread stop. Which thread they are meant
for is not recorded, so rtscope tells only that a task made such a call, and when.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from rtscope.explain.instructions.absences import (
    Absence,
    Wait,
    begins_of_waits,
    calls_of,
    ending,
    task_at,
)
from rtscope.explain.instructions.calls import Frame, Run, begun, main_chain, plain
from rtscope.explain.instructions.contexts import shown
from rtscope.explain.instructions.elsewhere import ASKS, called_at, pending, queueing
from rtscope.explain.instructions.holders import IDLE, PROMPT_NS
from rtscope.explain.instructions.othercpus import (
    OtherCpus,
    overlapping,
    part_of,
    with_pauses,
)
from rtscope.explain.instructions.requested import FLUSHES_CALLS
from rtscope.explain.instructions.roles import Role
from rtscope.explain.instructions.scheduling import switch_to
from rtscope.record.instructions.section import TaskSwitch
from rtscope.record.instructions.symbols import USER

_MOVES = "move_queued_task"
_WAKE_UP = "try_to_wake_up"
_FOR_WORK = frozenset({"process_one_work", "kthread_worker_fn"})
"""They call the functions of the work items of a queue, one after the other."""
_BARRIERS = frozenset({"wq_barrier_func", "kthread_flush_work_fn"})
"""They are queued behind the work item that somebody waits for."""
_OF_INTERRUPTS = frozenset({Role.INTERRUPT, Role.SOFTIRQ, Role.TRAP})
_IRQ_THREADS = frozenset({"irq_thread_fn", "irq_forced_thread_fn", "irq_thread"})
_TELLS_PARENT = ("do_notify_parent", "do_notify_parent_cldstop")
_TOLD = frozenset({Wait.STOPPED, Wait.FROZEN, Wait.TRACED, Wait.HALTED})


@dataclass(frozen=True, slots=True)
class Deed:
    """A call by which a wait began or ended."""

    at_ns: int
    task: TaskSwitch
    """The one that had the CPU, with the CPU."""
    frame: Frame

    @property
    def is_interrupts(self) -> bool:
        """Tell whether an interrupt, a softirq or its thread made it, not the task."""
        names = {plain(one.name) for one in self.frame.chain()}
        if names & FLUSHES_CALLS:
            return False
        return bool(self.frame.within & _OF_INTERRUPTS or names & _IRQ_THREADS)

    @property
    def is_tasks(self) -> bool:
        """Tell whether the task made it: no interrupt that came while it ran."""
        return not self.frame.within & _OF_INTERRUPTS


@dataclass(frozen=True, slots=True)
class Awaited:
    """Who made the thread wait and who ended that, of one absence."""

    begin: Deed | None
    end: Deed | None
    work: tuple[tuple[str, int], ...] = ()
    """Of a worker: the functions of the work items that it ran before, and their ns."""
    ran: tuple[Run, ...] = ()
    """What the task that ended the wait, or the holder of a lock, ran in it."""


NOBODY = Awaited(None, None)


@dataclass(frozen=True, slots=True)
class Wakers:
    """What is asked about the calls of all CPUs."""

    others: OtherCpus
    runs_on: Callable[[int], Sequence[Run]]

    def of(self, absence: Absence) -> Awaited:
        """Return who made the thread wait in an absence, and who ended it."""
        if absence.cause is None:
            return NOBODY
        if absence.wait is Wait.LOCK:
            if absence.holder is None:
                return NOBODY
            return Awaited(None, None, ran=self._ran(absence.holder, absence))
        end = self._ended(absence)
        begin = self._begun(absence, end) if absence.wait in _TOLD else None
        ran = () if end is None or end.is_interrupts else self._ran(end.task, absence)
        work = _work_in(ran) if end and _is_workers(end.frame) else ()
        return Awaited(begin, end, work, ran)

    def moved(self, absence: Absence) -> Absence | None:
        """
        Return the time in which a thread that a timer woke was queued elsewhere.

        Its CPU did not run it until another CPU moved a thread of its kind there. It
        was not on a CPU that idled meanwhile, so it was on the only one that did not.
        """
        section, cpu = self.others.section, self.others.section.cpu
        if absence.wait is not Wait.TIMER:
            return None
        here = [one for one in self.others.switches if one.cpu == cpu]
        arrived = switch_to(absence.end_ns, here)
        calls = [
            (at_ns, on)
            for at_ns, on in calls_of(section, self.others.symbols, _MOVES)
            if on in self.others.cpus and absence.runnable_ns < at_ns < absence.end_ns
        ]
        if not calls:
            return None
        moved_ns, by = max(calls)
        call = list(called_at(self.runs_on(by), moved_ns, absence.end_ns))
        behind = (s for s in here if moved_ns < s.at_ns < absence.end_ns)
        if not queueing(call, arrived) or any(not one.changed for one in behind):
            return None
        if not self._idled(absence.runnable_ns, moved_ns):
            return None
        busy = self._busy(absence.runnable_ns, moved_ns)
        if len(busy) != 1:
            return None
        runner, place = self._longest_on(busy[0], absence.runnable_ns, moved_ns)
        if runner is None:
            return None
        mover = task_at(moved_ns, by, self.others.switches)
        return Absence(
            absence.runnable_ns,
            absence.end_ns,
            moved_ns,
            Wait.MOVED,
            place,
            ended_by=f"{mover.name or 'an unknown task'} on CPU {by}",
            runner=runner,
        )

    def _busy(self, begin_ns: int, end_ns: int) -> list[int]:
        """Return the other CPUs that are not known to have idled in a time."""
        found = []
        for cpu in self.others.cpus:
            mine = [one for one in self.others.switches if one.cpu == cpu]
            ends = [*(one.at_ns for one in mine), end_ns][1:] if mine else []
            if not any(
                one.name.startswith(IDLE) and one.at_ns < end_ns and until_ns > begin_ns
                for one, until_ns in zip(mine, ends, strict=True)
            ):
                found.append(cpu)
        return found

    def _longest_on(
        self, cpu: int, begin_ns: int, end_ns: int
    ) -> tuple[TaskSwitch | None, tuple[str, ...]]:
        """Return the task that had a CPU for most of a time, and where it was."""
        mine = [one for one in self.others.switches if one.cpu == cpu]
        if not mine:  # of a CPU whose task was not recorded
            return None, ()
        ends = [*(one.at_ns for one in mine[1:]), end_ns]
        times = [
            (min(until_ns, end_ns) - max(one.at_ns, begin_ns), one)
            for one, until_ns in zip(mine, ends, strict=True)
        ]
        ns, longest = max(times, key=lambda row: row[0], default=(0, None))
        if (
            longest is None
            or 2 * ns < end_ns - begin_ns
            or longest.name.startswith(IDLE)
        ):
            return None, ()
        runs = overlapping(self.runs_on(cpu), begin_ns, end_ns)
        inside = [with_pauses(part_of(run, begin_ns, end_ns)) for run in runs]
        chain = main_chain(inside, share=0.5)
        names = tuple(shown(one) for one in chain) or ("",)
        return longest, names[: 1 if names[0] == USER else len(names)]

    def _idled(self, begin_ns: int, end_ns: int) -> bool:
        """Tell whether the thread's CPU slept: it had no such thread in its queue."""
        runs = overlapping(self.runs_on(self.others.section.cpu), begin_ns, end_ns)
        return any(
            Role.IDLE in run.frame.within
            and run.end_ns - run.begin_ns - run.executed_ns > PROMPT_NS
            for run in runs
            if run.begin_ns > begin_ns
        )

    def _ended(self, absence: Absence) -> Deed | None:
        section, cpu = self.others.section, self.others.section.cpu
        here = [one for one in self.others.switches if one.cpu == cpu]
        arrived = switch_to(absence.end_ns, here)
        calls = calls_of(section, self.others.symbols, _WAKE_UP)
        inside = (c for c in calls if absence.begin_ns < c[0] < absence.end_ns)
        for at_ns, by in sorted(inside, reverse=True):
            call = list(called_at(self.runs_on(by), at_ns, absence.end_ns))
            is_ours, queued = _queued_for(cpu, by, call, arrived)
            if is_ours and queued is None:
                asked = list(pending(self.runs_on(cpu), at_ns, absence.end_ns))
                queued = next(iter(queueing(asked, arrived)[-1:]), None)
            if queued is None:
                continue
            behind = (s for s in here if queued.begin_ns < s.at_ns < absence.end_ns)
            if any(not one.changed for one in behind):
                return None
            task = task_at(at_ns, by, self.others.switches)
            deed = Deed(at_ns, task, call[0].frame)
            return deed if _may_end(absence.wait, deed) else None
        return None

    def _begun(self, absence: Absence, end: Deed | None) -> Deed | None:
        """
        Return the last call before an absence that makes threads stop.

        Of several tasks that made such calls it is that of who ended it, or unknown.
        """
        found = [
            one
            for at_ns, by in begins_of_waits(
                absence.wait, self.others.section, self.others.symbols
            )
            if at_ns <= absence.begin_ns
            and (one := self._deed(at_ns, by)) is not None
            and one.is_tasks
            and not any(f.name in _TELLS_PARENT for f in one.frame.chain())
        ]
        tasks = {one.task.task for one in found}
        if len(tasks) > 1 and end is not None:
            found = [one for one in found if one.task.task == end.task.task]
            tasks = {one.task.task for one in found}
        return found[-1] if len(tasks) == 1 else None

    def _deed(self, at_ns: int, cpu: int) -> Deed | None:
        runs = self.runs_on(cpu)
        at = begun(runs, at_ns)
        if at == len(runs) or runs[at].begin_ns != at_ns:
            return None
        return Deed(at_ns, task_at(at_ns, cpu, self.others.switches), runs[at].frame)

    def _ran(self, task: TaskSwitch, absence: Absence) -> tuple[Run, ...]:
        """Return what a task ran in an absence, on whichever CPU, with interrupts."""
        found: list[Run] = []
        for cpu in {one.cpu for one in self.others.switches if one.task == task.task}:
            mine = [s for s in self.others.switches if s.cpu == cpu and not s.changed]
            ends = [*(one.at_ns for one in mine[1:]), absence.end_ns]
            for one, until_ns in zip(mine, ends, strict=True):
                if one.task != task.task:
                    continue
                since_ns = max(one.at_ns, absence.begin_ns)
                until_ns = min(until_ns, absence.end_ns)
                if until_ns > since_ns:
                    runs = overlapping(self.runs_on(cpu), since_ns, until_ns)
                    found += (part_of(run, since_ns, until_ns) for run in runs)
        return tuple(map(with_pauses, found))


def _queued_for(
    cpu: int, by: int, call: Sequence[Run], arrived: TaskSwitch | None
) -> tuple[bool, Run | None]:
    """
    Return whether a call may have woken a thread of a CPU, and where it queued it.

    It may not if it queued another, or one for another CPU. One that queued none asked
    the thread's CPU to do so.
    """
    asks = any(plain(run.frame.name) in ASKS for run in call)
    if not call or _is_for_softirqs(call[0].frame) or (asks and by == cpu):
        return False, None
    if not any(run.frame.role in _QUEUES for run in call):
        return asks, None
    gives_way = any(run.frame.role is Role.RESCHEDULE for run in call)
    own = queueing(call, arrived)
    is_ours = bool(own) and (by == cpu or asks or not gives_way)
    return is_ours, own[-1] if is_ours else None


def _is_for_softirqs(frame: Frame) -> bool:
    """Tell whether a call wakes the kernel's own thread for softirqs, and no other."""
    names = [plain(one.name) for one in islice(frame.chain(), 4)]
    return any(one.startswith(_SOFTIRQ_THREADS) for one in names)


def _may_end(wait: Wait, deed: Deed) -> bool:
    """Tell whether a call is one that ends such a wait, where that is known."""
    if wait not in _TOLD:
        return True
    names = {plain(one.name) for one in deed.frame.chain()}
    return bool(names & ending(wait))


_QUEUES = frozenset({Role.ENQUEUE, Role.ENQUEUE_FAIR})
_SOFTIRQ_THREADS = ("__irq_exit_rcu", "irq_exit", "wakeup_softirqd", "raise_ktimers")


def _is_workers(frame: Frame) -> bool:
    return any(plain(one.name) in _FOR_WORK for one in frame.chain())


def _work_in(runs: Sequence[Run]) -> tuple[tuple[str, int], ...]:
    """Return own ns by the function of each work item, in the order of their begins."""
    spent: Counter[str] = Counter()
    for run in runs:
        function = _work_of(run.frame)
        if function and function not in _BARRIERS:
            spent[function] += run.executed_ns
    return tuple(spent.items())


def _work_of(frame: Frame) -> str:
    called = ""
    for one in frame.chain():
        name = plain(one.name)
        if name in _FOR_WORK:
            return called
        called = name
    return ""
