"""What each thread executed of its program: by function, over all its cycles. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rtscope.host.escape import printable
from rtscope.programs.naming import NamedFrame, Origin
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.verbs.test.codefile import Content, ProgramCode
from rtscope.verbs.test.functions import Function, Naming, function_key

MOST_NAMED = 20_000
"""Blocks of a thread whose functions are looked for: those with most instructions."""
MAX_NAME = 200
"""Characters of a function that is kept; templates may have thousands."""
_OF_BUILD = re.compile(
    r"(?:\.(?:cold|part|isra|constprop|lto_priv|llvm)(?:\.[0-9]+)*)+$|::h[0-9a-f]{16}$"
)
"""Behind a name: what compilers copied or divided, and Rust's digest of the crate."""

Contents = tuple[int, ...]
"""What a cycle executed: the numbers of its pieces' contents."""
Numbers = NDArray[np.intp]
CpusOf = Callable[[OutsideCycle], Sequence[int]]
"""Gives the CPUs that a cycle was on, by the record of its program."""


class WhyLeftOut(StrEnum):
    """Why the code of a cycle is not known, in words."""

    FULL = "the record of executed code was full"
    BEYOND_COUNT = "a block was begun more often than the record counts"
    TWO_CPUS = "on two CPUs"
    OTHER = "its pieces have other instructions than the cycle"


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where in a program a block is."""

    shown: Function
    """The function whose text it is, which may be put into another."""
    within: Function
    """The program's own function that it is in; of other code, the one that is called.
    It has the same name in another build."""
    line: int
    """In that; 0: it is not the program's own, or has no line."""


def place_of(frames: Sequence[NamedFrame]) -> BlockPlace:
    """Return where a block is, by the functions at its address."""
    own = [
        one
        for one in frames
        if one.origin is Origin.PROGRAM and one.line and one.function
    ]
    name, file = function_key(own[:1] or frames[-1:])
    name = printable(_OF_BUILD.sub("", name), limit=MAX_NAME)
    within = name, printable(file, limit=MAX_NAME)
    return BlockPlace(function_key(frames), within, own[0].line if own else 0)


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


class ThreadBlocks:
    """The blocks of each cycle of a thread, by where they are in its program."""

    def __init__(
        self, code: ProgramCode, thread: OutsideThread, named: Naming, *, cpus: CpusOf
    ) -> None:
        self.cycles = tuple(_contents_of_cycles(code, thread, cpus))
        """What each of its cycles executed, or why nobody knows."""
        known = {one for one in self.cycles if isinstance(one, tuple)}
        used = sorted({one for contents in known for one in contents})
        addresses, instructions = _all_blocks([code.contents[one] for one in used])
        order = np.argsort(-instructions, kind="stable")[:MOST_NAMED]
        frames = named(addresses[order].tolist())
        places = [place_of(frames.get(one, ())) for one in addresses.tolist()]
        self.places = list(dict.fromkeys(places))
        numbers = {place: number for number, place in enumerate(self.places)}
        numbered = np.array([numbers[place] for place in places], np.intp)
        self._sums = {
            one: _sums(code.contents[one], addresses, numbered) for one in used
        }

    def executed(self, contents: Contents) -> NDArray[np.int64]:
        """Return the instructions of each place that a cycle executed."""
        executed = np.zeros(len(self.places), np.int64)
        for one in contents:
            places, instructions = self._sums[one]
            executed[places] += instructions
        return executed


def _sums(
    content: Content, addresses: NDArray[np.uint64], numbered: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the places of a content, and the instructions of each."""
    blocks = np.searchsorted(addresses, content.addresses)
    places, at = np.unique(numbered[blocks], return_inverse=True)
    instructions = np.zeros(len(places), np.int64)
    np.add.at(instructions, at, content.instructions)
    return places, instructions


def numbers_of(functions: Iterable[Function]) -> tuple[list[Function], Numbers]:
    """Return what is different among functions, and the number there of each."""
    every = list(functions)
    different = list(dict.fromkeys(every))
    number = {one: at for at, one in enumerate(different)}
    return different, np.array([number[one] for one in every], np.intp)


def worst_uses(thread: OutsideThread, blocks: ThreadBlocks) -> ThreadUses:
    """Return for each function the cycle in which a thread executed most of it."""
    cycles: dict[Contents, list[OutsideCycle]] = {}
    left_out: Counter[WhyLeftOut] = Counter()
    for cycle, contents in zip(thread.cycles, blocks.cycles, strict=True):
        if isinstance(contents, tuple):
            cycles.setdefault(contents, []).append(cycle)
        else:
            left_out[contents] += 1
    keys, functions = numbers_of(one.shown for one in blocks.places)
    most = np.zeros(len(keys), np.int64)
    worst, times = np.zeros_like(most), np.zeros_like(most)
    for contents, of_cycles in cycles.items():
        executed = np.zeros_like(most)
        np.add.at(executed, functions, blocks.executed(contents))
        times[executed > 0] += len(of_cycles)
        more = executed > most
        most[more], worst[more] = executed[more], of_cycles[0].number
    uses = [
        WorstUse(*key, int(most[number]), int(worst[number]), int(times[number]))
        for number, key in enumerate(keys)
        if most[number]
    ]
    uses.sort(key=lambda one: (-one.instructions, one.name, one.file))
    return ThreadUses(tuple(uses), {w: left_out[w] for w in WhyLeftOut if left_out[w]})


def _contents_of_cycles(
    code: ProgramCode, thread: OutsideThread, cpus: CpusOf
) -> Iterator[Contents | WhyLeftOut]:
    """Yield what each cycle executed; or why its pieces are not those of the cycle."""
    pieces = code.threads.get(thread.tid)
    if pieces is None:
        yield from (_why_left_out(code, one, cpus) for one in thread.cycles)
        return
    ended_ns = np.maximum.accumulate(pieces.ended_ns)
    for cycle in thread.cycles:
        first, last = np.searchsorted(
            ended_ns, (cycle.first_ns, cycle.done_ns), "right"
        )
        contents = pieces.contents[first:last]
        if code.beyond_count[contents].any():
            yield WhyLeftOut.BEYOND_COUNT
        elif code.totals[contents].sum() == cycle.user_instructions:
            yield tuple(contents.tolist())
        else:
            yield _why_left_out(code, cycle, cpus)


def _why_left_out(code: ProgramCode, cycle: OutsideCycle, cpus: CpusOf) -> WhyLeftOut:
    if code.lost and cycle.done_ns > code.ended_ns:
        return WhyLeftOut.FULL
    # A piece that ended on another CPU has a time of that one: it may be in no order.
    return WhyLeftOut.TWO_CPUS if len(cpus(cycle)) > 1 else WhyLeftOut.OTHER


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
