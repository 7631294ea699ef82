"""
Temporary directories that go away with their process, also if that is killed.

A lock in each shows that its process is alive. What a killed process has left is
removed by the next one that makes such a directory there. Whoever empties the place of
temporary files (`TMPDIR`, `/tmp`) removes the lock too, and so is noticed.
"""

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rtscope.host.errors import RtscopeError

LOCK = ".held"
"""Begins with a full stop, as no file of a packed result or of a machine does."""

_RANDOM, _PRIVATE = "[a-z0-9_]{8}", 0o700
"""How `mkdtemp` ends a name, and the rights that it gives."""

_MAKING_S = 60
"""In which a directory has its lock, however busy the machine is."""

_ROOM_BYTES = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_WAY = (errno.EACCES, errno.EPERM, errno.EROFS)
_ANOTHER = "name another directory in TMPDIR"


@contextmanager
def held_folder(parent: Path, *, prefix: str) -> Iterator[Path]:
    """
    Give an empty directory; remove it at the end, whatever the end is.

    Raises OSError if none can be made.
    """
    with ExitStack() as stack:
        yield _held(parent, prefix, stack)[0]


def _held(parent: Path, prefix: str, stack: ExitStack) -> tuple[Path, int]:
    """Return a directory and the descriptor of the lock in it."""
    remove_abandoned(parent, prefix=prefix)
    place = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    stack.callback(_remove_own, place, place.stat())
    # The lock gets its name when it is held: nobody finds it free before.
    new = place / f"{LOCK}.new"
    number = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    stack.callback(os.close, number)
    fcntl.flock(number, fcntl.LOCK_EX)
    new.rename(place / LOCK)
    return place, number


@contextmanager
def temporary_folder(purpose: str, *, error: type[RtscopeError]) -> Iterator[Path]:
    """
    Give an empty directory, called after its purpose, where temporary files are.

    Raises `error` if there can be none; if its disk is full or read-only; and if
    somebody removed it or its files meanwhile, whatever came of that.
    """
    with ExitStack() as stack:
        with in_temporary_files(error):
            parent = Path(tempfile.gettempdir())
            place, lock = _held(parent, f"rtscope-{purpose}-", stack)
        about = place.stat()
        try:
            yield place
        except Exception as cause:
            if why := _emptied(place, about, lock) or _unwritable(place, cause):
                raise error(why) from cause
            raise
        if why := _emptied(place, about, lock):
            raise error(why)


@contextmanager
def in_temporary_files(error: type[RtscopeError]) -> Iterator[None]:
    """Raise `error` where a file or directory cannot be made among temporary files."""
    try:
        yield
    except OSError as cause:
        # Without a usable directory, `gettempdir` has none and says so itself.
        named = cause.filename and Path(cause.filename).parent
        where = ": ".join(
            str(x) for x in (named or tempfile.tempdir, cause.strerror) if x
        )
        raise error(
            f"cannot write temporary files: {where}; free some space there, or "
            f"{_ANOTHER}"
        ) from cause


def _emptied(place: Path, about: os.stat_result, lock: int) -> str:
    """Return what happened if somebody took the directory, or the lock in it."""
    with suppress(OSError):
        same = os.path.samestat(place.lstat(), about)
        if same and os.path.samestat((place / LOCK).lstat(), os.fstat(lock)):
            return ""
    return (
        f"{place} was removed or emptied while rtscope used it: leave temporary files "
        f"alone while rtscope works, or {_ANOTHER}"
    )


def _unwritable(place: Path, error: Exception) -> str:
    """Return why a file in the directory could not be written, if that is the cause."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__
    if cause is None:
        return ""
    where = str(cause.filename or "")
    here = where.startswith(f"{place}/")
    if cause.errno in _FULL and (here or not (where or _has_room(place))):
        return f"no space left in {place.parent}: free some there, or {_ANOTHER}"
    if cause.errno in _NO_WAY and here:
        return f"cannot write {where}: {cause.strerror}; {_ANOTHER}"
    if isinstance(error, OSError) and here:
        return f"{where}: {cause.strerror}; leave temporary files alone, or {_ANOTHER}"
    return ""


def _has_room(place: Path) -> bool:
    """Tell whether a little can be written there: of a write, no error has a name."""
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)
    except OSError as error:
        return error.errno not in _FULL
    return True


def remove_abandoned(parent: Path, *, prefix: str) -> list[Path]:
    """Remove, and return, one's own directories whose process is no longer alive."""
    made = re.compile(re.escape(prefix) + _RANDOM)
    return [
        place
        for place in sorted(parent.glob(f"{prefix}*"))
        if _remove(place) or (made.fullmatch(place.name) and _remove_unlocked(place))
    ]


def _remove_unlocked(place: Path) -> bool:
    """Remove what a process has left that was killed before it had the lock."""
    with suppress(OSError):
        about = place.lstat()
        own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
        private = stat.S_IMODE(about.st_mode) == _PRIVATE
        if own and private and time.time() - about.st_mtime > _MAKING_S:
            place.rmdir()  # only if it is empty
            return True
    return False


def _remove(place: Path) -> bool:
    try:
        number = os.open(place / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False  # it is being made, or somebody else's
    try:
        if os.fstat(number).st_uid != os.geteuid():
            return False
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        shutil.rmtree(place, ignore_errors=True)
        return True
    finally:
        os.close(number)


def _remove_own(place: Path, about: os.stat_result) -> None:
    """Remove a directory, also a read-only one, unless another is in its place."""
    with suppress(OSError):
        if os.path.samestat(place.lstat(), about):
            place.chmod(0o700)
            shutil.rmtree(place, ignore_errors=True)
