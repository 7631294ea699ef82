"""Names of places in the files of a process: from debug information, or symbols."""

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from rtscope.verbs.app.binaries.debuginfo import DebugInfo, SourcePlace
from rtscope.verbs.app.binaries.demangling import demangled
from rtscope.verbs.app.binaries.elf import Damaged
from rtscope.verbs.app.binaries.image import Image
from rtscope.verbs.app.binaries.namecache import NameCache, Names, key_of

DAMAGED = (Damaged, IndexError, KeyError, OverflowError, ValueError, struct.error)
"""What reading a file raises that is not as it says."""

DebugFile = Callable[[str], Image | None]
"""Gives the debug file of a build by its number; None if none is installed."""


class Namer:
    """Names places; remembers them in a cache."""

    def __init__(self, debug_file: DebugFile, cache: NameCache | None) -> None:
        self._debug_file, self._cache = debug_file, cache

    def named(self, image: Image, places: Collection[int]) -> Mapping[int, Names]:
        """Return the functions at each place, innermost first; empty if unknown."""
        debug_file = self._debug_file(image.build_id) if image.build_id else None
        sources = [one for one in (debug_file, image) if one is not None]
        key = "" if self._cache is None else key_of(*(one.elf.data for one in sources))
        known = {} if self._cache is None else self._cache.read(key)
        new = [place for place in places if place not in known]
        if new:
            found = _read(sources, new)
            known |= found
            if self._cache is not None and any(found.values()):
                self._cache.write(key, known)
        return {place: known[place] for place in places if place in known}

    def bare(self, image: Image) -> bool:
        """Whether neither the file nor a debug file has debug information."""
        debug_file = self._debug_file(image.build_id) if image.build_id else None
        sources = [one for one in (debug_file, image) if one is not None]
        return not any(DebugInfo(one.elf).there for one in sources)


def _read(sources: Sequence[Image], places: Collection[int]) -> dict[int, Names]:
    found: dict[int, tuple[SourcePlace, ...]] = {}
    for source in sources:
        with suppress(*DAMAGED, MemoryError):
            left = [place for place in places if place not in found]
            found |= DebugInfo(source.elf).places(left) if left else {}
    return {
        place: tuple(_names(sources, place, found.get(place, ()))) for place in places
    }


def _names(
    sources: Sequence[Image], place: int, known: Sequence[SourcePlace]
) -> Iterator[tuple[str, str, int, bool]]:
    """Yield the functions at a place; what has no name there has that of a symbol."""
    for number, one in enumerate(known):
        function = one.function or _symbol(sources, place)
        inlined = number < len(known) - 1
        yield demangled(function), one.file, one.line, inlined
    if not known and (symbol := _symbol(sources, place)):
        yield demangled(symbol), "", 0, False


def _symbol(sources: Sequence[Image], place: int) -> str:
    for source in sources:
        with suppress(*DAMAGED):
            symbol = source.symbol_at(place)
            if symbol is not None:
                return symbol.name
    return ""
