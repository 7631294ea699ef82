"""
Read files within limits; write files as a whole or not at all.

    archive.py      archives and compressed data, within limits
    csvtext.py      lines of CSV without formulas
    documents.py    TOML and JSON from others, against a type
    heldfolders.py  temporary directories that go away with their process
    jsontext.py     JSON: every document that is printed or written
    junit.py        JUnit XML: suites of cases with their outcomes; text in XML
    opening.py      files that somebody names: regular ones, and pipes of the shell
    plaintext.py    foreign text as plain lines, also out of a mail
    prefixes.py     text before each line, found by its shape
    systemdunit.py  words of a systemd unit, quoted
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from rtscope.host.errors import RecordError, RtscopeError
from rtscope.host.files.opening import read_bounded as read_bounded


@contextmanager
def new_file(
    path: Path, error: type[RtscopeError], *, hint: str = ""
) -> Iterator[Path]:
    """
    Give the path of a file to write, which then replaces `path`.

    Raises `error` with the reason (disk full, no permission), the advice that fits it
    and `hint` if it cannot be written, and leaves no partial file.
    """
    if path.exists() and not path.is_file():  # as root it would replace /dev/null
        raise error(f"cannot write {path}: not a regular file")
    new = None
    try:
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        # The kernel takes the bits of the umask off, and applies a default ACL.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o666), "rb") as file:
            yield new
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as cause:
        why = cause.strerror or cause
        advice = f"{advice_for(cause)}{hint}"
        raise error(f"cannot write {path}: {why}{advice}") from cause
    finally:
        if new is not None:
            with suppress(OSError):
                new.unlink(missing_ok=True)


_ADVICE = {
    errno.ENOSPC: "; free some space",
    errno.EDQUOT: "; free some space",
    errno.EACCES: "; name a place that you may write",
    errno.EPERM: "; name a place that you may write",
    errno.EROFS: "; name a place that you may write",
    errno.ENOENT: "; make its directory first",
    errno.ENOTDIR: "; name a place in a directory",
}


def advice_for(error: OSError) -> str:
    """Return what to do about a file that cannot be written, with a semicolon."""
    return _ADVICE.get(error.errno or 0, "")


def is_disk_full(error: RtscopeError) -> bool:
    """Tell whether a file could not be written because a disk, or a quota, is full."""
    why = error.__cause__
    return isinstance(why, OSError) and why.errno in (errno.ENOSPC, errno.EDQUOT)


def refuse_unwritable(path: Path) -> None:
    """Raise RecordError, before any work, if a file could not be written there."""
    number = 0
    if not path.parent.exists():
        number = errno.ENOENT
    elif not path.parent.is_dir():
        number = errno.ENOTDIR
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        number = errno.EACCES
    if number:
        why = f"{os.strerror(number)}{_ADVICE[number]}"
        raise RecordError(f"cannot write {path}: {why}")
    if path.exists() and not path.is_file():
        raise RecordError(f"cannot write {path}: not a regular file")


def write_atomically(path: Path, content: bytes, *, hint: str = "") -> None:
    """
    Replace a file as a whole, or leave it unchanged.

    Raises RecordError as `new_file` does.
    """
    with new_file(path, RecordError, hint=hint) as new:
        new.write_bytes(content)


def first_mistake(error: ValidationError, *, whole: str = "") -> str:
    """Return place and message of the first mistake; `whole` names the document."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or whole
    # Of a line's type pydantic lists all that there are, which would be half a page.
    said = first["msg"].removeprefix("Value error, ")
    says, unknown, _ = said.partition(" does not match any of the expected")
    says += " is unknown" if unknown else ""
    return f"{where}: {says}" if where else says
