"""
A driver's poll that the kernel left to its softirq's thread, ksoftirqd. Pure.

An interrupt of the device asks for the poll. A softirq that runs already ends without
it where a thread is to run, and wakes ksoftirqd. That waits for the CPU as an ordinary
thread does, until it polls, or a later interrupt does in its place as it ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rtscope.explain.instructions.calls import (
    Run,
    begun,
    main_chain,
    plain,
    title_frame,
)
from rtscope.explain.instructions.contexts import Context, shown
from rtscope.explain.instructions.othercpus import MOSTLY, with_pauses
from rtscope.explain.instructions.roles import Role
from rtscope.record.instructions.section import TaskSwitch

THREAD = "ksoftirqd/"
_ASKS = ("__napi_schedule", "____napi_schedule", "__napi_schedule_irqoff")
_POLLS = "net_rx_action"
_WAKES = "wake_up_process"
_LEAVES = frozenset(
    {
        *("handle_softirqs", "__do_softirq", "wakeup_softirqd", "invoke_softirq"),
        *("raise_softirq_irqoff", "irq_exit", "irq_exit_rcu", "__irq_exit_rcu"),
    }
)
"""The callers of `wake_up_process` that wake ksoftirqd."""


@dataclass(frozen=True, slots=True)
class Left:
    """Where a poll was asked for, and where it was left to the thread: two runs."""

    asked: int
    told: int


@dataclass(frozen=True, slots=True)
class Stay:
    """What a CPU did for a time while the poll waited."""

    begin_ns: int
    end_ns: int
    role: Role
    """SCHEDULE, SOFTIRQ, INTERRUPT, or OTHER: a task ran."""
    calls: tuple[str, ...]
    """The innermost call that most of it was in, and the callers of that."""
    task: TaskSwitch | None


def left_to_thread(runs: Sequence[Run], at: int, since_ns: int) -> Left | None:
    """
    Return where the poll of a run was left to its thread; None if it was not.

    The run polls, or wakes the thread. Not if another poll was meanwhile: that one had
    what was asked for before.
    """
    told = at if _leaves(runs[at]) else None
    while told is None and at and _polls(runs[at]):
        at -= 1
    for i in range(at, -1, -1):
        if runs[i].end_ns < since_ns or _polls(runs[i]):
            return None
        if told is None and _leaves(runs[i]):
            told = i
        elif _asks(runs[i]):
            return None if told is None else Left(i, told)
    return None


def _names(run: Run) -> list[str]:
    return [plain(frame.name) for frame in run.frame.chain()]


def _polls(run: Run) -> bool:
    return Role.SOFTIRQ in run.frame.within and _POLLS in _names(run)


def _asks(run: Run) -> bool:
    return Role.INTERRUPT in run.frame.within and plain(run.frame.name) in _ASKS


def _leaves(run: Run) -> bool:
    if not {Role.SOFTIRQ, Role.INTERRUPT} & run.frame.within:
        return False
    names = _names(run)
    at = names.index(_WAKES) if _WAKES in names else len(names)
    return not _LEAVES.isdisjoint(names[at + 1 : at + 2])


def stays_of(
    runs: Sequence[Run],
    contexts: Sequence[Context],
    begin_ns: int,
    end_ns: int,
    task_of: Callable[[int], TaskSwitch],
) -> tuple[Stay, ...]:
    """Return what took a time of a CPU, by the task that had it or its interrupts."""
    here = range(begun(runs, begin_ns), begun(runs, end_ns))

    def kind(i: int) -> tuple[Role, TaskSwitch | None]:
        role = contexts[i].role
        return role, task_of(runs[i].begin_ns) if role is Role.OTHER else None

    found, since_ns = list[Stay](), begin_ns
    for (role, task), some in groupby(here, kind):
        those = [*some]
        until_ns = end_ns if those[-1] == here[-1] else runs[those[-1]].end_ns
        calls = _most_in(runs[those[0] : those[-1] + 1])
        found.append(Stay(since_ns, until_ns, role, calls, task))
        since_ns = until_ns
    return tuple(found)


def _most_in(runs: Sequence[Run]) -> tuple[str, ...]:
    """Name the innermost call that most of some runs are in, or else the longest."""
    timed = [*map(with_pauses, runs)]
    if chain := main_chain(timed, share=MOSTLY):
        names = [shown(frame) for frame in chain]
        return tuple(names[title_frame(chain, frozenset()) :])
    return (shown(max(timed, key=lambda run: run.executed_ns).frame),)
