"""A file that has its name only when all of it is there."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtscope.errors import MeasurementError


@contextmanager
def new_file(path: Path, error: type[MeasurementError]) -> Iterator[Path]:
    """
    Give the path of a file to write, which then replaces what is at `path`.

    Raises `error` with the reason if it cannot be written; nothing half stays.
    """
    if path.exists() and not path.is_file():  # as root it would replace /dev/null
        raise error(f"cannot write {path}: not a regular file")
    new = path.with_name(f"{path.name}.new")
    try:
        yield new
        new.replace(path)
    except OSError as cause:
        raise error(f"cannot write {path}: {cause.strerror or cause}") from cause
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
