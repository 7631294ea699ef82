"""
A bundle: everything that a result depends on, in one file, addressed by content.

Distributions replace their packages, so whoever repeats a result next year, or without
a network, needs its inputs. An import trusts nothing: it checks paths, kinds, sizes and
every digest before it uses a file. That shows that the bundle is whole, not that its
programs are harmless.
"""

import contextlib
import errno
import json
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import StrictBool, StrictInt, TypeAdapter

from rtscope.boards.catalogue import Board
from rtscope.boards.parts.aptroot import Package
from rtscope.boards.parts.cache import (
    FULL,
    IMPORTED,
    MANIFEST,
    NAME,
    NoSpaceError,
    Part,
    locked,
    named_parts,
    part_key,
    read_part,
    unfinished,
    verify,
)
from rtscope.boards.parts.prepared import Prepared, assemble
from rtscope.host.errors import BoardError, UsageError
from rtscope.host.files import new_file
from rtscope.host.files.archive import Bounds, add_content, archive_to, read_archive
from rtscope.host.files.documents import json_object

SCHEMA = 1
CONTENTS = "bundle.json"

MAX_BYTES = 4 << 30
MAX_FILES = 5_000
MAX_READ_BYTES = 8 << 20
"""Of all that is read into memory: contents, manifests, files beside the parts."""
MAX_DEPTH = 16
"""Of directories in a part."""

UNFINISHED_S = 24 * 3600
"""After so long, nobody is receiving a part any more."""
_RECEIVING = ".receiving-"

_BOARD = TypeAdapter(Board)


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a part, as `list_files` lists it."""

    sha256: str
    size: StrictInt
    runs: StrictBool


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What is looked up in the inputs of a part; the rest is only for its key."""

    packages: tuple[Package, ...] | str = ()
    """A guest file of that name has its digest here."""


@dataclass(frozen=True, slots=True)
class _Notes:
    """What is looked up in the notes of a part."""

    release: str | None = None
    program: str = ""
    loader: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The manifest of a part of a bundle."""

    schema: int
    name: str
    key: str
    digest: str
    notes: _Notes
    inputs: _Inputs
    files: Mapping[str, _File]


_MANIFEST = TypeAdapter(_Manifest)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle holds."""

    board: Board
    kernels: Mapping[str, str]
    """The part of each kernel, by the kernel's name."""
    pins: Mapping[str, str]
    """Digests of its parts' manifests, which have those of the content, by name."""
    files: Mapping[str, bytes]
    """What was exported beside the parts: a campaign."""
    rtscope: str
    """Version of the program that wrote it."""
    digest: str
    """Of all of it."""


def export_bundle(
    path: Path,
    prepared: Mapping[str, Prepared],
    *,
    files: Mapping[str, bytes],
    rtscope: str,
) -> str:
    """
    Write what boots a board, by what its kernels are called; return its digest.

    Compressed if the name ends in `.gz`. The same parts give the same file. Raises
    UsageError for one's own QEMU, BoardError if the cache is damaged or the disk full.
    """
    parts = {part.name: part for one in prepared.values() for part in one.parts}
    if not any(name.startswith("qemu-") for name in parts):
        raise UsageError("a QEMU given with --qemu cannot be part of a bundle")
    for part in parts.values():
        verify(part)
    contents = {**_contents(prepared, parts, files), "rtscope": rtscope}
    with (
        new_file(path, BoardError) as new,
        archive_to(new, compress=path.suffix == ".gz") as archive,
    ):
        add_content(archive, CONTENTS, json.dumps(contents, sort_keys=True).encode())
        for name in sorted(files):
            add_content(archive, f"files/{name}", files[name])
        for _, part in sorted(parts.items()):
            for file in sorted([MANIFEST, *part.manifest["files"]]):
                _add_file(archive, f"parts/{part.path.name}/{file}", part.file(file))
    return part_key(contents)


def import_bundle(path: Path, *, cache: Path, log: Callable[[str], None]) -> Bundle:
    """
    Check a bundle and keep its parts in the cache, where only this bundle finds them.

    Raises UsageError if it cannot be read, BoardError if anything in it is not right;
    then the cache is as before.
    """
    with locked(cache, log=log), unfinished(cache) as work:
        _extract(path, work)
        contents = _read_contents(work / CONTENTS)
        bundle = _checked(contents, work)
        _place(work, cache)
    return bundle


