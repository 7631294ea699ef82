"""Names of places in the files of a process: from debug information, or symbols."""

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from rtscope.programs.binaries.debuginfo import DebugInfo, SourcePlace
from rtscope.programs.binaries.demangling import demangled
from rtscope.programs.binaries.elf import Damaged
from rtscope.programs.binaries.golibrary import is_file_of_go, is_of_go
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.namecache import NameCache, Names, key_of

DAMAGED = (Damaged, IndexError, KeyError, OverflowError, ValueError, struct.error)
"""What reading a file raises that is not as it says."""

DebugFile = Callable[[str], Image | None]
"""Gives the debug file of a build by its number; None if none is installed."""


class Namer:
    """Names places; remembers them in a cache."""

    def __init__(
        self,
        debug_file: DebugFile,
        cache: NameCache | None,
        *,
        demangle: Callable[[str], str] = demangled,
    ) -> None:
        self._debug_file, self._cache = debug_file, cache
        self._demangle = demangle
        self._failed: dict[int, list[str]] = {}

    def named(self, image: Image, places: Collection[int]) -> Mapping[int, Names]:
        """Return the functions at each place, innermost first; empty if unknown."""
        debug_file = self._debug_file(image.build_id) if image.build_id else None
        sources = [one for one in (debug_file, image) if one is not None]
        key = "" if self._cache is None else key_of(*(one.elf.data for one in sources))
        known = {} if self._cache is None else self._cache.read(key)
        new = [place for place in places if place not in known]
        if new:
            failed = self._failed.setdefault(id(image), [])
            found = self._read(sources, new, failed)
            known |= found
            if self._cache is not None and any(found.values()) and not failed:
                self._cache.write(key, known)
        return {place: known[place] for place in places if place in known}

    def failed(self, image: Image) -> Sequence[str]:
        """Return why debug information of a file could not be read, if it could not."""
        return self._failed.get(id(image), ())

    def bare(self, image: Image) -> bool:
        """Whether neither the file nor a debug file has debug information."""
        debug_file = self._debug_file(image.build_id) if image.build_id else None
        sources = [one for one in (debug_file, image) if one is not None]
        return not any(DebugInfo(one.elf).there for one in sources)

    def _read(
        self, sources: Sequence[Image], places: Collection[int], failed: list[str]
    ) -> dict[int, Names]:
        found: dict[int, tuple[SourcePlace, ...]] = {}
        for source in sources:
            left = [place for place in places if place not in found]
            try:
                info = DebugInfo(source.elf)
                found |= info.places(left) if left else {}
                if info.damage:
                    failed.append(f"its debug information is damaged: {info.damage}")
            except MemoryError:
                failed.append("its debug information needs too much memory")
            except DAMAGED as error:
                failed.append(f"its debug information is damaged: {why_damaged(error)}")
        return {
            place: tuple(self._names(sources, place, found.get(place, ())))
            for place in places
        }

    def _names(
        self, sources: Sequence[Image], place: int, known: Sequence[SourcePlace]
    ) -> Iterator[tuple[str, str, int, bool]]:
        """Yield the functions at a place; a symbol names one without a name."""
        for number, one in enumerate(known):
            function = one.function or _symbol(sources, place)
            inlined = number < len(known) - 1
            yield self._demangle(function), one.file, one.line, inlined
        if not known and (symbol := _symbol(sources, place)):
            yield self._demangle(symbol), *_line_of_go(sources, place, symbol), False


def why_damaged(error: BaseException) -> str:
    """Say why a file cannot be read."""
    if isinstance(error, Damaged):
        return str(error)
    return f"it is damaged ({type(error).__name__})"


def _line_of_go(sources: Sequence[Image], place: int, function: str) -> tuple[str, int]:
    """Return file and line by Go's own table; none of what is inlined there."""
    for source in sources:
        with suppress(*DAMAGED):
            file, line = source.go.line_at(place)
            if is_of_go(function) == is_file_of_go(file):
                return file, line
    return "", 0


def _symbol(sources: Sequence[Image], place: int) -> str:
    for source in sources:
        with suppress(*DAMAGED):
            symbol = source.symbol_at(place)
            if symbol is not None:
                return symbol.name
    return ""
