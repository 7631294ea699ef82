"""What a baseline keeps of the code that a thread executed, bounded in size. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median_low

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.host.escape import printable
from rtscope.programs.outside.model import OutsideThread
from rtscope.verbs.test.executed import MAX_NAME, Contents, WhyLeftOut
from rtscope.verbs.test.functions import Function
from rtscope.verbs.test.profile import ThreadProfile

MOST_NUMBERS = 20_000
"""Instructions of a function in a cycle, that are kept of a thread;"""
MOST_LINES = 5_000
"""and of a line of a function, in its worst cycle."""

_NOT_KEPT = -1

_CHECKED = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, slots=True, config=_CHECKED)
class KeptFunction:
    """A function, and its worst cycle."""

    name: str
    file: str
    instructions: int
    """Its own in that cycle; it has the most of all."""
    lines: list[tuple[int, int]]
    """Lines of it, and the instructions of each in that cycle; empty: not known."""

    @property
    def key(self) -> Function:
        """As a profile has it."""
        limit = MAX_NAME + 1  # of one that was cut, with the mark for it
        return printable(self.name, limit=limit), printable(self.file, limit=limit)


@checked_dataclass(frozen=True, slots=True, config=_CHECKED)
class KeptCode:
    """The functions that a thread executed."""

    functions: list[KeptFunction]
    """Most instructions first."""
    contents: list[list[int]]
    """What cycles executed: numbers of functions, each with its instructions."""
    cycles: list[int]
    """Which content each cycle has; -1: it is not known, or not kept."""

    def of_cycle(self, at: int) -> Mapping[Function, int] | None:
        """Return the instructions of each function in a cycle; None: not known."""
        number = self.cycles[at] if at < len(self.cycles) else -1
        if not 0 <= number < len(self.contents):
            return None
        row = self.contents[number]
        return {
            self.functions[function].key: instructions
            for function, instructions in zip(row[::2], row[1::2], strict=False)
            if 0 <= function < len(self.functions)
        }


def kept_code(profile: ThreadProfile, thread: OutsideThread, most: int) -> KeptCode:
    """Return what is kept: of at most so many cycles, the important ones first."""
    number_of = {key: number for number, key in enumerate(profile.most)}
    numbers: dict[tuple[int, ...], int] = {}
    known: dict[Contents | WhyLeftOut, int] = dict.fromkeys(WhyLeftOut, _NOT_KEPT)
    cycles = [_NOT_KEPT] * min(len(thread.cycles), most)
    room = MOST_NUMBERS
    for at in _in_order(thread, len(cycles)):
        contents = profile.contents_of(at)
        executed = profile.of_cycle(at) if contents not in known and room else ()
        if isinstance(executed, Mapping):
            rows = sorted((number_of[key], n) for key, n in executed.items())
            row = tuple(chain.from_iterable(rows))
            if row not in numbers and len(rows) > room:
                room = 0  # of what comes later only what is there already
            else:
                room -= 0 if row in numbers else len(rows)
                known[contents] = numbers.setdefault(row, len(numbers))
        cycles[at] = known.get(contents, _NOT_KEPT)
    functions = list(_functions(profile))
    return KeptCode(functions, [list(one) for one in numbers], cycles)


def _in_order(thread: OutsideThread, cycles: int) -> Iterator[int]:
    """Yield all cycles: the middle one first, and those with most."""
    used = [one.user_instructions for one in thread.cycles[:cycles]]
    responses = [one.response_ns for one in thread.cycles[:cycles]]
    if used:
        first = (
            used.index(median_low(used)),
            responses.index(max(responses)),
            used.index(max(used)),
        )
        yield from dict.fromkeys([*first, *range(cycles)])


def _functions(profile: ThreadProfile) -> Iterator[KeptFunction]:
    room = MOST_LINES
    for key, (instructions, at) in profile.most.items():
        lines: Sequence[tuple[int, int]] = list(profile.lines_of(key, at).items())
        if len(lines) > room:
            lines = ()
        room -= len(lines)
        yield KeptFunction(*key, instructions, list(lines))
