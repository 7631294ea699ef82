"""A disk that is full, but for files of some names."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from rtscope.errors import RecordError


def full_but_for(*names: str) -> Callable[..., None]:
    """Return what writes files of these names, and finds the disk full for others."""

    def write(path: Path, content: bytes, *, hint: str = "") -> None:
        if path.name not in names:
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise RecordError(f"cannot write {path}: {full.strerror}{hint}") from full
        path.write_bytes(content)

    return write
