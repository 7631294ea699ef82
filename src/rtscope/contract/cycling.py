"""The lines of the agent's `cycles`: when threads of a process woke, ran and slept."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.tracing import Tracing
from rtscope.contract.values import Count, Schema, Text

Ran = Annotated[int, Field(ge=-(2**63), le=2**63 - 1, strict=True)]


@dataclass(frozen=True, slots=True)
class CyclesBegin:
    """The first line: which process is watched, and from when on."""

    type: Literal["cycles"] = field(kw_only=True, default="cycles")
    schema: Schema
    pid: Count
    from_ns: Count


@dataclass(frozen=True, slots=True)
class CycleRuns:
    """
    Runs of threads, each from a wake-up to the next sleep, in the order of their ends.

    Of each: TID, CPU, when its timer was set, when that was due on CLOCK_MONOTONIC
    (both 0 if no timer of the process woke it), when it was woken, got the CPU and went
    to sleep, its time on a CPU, how often it was preempted, and flags: 1 the timer was
    set to a time from then on, 2 it did not sleep, because the time had passed, 4 the
    switch to it is missing (0 for when it got the CPU), 8 events before it were lost.
    """

    type: Literal["cycle_runs"] = field(kw_only=True, default="cycle_runs")
    runs: tuple[
        tuple[Count, Count, Count, Count, Count, Count, Count, Ran, Count, Count], ...
    ]


@dataclass(frozen=True, slots=True)
class CyclesEnd:
    """The last line: what is in no run, and the trace around the longest cycles."""

    type: Literal["cycles_end"] = field(kw_only=True, default="cycles_end")
    to_ns: Count
    stopped: Text
    """Why it ended before its time; `ended`: the process did."""
    runs: Count
    left_out: Count
    """Runs beyond those that the agent sends."""
    cut: Count
    """Runs that lost events, or the begin or the end of recording, cut."""
    losses: Count
    """Times that events were lost."""
    not_watched: Count
    agent_cpu_ns: Count
    tracing: Tracing
