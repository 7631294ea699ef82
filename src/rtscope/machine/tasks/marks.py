"""
Problems and peculiarities in a list of threads: a mark is one rule with its evidence.

The rules look at all threads of the machine, whatever of them is shown.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from rtscope.contract import FIXED_PRIORITY
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.tasks.model import (
    Mark,
    Surroundings,
    Thread,
    ThreadKind,
    effective_words,
)

HOG_SHARE = 0.9
"""Of one CPU, over the window."""

MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class MarkKind:
    """A row of `marks.toml`: a rule with its title, and the reason for it."""

    word: str
    title: str
    why: str
    grave: bool


@cache
def mark_kinds() -> Mapping[str, MarkKind]:
    """Return the rules by their ids, in the order of `marks.toml`."""
    text = (
        resources.files("rtscope.machine.tasks")
        .joinpath("marks.toml")
        .read_text("utf-8")
    )
    return {name: MarkKind(**row) for name, row in tomllib.loads(text).items()}


def marked(threads: Sequence[Thread], around: Surroundings) -> Iterator[Thread]:
    """Return the threads with their marks."""
    peers, irqs = _Peers(threads), _Interrupts(threads)
    order = list(mark_kinds())
    for thread in threads:
        marks = (
            *_by_itself(thread),
            *_housekeeping(thread, around.isolated),
            *irqs.above(thread),
            *peers.of(thread),
        )
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
        return thread.kind is ThreadKind.USER and thread.line.policy in FIXED_PRIORITY

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


def enumerated(
    threads: Sequence[Thread],
    total: int,
    *,
    priority: bool = False,
    most: int | None = MAX_NAMED,
) -> str:
    """Name the first few threads, or all, and count the rest."""
    said = [
        f"{t.line.tid} {t.name}" + (f" ({t.line.priority})" if priority else "")
        for t in threads[:most]
    ]
    more = total - len(said)
    return ", ".join(said) + (f" and {more} more" if more > 0 else "")
