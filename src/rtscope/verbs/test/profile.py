"""What each cycle of a thread executed, by functions and their lines. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from rtscope.verbs.test.executed import (
    Contents,
    ThreadBlocks,
    WhyLeftOut,
    numbers_of,
)
from rtscope.verbs.test.functions import Function

MOST_LINES = 200
"""Of a function: those with most instructions."""


class ThreadProfile:
    """
    The functions of a thread, each with its own instructions, not of what it calls.

    A cycle is named by its place among those of the thread.
    """

    def __init__(self, blocks: ThreadBlocks) -> None:
        self._blocks = blocks
        self._every, self._function_of = numbers_of(one.within for one in blocks.places)
        self._lines: dict[Function, list[tuple[int, int]]] = {}
        for number, place in enumerate(blocks.places):
            if place.line:
                self._lines.setdefault(place.within, []).append((number, place.line))
        most = np.zeros(len(self._every), np.int64)
        worst = np.zeros_like(most)
        for at, contents in self._different():
            executed = self._executed(contents)
            more = executed > most
            most[more], worst[more] = executed[more], at
        rows = zip(self._every, most.tolist(), worst.tolist(), strict=True)
        self.most: Mapping[Function, tuple[int, int]] = {
            key: (instructions, at)
            for key, instructions, at in sorted(rows, key=lambda row: (-row[1], row[0]))
            if instructions
        }
        """The most instructions in a cycle, and the first such cycle; most first."""

    def contents_of(self, at: int) -> Contents | WhyLeftOut:
        """Return what a cycle executed, equal for equal cycles; or why nobody knows."""
        return self._blocks.cycles[at]

    def of_cycle(self, at: int) -> Mapping[Function, int] | WhyLeftOut:
        """Return the instructions of each function in a cycle; or why nobody knows."""
        contents = self._blocks.cycles[at]
        if not isinstance(contents, tuple):
            return contents
        rows = zip(self._every, self._executed(contents).tolist(), strict=True)
        return {key: instructions for key, instructions in rows if instructions}

    def lines_of(self, function: Function, at: int) -> Mapping[int, int]:
        """Return the instructions of lines of a function in a cycle, by their order."""
        contents, lines = self._blocks.cycles[at], Counter[int]()
        if isinstance(contents, tuple):
            executed = self._blocks.executed(contents)
            for number, line in self._lines.get(function, ()):
                lines[line] += int(executed[number])
        most = sorted(lines, key=lambda line: (-lines[line], line))[:MOST_LINES]
        return {line: lines[line] for line in sorted(most) if lines[line]}

    def _different(self) -> Iterator[tuple[int, Contents]]:
        """Yield what cycles executed, each with the first that did."""
        seen: set[Contents] = set()
        for at, contents in enumerate(self._blocks.cycles):
            if isinstance(contents, tuple) and contents not in seen:
                seen.add(contents)
                yield at, contents

    def _executed(self, contents: Contents) -> NDArray[np.int64]:
        executed = np.zeros(len(self._every), np.int64)
        np.add.at(executed, self._function_of, self._blocks.executed(contents))
        return executed
