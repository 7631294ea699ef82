"""
Problems and peculiarities in a list of threads: a mark is one rule with its evidence.

The rules look at all threads of the machine, whatever of them is shown.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rtscope.cpulist import format_cpulist
from rtscope.tasks.model import Mark, Surroundings, Thread, ThreadKind, effective_words

HOG_SHARE = 0.9
"""Of one CPU, over the window."""

MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class MarkKind:
    """A rule: its word in the table, its title, and the reason for it."""

    word: str
    title: str
    why: str
    grave: bool


KINDS: Mapping[str, MarkKind] = {
    "priority_99": MarkKind(
        "99",
        "user threads of priority 99",
        "No thread of a user can preempt them, not even a watchdog: leave 99 free.",
        grave=True,
    ),
    "housekeeping": MarkKind(
        "house",
        "real-time threads allowed on housekeeping CPUs",
        "This machine has isolated CPUs, but these threads may run on others.",
        grave=True,
    ),
    "irq_above": MarkKind(
        "irq",
        "real-time threads below interrupt threads on their CPUs",
        "Each of these interrupts delays them: lower the priority of the interrupt "
        "thread, or move the interrupt to other CPUs.",
        grave=False,
    ),
    "fifo_peers": MarkKind(
        "peers",
        "FIFO threads that share priority and CPUs with others",
        "Of FIFO threads with one priority on one CPU, the first runs until it "
        "sleeps: the scheduler does not share the time.",
        grave=False,
    ),
    "hog": MarkKind(
        "hog",
        "threads that used a whole CPU",
        "Threads of a lower priority do not run on that CPU meanwhile.",
        grave=True,
    ),
    "boosted": MarkKind(
        "boost",
        "threads boosted by priority inheritance",
        "They hold a lock for which a thread of a higher priority waits.",
        grave=False,
    ),
    "deadline": MarkKind(
        "dl",
        "SCHED_DEADLINE threads",
        "Run time, deadline and period, and the reserved share of a CPU.",
        grave=False,
    ),
    "reset_on_fork": MarkKind(
        "reset",
        "threads whose policy is reset on fork",
        "Their new threads and processes have an ordinary policy.",
        grave=False,
    ),
}


def marked(threads: Sequence[Thread], around: Surroundings) -> Iterator[Thread]:
    """Return the threads with their marks."""
    peers, irqs = _Peers(threads), _Interrupts(threads)
    for thread in threads:
        marks = (
            *_by_itself(thread),
            *_housekeeping(thread, around.isolated),
            *irqs.above(thread),
            *peers.of(thread),
        )
        order = list(KINDS)
        yield (
            replace(thread, marks=tuple(sorted(marks, key=lambda m: order.index(m.id))))
            if marks
            else thread
        )


def _by_itself(thread: Thread) -> Iterator[Mark]:
    line = thread.line
    if thread.kind is ThreadKind.USER and line.priority == 99:
        yield Mark("priority_99", f"{line.policy} 99")
    if thread.boosted and line.kernel_priority is not None:
        yield Mark("boosted", f"runs as {effective_words(line.kernel_priority)}")
    if thread.share is not None and thread.share >= HOG_SHARE:
        yield Mark("hog", f"{100 * thread.share:.0f} % of a CPU")
    if line.deadline is not None and line.deadline.period_ns:
        used = 100 * line.deadline.runtime_ns / line.deadline.period_ns
        yield Mark("deadline", f"{used:.3g} % of a CPU reserved")
    if line.reset_on_fork:
        yield Mark("reset_on_fork", "new threads are ordinary")


def _housekeeping(thread: Thread, isolated: frozenset[int] | None) -> Iterator[Mark]:
    if not isolated or thread.kind is not ThreadKind.USER or not thread.real_time:
        return
    if outside := thread.cpus - isolated:
        yield Mark(
            "housekeeping",
            f"allowed on CPU {format_cpulist(outside)}; isolated: CPU "
            f"{format_cpulist(isolated)}",
        )


class _Peers:
    """FIFO threads by priority and allowed CPUs: few pairs, also of many threads."""

    def __init__(self, threads: Sequence[Thread]) -> None:
        self._groups: dict[int, dict[frozenset[int], list[Thread]]] = {}
        for thread in threads:
            if thread.line.policy == "fifo" and not _is_stopper(thread):
                masks = self._groups.setdefault(thread.line.priority, {})
                masks.setdefault(thread.cpus, []).append(thread)

    def of(self, thread: Thread) -> Iterator[Mark]:
        """Mark a user's FIFO thread that may meet an equal one on a CPU."""
        if thread.kind is not ThreadKind.USER or thread.line.policy != "fifo":
            return
        masks = self._groups[thread.line.priority]
        meeting = [group for mask, group in masks.items() if mask & thread.cpus]
        others = sum(map(len, meeting)) - bool(thread.cpus)
        if others > 0:
            named = [
                peer
                for group in meeting
                for peer in group[: MAX_NAMED + 1]
                if peer is not thread
            ]
            yield Mark(
                "fifo_peers",
                f"{others} more of priority {thread.line.priority}: "
                f"{enumerated(named, others)}",
            )


class _Interrupts:
    """Interrupt threads, and which of them are above a thread on its CPUs."""

    def __init__(self, threads: Sequence[Thread]) -> None:
        self._irqs = [t for t in threads if t.kind is ThreadKind.IRQ and t.real_time]
        self._above: dict[tuple[int, frozenset[int]], list[Thread]] = defaultdict(list)
        for thread in threads:
            key = (thread.line.priority, thread.cpus)
            if self._concerns(thread) and key not in self._above:
                self._above[key] = [
                    irq
                    for irq in self._irqs
                    if irq.line.priority > key[0] and irq.cpus & key[1]
                ]

    @staticmethod
    def _concerns(thread: Thread) -> bool:
        return thread.kind is ThreadKind.USER and thread.line.policy in ("fifo", "rr")

    def above(self, thread: Thread) -> Iterator[Mark]:
        """Mark a user's thread that an interrupt thread may preempt."""
        key = (thread.line.priority, thread.cpus)
        if self._concerns(thread) and (above := self._above[key]):
            yield Mark(
                "irq_above",
                f"{thread.line.policy} {thread.line.priority} below "
                f"{enumerated(above, len(above), priority=True)}",
            )


def _is_stopper(thread: Thread) -> bool:
    """Whether it shows FIFO 99 but is of the stop class, above all others."""
    return thread.kind is ThreadKind.KERNEL and thread.name.startswith("migration/")


def enumerated(threads: Sequence[Thread], total: int, *, priority: bool = False) -> str:
    """Name the first few threads, and count the rest."""
    said = [
        f"{t.line.tid} {t.name}" + (f" ({t.line.priority})" if priority else "")
        for t in threads[:MAX_NAMED]
    ]
    more = total - len(said)
    return ", ".join(said) + (f" and {more} more" if more > 0 else "")
