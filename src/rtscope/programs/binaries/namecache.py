"""
Names of places in files, kept by the SHA-256 of the files that they came from.

A file of the cache holds a digest of its own content: one that is damaged is as one
that is not there. All together are at most MAX_BYTES: the oldest go.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

Names = tuple[tuple[str, str, int, bool], ...]
"""Function, file, line and whether it is inlined: innermost first."""

FORMAT = 3
MAX_BYTES = 64 << 20
_MAX_FILE_BYTES = 4 << 20
_MAX_PLACES = 20_000


class NameCache:
    """A directory of names."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, key: str) -> dict[int, Names]:
        """Return the names of places in a file; none if damaged or not kept."""
        try:
            raw = self._path(key).read_bytes()
            digest, _, content = raw.partition(b"\n")
            if digest.decode() != _digest(key, content):
                return {}
            return {
                int(place): tuple(
                    (str(f), str(path), int(line), bool(inlined))
                    for f, path, line, inlined in names
                )
                for place, names in json.loads(content).items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def write(self, key: str, places: Mapping[int, Names]) -> None:
        """Keep the names; nothing happens where that is impossible."""
        kept = dict(list(places.items())[-_MAX_PLACES:])
        content = json.dumps({str(place): names for place, names in kept.items()})
        raw = content.encode()
        if len(raw) > _MAX_FILE_BYTES:
            return
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(dir=self._directory, prefix=".new-")
            with os.fdopen(number, "wb") as file:
                file.write(_digest(key, raw).encode() + b"\n" + raw)
            Path(name).replace(self._path(key))
            self._shrink()

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"

    def _shrink(self) -> None:
        files = []
        for path in self._directory.iterdir():
            about = path.lstat()
            files.append((about.st_mtime, about.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= MAX_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size


def key_of(*contents: memoryview) -> str:
    """Return the key of files whose names are one file's."""
    digests = [hashlib.sha256(one).hexdigest() for one in contents]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _digest(key: str, content: bytes) -> str:
    return hashlib.sha256(f"{FORMAT} {key} ".encode() + content).hexdigest()
