"""Names of functions as they are in the source of C++, Rust and D."""

import ctypes
import os
import resource
from collections.abc import Callable
from functools import cache

from rtscope.programs.binaries.dnames import from_d
from rtscope.programs.binaries.rustnames import MAX_TEXT, from_new, from_old

_MAX_MANGLED = 1 << 13
_FEW_REFERENCES = 12
"""A name of C++ with as many substitutions cannot unfold to much."""
_CPU_S = 1
_MEMORY_BYTES = 32 << 20


@cache
def demangled(name: str) -> str:
    """Return the name as it is in the source of C++, Rust or D; others as they are."""
    if not name.startswith(("_Z", "_R", "_D")) or len(name) > _MAX_MANGLED:
        return name
    text = from_new(name) or from_old(name) or from_d(name)
    if text is None and name.startswith("_Z"):
        text = _from_cpp(name)
    return text if text and len(text) <= MAX_TEXT else name


def _from_cpp(name: str) -> str | None:
    demangle = _demangler()
    if demangle is None:
        return None
    if name.count("S") + name.count("T") <= _FEW_REFERENCES:
        return demangle(name.encode())
    return _in_a_child(demangle, name)


def _in_a_child(demangle: Callable[[bytes], str | None], name: str) -> str | None:
    """
    Demangle with little time and memory: a short name can unfold to gigabytes.

    No other thread of this process is there when it forks: see serving.py.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _demangle_and_exit(demangle, name, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read(MAX_TEXT + 1)
    os.waitpid(child, 0)
    return content.decode("utf-8", "replace") if content else None


def _demangle_and_exit(
    demangle: Callable[[bytes], str | None], name: str, writing: int
) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if limit == resource.RLIM_INFINITY or limit > _MEMORY_BYTES:
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, limit))
        text = demangle(name.encode()) or ""
        if len(text) <= MAX_TEXT:
            os.write(writing, text.encode())
    finally:
        os._exit(0)


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
        text = ctypes.string_at(
            demangled,
        ).decode("utf-8", "replace")
        free(demangled)
        return text

    return demangle
