"""Which threads are shown, in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rtscope.tasks.model import Thread

UNKNOWN = 1_000
"""After every priority of the kernel."""


class Order(StrEnum):
    """What comes first; all but `process` mix the threads of processes."""

    PROCESS = "process"
    PRIORITY = "priority"
    SHARE = "share"
    TIME = "time"
    SWITCHES = "switches"
    FAULTS = "faults"
    CPU = "cpu"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked for."""

    real_time: bool = False
    cpu: int | None = None
    pid: int | None = None
    """A process, or any thread of it."""
    order: Order = Order.PROCESS


def _runs_first(thread: Thread) -> int:
    effective = thread.line.effective
    if effective is None:  # its policy changed just then
        effective = thread.own_effective
    return UNKNOWN if effective is None else effective


_KEYS: dict[Order, Callable[[Thread], Any]] = {
    # The kernel's own scale, boosts included: the least runs first.
    Order.PRIORITY: _runs_first,
    Order.SHARE: lambda t: -(t.share or 0.0),
    Order.TIME: lambda t: -t.line.cpu_time_ns,
    Order.SWITCHES: lambda t: -(t.line.involuntary_switches or 0),
    Order.FAULTS: lambda t: (-t.line.major_faults, -t.line.minor_faults),
    Order.CPU: lambda t: t.line.last_cpu,
    Order.NAME: lambda t: t.name,
}


def chosen(threads: Sequence[Thread], choice: Choice) -> list[Thread]:
    """Return the threads that were asked for, in the order that was asked for."""
    pid = choice.pid
    if pid is not None:
        pid = next((t.line.pid for t in threads if t.line.tid == pid), pid)
    found = [
        t
        for t in threads
        if (not choice.real_time or t.real_time or (t.boosted and _as_real_time(t)))
        and (choice.cpu is None or choice.cpu in t.cpus)
        and (pid is None or t.line.pid == pid)
    ]
    if choice.order is not Order.PROCESS:
        found.sort(key=_KEYS[choice.order])
    return found


def _as_real_time(thread: Thread) -> bool:
    return thread.line.effective is not None and thread.line.effective < 0
