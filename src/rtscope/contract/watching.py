"""
The lines of the agent's `watch` and `cycles`: what the threads of one process did.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.measurement import Tracing
from rtscope.contract.values import Count, Flag, Schema, Text

Hex = Annotated[str, Field(max_length=16, pattern="^[0-9a-f]+$", strict=True)]
"""64 bits of an address."""

BY_CPU = "by_cpu"
"""The kind that tells whether events of CPUs can be had, which delay no thread."""

Priority = Annotated[int, Field(ge=-(2**31), lt=2**31, strict=True)]


@dataclass(frozen=True, slots=True)
class WatchedEvent:
    """Whether one kind of event could be seen; if not, a word for the cause."""

    name: Text
    seen: Flag
    user_only: Flag
    """Events within system calls of the process are not seen."""
    cause: Text
    reason: Text
    remedy: Text


@dataclass(frozen=True, slots=True)
class WatchBegin:
    """The first line: which process is watched, and what can be seen of it."""

    type: Literal["watch"] = field(kw_only=True, default="watch")
    schema: Schema
    pid: Count
    arch: Text
    from_ns: Count
    stack_bytes: Count
    """Copied of a stack, at most; 0 on an architecture without stacks."""
    events: tuple[WatchedEvent, ...]


@dataclass(frozen=True, slots=True)
class WatchSample:
    """Registers and stack of a thread when an event happened in it."""

    type: Literal["watch_sample"] = field(kw_only=True, default="watch_sample")
    event: Text
    tid: Count
    t_ns: Count
    address: Hex
    """Of a page fault: what was touched."""
    abi: Count
    """Of the registers: 0 there are none, 1 of 32 bits, 2 of 64 bits."""
    regs: Annotated[str, Field(max_length=4096)]
    """Base64 of numbers of 64 bits, in the order of agent/watch/perfregs.h."""
    stack: Annotated[str, Field(max_length=128 * 1024)]
    """Base64 of the memory from the stack pointer on."""
    call: Text
    """Of a system call: its name; empty if it is unknown or no call."""
    key: Hex
    """Of a futex: its word; of a call that waits for events: its first argument."""


@dataclass(frozen=True, slots=True)
class WatchExecuted:
    """A thread executed a program: the others ended, and it has the first one's TID."""

    type: Literal["executed"] = field(kw_only=True, default="executed")
    tid: Count
    """That it had before."""
    name: Text
    """Of the process from then on."""
    t_ns: Count
    looked_ns: Count
    """When the `file` line of its memory, right before this one, was read."""


@dataclass(frozen=True, slots=True)
class EventTimes:
    """How long those lasted that were seen from begin to end."""

    count: Count
    total_ns: Count
    worst_ns: Count
    worst_at_ns: Count
    """When the longest began."""
    worst_in: Text
    """Of the longest: the system call, or the thread that got the CPU."""


@dataclass(frozen=True, slots=True)
class EventCount:
    """How often it happened in one thread, and how many stacks were sent of it."""

    count: Count
    sampled: Count
    times: EventTimes | None = None
    """None: it has no end, or none was seen from begin to end."""


@dataclass(frozen=True, slots=True)
class Party:
    """Another thread, as it was soon after."""

    tid: Count
    name: Text
    priority: Priority
    """Of the kernel: below 100 real-time, the lower the more urgent."""


@dataclass(frozen=True, slots=True)
class Waker:
    """A less urgent thread that woke this one, or a softirq that interrupted it."""

    by: Party
    softirq: Flag
    count: Count
    word: Hex
    """The word of memory that it waited for; 0: none."""


@dataclass(frozen=True, slots=True)
class Inversion:
    """How long `owner`, who ended the wait for a word, lacked a CPU that `by` had."""

    owner: Party
    by: Party
    times: EventTimes
    word: Hex


