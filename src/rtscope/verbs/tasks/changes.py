"""Changes between two lists of threads: begun, ended, and what the kernel says anew."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rtscope.contract.commands import TaskLine
from rtscope.machine.capabilities import capability_words
from rtscope.machine.tasks.model import Listing, Thread, effective_words

What = Literal[
    "begun",
    "ended",
    "name",
    "policy",
    "effective",
    "cpus",
    "state",
    "cgroup",
    "capabilities",
]

STATES = {
    "D": "uninterruptible",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "dead",
    "P": "parked",
}
"""Those that a thread does not enter and leave all the time."""

ORDINARY_STATE = "running or sleeping"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is other than it was."""

    thread: Thread
    """As it is now, or as it was last if it has ended."""
    what: What
    before: str | None
    """In words; None of a thread that has begun."""
    after: str | None
    """In words; None of a thread that has ended."""


def changes(before: Listing, after: Listing) -> Iterator[Change]:
    """
    Yield what has changed, by process and thread, those that ended first.

    A number that another thread has now is an end and a begin. A thread that begins
    and ends between the two lists is in neither.
    """
    was = {thread.line.tid: thread for thread in before.threads}
    now = {thread.line.tid: thread for thread in after.threads}
    for tid, old in was.items():
        if tid not in now or not _same(old.line, now[tid].line):
            yield Change(old, "ended", policy_words(old.line), None)
    for tid, new in now.items():
        if tid in was and _same(was[tid].line, new.line):
            yield from _between(was[tid], new)
        else:
            yield Change(new, "begun", None, policy_words(new.line))


def policy_words(line: TaskLine) -> str:
    """Return a policy with what belongs to it: `fifo 80`, `other, nice 5`."""
    if line.policy in ("fifo", "rr"):
        return f"{line.policy} {line.priority}"
    if line.nice and line.policy in ("other", "batch"):
        return f"{line.policy}, nice {line.nice}"
    return line.policy


def _same(old: TaskLine, new: TaskLine) -> bool:
    return (old.pid, old.started_ns) == (new.pid, new.started_ns)


def _between(old: Thread, new: Thread) -> Iterator[Change]:
    pairs: dict[What, tuple[str | None, str | None]] = {
        "name": (_name(old), _name(new)),
        "policy": (policy_words(old.line), policy_words(new.line)),
        "effective": (_effective(old), _effective(new)),
        "cpus": (old.line.cpus, new.line.cpus),
        "state": (_state(old), _state(new)),
        "cgroup": (old.line.cgroup, new.line.cgroup),
        "capabilities": (_capabilities(old), _capabilities(new)),
    }
    for what, (before, after) in pairs.items():
        # what could not be read at one of the times has not changed for that
        if before is not None and after is not None and before != after:
            yield Change(new, what, before, after)


def _name(thread: Thread) -> str | None:
    """Its name; None of a worker of the kernel, which is called as its work is."""
    worker = thread.line.kind == "kernel" and thread.name.startswith("kworker/")
    return None if worker else thread.name


def _effective(thread: Thread) -> str:
    """Its priority by a lock that it holds, or that it is its own."""
    effective = thread.line.kernel_priority
    if not thread.boosted or effective is None:
        return "its own"
    return effective_words(effective)


def _state(thread: Thread) -> str:
    return STATES.get(thread.line.state, ORDINARY_STATE)


def _capabilities(thread: Thread) -> str | None:
    bits = thread.capability_bits
    return None if bits is None else capability_words(bits)
