"""
A chain of calls in a few names: the innermost ones, and the one that they serve. Pure.

The innermost calls show where time went. The outermost call below the entry of the
kernel, an interrupt or a thread shows why: the system call, the handler or the work.
"""

import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import groupby

from rtscope.explain.instructions.calls import BEGINS_HERE, plain, role_of
from rtscope.record.instructions.symbols import USER

CALLERS_SHOWN = 3
_ANY = "*"


def shortened(calls: Sequence[str], *, shown: int = CALLERS_SHOWN) -> str:
    """
    Write who called whom, innermost first: `a < b < c < … < z`.

    A name that follows itself, as in a recursion, stands there once. `…` at the end
    hides nothing but the entry of the kernel or of a thread.
    """
    names = [name for name, _ in groupby(calls)]
    text = " < ".join(names[:shown])
    if len(names) <= shown:
        return text
    why = _why(names, shown)
    if why < shown:
        return f"{text} < …"
    return f"{text}{' < …' if why > shown else ''} < {names[why]}"


def _why(names: Sequence[str], shown: int) -> int:
    """Return the outermost call below an entry that is no mere step to another."""
    entries = (i for i, one in enumerate(names) if i and _is_entry(one))
    last = next(entries, len(names)) - 1
    while last >= shown and _is_of("entry", plain(names[last])):
        last -= 1
    inner = last
    while inner >= shown and _is_of("step", plain(names[inner])):
        inner -= 1
    return inner if inner >= shown else last


def _is_entry(name: str) -> bool:
    return name == USER or role_of(name) in BEGINS_HERE


@lru_cache(maxsize=1 << 16)
def _is_of(kind: str, name: str) -> bool:
    exact, begins = _names(kind)
    return name in exact or name.startswith(begins)


@cache
def _names(kind: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a kind of `chains.toml`, and how others of it begin."""
    file = resources.files("rtscope.explain").joinpath("chains.toml")
    names = tomllib.loads(file.read_text("utf-8"))[kind].split()
    begins = tuple(name.removesuffix(_ANY) for name in names if name.endswith(_ANY))
    return frozenset(names), begins
