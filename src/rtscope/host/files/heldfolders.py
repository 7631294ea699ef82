"""
A temporary directory that goes away with its process, also if that is killed.

A lock in it shows that its process is alive. What a killed process has left is removed
by the next one that makes such a directory there.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOCK = "held"


@contextmanager
def held_folder(parent: Path, *, prefix: str) -> Iterator[Path]:
    """
    Give an empty directory; remove it at the end, whatever the end is.

    Raises OSError if none can be made.
    """
    remove_abandoned(parent, prefix=prefix)
    place = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        # The lock gets its name when it is held: nobody finds it free before.
        new = place / f".{LOCK}"
        number = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
        stack.callback(os.close, number)
        fcntl.flock(number, fcntl.LOCK_EX)
        new.rename(place / LOCK)
        yield place


def remove_abandoned(parent: Path, *, prefix: str) -> list[Path]:
    """Remove, and return, one's own directories whose process is no longer alive."""
    return [place for place in sorted(parent.glob(f"{prefix}*")) if _remove(place)]


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
