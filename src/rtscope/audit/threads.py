"""
Judges of the real-time threads that run now: of programs, and of interrupts.

Read from the stat file of every thread (proc_pid_stat(5)); a tool that asks the first
thread of each process alone sees none of a real-time program's workers.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rtscope.audit.model import (
    Answer,
    CheckKind,
    Evidence,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.audit.scene import Scene

STATS = "/proc/[0-9]*/task/[0-9]*/stat"

HIGHEST = 99
REAL_TIME = {1: "FIFO", 2: "RR", 6: "DEADLINE"}
"""include/uapi/linux/sched.h"""

# Fields of the stat file, counted from behind the name in brackets: 9, 40 and 41.
_FLAGS, _PRIORITY, _POLICY = 6, 37, 38
_PF_KTHREAD = 0x00200000
"""include/linux/sched.h; ps(1) goes by the same bit."""

_IRQ = re.compile(r"irq/\d+-")


@dataclass(frozen=True, slots=True)
class _Thread:
    path: str
    name: str
    of_kernel: bool
    policy: int
    priority: int

    @property
    def told(self) -> Evidence:
        policy = f"{REAL_TIME[self.policy]} {self.priority or ''}".strip()
        return Evidence(self.path, f"{self.name}: {policy}")


def real_time_threads(kind: CheckKind, scene: Scene) -> Answer:
    """Judge that no program's thread has the highest priority."""
    threads, why_not = _threads(scene)
    if why_not is not None:
        return why_not
    ours = [t for t in threads if not t.of_kernel and t.policy in REAL_TIME]
    top = [t for t in ours if t.priority == HIGHEST]
    if top:
        says = f"{_count(len(top), 'thread')} of priority {HIGHEST}: {top[0].name}"
        return failed(says, *(t.told for t in top[:16]))
    if not any(t.of_kernel for t in threads):
        return unknown("only the threads of a container are seen")
    seen = Evidence(STATS, f"{len(threads)} read")
    if not ours:
        return passed("no program has a real-time thread now", seen)
    highest = max(t.priority for t in ours)
    says = f"{_count(len(ours), 'thread')} of programs, of priority {highest} at most"
    return passed(says, *(t.told for t in ours[:16]))


def interrupt_threads(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether interrupt threads are below the real-time threads of programs."""
    threads, why_not = _threads(scene)
    if why_not is not None:
        return why_not
    if not any(t.of_kernel for t in threads):
        return unknown("only the threads of a container are seen")
    irqs = [t for t in threads if t.of_kernel and _IRQ.match(t.name)]
    if not irqs:
        return not_applicable("interrupts have no threads on this kernel")
    # A deadline thread runs before all of them.
    ours = [t for t in threads if not t.of_kernel and t.policy in (1, 2)]
    if not ours:
        return not_applicable("no program has a real-time thread with a priority now")
    lowest = min(ours, key=lambda t: t.priority)
    above = [t for t in irqs if t.policy in (1, 2) and t.priority >= lowest.priority]
    if above:
        says = (
            f"{len(above)} of {len(irqs)} are not below {lowest.name} "
            f"({REAL_TIME[lowest.policy]} {lowest.priority})"
        )
        return failed(says, lowest.told, *(t.told for t in above[:16]))
    return passed(f"{len(irqs)} are below priority {lowest.priority}", lowest.told)


def _threads(scene: Scene) -> tuple[list[_Thread], Answer | None]:
    """Return the threads, or the answer if there is nothing to tell it by."""
    stats = scene.matching(STATS)
    threads = list(_parsed(stats))
    if threads:
        return threads, None
    return [], unknown("the threads cannot be seen", *scene.refusals(STATS))


def _parsed(stats: Mapping[str, str]) -> Iterator[_Thread]:
    for path, text in stats.items():
        # A name may hold brackets and blanks: the last bracket ends it.
        head, _, tail = text.rpartition(") ")
        fields = tail.split()
        if len(fields) <= _POLICY or not all(map(str.isdecimal, _used(fields))):
            continue
        yield _Thread(
            path,
            head.partition("(")[2],
            of_kernel=bool(int(fields[_FLAGS]) & _PF_KTHREAD),
            policy=int(fields[_POLICY]),
            priority=int(fields[_PRIORITY]),
        )


def _used(fields: list[str]) -> tuple[str, ...]:
    return fields[_FLAGS], fields[_PRIORITY], fields[_POLICY]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


JUDGES = (real_time_threads, interrupt_threads)
