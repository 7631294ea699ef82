"""
Which waits for a word of memory are waits for a lock, and their remedies by language.

The word decides: the value that a thread expects there, whether it wakes the same word
later, its value at rest. Functions decide where a runtime's locks wait for conditions.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

from rtscope.contract import WatchedWord
from rtscope.programs.naming import NamedFrame
from rtscope.verbs.app.model import EventStack

# linux/futex.h
_WAIT, _LOCK_PI, _WAIT_BITSET, _LOCK_PI2 = 0, 6, 9, 13
_WAITERS = 1 << 31
_TID_MASK = (1 << 30) - 1

_CONTENDED = 2
"""Of a mutex of glibc, Rust, Go and many others: locked, and others wait."""
_WRITTEN = 3
"""Of a rwlock of glibc."""
_MUSL_BUSY = _WAITERS | 16
"""Of a mutex of musl."""
_PARKED = (1 << 32) - 1
"""Of a parked thread of Rust, and of a rwlock of musl."""
_NONE_LEFT = (0, _WAITERS, _PARKED)
"""Of a semaphore of glibc and of musl."""

_MANY = 1 << 12
"""More readers at once than programs have."""

MUTEX, RWLOCK, SEMAPHORE, OTHER = "a mutex", "a rwlock", "a semaphore", "a lock"


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that a thread waited for."""

    kind: str
    language: str
    """`c` if nothing shows another one."""
    single: bool = False
    """Its words do not tell it apart from others of its kind."""
    inherits: bool = False
    """Its owner inherits the priority of who waits."""

    @property
    def remedy(self) -> str:
        """What to do about it in this language; empty: what the rule says."""
        if self.inherits:
            return ""
        remedies: Mapping[str, str] = _table()["remedies"][self.language]
        return remedies.get(self.kind, remedies[""])


def after_probe(word: str) -> bool:
    """Whether a wait followed such a call: the agent makes its word odd."""
    return int(word, 16) % 2 == 1


def lock_of(
    word: WatchedWord,
    stacks: Sequence[EventStack],
    threads: Collection[int],
    elsewhere: str = "c",
) -> Lock | None:
    """
    Return the lock that a word is; None if it is none.

    `stacks`: of the waits for this word; `elsewhere`: the language of other stacks,
    where there was no room for one of these. `threads`: TIDs of the process.
    """
    language = language_of(stacks) if stacks else elsewhere
    if word.command in (_LOCK_PI, _LOCK_PI2):
        return Lock(MUTEX, language, inherits=True)
    if after_probe(word.word):
        return Lock(_table()["probes"]["lock"], _table()["probes"]["language"])
    for stack in stacks:
        if (row := _row_of(stack)) is not None:
            kind, of = str(row["lock"]), str(row["language"])
            special = language != "c" and of == "c" and not _is_of_library(row)
            single = bool(row.get("single"))
            return Lock(kind, language if special else of, single) if kind else None
    if any(stack.own_memory for stack in stacks):
        return None
    kind = _by_word(word, threads)
    return Lock(kind, language) if kind else None


def _by_word(word: WatchedWord, threads: Collection[int]) -> str:
    """Return what kind of lock a word is; empty if it is none."""
    value = word.value
    if value & _WAITERS and (value & _TID_MASK in threads or value == _MUSL_BUSY):
        return MUTEX
    if value & _TID_MASK == _TID_MASK and value != _PARKED:
        return RWLOCK
    if word.command == _WAIT and _WAITERS < value < _WAITERS + _MANY:
        return OTHER  # a rwlock of musl that others read, or a lock inside of musl
    if word.values_differ:
        return ""
    if value in _NONE_LEFT:
        return SEMAPHORE if word.free > 1 and 4 * word.free >= word.looks else ""
    if value == _CONTENDED:
        return MUTEX
    if value == _WRITTEN and word.command == _WAIT_BITSET:
        return RWLOCK
    # who waited for it wakes others of it: what a queue's reader never does
    return OTHER if word.wakes and word.times.count > 1 else ""


def _row_of(stack: EventStack) -> Mapping[str, Any] | None:
    """
    Return the row of the innermost function that has one, C after all others.

    Of a lock of the C library it is that of the function of the library that has it.
    """
    names = _functions()
    rows = [
        names[ending]
        for frame in stack.stack.frames
        for ending in _endings(frame.function)
        if ending in names and _is_in(frame, names[ending].get("image", ""))
    ]
    waits = [row for row in rows if not row.get("within")]
    others = [row for row in waits if row["language"] != "c"]
    found = next(iter((*others, *waits)), None)
    if found is None or not _is_of_library(found):
        return found
    return next((row for row in rows if row.get("within")), found)


def _is_of_library(row: Mapping[str, Any]) -> bool:
    return bool(row.get("library") or row.get("within"))


def _is_in(frame: NamedFrame, image: str) -> bool:
    return PurePosixPath(frame.image).name.startswith(image)


def _endings(function: str) -> Iterable[str]:
    """
    Return a name without arguments, and without each of its outer namespaces.

    A function of Rust may have its type in brackets: `<a::B>::f`, `<a::B as C>::f`.
    """
    if function.startswith("<"):
        inner, _, rest = function[1:].rpartition(">::")
        function = f"{inner.partition(' as ')[0].partition('<')[0]}::{rest}"
    name = function.partition("(")[0].partition("<")[0]
    name = name.removeprefix("__GI_").lstrip("_")
    name = name.removesuffix("_full64").removesuffix("_full")
    while name:
        yield name
        name = name.partition("::")[2]


def language_of(stacks: Sequence[EventStack]) -> str:
    """Return the language of code that has these stacks; `c` if nothing shows it."""
    frames = [frame for one in stacks for frame in one.stack.frames]
    for row in _table()["languages"]:
        if any(_fits(frame, row) for frame in frames):
            return str(row["name"])
    return "c"


def _fits(frame: NamedFrame, row: Mapping[str, Any]) -> bool:
    image = PurePosixPath(frame.image).name
    return (
        image.startswith(tuple(row.get("images", ())))
        or frame.file.endswith(tuple(row.get("files", ())))
        or frame.function.startswith(tuple(row.get("functions", ())))
    )


@cache
def _table() -> Mapping[str, Any]:
    text = (
        resources.files("rtscope.verbs.app").joinpath("locks.toml").read_text("utf-8")
    )
    return tomllib.loads(text)


@cache
def _functions() -> Mapping[str, Mapping[str, Any]]:
    return {name: row for row in _table()["functions"] for name in row["names"]}
