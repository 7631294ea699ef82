"""What the guard of a load writes: that it runs, what its processes did, its end."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import Count, Flag, Schema, Text


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
    """True if the load was told to stop; False if it ended by itself."""
    killed: Count
    """Processes that did not end when asked and were killed."""
    oom_kills: Count | None
    cpu_ns: Count
