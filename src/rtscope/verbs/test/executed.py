"""What each thread executed of its program: by function, over all its cycles. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.verbs.test.codefile import Content, ProgramCode
from rtscope.verbs.test.functions import MOST_NAMED, Naming, function_key

Contents = tuple[int, ...]
"""What a cycle executed: the numbers of its pieces' contents."""
CpusOf = Callable[[OutsideCycle], Sequence[int]]
"""Gives the CPUs that a cycle was on, by the record of its program."""


class WhyLeftOut(StrEnum):
    """Why the code of a cycle is not known, in words."""

    FULL = "the record of executed code was full"
    BEYOND_COUNT = "a block was begun more often than the record counts"
    TWO_CPUS = "on two CPUs"
    OTHER = "its pieces have other instructions than the cycle"


@dataclass(frozen=True, slots=True)
class WorstUse:
    """A function, and the cycle in which it executed most, without what it called."""

    name: str
    """A word in brackets: it is not known."""
    file: str
    """Its source, or the file that its code is in."""
    instructions: int
    """In that cycle."""
    cycle: int
    """Its number; of equal ones the first."""
    cycles: int
    """In how many it was executed at all."""


@dataclass(frozen=True, slots=True)
class ThreadUses:
    """The functions of the program that a thread executed in its cycles."""

    uses: tuple[WorstUse, ...]
    """Most instructions first."""
    left_out: Mapping[WhyLeftOut, int]
    """Cycles whose pieces do not have the instructions that the cycle has, by why."""


def worst_uses(
    code: ProgramCode, thread: OutsideThread, named: Naming, *, cpus: CpusOf
) -> ThreadUses:
    """Return for each function the cycle in which a thread executed most of it."""
    cycles, left_out = _by_contents(code, thread, cpus)
    used = sorted({one for contents in cycles for one in contents})
    place = _FunctionOf([code.contents[one] for one in used], named)
    sums = {one: place.sums(code.contents[one]) for one in used}
    most = np.zeros(len(place.keys), np.int64)
    worst, times = np.zeros_like(most), np.zeros_like(most)
    for contents, of_cycles in cycles.items():
        executed = np.zeros_like(most)
        for one in contents:
            functions, instructions = sums[one]
            executed[functions] += instructions
        times[executed > 0] += len(of_cycles)
        more = executed > most
        most[more], worst[more] = executed[more], of_cycles[0].number
    uses = [
        WorstUse(*key, int(most[number]), int(worst[number]), int(times[number]))
        for number, key in enumerate(place.keys)
        if most[number]
    ]
    uses.sort(key=lambda one: (-one.instructions, one.name, one.file))
    return ThreadUses(tuple(uses), {w: left_out[w] for w in WhyLeftOut if left_out[w]})


def _by_contents(
    code: ProgramCode, thread: OutsideThread, cpus: CpusOf
) -> tuple[dict[Contents, list[OutsideCycle]], Counter[WhyLeftOut]]:
    """
    Return the cycles of a thread by what they executed, in their order.

    And how many are left out, as their pieces have other instructions than they.
    """
    cycles: dict[Contents, list[OutsideCycle]] = {}
    left_out: Counter[WhyLeftOut] = Counter()
    pieces = code.threads.get(thread.tid)
    if pieces is None:
        left_out.update(_why_left_out(code, one, cpus) for one in thread.cycles)
        return cycles, left_out
    ended_ns = np.maximum.accumulate(pieces.ended_ns)
    for cycle in thread.cycles:
        first, last = np.searchsorted(
            ended_ns, (cycle.first_ns, cycle.done_ns), "right"
        )
        contents = pieces.contents[first:last]
        if code.beyond_count[contents].any():
            left_out[WhyLeftOut.BEYOND_COUNT] += 1
        elif code.totals[contents].sum() == cycle.user_instructions:
            cycles.setdefault(tuple(contents.tolist()), []).append(cycle)
        else:
            left_out[_why_left_out(code, cycle, cpus)] += 1
    return cycles, left_out


def _why_left_out(code: ProgramCode, cycle: OutsideCycle, cpus: CpusOf) -> WhyLeftOut:
    if code.lost and cycle.done_ns > code.ended_ns:
        return WhyLeftOut.FULL
    # A piece that ended on another CPU has a time of that one: it may be in no order.
    return WhyLeftOut.TWO_CPUS if len(cpus(cycle)) > 1 else WhyLeftOut.OTHER


class _FunctionOf:
    """Which function each block of contents is in."""

    def __init__(self, contents: Sequence[Content], named: Naming) -> None:
        addresses, instructions = _all_blocks(contents)
        order = np.argsort(-instructions, kind="stable")[:MOST_NAMED]
        frames = named(addresses[order].tolist())
        keys = [function_key(frames.get(one)) for one in addresses.tolist()]
        self.keys = list(dict.fromkeys(keys))
        numbers = {key: number for number, key in enumerate(self.keys)}
        self._addresses = addresses
        self._functions = np.array([numbers[key] for key in keys], np.intp)

    def sums(self, content: Content) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the functions of a content, and the instructions of each."""
        blocks = np.searchsorted(self._addresses, content.addresses)
        functions, at = np.unique(self._functions[blocks], return_inverse=True)
        instructions = np.zeros(len(functions), np.int64)
        np.add.at(instructions, at, content.instructions)
        return functions, instructions


def _all_blocks(
    contents: Sequence[Content],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the blocks of contents, ascending, and the instructions of each."""
    empty = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    if not contents:
        return empty
    every = np.concatenate([one.addresses for one in contents])
    addresses, at = np.unique(every, return_inverse=True)
    instructions = np.zeros(len(addresses), np.int64)
    np.add.at(instructions, at, np.concatenate([one.instructions for one in contents]))
    return addresses, instructions


def blocks_of_threads(code: ProgramCode, tids: Iterable[int]) -> NDArray[np.uint64]:
    """Return where each block begins that one of them executed in all its time."""
    used = np.zeros(len(code.contents), np.bool_)
    for tid in tids:
        if (pieces := code.threads.get(tid)) is not None:
            used[pieces.contents] = True
    return _all_blocks([code.contents[one] for one in np.flatnonzero(used)])[0]
