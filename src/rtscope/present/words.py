"""How the report writes numbers, names and lists, the same in every renderer."""

import re
import shlex
from collections.abc import Iterable, Sequence

from rtscope.host.escape import MAX_CHARACTERS
from rtscope.host.units import NS_PER_US, format_duration, format_us
from rtscope.record.model import RunRecord

_US = re.compile(r"(?<=\d )us\b")

ABOUT_EQUAL = 1.1
"""Two runs of one kernel can differ by a tenth: less is no difference."""

NOTHING = "\N{EN DASH}"
"""Shown where there is no number."""


def us(ns: float | None, virtual: str = "") -> str:
    """Write a latency with its unit; `virtual` is what `virtual_word` gives."""
    return f"{format_us(ns)} {virtual}µs"


def virtual_word(records: Iterable[RunRecord]) -> str:
    """Return `virtual ` before a unit if a time is a virtual board's, else nothing."""
    return "virtual " if any(r.virtual for r in records) else ""


def duration(ns: float | None) -> str:
    """Write a time span for people; None: its length is unknown."""
    if ns is None:
        return "unknown length"
    return _US.sub("µs", format_duration(ns))


def micro(text: str, virtual: str = "") -> str:
    """Write the unit of text that was made for any terminal as the report does."""
    return _US.sub(f"{virtual}µs", text)


def times(ratio: float) -> str:
    """Write a ratio of 1 or more: `1.4 times`, `149 times`."""
    return f"{ratio:,.0f} times" if ratio >= 9.95 else f"{ratio:.1f} times"


def about_equal(ratio: float) -> bool:
    """Whether two maxima differ by no more than two runs of one kernel do."""
    return 1 / ABOUT_EQUAL <= ratio <= ABOUT_EQUAL


def as_published(ns: int | None) -> str:
    """Write a published latency in microseconds, with as many digits as published."""
    if ns is None:
        return NOTHING
    whole, rest = divmod(ns, NS_PER_US)
    return f"{whole:,}" + (f".{rest:03}".rstrip("0") if rest else "")


def ratio(value: float | None) -> str:
    """Write a ratio of two maxima for a table: `0.93`, `1.8`, `149`."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def enumeration(words: Sequence[str]) -> str:
    """Join names as a sentence does: `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


_COMMANDS = frozenset(
    [
        *("rtscope", "echo", "sysctl", "chrt", "systemctl", "swapoff", "ulimit"),
        *("taskset", "mkdir", "setcap", "git", "apt-get", "dmesg", "ethtool"),
    ]
)
_NAME = re.compile(r"[\w-]*[\d_(/=.]")
"""What begins like a function, a setting or a path."""


def capital(sentence: str) -> str:
    """Begin a sentence with a capital, unless a command or a name begins it."""
    first = sentence.partition(" ")[0]
    if first in _COMMANDS or _NAME.match(first.rstrip(".")):
        return sentence
    return sentence[:1].upper() + sentence[1:]


def as_sentence(phrase: str) -> str:
    """Make a sentence of a phrase."""
    return f"{capital(phrase)}."


def command_line(argv: Sequence[str]) -> str:
    """Write a command of printable words as one would type it."""
    return cut(shlex.join(argv), MAX_CHARACTERS)


def cut(text: str, limit: int) -> str:
    """Shorten text that is a name among others."""
    return text if len(text) <= limit else f"{text[:limit]}…"