def export_part(path: Path, part: Part) -> None:
    """Write one part as an archive for `import_part`; BoardError if it was changed."""
    verify(part)
    folder = _folder(part.name, str(part.manifest["key"]))
    with (
        new_file(path, BoardError) as new,
        archive_to(new, compress=False) as archive,
    ):
        for file in sorted([MANIFEST, *part.manifest["files"]]):
            _add_file(archive, f"parts/{folder}/{file}", part.file(file))


def import_part(path: Path, *, pin: str, cache: Path) -> None:
    """
    Check one part and keep it in the cache, where only its pin finds it.

    The pin is the digest of its manifest. Raises UsageError if the archive cannot be
    read, BoardError if it is not that part; then the cache is as before.
    """
    folder = cache / IMPORTED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
        work = Path(tempfile.mkdtemp(dir=folder, prefix=_RECEIVING))
        try:
            _extract(path, work)
            if [part_key(part.manifest) for part in _parts(work)] != [pin]:
                raise BoardError(f"{path}: not the part that was asked for")
            _place(work, cache)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except (NoSpaceError, OSError) as error:
        if isinstance(error, NoSpaceError) or error.errno in FULL:
            why = "no space left: free some there, or"
        elif error.errno in (errno.EACCES, errno.EPERM):
            why = f"{error.strerror}: make it writable for this user, or"
        else:
            why = f"{error.strerror}:"
        raise BoardError(
            f"{folder}: {why} set XDG_CACHE_HOME to another directory"
        ) from error


