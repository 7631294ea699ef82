"""
Text that many lines begin with, whatever tool put it there: found by its shape. Pure.

Numbers may differ from line to line, and so may the spaces that align them. A shape
needs a letter or a mark such as a bracket, for numbers alone, or with colons, may be
the tool's own; or it is the number of the line.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_MOST_SHAPES = 24
_TRIED = 200
_MOST_CHARACTERS = 160
_LOOKED_AT = 400
"""Lines whose beginnings are looked at."""
_END = re.compile(r"[^\w.\s-]+|(?<=\S)[ \t]|(?<=\s)[ \t]+(?=\S)")
"""A mark, one blank, or all blanks of some: an indent may be the tool's own."""
_MARK = re.compile(r"[A-Za-z|\]>)=+]|^[^\d]*:")
"""Numbers with colons alone are columns of a tool, such as those of `cyclictest -v`."""
_OF_DOCUMENTS = re.compile(r'["{}<]')
"""JSON and XML begin with these, and no text before a line has them."""
_PART = re.compile(r"\d+|[ \t]+|[^\d \t]+")
_NUMBERED = re.compile(r" *(\d{1,9})(?:\t|[:.)] ?| )")


@dataclass(frozen=True, slots=True)
class Shape:
    """What lines begin with, and what it is in words."""

    told: str
    pattern: re.Pattern[str]

    def removed_from(self, line: str) -> str:
        """Return a line without it; a line that does not begin so, as it is."""
        match = self.pattern.match(line)
        return line[match.end() :] if match else line


def shapes_of(lines: Sequence[str], least: float) -> Iterator[Shape]:
    """Yield the shapes that this part of the lines begin with, those of most first."""
    if _are_numbered(lines):
        yield Shape("a line number", _NUMBERED)
    sample = lines[:_LOOKED_AT]
    counts: Counter[str] = Counter()
    for line in sample:
        counts.update(_beginnings(line))
    found = []
    for text, _ in counts.most_common(_TRIED):
        pattern = re.compile(text)
        number = sum(pattern.match(line) is not None for line in sample)
        if number > 1 and number >= least * len(sample):
            found.append((-number, len(text), text))
    for _, _, text in sorted(found)[:_MOST_SHAPES]:
        yield Shape("a text of one shape", re.compile(text))


def _are_numbered(lines: Sequence[str]) -> bool:
    """Tell whether each line begins with its number, as `cat -n` writes it."""
    numbers = [_NUMBERED.match(line) for line in lines]
    found = [int(one[1]) for one in numbers if one]
    # Lines without text were left out of the sample; their numbers are missing.
    rising = all(0 < b - a <= 4 for a, b in pairwise(found))
    return rising and len(found) == len(lines) > 2


def _beginnings(line: str) -> set[str]:
    """Return patterns of all that a line may begin with, up to each of its marks."""
    text = _OF_DOCUMENTS.split(line[:_MOST_CHARACTERS], maxsplit=1)[0]
    ends = [match.end() for match in _END.finditer(text)]
    return {_pattern(text[:end]) for end in ends if _MARK.search(text[:end])}


def _pattern(text: str) -> str:
    """Return a pattern for text whose numbers and inner spaces may differ."""
    parts = _PART.findall(text)
    last = len(parts) - 1
    return "".join(
        r"\d+"
        if part.isdecimal()
        else (re.escape(part) if at == last else r"[ \t]+")
        if part.isspace()
        else re.escape(part)
        for at, part in enumerate(parts)
    )
