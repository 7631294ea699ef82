"""
System calls by their effect, and which of a thread's calls may block.

`calls.toml` judges each call of the kernel; the agent's table is made of it.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rtscope.contract import EventTimes, WatchedCall, WatchedThread


@dataclass(frozen=True, slots=True)
class CallKind:
    """What a system call does to the thread that makes it."""

    effect: str
    """A word of the table `effects`; `none`: it cannot block."""
    why: str
    idle: bool
    """A thread may wait there for its next cycle."""
    numbers: tuple[int, ...]
    """On x86-64, on arm64 and riscv64, on ARM, i386 and x32; -1: it has none."""
    unless: tuple[str, ...] = ()
    """When it cannot block: rules as `calls.toml` describes them."""

    def cannot_block(
        self, arguments: Sequence[int], nonblocking: Callable[[int], bool | None]
    ) -> bool | None:
        """
        Return whether a call with these first arguments cannot block; None: unknown.

        `nonblocking` says it of a descriptor. What an argument points to is unknown.
        """
        found = [_applies(rule, arguments, nonblocking) for rule in self.unless]
        if any(found):
            return True
        return None if None in found else False


def _applies(
    rule: str, arguments: Sequence[int], nonblocking: Callable[[int], bool | None]
) -> bool | None:
    word, at, *values = rule.split()
    if int(at) >= len(arguments):
        return None
    whole = arguments[int(at)]
    argument = whole & 0xFFFFFFFF
    numbers = {int(value) for value in values}
    match word:
        case "zero":
            return argument == 0
        case "has":
            return any(argument & one for one in numbers)
        case "is":
            return argument in numbers
        case "unless":
            return argument not in numbers
        case "nonblocking":
            return nonblocking(argument)
        case "notime" if not whole:
            return False
    return None


@cache
def call_kinds() -> Mapping[str, CallKind]:
    """Return all system calls by their names."""
    text = resources.files("rtscope.programs").joinpath("calls.toml").read_text("utf-8")
    table = tomllib.loads(text)
    effects: Mapping[str, str] = table["effects"]
    return {
        name: CallKind(
            effect=row["is"],
            why=row.get("why", effects[row["is"]]),
            idle=row.get("idle", False),
            numbers=tuple(row["at"]),
            unless=tuple(row.get("unless", ())),
        )
        for name, row in table["calls"].items()
    }


NARROW = 1 << 29
"""The plugin's bit of a call that a program of 32 bits made."""
X32_BIT = 1 << 30
"""The kernel's bit of a call of x32."""

_COLUMNS: Mapping[str, Mapping[int, int]] = {
    "x86_64": {0: 0, NARROW: 3, X32_BIT: 4},
    "aarch64": {0: 1, NARROW: 2},
    "riscv64": {0: 1},
    "arm": {0: 2},
}
"""Where `numbers` has those of an architecture, as QEMU names it, by their bit."""


@cache
def names_of_calls(arch: str) -> Mapping[int, str]:
    """Return the names of an architecture's system calls by their numbers."""
    columns = _COLUMNS.get(arch, _COLUMNS["x86_64"])
    return {
        bit | kind.numbers[column]: name
        for bit, column in columns.items()
        for name, kind in call_kinds().items()
        if kind.numbers[column] >= 0
    }


def the_longest(waits_ns: Sequence[int], others_ns: Iterable[int] = ()) -> int | None:
    """Return the index of the wait that is longer than each other; None: none is."""
    if not waits_ns:
        return None
    longest = max(range(len(waits_ns)), key=lambda index: waits_ns[index])
    rest = (*waits_ns[:longest], *waits_ns[longest + 1 :], *others_ns, 0)
    return longest if waits_ns[longest] > max(rest) else None


def reason_of(name: str) -> str:
    """Return why a call may block; of one of a newer kernel that it is unknown."""
    kind = call_kinds().get(name)
    return "a newer kernel's, not judged" if kind is None else kind.why


def idle_wait(watched: WatchedThread) -> WatchedCall | None:
    """
    Return the call in which a thread waits for its next cycle; None if it does in none.

    It is the one of those that wait for events in which it slept longest of all: also
    of timers, of words of memory, and of calls that wait for something else. Records
    of sleeps may be lost, and a thread that is always late does not sleep: the one
    that took more than half of the time is it, unless the kernel held it; where no
    sleep was seen in any, the only one of a thread that never slept.
    """
    half_ns = (watched.to_ns - watched.from_ns) / 2
    for one in watched.calls:
        if one.idle and one.times.total_ns - one.held.total_ns > half_ns > 0:
            return one
    waits = [one for one in watched.calls if one.idle and one.slept.count]
    if not waits:
        return _without_sleeps(watched)
    others = (
        watched.slept_elsewhere_ns,
        *(one.slept.total_ns for one in watched.calls if not one.idle),
        *(one.times.total_ns for one in watched.words),
    )
    longest = the_longest([one.slept.total_ns for one in waits], others)
    return None if longest is None else waits[longest]


def _without_sleeps(watched: WatchedThread) -> WatchedCall | None:
    """Return the only wait for events, in which no sleep was seen; None: it slept."""
    some = [one for one in watched.calls if one.idle and one.times.count]
    slept = watched.slept_elsewhere_ns or any(one.slept.count for one in watched.calls)
    return some[0] if len(some) == 1 and not slept and not watched.words else None


def may_block(watched: WatchedThread) -> tuple[WatchedCall, ...]:
    """Return the calls of a thread that may block, by name, the longest first."""
    idle = idle_wait(watched)
    rows: dict[str, WatchedCall] = {}
    for one in watched.calls:
        if one is not idle and not one.memory and one.times.count:
            name = name_of(one)
            rows[name] = _together(rows[name], one) if name in rows else one
    return tuple(sorted(rows.values(), key=lambda one: -one.times.worst_ns))


def memory_calls(watched: WatchedThread) -> tuple[WatchedCall, ...]:
    """Return the calls that change the memory map, the longest first."""
    rows = [one for one in watched.calls if one.memory and one.times.count]
    return tuple(sorted(rows, key=lambda one: -one.times.worst_ns))


def name_of(call: WatchedCall) -> str:
    """Return the name of a call, or its number."""
    return call.name or f"system call {call.number}"


def _together(one: WatchedCall, other: WatchedCall) -> WatchedCall:
    return WatchedCall(
        name=one.name,
        number=one.number,
        memory=one.memory,
        idle=one.idle,
        key="0",
        harmless=one.harmless + other.harmless,
        undecided=one.undecided + other.undecided,
        times=sum_of((one.times, other.times)),
        slept=sum_of((one.slept, other.slept)),
        held=sum_of((one.held, other.held)),
    )


def sum_of(some: Iterable[EventTimes]) -> EventTimes:
    """Return all of them as one."""
    times = [one for one in some if one.count]
    if not times:
        return EventTimes(0, 0, 0, 0, "")
    worst = max(times, key=lambda one: one.worst_ns)
    return EventTimes(
        sum(one.count for one in times),
        sum(one.total_ns for one in times),
        worst.worst_ns,
        worst.worst_at_ns,
        worst.worst_in,
    )
