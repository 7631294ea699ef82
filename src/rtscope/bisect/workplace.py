"""
Where a search checks out and compiles: a directory of the cache, removed at the end.

A lock shows that a search is alive. What one that was killed has left is removed by the
next one; the lock is gone with its process.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtscope.errors import KernelError

FOLDER = "bisect"
LOCK = "lock"


@contextmanager
def workplace(cache: Path) -> Iterator[Path]:
    """Give an empty directory; remove it at the end, whatever the end is."""
    folder = cache / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear_left(cache)
        place = Path(tempfile.mkdtemp(dir=folder, prefix="search-"))
    except OSError as error:
        raise KernelError(
            f"cannot make a directory in {folder}: {error.strerror}; make it writable, "
            "or set XDG_CACHE_HOME to another directory"
        ) from error
    number = os.open(place / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(number)


def clear_left(cache: Path) -> list[Path]:
    """Remove, and return, the directories of searches that are no longer alive."""
    gone = []
    for place in sorted((cache / FOLDER).glob("search-*")):
        try:
            number = os.open(place / LOCK, os.O_RDWR)
        except OSError:
            continue  # it is being made
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(place, ignore_errors=True)
            gone.append(place)
        finally:
            os.close(number)
    return gone
