"""The memory of a process by its pieces, from /proc/PID/smaps."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rtscope.verbs.app.memorymap import Mapping, parse_maps

_KEY = re.compile(r"(\w+): +([0-9]+) kB")

_KERNELS = frozenset(
    {
        *("[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]", "[uprobes]"),
        *("[sigpage]", "[vectors]"),  # of 32-bit ARM
    }
)
"""Pieces of the kernel's own, which it does not take away."""


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
                # memory of a device cannot be taken either
                locked=bool(flags & {"lo", "io", "pf"}),
            )
        elif parsed := parse_maps(line):
            mapping, sizes = parsed[0], {}
