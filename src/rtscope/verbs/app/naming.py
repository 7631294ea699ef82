"""
The functions of a stack, by name: of the file's symbols, or of its debug information.

Where a debug package is installed its file is found by the number of the build.
"""

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from rtscope.verbs.app.debuginfo import DebugInfo
from rtscope.verbs.app.image import Image
from rtscope.verbs.app.unwind import Frame, Stack

DebugFile = Callable[[str], Image | None]
"""Gives the debug file of a build by its number; None if none is installed."""


@dataclass(frozen=True, slots=True)
class NamedFrame:
    """A function on a stack; an empty name is unknown, line 0 too."""

    function: str
    file: str
    line: int
    image: str
    """The name of the file that its code is in."""
    address: int
    inlined: bool


@dataclass(frozen=True, slots=True)
class NamedStack:
    """A stack for people: innermost first; why it ends early, None if complete."""

    frames: tuple[NamedFrame, ...]
    ends_early: str | None

    @property
    def complete(self) -> bool:
        """Whether it goes to where the thread began."""
        return self.ends_early is None


class Namer:
    """Names the frames of one process; each file is read once."""

    def __init__(self, debug_file: DebugFile) -> None:
        """Debug files come from `debug_file`."""
        self._debug_file = debug_file
        self._debug: dict[int, tuple[Image, ...]] = {}
        self._info: dict[int, DebugInfo] = {}
        self._known: dict[tuple[int, int], tuple[NamedFrame, ...]] = {}

    def named(self, stack: Stack) -> NamedStack:
        """Return the stack with names."""
        frames = [one for frame in stack.frames for one in self._frames(frame)]
        return NamedStack(tuple(frames), stack.ends_early)

    def _frames(self, frame: Frame) -> Iterable[NamedFrame]:
        image, place = frame.image, frame.place
        if image is None or place is None:
            path = "" if frame.mapping is None else frame.mapping.path
            return [NamedFrame("", "", 0, path, frame.address, inlined=False)]
        key = (id(image), place)
        if key not in self._known:
            self._known[key] = tuple(self._named(image, place, frame.address))
        return self._known[key]

    def _named(self, image: Image, place: int, address: int) -> Iterator[NamedFrame]:
        name = PurePosixPath(image.name).name
        for source in self._sources(image):
            info = self._info.setdefault(id(source), DebugInfo(source.elf))
            places = info.places_at(place)
            for number, one in enumerate(places):
                inlined = number < len(places) - 1
                function = demangled(one.function)
                yield NamedFrame(function, one.file, one.line, name, address, inlined)
            if places:
                return
        for source in self._sources(image):
            symbol = source.symbol_at(place)
            if symbol is not None:
                yield NamedFrame(demangled(symbol.name), "", 0, name, address, False)
                return
        yield NamedFrame("", "", 0, name, address, inlined=False)

    def _sources(self, image: Image) -> tuple[Image, ...]:
        """Return the debug file, if there is one, before the file itself."""
        if id(image) not in self._debug:
            debug_file = self._debug_file(image.build_id) if image.build_id else None
            self._debug[id(image)] = (
                (image,) if debug_file is None else (debug_file, image)
            )
        return self._debug[id(image)]


@cache
def demangled(name: str) -> str:
    """Return the name as it is in the source of C++ or Rust; others as they are."""
    if not name.startswith("_Z"):
        return name
    demangle = _demangler()
    text = demangle(name.encode()) if demangle else None
    if text is None:
        return name
    return _as_in_rust(text) if _RUST_HASH.search(text) else text


_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_WORDS = {"LT": "<", "GT": ">", "C": ",", "RF": "&", "BP": "*", "SP": "@"}
_RUST_WORDS |= {"LP": "(", "RP": ")"}
_RUST_ESCAPE = re.compile(r"\$(?:u([0-9a-f]{1,6})|([A-Z]{1,2}))\$")


def _as_in_rust(text: str) -> str:
    """Undo what Rust's older names have beyond those of C++: escapes, and a hash."""
    text = re.sub(r"(^|::)_\$", r"\1$", _RUST_HASH.sub("", text))
    text = _RUST_ESCAPE.sub(
        lambda m: chr(int(m[1], 16)) if m[1] else _RUST_WORDS.get(m[2], m[0]), text
    )
    return text.replace("..", "::")


@cache
def _demangler() -> Callable[[bytes], str | None] | None:
    """Return that of the C++ library, if there is one: it knows all names."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        function = library.__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    free.argtypes = [ctypes.c_void_p]

    def demangle(name: bytes) -> str | None:
        demangled = function(name, None, None, None)
        if not demangled:
            return None
        text = ctypes.string_at(demangled).decode("utf-8", "replace")
        free(demangled)
        return text

    return demangle
