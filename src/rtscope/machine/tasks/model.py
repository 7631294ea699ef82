"""A thread as people ask for it: its kind, its policy, its marks; which are shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rtscope.contract import FIXED_PRIORITY, REAL_TIME
from rtscope.contract.commands import TaskLine, TasksEnd

_OF_DEADLINE = -101
"""task_prio(): prio less MAX_RT_PRIO (100), and a deadline thread's prio is -1."""


class ThreadKind(StrEnum):
    """What a thread is."""

    USER = "user"
    KERNEL = "kernel"
    IRQ = "irq"


@dataclass(frozen=True, slots=True)
class Irq:
    """The interrupt that a thread answers."""

    number: int
    device: str
    """The driver that requested the interrupt, as the kernel names it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to note about a thread; `id` is a key of `marks.toml`."""

    id: str
    detail: str


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of the machine."""

    line: TaskLine
    name: str
    process: str
    """The name of its process's first thread."""
    kind: ThreadKind
    irq: Irq | None
    cpus: frozenset[int]
    """The CPUs it is allowed on; none if that is unknown."""
    marks: tuple[Mark, ...] = ()

    @property
    def is_leader(self) -> bool:
        """Whether it is the first thread of its process."""
        return self.line.tid == self.line.pid

    @property
    def real_time(self) -> bool:
        """Whether it has a real-time policy of its own."""
        return self.line.policy in REAL_TIME

    @property
    def capability_bits(self) -> int | None:
        """Its effective capabilities; None if unknown."""
        text = self.line.capabilities
        return None if text is None else int(text, 16)

    @property
    def share(self) -> float | None:
        """CPU time over elapsed time of the window; 1 is a whole CPU."""
        if self.line.window_cpu_ns is None or not self.line.window_ns:
            return None
        return self.line.window_cpu_ns / self.line.window_ns

    @property
    def own_effective(self) -> int | None:
        """The kernel's priority that its own policy gives it; None if unknown."""
        if self.line.policy == "deadline":
            return _OF_DEADLINE
        if self.line.policy in FIXED_PRIORITY:
            return -1 - self.line.priority
        if self.line.policy in ("other", "batch", "idle", "ext"):
            return 20 + self.line.nice
        return None

    @property
    def boosted(self) -> bool:
        """Whether it runs above its own priority, for a lock that it holds."""
        own, now = self.own_effective, self.line.kernel_priority
        return own is not None and now is not None and now < own


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Settings of the machine against which threads are checked."""

    isolated: frozenset[int] | None
    """None: unknown."""
    irq_devices: Mapping[int, tuple[str, ...]]
    sched_ext: str | None
    """The name of a loaded sched_ext scheduler."""
    hidepid: str | None
    """How /proc hides the processes of others; None if it does not."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All threads of a machine at one time."""

    threads: tuple[Thread, ...]
    end: TasksEnd
    around: Surroundings


def effective_words(effective: int) -> str:
    """Write the kernel's priority as the policy that it stands for."""
    if effective <= _OF_DEADLINE:
        return "deadline"
    if effective < 0:
        return f"real-time {-1 - effective}"
    return f"nice {effective - 20}"


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
    effective = thread.line.kernel_priority
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


def choose(threads: Sequence[Thread], choice: Choice) -> list[Thread]:
    """Return the threads that were asked for, in the order that was asked for."""
    pid = choice.pid
    if pid is not None:
        pid = next((t.line.pid for t in threads if t.line.tid == pid), pid)
    selection = [
        t
        for t in threads
        if (not choice.real_time or t.real_time or (t.boosted and _as_real_time(t)))
        and (choice.cpu is None or choice.cpu in t.cpus)
        and (pid is None or t.line.pid == pid)
    ]
    if choice.order is not Order.PROCESS:
        selection.sort(key=_KEYS[choice.order])
    return selection


def _as_real_time(thread: Thread) -> bool:
    return thread.line.kernel_priority is not None and thread.line.kernel_priority < 0
