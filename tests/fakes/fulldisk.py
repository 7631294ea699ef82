"""A disk that is full, but for files of some names."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rtscope.host.errors import RecordError


def full_but_for(*names: str) -> Callable[..., None]:
    """Return what writes files of these names, and finds the disk full for others."""

    def write(path: Path, content: bytes, *, hint: str = "") -> None:
        if path.name not in names:
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise RecordError(f"cannot write {path}: {full.strerror}{hint}") from full
        path.write_bytes(content)

    return write


def full_for(
    patched: pytest.MonkeyPatch, *names: str, after: int = 0
) -> Callable[[], None]:
    """
    Let the disk be full for files of these names, once so many are written.

    Returns what frees it again. The files are written by `rtscope.host.files`, of which
    nothing is replaced.
    """
    sync, written = os.fsync, list[str]()

    def full(number: int) -> None:
        name = Path(f"/proc/self/fd/{number}").readlink().name
        # The file is called .NAME.RANDOM until it is complete.
        if any(name.startswith(f".{one}.") for one in names):
            written.append(name)
            if len(written) > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(number)

    patched.setattr(os, "fsync", full)
    return lambda: patched.setattr(os, "fsync", sync)
