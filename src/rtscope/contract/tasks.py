"""The lines of the agent's `tasks`: every thread of a machine and its scheduling."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import Count, Cpu, Flag, Schema, Text

NiceValue = Annotated[int, Field(ge=-20, le=19, strict=True)]
Effective = Annotated[int, Field(ge=-1000, le=1000, strict=True)]
Clamp = Annotated[int, Field(ge=0, le=1024, strict=True)]


@dataclass(frozen=True, slots=True)
class DeadlineParameters:
    """What a SCHED_DEADLINE thread asked for and was admitted with, in ns."""

    runtime_ns: Count
    deadline_ns: Count
    period_ns: Count
    reclaim: Flag
    """It takes bandwidth that others leave unused (SCHED_FLAG_RECLAIM)."""
    overrun_signal: Flag
    """It is sent SIGXCPU when it exceeds its run time (SCHED_FLAG_DL_OVERRUN)."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One thread; a field that could not be read is None, and `unreadable` says why."""

    type: Literal["task"] = field(kw_only=True, default="task")
    pid: Count
    tid: Count
    name: Text
    """A byte that is no UTF-8 is a question mark here; then `name_hex` has them all."""
    name_hex: Text | None
    kind: Literal["user", "kernel"]
    state: Text
    """The kernel's letter: R running, S sleeping, D uninterruptible, Z ended, ..."""
    policy: Text
    priority: Count
    """Of FIFO and RR, 1 to 99; else 0."""
    reset_on_fork: Flag | None
    deadline: DeadlineParameters | None
    slice_ns: Count | None
    """Of other, batch and idle, since Linux 6.12."""
    util_clamp: tuple[Clamp, Clamp] | None
    nice: NiceValue
    kernel_priority: Effective | None
    """The kernel's priority less 100, priority inheritance included."""
    last_cpu: Cpu
    cpus: Text | None
    """The CPUs it is allowed on, as a list such as `0-3`."""
    voluntary_switches: Count | None
    involuntary_switches: Count | None
    minor_faults: Count
    major_faults: Count
    timer_slack_ns: Count | None
    user_ns: Count
    system_ns: Count
    cpu_time_ns: Count
    cpu_time_exact: Flag
    """False: the kernel keeps no exact time, and it is that of its ticks."""
    window_ns: Count | None
    window_cpu_ns: Count | None
    """CPU time used in the window; None without one, or if it began later."""
    unreadable: Mapping[Text, Text]


@dataclass(frozen=True, slots=True)
class TasksEnd:
    """The last line of a list of threads: how many, and what is not on it."""

    type: Literal["tasks_end"] = field(kw_only=True, default="tasks_end")
    schema: Schema
    processes: Count
    threads: Count
    vanished: Count
    """Threads and processes that ended while they were read."""
    not_read: Count
    """Threads that could not be listed; a process that is closed to us counts once."""
    window_ns: Count | None
    window_ended: Count | None
    """Threads that ended in the window: their CPU time is in no line."""
    tick_ns: Count
    uid: Count