@dataclass(frozen=True, slots=True)
class Settable:
    """Waits until a time of a clock that others set."""

    waits: Count
    expired: Count
    """Of these: that time ended it."""


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A system call of one thread; of those that wait for events, by `key`."""

    name: Text
    """Empty: of a newer kernel."""
    number: Count
    memory: Flag
    """It takes the lock of the process's memory."""
    idle: Flag
    """It may be the wait for the next cycle."""
    key: Hex
    """Its first argument, if `idle`; else 0."""
    harmless: Count
    """How often it could not block, and did not."""
    undecided: Count
    """How often it did not, and whether it could is not known."""
    times: EventTimes
    """Of all others, from entry to return."""
    slept: EventTimes
    """In them; `worst_in`: who ended the longest, empty if that is not known."""
    held: EventTimes
    """Of these, where no signal ends it: for the kernel or a device."""
    settable: Settable | None = None
    """None: it is not known, as by agents before this key."""


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What a thread did while another waited for it."""

    ran_ns: Count
    aside_ns: Count
    """It could have run, and others had its CPU."""
    slept_ns: Count
    slept_in: Text
    """The last system call that it slept in; empty: one that is not timed, or none."""


@dataclass(frozen=True, slots=True)
class WatchedWord:
    """The waits of one thread for one word of memory, by futex."""

    word: Hex
    value: Count
    """That the first wait expected there."""
    command: Count
    """Of the first: linux/futex.h."""
    values_differ: Flag
    wakes: Count
    """How often the thread woke others of the word, after its own first wait."""
    looks: Count
    """How often the agent read the word while the thread did not wait for it."""
    free: Count
    """How often it was 1 then, as a semaphore that may be taken."""
    times: EventTimes
    waker: Party | None = None
    """Who ended the longest; None if it is not known."""
    meanwhile: Meanwhile | None = None
    """What that one did in the longest; None if it is not known."""
    settable: Settable | None = None
    """None: it is not known, as by agents before this key."""


@dataclass(frozen=True, slots=True)
class WatchedThread:
    """What one thread did while it was watched."""

    type: Literal["watched"] = field(kw_only=True, default="watched")
    tid: Count
    name: Text
    from_ns: Count
    to_ns: Count
    ended: Flag
    samples_lost: Count
    """Stacks that found the ring full; the counts have their events."""
    events: Mapping[Text, EventCount]
    wakers: tuple[Waker, ...]
    other_wakers: Count
    """Wake-ups by less urgent threads that are not in `wakers`."""
    inversions: tuple[Inversion, ...]
    records_lost: Count
    """Of switches, wake-ups and calls: their times are not known."""
    kernel_waits: EventTimes
    """
    For locks of the kernel and for devices.

    `worst_in`: who ended the longest; empty if that is not known.
    """
    calls: tuple[WatchedCall, ...]
    other_calls: Count
    """Calls that are not in `calls`."""
    slept_elsewhere_ns: Count
    """In no call that is timed: in `clock_nanosleep`, mostly."""
    words: tuple[WatchedWord, ...]
    other_words: Count
    """Waits that are not in `words`."""


@dataclass(frozen=True, slots=True)
class WatchCost:
    """What one event costs the watched thread, measured by the agent on itself."""

    plain_ns: Count
    """When it is not watched."""
    counted_ns: Count
    """When it is counted; 0 if it cannot be."""
    copied_ns: Count
    """When its stack is copied, too; 0 if it cannot be."""


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """The last line: how many threads, and what could not be watched."""

    type: Literal["watch_end"] = field(kw_only=True, default="watch_end")
    to_ns: Count
    stopped: Text
    """Why it ended before its time; `ended`: the process did."""
    threads: Count
    vanished: Count
    """Threads that ended before they could be watched."""
    not_watched: Count
    """Threads beyond those that the agent can watch at once."""
    stacks: Count
    agent_cpu_ns: Count
    costs: Mapping[Text, WatchCost]
    """
    Of a page fault, a system call, a probed function, and wake-ups.

    `wakeup` of an idle CPU, `wakeup_beside` of one that another thread used.
    """
    records_lost: Count
    """Of switches, wake-ups and calls: there was no room for them."""
    samples_lost: Count = 0
    """Stacks that found the ring of a CPU full."""
    opening_ns: Count = 0
    """From a look for new threads until all had their events; the longest."""
    own_events: Count = 0
    """Real-time threads whose tracepoints are their own, which delays them more."""


# --- `cycles`: when threads woke, ran and slept -------------------------------------

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
    switch to it is missing (0 for when it got the CPU), 8 events before it were lost,
    16 it came within a sleep, which then went on, 32 something else woke it before the
    time that its timer was set to, which came before it slept again; 256 times the
    number of the poll, select, epoll, io_uring or sigtimedwait in which it slept, each
    by its first argument (0: none of these).
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
    wakeup_plain_ns: Count
    """How late a thread of the agent woke while nothing was recorded; 0: unknown."""
    wakeup_recorded_ns: Count
    """And while this was; 0: unknown."""
    wakeup_beside_plain_ns: Count = 0
    """How late on a CPU that another thread used, while nothing was recorded."""
    wakeup_beside_recorded_ns: Count = 0
    """And while this was."""
