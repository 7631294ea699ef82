"""What the agent writes of loads, settings, threads and demonstrations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import MAX_LINE_BYTES, Count, Cpu, Flag, Schema, Text

# --- the lines of the agent's `demo`: what the threads of a demonstration did when ----

Moment = Annotated[int, Field(ge=-(2**45), le=2**45, strict=True)]
"""A time in ns since the start of the demonstration."""

DemoWord = Literal[
    "woke", "ran", "unit", "want", "got", "left", "took", "faults", "done"
]

DemoEvent = tuple[DemoWord, Count, Moment, Moment]
"""What happened, in which step of the script, when, and a number: format/README.md."""


@dataclass(frozen=True, slots=True)
class DemoThread:
    """A thread before it began, as read back from the kernel."""

    name: Text
    tid: Count
    policy: Text
    priority: Count
    runtime_ns: Count
    period_ns: Count
    """Both of deadline; 0 of others."""
    slice_ns: Count
    """Of rr; 0 of others."""
    affinity: Text


@dataclass(frozen=True, slots=True)
class DemoBegin:
    """The first line: where, and with which threads."""

    type: Literal["demo"] = field(kw_only=True, default="demo")
    schema: Schema
    arch: Text
    kernel: Text
    cpu: Cpu
    start_ns: Count
    memory_locked: Flag
    unit_ns: Count
    pause_ns: Count
    threads: tuple[DemoThread, ...]


@dataclass(frozen=True, slots=True)
class DemoEvents:
    """Consecutive events of one thread."""

    type: Literal["demo_events"] = field(kw_only=True, default="demo_events")
    thread: Text
    events: tuple[DemoEvent, ...]


@dataclass(frozen=True, slots=True)
class DemoThreadEnd:
    """What the kernel accounted to a thread between its first and its last step."""

    name: Text
    cpu_time_ns: Count
    minor_faults: Count
    major_faults: Count
    voluntary_switches: Count
    involuntary_switches: Count
    events: Count
    events_lost: Count


@dataclass(frozen=True, slots=True)
class DemoEnd:
    """The last line."""

    type: Literal["demo_end"] = field(kw_only=True, default="demo_end")
    end_ns: Count
    stopped: Text
    """Why before its end: `watchdog`, or as in a result; empty if not."""
    threads: tuple[DemoThreadEnd, ...]


# --- what the guard of a load writes: that it runs, what its processes did, its end ---


@dataclass(frozen=True, slots=True)
class LoadHello:
    """First line of the guard: the load runs, as this process."""

    type: Literal["load_hello"] = field(kw_only=True, default="load_hello")
    schema: Schema
    pid: Count
    argv: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class LoadTick:
    """Once a second from the guard: is the load alive, and how much has it run."""

    type: Literal["load"] = field(kw_only=True, default="load")
    t_ns: Count
    processes: Count
    cpu_ns: Count


@dataclass(frozen=True, slots=True)
class ProcessInWindow:
    """
    What one process of the load did in a window.

    The CPU time is of all its threads, the switches are of its first one.
    """

    pid: Count
    parent: Count
    started_ns: Count
    """Since the machine booted; tells two processes of one pid apart."""
    name: Annotated[str, Field(max_length=64, strict=True)]
    state: Annotated[str, Field(max_length=8, strict=True)]
    """At the end of the window, a letter of /proc/PID/stat; `gone` if it had ended."""
    cpu_ns: Count | None
    """None: unknown, as for a process that is gone."""
    voluntary_switches: Count | None
    involuntary_switches: Count | None


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """From the guard, for the proof that the load ran: each process in some time."""

    type: Literal["load_window"] = field(kw_only=True, default="load_window")
    from_ns: Count
    to_ns: Count
    processes: tuple[ProcessInWindow, ...]
    not_watched: Count
    """Processes beyond those that the guard can watch."""


@dataclass(frozen=True, slots=True)
class LoadEnd:
    """Last line of the guard: how the load ended."""

    type: Literal["load_end"] = field(kw_only=True, default="load_end")
    status: Count | None
    signal: Count | None
    stop_requested: Flag
    """True: the host stopped the load; False: it ended by itself."""
    killed: Count
    """Processes that did not end when asked and were killed."""
    oom_kills: Count | None
    cpu_ns: Count
    errors: Text = ""
    """The end of what it wrote to standard error, if that was asked for."""
    left: Count | None = None
    """Processes that lived when its first one had ended by itself; ended then. None: of
    an agent that did not say it."""


# --- what the agent writes of changed and restored settings, files and directories ----


@dataclass(frozen=True, slots=True)
class Keeping:
    """`keep` has taken charge of its directory."""

    type: Literal["keep"] = field(kw_only=True, default="keep")


@dataclass(frozen=True, slots=True)
class Restored:
    """A setting was put back: `value` is what it was before it was changed."""

    type: Literal["restored"] = field(kw_only=True, default="restored")
    knob: Text
    index: Count
    value: Text


@dataclass(frozen=True, slots=True)
class Applied:
    """A setting is as it was asked for; it was before if `old` is `value`."""

    type: Literal["applied"] = field(kw_only=True, default="applied")
    knob: Text
    index: Count
    """Of the CPU, interrupt, ...; see `KNOB_STRIDE` in `agent/journal/knob.h`."""
    old: Text
    value: Text


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting could not be made, or put back; `cause` is a word of the contract."""

    type: Literal["refused"] = field(kw_only=True, default="refused")
    knob: Text
    index: Count
    value: Text
    cause: Text
    reason: Text


@dataclass(frozen=True, slots=True)
class Tuned:
    """Every setting was tried; with `hold` they stay until the host ends it."""

    type: Literal["tuned"] = field(kw_only=True, default="tuned")
    schema: Schema
    applied: Count
    already: Count
    refused: Count


# --- files and directories of the target --------------------------------------------


@dataclass(frozen=True, slots=True)
class FileLine:
    """A file of the target, as `read` found it; base64 is there if status is `ok`."""

    type: Literal["file"] = field(kw_only=True, default="file")
    path: Text
    status: Literal["ok", "missing", "denied"]
    base64: Annotated[str, Field(max_length=MAX_LINE_BYTES)] = ""
    reason: Text = ""


@dataclass(frozen=True, slots=True)
class DiskLine:
    """Room of a directory of the target; `fs_magic` as in the kernel's magic.h."""

    type: Literal["disk"] = field(kw_only=True, default="disk")
    path: Text
    fs_magic: Count
    free_bytes: Count
    free_inodes: Count


# --- the lines of the agent's `tasks`: every thread of a machine and its scheduling ---

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
    started_ns: Count | None = None
    """Since the boot; None, like those below, of an agent that did not say it."""
    capabilities: Annotated[str, Field(pattern=r"^[0-9a-f]{1,16}$")] | None = None
    """The effective ones, in hexadecimal as the kernel writes them."""
    cgroup: Text | None = None
    """Its control group for the scheduler."""


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
