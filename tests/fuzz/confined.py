"""
Keep a reader of hostile input in its own temporary folder, and from any program.

Python tells an audit hook of every file that is opened to write, every name that is
made, moved or removed, every program that is started and every connection. What a
reader does outside its folder while `confined` lasts is an error of the test.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NAMES = {
    "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
"""Which arguments of these events are a changed path, and the folder it is below."""
_FORBIDDEN = frozenset(
    (
        *("subprocess.Popen", "os.exec", "os.system", "os.fork", "os.posix_spawn"),
        *("socket.connect", "socket.bind", "urllib.Request", "ctypes.dlopen"),
    )
)


class OutsideError(BaseException):
    """A reader did what no input may make it do: no reader's error is of this kind."""


class _Guard:
    folder: str | None = None
    found: str = ""


_GUARD = _Guard()


@contextmanager
def confined(folder: Path) -> Iterator[None]:
    """Raise OutsideError after the block if it changed something outside the folder."""
    _install()
    _GUARD.folder, _GUARD.found = os.path.realpath(folder), ""
    try:
        yield
    finally:
        _GUARD.folder = None
    if _GUARD.found:
        raise OutsideError(_GUARD.found)


def _install(_done: list[bool] = []) -> None:  # noqa: B006  # a hook stays for ever
    if not _done:
        sys.addaudithook(_heard)
        _done.append(True)


def _heard(event: str, words: tuple[Any, ...]) -> None:
    if _GUARD.folder is None:
        return
    if event in _FORBIDDEN:
        _GUARD.found = _GUARD.found or f"{event} {str(words[:2])[:100]}"
    elif event == "open":
        path, _, flags = words
        if isinstance(flags, int) and flags & _WRITES and not isinstance(path, int):
            _check(event, path)
    elif event in _NAMES:
        for place, below in _NAMES[event]:
            folder = -1 if below is None else words[below]
            _check(event, words[place], "" if folder < 0 else f"/proc/self/fd/{folder}")


def _check(event: str, path: object, below: str = "") -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return  # by a descriptor, whose folder was opened before
    folder = _GUARD.folder
    _GUARD.folder = None  # resolving a path raises events too
    try:
        name = Path(below, os.fsdecode(path))
        if str(name) == os.devnull or os.path.realpath(name) == folder:
            return  # the folder itself is opened for a file without a name
        if f"{os.path.realpath(name.parent)}/".startswith(f"{folder}/"):
            return
        _GUARD.found = _GUARD.found or f"{event} {os.fsdecode(path)[:100]}"
    finally:
        _GUARD.folder = folder
