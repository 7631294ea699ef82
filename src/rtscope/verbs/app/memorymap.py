"""What is where in the memory of a process, from /proc/PID/maps."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) ([-r][-w][-x][-sp]) ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) "
    r"([0-9]+) *(.*)"
)
VDSO = "[vdso]"
"""Code that the kernel gives each process, such as that for reading clocks."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """A piece of the memory of a process, and the file that it shows."""

    start: int
    end: int
    permissions: str
    offset: int
    device: str
    inode: int
    path: str
    """Of the file, `[heap]`, `[stack]`, `[vdso]`, or empty."""

    @property
    def is_file(self) -> bool:
        """Whether it shows a file that can be read."""
        return self.path.startswith("/") and self.inode != 0

    @property
    def is_vdso(self) -> bool:
        """Whether it is the code that the kernel gives."""
        return self.path == VDSO

    @property
    def executable(self) -> bool:
        """Whether it holds code."""
        return "x" in self.permissions


class MemoryMap:
    """The pieces of a process by their addresses."""

    def __init__(self, mappings: Iterable[Mapping]) -> None:
        """Of several maps of one process the later pieces win."""
        by_start = {one.start: one for one in mappings}
        self.mappings = tuple(by_start[start] for start in sorted(by_start))
        self._starts = [one.start for one in self.mappings]

    def at(self, address: int) -> Mapping | None:
        """Return what is at an address."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self.mappings[number].end:
            return None
        return self.mappings[number]


def parse_maps(text: str) -> list[Mapping]:
    """Return the pieces in /proc/PID/maps; lines of another form are left out."""
    matches = (_LINE.fullmatch(line) for line in text.split("\n"))
    return [
        Mapping(
            start=int(m[1], 16),
            end=int(m[2], 16),
            permissions=m[3],
            offset=int(m[4], 16),
            device=m[5],
            inode=int(m[6]),
            path=m[7].replace("\\012", "\n"),  # the one character that it escapes
        )
        for m in matches
        if m
    ]
