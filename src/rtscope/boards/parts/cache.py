"""
Where built parts of virtual boards are kept, by the digest of what each is made of.

A part appears in its place complete or not at all, and is never changed afterwards. One
builder at a time: others wait, but not for a compilation of many minutes, unless it is
of what they want. Whatever is in the cache can be deleted at any time.

Parts of imported bundles have a directory of their own, by the digest of their
content: a bundle names the inputs itself, so a key over them proves nothing there.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic_core import from_json

from rtscope.host.errors import BoardError, UsageError
from rtscope.record.directory.place import hold

MANIFEST = "manifest.json"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,127}-[0-9a-f]{16}")

IMPORTED = "imported"
"""Where the parts of bundles are; nothing that is built or found by inputs is there."""

_UNFINISHED = ".building-"


@dataclass(frozen=True, slots=True)
class Part:
    """A built part: a directory and its manifest."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name that a lock file knows it by."""
        return str(self.manifest["name"])

    @property
    def digest(self) -> str:
        """SHA-256 over names, modes and contents of all its files."""
        return str(self.manifest["digest"])

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        return sum(row.get("size", 0) for row in self.manifest["files"].values())

    def file(self, name: str) -> Path:
        """Return a file of it."""
        return self.path / name

    def sha256_of(self, name: str) -> str | None:
        """Return the digest that the manifest has of a file; None without one."""
        row = self.manifest["files"].get(name)
        return None if row is None else str(row["sha256"])

    def content(self, name: str) -> bytes:
        """Return the content of a file; BoardError if it was changed."""
        content = self.file(name).read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256_of(name):
            raise BoardError(
                f"{self.file(name)} was changed: delete {self.path} and type rtscope "
                "board build"
            )
        return content


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory that the XDG base directory specification names."""
    return user_dir("XDG_CACHE_HOME", ".cache", environ)


FULL = (errno.ENOSPC, errno.EDQUOT)
"""Of an OSError: the disk is full, or the user's share of it."""


class NoSpaceError(BoardError):
    """The disk of the cache is full; `locked` names it."""


