"""What is where in the memory of a process, from /proc/PID/maps and smaps."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
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


# --- its pieces, from smaps ---------------------------------------------------------

_KEY = re.compile(r"(\w+): +([0-9]+) kB")

_KERNELS = frozenset(
    {
        *("[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]", "[uprobes]"),
        *("[sigpage]", "[vectors]"),  # of 32-bit ARM
    }
)
"""Pieces of the kernel's own, which it does not take away."""

_KEPT = frozenset({"lo", "io", "pf", "mm", "de"})
"""Flags of locked memory, and of what devices and the kernel put there (io_uring): they
keep it themselves, and mlock leaves it out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A mapping, and how much of it is in memory, in KiB."""

    mapping: Mapping
    size_kb: int
    resident_kb: int
    locked: bool

    @property
    def takeable(self) -> bool:
        """Whether the kernel may take some of it from the process."""
        return (
            not self.locked
            and self.resident_kb > 0
            and self.mapping.path not in _KERNELS
            and not self.mapping.path.startswith("/dev/")
        )

    @property
    def missing_code_kb(self) -> int:
        """How much of a file's code is not in memory."""
        if not (self.mapping.executable and self.mapping.is_file):
            return 0
        return max(0, self.size_kb - self.resident_kb)


def pieces_in(smaps: str) -> Iterator[Piece]:
    """Yield the pieces of /proc/PID/smaps."""
    mapping: Mapping | None = None
    sizes: dict[str, int] = {}
    for line in smaps.splitlines():
        if match := _KEY.fullmatch(line.rstrip()):
            sizes[match[1]] = int(match[2])
        elif line.startswith("VmFlags:") and mapping is not None:
            flags = set(line.split())
            yield Piece(
                mapping,
                size_kb=sizes.get("Size", 0),
                resident_kb=sizes.get("Rss", 0),
                locked=bool(flags & _KEPT),
            )
        elif parsed := parse_maps(line):
            mapping, sizes = parsed[0], {}
