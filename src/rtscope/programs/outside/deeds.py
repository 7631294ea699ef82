"""What a thread did between two times, and where: calls, page faults, allocations."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.programs.outside.file import Entry
from rtscope.programs.outside.model import Place
from rtscope.programs.outside.wakeups import Call, Preemption, Wakeup

_WRITES, _EXECUTES = 1, 1 << 8
"""Of a page fault: FAULT_FLAG_WRITE, FAULT_FLAG_INSTRUCTION."""


@dataclass(frozen=True, slots=True)
class Deeds:
    """What is in some wake-ups from one time until before another."""

    wakeups: Sequence[Wakeup]
    begin_ns: int
    end_ns: int

    def _has(self, at_ns: int) -> bool:
        return self.begin_ns <= at_ns < self.end_ns

    @property
    def preemptions(self) -> tuple[Preemption, ...]:
        """In their order."""
        every = (push for one in self.wakeups for push in one.preemptions)
        return tuple(push for push in every if self._has(push.began_ns))

    @property
    def faulted(self) -> tuple[Place, ...]:
        """Where each page fault was."""
        every = (fault for one in self.wakeups for fault in one.faults)
        return tuple(
            Place(_fault_words(fault), fault.place)
            for fault in every
            if self._has(fault.at_ns)
        )

    def allocations(self, functions: Sequence[str]) -> tuple[Place, ...]:
        """Return where each use of a function was that was asked for."""
        every = (use for one in self.wakeups for use in one.uses)
        return tuple(
            Place(function_name(functions, use.function), use.place)
            for use in every
            if self._has(use.began_ns)
        )

    @property
    def calls(self) -> Counter[str]:
        """How often each call to the kernel was made."""
        return Counter(one.name for one in self._calls())

    @property
    def called(self) -> Counter[Place]:
        """For how many ns it had its CPU in calls that did not sleep, by place."""
        spent: Counter[Place] = Counter()
        pushes = self.preemptions
        began_ns = [one.began_ns for one in pushes]
        for one in self._calls():
            if one.ended_ns is not None and not one.slept:
                first = bisect_left(began_ns, one.began_ns)
                last = bisect_left(began_ns, one.ended_ns)
                away_ns = sum(p.ended_ns - p.began_ns for p in pushes[first:last])
                at = Place(one.name, one.place)
                spent[at] += max(0, one.ended_ns - one.began_ns - away_ns)
        return spent

    def _calls(self) -> Iterator[Call]:
        every = (call for one in self.wakeups for call in one.calls)
        return (call for call in every if self._has(call.began_ns))


def _fault_words(fault: Entry) -> str:
    if fault.detail & _EXECUTES:
        return "page fault by execution"
    return f"page fault by a {'write' if fault.detail & _WRITES else 'read'}"


def function_name(functions: Sequence[str], number: int) -> str:
    """Return the name of a function that was asked for."""
    return functions[number] if number < len(functions) else f"function {number}"
