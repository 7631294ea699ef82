"""
Open a file that somebody names: a regular file, or a pipe of the shell.

`<(zcat x)` and `/dev/stdin` are pipes that a shell has opened. A FIFO on a disk, a
device, a socket and a directory are refused before they are opened: some of them wait
for ever, and some act when they are opened.
"""

import errno
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtscope.host.errors import RecordError, RtscopeError
from rtscope.host.files.heldfolders import in_temporary_files, temporary_folder

MAX_PIPED_BYTES = 1 << 30
"""Of a pipe, which is copied to a temporary file: readers go back in what they read."""

IN_A_CIRCLE = "a link that leads in a circle"

Opened = io.BufferedReader | io.BufferedRandom

_OF_SHELL = ("/dev/fd/", "/proc/self/fd/")

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


def is_there(path: Path) -> bool:
    """
    Tell whether a directory has a file of this name, whatever kind it is.

    A link is there, wherever it leads. Raises RecordError if that cannot be seen.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as cause:
        raise RecordError(_unreadable(path, cause)) from cause
    return True


def open_named(
    path: Path,
    *,
    kind: str,
    error: type[RtscopeError] = RecordError,
    limit: int | None = None,
    follow: bool = True,
) -> Opened:
    """
    Open a file for reading, at its begin; the result has `seek` and a descriptor.

    `limit` is the maximum size in bytes of any file of its `kind`. Without `follow`, a
    link is refused. Raises `error` with the reason.
    """
    try:
        _refuse_odd(path, path.stat(follow_symlinks=follow), error)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        number = os.open(path, flags | (0 if follow else os.O_NOFOLLOW))
        file = os.fdopen(number, "rb")
        try:
            about = os.fstat(number)
            _refuse_odd(path, about, error)
            refuse_larger(path, about.st_size, limit, kind=kind, error=error)
            return _copied(path, file, limit, kind, error) if _waits(about) else file
        except BaseException:
            file.close()
            raise
    except (OSError, ValueError) as cause:  # ValueError: a NUL in its name
        raise error(_unreadable(path, cause)) from cause


def read_named(
    path: Path,
    *,
    limit: int,
    kind: str,
    error: type[RtscopeError] = RecordError,
    follow: bool = True,
) -> bytes:
    """Read a file as `open_named` opens it; raises `error` with the reason."""
    with open_named(path, kind=kind, error=error, limit=limit, follow=follow) as file:
        try:
            content = file.read(limit + 1)
        except OSError as cause:
            raise error(_unreadable(path, cause)) from cause
    if content is None:  # of the kernel, e.g. /proc/kmsg, which waits for its next line
        raise error(f"cannot read {path}: it has no end")
    refuse_larger(path, len(content), limit, kind=kind, error=error)
    return content


@contextmanager
def at_hand(
    path: Path,
    *,
    kind: str,
    error: type[RtscopeError] = RecordError,
    limit: int | None = None,
) -> Iterator[Path]:
    """
    Give a path that can be opened again and again: the file's own, or of a pipe's copy.

    Raises `error` as `open_named` does.
    """
    with open_named(path, kind=kind, error=error, limit=limit) as file:
        if not _is_of_shell(path):
            yield path
            return
        with temporary_folder("pipe", error=error) as place:
            copy = place / "standard-input"
            with copy.open("wb") as out:
                shutil.copyfileobj(file, out)
            yield copy


def read_bounded(path: Path, *, limit: int, kind: str, hint: str = "") -> bytes:
    """
    Read a regular file, no link, of at most `limit` bytes, the maximum for its `kind`.

    Raises RecordError, with `hint` if the file cannot be read.
    """
    try:
        return read_named(path, limit=limit, kind=kind, follow=False)
    except RecordError as error:
        if isinstance(error.__cause__, OSError):
            raise RecordError(f"{error}{hint}") from error.__cause__
        raise


def refuse_larger(
    path: Path,
    size: int,
    limit: int | None,
    *,
    kind: str,
    error: type[RtscopeError] = RecordError,
) -> None:
    """Raise `error` if a file has more bytes than any of its kind may have."""
    if limit is not None and size > limit:
        raise error(
            f"{path}: {size:,} bytes, more than the {limit:,} bytes of any {kind}"
        )


def _refuse_odd(path: Path, about: os.stat_result, error: type[RtscopeError]) -> None:
    if stat.S_ISREG(about.st_mode) or (_waits(about) and _is_of_shell(path)):
        return
    what = _KINDS.get(stat.S_IFMT(about.st_mode), "an odd file")
    if stat.S_ISLNK(about.st_mode):
        what += _leads(path)
    raise error(f"{path}: {what}, not a regular file")


def _leads(link: Path) -> str:
    """Return where a link leads, in words."""
    try:
        to = f" to {str(link.readlink())!a:.200}"
        link.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return f"{to}, which leads in a circle"
        return f"{to}, where nothing is" if error.errno == errno.ENOENT else ""
    return to


def _waits(about: os.stat_result) -> bool:
    return stat.S_ISFIFO(about.st_mode)


def _is_of_shell(path: Path) -> bool:
    """Whether it is a descriptor of this process, which whoever typed has opened."""
    return str(path) == "/dev/stdin" or str(path).startswith(_OF_SHELL)


def _copied(
    path: Path,
    pipe: Opened,
    limit: int | None,
    kind: str,
    error: type[RtscopeError],
) -> Opened:
    """Return all that a pipe gives, as a file without a name; close the pipe."""
    most = min(MAX_PIPED_BYTES, MAX_PIPED_BYTES if limit is None else limit)
    os.set_blocking(pipe.fileno(), True)
    with in_temporary_files(error):
        copy = tempfile.TemporaryFile()  # noqa: SIM115 -- the caller closes it
    with pipe:
        try:
            while content := pipe.read(min(1 << 20, most + 1 - copy.tell())):
                with in_temporary_files(error):
                    copy.write(content)
            refuse_larger(path, copy.tell(), most, kind=kind, error=error)
            with in_temporary_files(error):
                copy.seek(0)
        except BaseException:
            with suppress(OSError):  # it writes what is left
                copy.close()
            raise
    return copy


def _unreadable(path: Path, cause: OSError | ValueError) -> str:
    why = (cause.strerror if isinstance(cause, OSError) else None) or cause
    if isinstance(cause, OSError) and cause.errno == errno.ELOOP:
        why = IN_A_CIRCLE
    hint = "; for standard input write /dev/stdin" if str(path) == "-" else ""
    return f"cannot read {path}: {why}{hint}"
