"""The lines of the agent's `demo`: what the threads of a demonstration did when."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import Count, Cpu, Flag, Schema, Text

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
