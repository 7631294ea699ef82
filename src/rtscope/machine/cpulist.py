"""The kernel's list format for CPUs, `0-3,5` (admin-guide/cputopology.rst)."""

import re
from collections.abc import Iterable

from rtscope.host.errors import UsageError, quote

MAX_CPUS = 4096
"""More than any kernel is configured for on the architectures we measure."""

MAX_LIST_CHARACTERS = 64 * 1024

_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def parse_cpulist(text: str) -> tuple[int, ...]:
    """
    Return the CPUs of a list such as `0-3,5,8-11`, ascending, each once.

    Raises UsageError if it is empty, malformed, or names a CPU of 4096 or more.
    """
    if len(text) > MAX_LIST_CHARACTERS:
        raise UsageError(
            f"a CPU list of {len(text)} characters, which may have "
            f"{MAX_LIST_CHARACTERS}: write ranges, e.g. 0-3,5"
        )
    cpus: set[int] = set()
    for part in text.strip().split(","):
        cpus.update(_parse_range(part.strip(), text=text))
    return tuple(sorted(cpus))


def format_cpulist(cpus: Iterable[int]) -> str:
    """Write CPUs as the shortest list that `parse_cpulist` reads back."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(
        f"{first}-{last}" if last > first else f"{first}" for first, last in ranges
    )


def _parse_range(part: str, *, text: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise UsageError(f"{quote(text)}: not a CPU list; write 0-3 or 0,2,5-7")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"{quote(text)}: {part} runs backwards; write {last}-{first}")
    if last >= MAX_CPUS:
        raise UsageError(
            f"{quote(text)}: there is no CPU {last}; write numbers below {MAX_CPUS}"
        )
    return range(first, last + 1)