@contextmanager
def locked(cache: Path, *, log: Callable[[str], None]) -> Iterator[None]:
    """
    Keep other builders out of the cache; clear away what a killed one has left.

    A full disk in the block is a BoardError that names the cache.
    """
    _make(cache / "parts")
    with _lock_file(cache / "lock") as file:
        _take(file, log, f"another rtscope builds in {cache}: waiting for it")
        for path in (cache / "parts").glob(f"{_UNFINISHED}*"):
            _remove_abandoned(path)
        held = cache, threading.get_ident()
        before = _HELD.get(held)
        _HELD[held] = file
        try:
            yield
        except (NoSpaceError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in FULL:
                raise
            raise BoardError(
                f"no space left in {cache}: free some there, or set XDG_CACHE_HOME to "
                "another directory; then type the command again"
            ) from error
        finally:
            if before is None:
                del _HELD[held]
            else:
                _HELD[held] = before


_HELD: dict[tuple[Path, int], IO[str]] = {}
"""The lock of each cache that a thread of this process holds."""


@contextmanager
def open_to_others(cache: Path) -> Iterator[None]:
    """
    Let others build in the cache meanwhile, in a block that reads and writes no part.

    The caller holds the lock of the cache, and has it again afterwards; not after
    Ctrl-C, which ends at once.
    """
    file = _HELD[cache, threading.get_ident()]
    fcntl.flock(file, fcntl.LOCK_UN)
    try:
        yield
    except Exception:
        fcntl.flock(file, fcntl.LOCK_EX)
        raise
    fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def only_builder(
    cache: Path, name: str, *, log: Callable[[str], None]
) -> Iterator[None]:
    """
    Keep others from building the part `name`, also while the cache is open to them.

    The caller holds the lock of the cache. What is there is to be looked at in the
    block: another one may just have built it.
    """
    _make(cache / "locks")
    with _lock_file(cache / "locks" / name) as file:
        with open_to_others(cache):  # whoever builds it will want the cache
            _take(file, log, f"another rtscope builds {name}: waiting for it")
        yield


def _take(file: IO[str], log: Callable[[str], None], waiting: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log(waiting)
        fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def unfinished(cache: Path) -> Iterator[Path]:
    """
    Give a directory to build in, which goes away if it is not installed.

    The caller holds the lock of the cache; others leave it alone while this process
    lives.
    """
    _make(cache / "parts")
    work = Path(tempfile.mkdtemp(dir=cache / "parts", prefix=_UNFINISHED))
    try:
        with hold(work):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_abandoned(work: Path) -> None:
    """Remove what a killed builder has left; not what another one compiles in."""
    with suppress(UsageError), hold(work):
        shutil.rmtree(work, ignore_errors=True)


def part_key(inputs: object) -> str:
    """Return the key of a part: the digest of everything that it is made of."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def find_part(cache: Path, name: str, key: str) -> Part | None:
    """Return a part that is built already."""
    path = cache / "parts" / f"{name}-{key[:16]}"
    return read_part(path) if path.is_dir() else None


def read_part(path: Path) -> Part:
    """Read a part's manifest; BoardError if it is damaged."""
    try:
        manifest = from_json((path / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise BoardError(
            f"{path} is damaged: delete it and type rtscope board build"
        ) from error
    return Part(path, manifest)


def all_parts(cache: Path) -> list[Part]:
    """Return every complete part of the cache, by name."""
    return _parts_in(cache / "parts")


def imported_parts(cache: Path) -> list[Part]:
    """Return the parts of all imported bundles: for whoever knows a part's digest."""
    return _parts_in(cache / IMPORTED)


def named_parts(cache: Path, names: Collection[str]) -> list[Part]:
    """Return the parts with these names, built or imported; no other one is read."""
    return [
        read_part(path)
        for folder in (cache / "parts", cache / IMPORTED)
        for path in _places(folder)
        if path.name.rpartition("-")[0] in names
    ]


def _parts_in(folder: Path) -> list[Part]:
    return [read_part(path) for path in _places(folder)]


def _places(folder: Path) -> list[Path]:
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if NAME.fullmatch(path.name)]


class NotBuiltError(BoardError):
    """A part would have to be built, and the caller does not hold the lock for it."""


def build_part(
    cache: Path,
    name: str,
    *,
    inputs: object,
    build: Callable[[Path], Mapping[str, Any]],
    may_build: bool = True,
) -> Part:
    """
    Return a part, built if it is not there.

    `build` fills an empty directory and returns notes for the manifest. The caller
    holds the lock of the cache, unless it forbids to build: then NotBuiltError is
    raised for what is not there.
    """
    key = part_key(inputs)
    part = find_part(cache, name, key)
    if part is not None:
        return part
    if not may_build:
        raise NotBuiltError(f"{name} is not built")
    try:
        with unfinished(cache) as work:
            notes = build(work)
            return install(cache, work, name=name, key=key, inputs=inputs, notes=notes)
    except OSError as error:
        if error.errno in FULL:
            raise NoSpaceError(f"no space left to build {name}") from error
        raise BoardError(f"cannot build {name}: {error}") from error


def install(
    cache: Path,
    work: Path,
    *,
    name: str,
    key: str,
    inputs: object,
    notes: Mapping[str, Any],
) -> Part:
    """Give a filled directory its manifest and its place."""
    files = list_files(work)
    manifest = {
        "schema": 1,
        "name": name,
        "key": key,
        "digest": files_digest(files),
        "notes": dict(notes),
        "inputs": inputs,
        "files": files,
    }
    (work / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))
    work.chmod(0o755)
    place = cache / "parts" / f"{name}-{key[:16]}"
    work.rename(place)
    return Part(place, manifest)


def list_files(root: Path) -> dict[str, dict[str, Any]]:
    """Return the files below a directory but its manifest: digest, size, if it runs."""
    return {
        str(path.relative_to(root)): _row(path)
        for path in sorted(root.rglob("*"))
        if (path.is_symlink() or not path.is_dir()) and path != root / MANIFEST
    }


def files_digest(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one digest over the rows of `list_files`."""
    return part_key(files)


def verify(part: Part) -> None:
    """Raise BoardError if a file of the part differs from its manifest."""
    files = list_files(part.path)
    if files == part.manifest["files"] and files_digest(files) == part.digest:
        return
    wrong = sorted(
        name
        for name in {*files, *part.manifest["files"]}
        if files.get(name) != part.manifest["files"].get(name)
    )
    raise BoardError(
        f"{part.path} was changed ({', '.join(wrong[:3]) or 'its digest'}): delete it "
        "and type rtscope board build"
    )


def _row(path: Path) -> dict[str, Any]:
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise BoardError(f"{path.name}: a part holds regular files only")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "sha256": digest,
        "size": path.stat().st_size,
        "runs": bool(mode & 0o100),
    }


def _lock_file(path: Path) -> IO[str]:
    try:
        return path.open("w")
    except OSError as error:
        raise BoardError(
            f"cannot write {path}: {error.strerror}; make {path.parent} writable "
            "for this user, or set XDG_CACHE_HOME to another directory"
        ) from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BoardError(
            f"cannot make {folder}: {os.strerror(error.errno or 0)}"
        ) from (error)


# --- directories of a user, by the XDG base directory specification -----------------


def user_dir(variable: str, below_home: str, environ: Mapping[str, str]) -> Path:
    """Return the directory in what a variable names, or else below the home."""
    base = environ.get(variable, "")
    if not base.startswith("/"):  # a relative path counts as none
        base = f"{environ.get('HOME') or '/root'}/{below_home}"
    return Path(base) / "rtscope"
