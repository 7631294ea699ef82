"""
Join lines that a mail or a terminal of 80 columns broke.

Only lines of which the tool prints more are joined with the next ones: a thread's
summary without its maximum, a pair's without its end.
"""

import re
from collections.abc import Iterator

_BEGUN = re.compile(r"\s*(?:T:\s*\d{1,4} ?\(|#\d{1,4} -> #\d|#\d{1,4}: ID\d|ts:\s*\d)")
_WHOLE = re.compile(
    r".*(?:\bMax:\s*\d{1,20}\b|\bMax +\d{1,20}\b|outer:\s*\d+|Cycles +\d{1,18}\b"
    r"|\bSpike:|\bTO \d)"
)
_DIGITS = re.compile(r"\s*\d{1,12}\s*$")
_WORD = re.compile(r"\d\d|[A-Za-z]{2}|[A-Za-z]:")
"""No number follows another in these lines, and no word: so one was broken."""

MAX_JOINED = 4

_WIDTH = 60
"""No terminal and no mail breaks a number in a line that is shorter."""


def unwrapped(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines, those that were broken as a whole."""
    held: list[str] = []
    for line in lines:
        if not held:
            if _BEGUN.match(line) and len(line) < 1000:
                held = [line]
            else:
                yield line
        elif _goes_on(held, line):
            held.append(line)
        else:
            yield from _joined(held)
            held = []
            if _BEGUN.match(line) and len(line) < 1000:
                held = [line]
            else:
                yield line
    yield from _joined(held)


def _goes_on(held: list[str], line: str) -> bool:
    if len(held) >= MAX_JOINED or _BEGUN.match(line) or not line.strip():
        return False
    if not _WHOLE.match(" ".join(held)):
        return not line.startswith(("#", "policy:"))
    return len(held[-1]) >= _WIDTH and bool(_DIGITS.match(line))


def _joined(held: list[str]) -> Iterator[str]:
    """Yield the line in one piece if that makes it whole, else its parts."""
    text = "".join(held[:1])
    for part in held[1:]:
        inside = _WORD.match(text[-1:] + part[:1])
        text = f"{text}{part}" if inside else f"{text.rstrip()} {part.lstrip()}"
    if len(held) > 1 and _WHOLE.match(text):
        yield text
    else:
        yield from held