def _remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed had received of a part."""
    for path in folder.glob(f"{_RECEIVING}*"):
        with contextlib.suppress(OSError):  # another one removes it
            if time.time() - path.stat().st_mtime > UNFINISHED_S:
                shutil.rmtree(path, ignore_errors=True)


def find_pinned(cache: Path, pins: Mapping[str, str]) -> dict[str, Part]:
    """Return the parts of the cache with these digests of their manifests, by name."""
    parts: dict[str, Part] = {}
    for part in named_parts(cache, pins.keys()):
        if pins.get(part.name) == part_key(part.manifest):
            parts[part.name] = part
    return parts


def prepare_bundle(bundle: Bundle, *, cache: Path) -> dict[str, Prepared]:
    """
    Return what boots each kernel of an imported bundle, by the kernel's name.

    From the bundle's own parts and board alone, whatever would be built now. Raises
    BoardError if the cache was emptied since.
    """
    parts = {name: _imported(cache, name, pin) for name, pin in bundle.pins.items()}
    shared = [part for name, part in parts.items() if not name.startswith("kernel-")]
    try:
        return {
            kernel: assemble(bundle.board, kernel, parts=(*shared, parts[name]))
            for kernel, name in bundle.kernels.items()
        }
    except KeyError as error:
        raise BoardError(
            f"the bundle is damaged: a part of it lacks {error.args[0]!a}"
        ) from error


def _imported(cache: Path, name: str, pin: str) -> Part:
    path = cache / IMPORTED / _folder(name, pin)
    if not path.is_dir():
        raise BoardError(f"{name} is not in {cache} any more: import the bundle again")
    return read_part(path)


def _folder(name: str, pin: str) -> str:
    return f"{name}-{pin[:16]}"


def _contents(
    prepared: Mapping[str, Prepared],
    parts: Mapping[str, Part],
    files: Mapping[str, bytes],
) -> dict[str, Any]:
    digests = {name: part_key(content.hex()) for name, content in files.items()}
    return {
        "schema": SCHEMA,
        "board": asdict(next(iter(prepared.values())).board),
        "kernels": {label: one.parts[-1].name for label, one in prepared.items()},
        "files": digests,
        "parts": {
            name: {"key": part.manifest["key"], "digest": part.digest}
            for name, part in parts.items()
        },
    }


def _add_file(archive: tarfile.TarFile, name: str, path: Path) -> None:
    info = tarfile.TarInfo(name)
    info.size = path.stat().st_size
    with path.open("rb") as file:
        archive.addfile(info, file)


def _extract(path: Path, work: Path) -> None:
    """Write the files of a bundle below a directory: regular ones, whole, bounded."""
    to_read = 0

    def write(name: str, content: IO[bytes], size: int) -> None:
        nonlocal to_read
        to_read += size if _is_read_whole(name) else 0
        if to_read > MAX_READ_BYTES:
            raise BoardError(
                f"{path}: {name!r}: with it, contents, manifests and files have more "
                f"than {MAX_READ_BYTES:,} bytes"
            )
        try:
            _write(work / _safe(name), content, size=size)
        except OSError as error:
            if error.errno in FULL:  # not the bundle's fault
                raise NoSpaceError(f"no space left to unpack {path}") from error
            raise

    bounds = Bounds("bundle", BoardError, max_bytes=MAX_BYTES, max_files=MAX_FILES)
    read_archive(path, write, bounds)


def _is_read_whole(name: str) -> bool:
    parts = name.split("/")
    return name == CONTENTS or parts[0] == "files" or parts[2:] == [MANIFEST]


def _safe(name: str) -> PurePosixPath:
    """Return the path of a member; BoardError if it is not one that we write."""
    parts = name.split("/")
    plain = all(p not in ("", ".", "..") and p.isprintable() for p in parts)
    if (
        plain
        and len(parts) <= MAX_DEPTH
        and (
            name == CONTENTS
            or (len(parts) == 2 and parts[0] == "files")
            or (len(parts) >= 3 and parts[0] == "parts" and NAME.fullmatch(parts[1]))
        )
    ):
        return PurePosixPath(name)
    raise BoardError(f"{name!r}: no place in a bundle")


def _write(path: Path, source: IO[bytes], *, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = path.open("xb")
    except FileExistsError as error:
        raise BoardError(f"the bundle holds {path.name} twice") from error
    with file:
        shutil.copyfileobj(source, file)
        if file.tell() != size:
            raise BoardError(f"{path.name}: cut short")


def _read_contents(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError("not a bundle: it has no bundle.json")
    contents = json_object(
        path.read_bytes(), name="the bundle's table of contents", error=BoardError
    )
    if contents.get("schema") != SCHEMA:
        raise BoardError("the bundle is of another version of rtscope, or damaged")
    return contents


def _checked(contents: Mapping[str, Any], work: Path) -> Bundle:
    """Return what the bundle holds, after comparing every digest."""
    try:
        board = _BOARD.validate_python(contents["board"])
        kernels = {str(n): str(part) for n, part in contents["kernels"].items()}
        listed = {str(n): dict(row) for n, row in contents["parts"].items()}
        digests = dict(contents["files"])
        rtscope = str(contents["rtscope"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = " ".join(str(error).split())[:200]
        raise BoardError(f"the bundle's contents are damaged: {why}") from error
    parts = {part.path.name: part for part in _parts(work)}
    expected = {f"{n}-{str(row.get('key'))[:16]}": row for n, row in listed.items()}
    if parts.keys() != expected.keys():
        raise BoardError("the bundle does not hold the parts that it lists")
    for folder, row in expected.items():
        if parts[folder].digest != row.get("digest"):
            raise BoardError(f"{folder} is not the part that the bundle lists")
    files = {p.name: p.read_bytes() for p in sorted((work / "files").glob("*"))}
    if {name: part_key(content.hex()) for name, content in files.items()} != digests:
        raise BoardError("the bundle's files differ from its list")
    pins = {part.name: part_key(part.manifest) for part in parts.values()}
    if not kernels or not set(kernels.values()) <= pins.keys():
        raise BoardError("the bundle lacks the part of a kernel that it names")
    return Bundle(board, kernels, pins, files, rtscope, part_key(contents))


def _parts(work: Path) -> Iterator[Part]:
    for path in sorted((work / "parts").glob("*")):
        part = read_part(path)
        manifest = part.manifest
        try:
            _MANIFEST.validate_python(manifest)
            key = part_key(manifest["inputs"])
            right = manifest["key"] == key and path.name == f"{part.name}-{key[:16]}"
        except (ValueError, RecursionError) as error:
            raise BoardError(f"{path.name}: its manifest is damaged") from error
        for name, row in manifest["files"].items():
            if row["runs"] and part.file(_relative(name)).is_file():
                part.file(name).chmod(0o755)
        if not right:
            raise BoardError(f"{path.name}: its key does not match its inputs")
        verify(part)
        yield part


def _relative(name: str) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise BoardError(f"{name!r}: no place in a part")
    return name


def _place(work: Path, cache: Path) -> None:
    """Move checked parts to their places; keep those that are there already."""
    (cache / IMPORTED).mkdir(exist_ok=True)
    for path in sorted((work / "parts").iterdir()):
        part = read_part(path)
        place = cache / IMPORTED / _folder(part.name, part_key(part.manifest))
        if not place.exists():
            path.chmod(0o755)
            try:
                path.rename(place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise  # else somebody else was faster
