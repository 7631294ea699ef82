"""Files from elsewhere, read within limits, and files that are there as a whole."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from rtscope.errors import RecordError, RtscopeError


@contextmanager
def new_file(
    path: Path, error: type[RtscopeError], *, hint: str = ""
) -> Iterator[Path]:
    """
    Give the path of a file to write, which then replaces what is at `path`.

    Raises `error` with the reason (disk full, no permission), and with `hint`, if it
    cannot be written; nothing half stays.
    """
    if path.exists() and not path.is_file():  # as root it would replace /dev/null
        raise error(f"cannot write {path}: not a regular file")
    new = None
    try:
        number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        new = Path(name)
        with os.fdopen(number, "rb") as file:
            yield new
            os.fsync(file.fileno())
        new.chmod(0o644)
        new.replace(path)
    except OSError as cause:
        why = cause.strerror or cause
        raise error(f"cannot write {path}: {why}{hint}") from cause
    finally:
        if new is not None:
            with suppress(OSError):
                new.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """
    Replace a file as a whole, or leave what is there.

    Raises RecordError with the reason (disk full, no permission) and no half file.
    """
    hint = (
        "; free some space or choose another place with --out, then go on with "
        "rtscope run --resume"
    )
    with new_file(path, RecordError, hint=hint) as new:
        new.write_bytes(content)


def read_bounded(path: Path, *, limit: int, kind: str, hint: str = "") -> bytes:
    """
    Read a regular file, no link, of at most `limit` bytes; more no `kind` of ours has.

    Raises RecordError, with `hint` if the file cannot be read.
    """
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise RecordError(f"{path}: not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1) if about.st_size <= limit else b""
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}{hint}") from error
    size = max(about.st_size, len(content))
    if size > limit:
        raise RecordError(f"{path}: {size} bytes are more than any {kind} has")
    return content


def first_mistake(error: ValidationError, *, whole: str = "") -> str:
    """Say where the first mistake is and which; `whole` stands for all of it."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or whole
    return f"{where}: {first['msg']}" if where else first["msg"]
