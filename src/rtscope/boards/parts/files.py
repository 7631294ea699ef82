"""The files that a campaign brings to a board, as a part of it."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtscope.boards.parts import initrd
from rtscope.boards.parts.buildcontext import (
    FILES_ARCHIVE,
    FILES_KIND,
    BuildContext,
    content_part,
)
from rtscope.boards.parts.cache import Part
from rtscope.host.errors import UsageError
from rtscope.host.files.opening import read_named

MAX_FILES_BYTES = 64 << 20
"""Of all together: they lie in the board's memory."""

_KIND = (
    f"guest file beside the others: together they exceed {MAX_FILES_BYTES >> 20} MiB; "
    "they take the board's memory, so leave some out"
)


def read_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """
    Return the files' contents by their names.

    Raises UsageError for what cannot be read, is too large or has another's name.
    """
    contents: dict[str, bytes] = {}
    left = MAX_FILES_BYTES
    for path in paths:
        if path.name in contents:
            raise UsageError(
                f"{path}: two guest files are called {path.name}: rename one of them"
            )
        contents[path.name] = read_named(path, limit=left, kind=_KIND, error=UsageError)
        left -= len(contents[path.name])
    return contents


def files_part(context: BuildContext, files: Mapping[str, bytes]) -> Part:
    """Return the part with the archive of these files, of which each can be run."""
    entries: dict[str, initrd.Entry] = {
        f"files/{name}": initrd.File(content, runs=True)
        for name, content in files.items()
    }
    return content_part(
        context,
        f"{FILES_KIND}-board",
        FILES_ARCHIVE,
        initrd.pack(entries),
        inputs={
            name: hashlib.sha256(content).hexdigest() for name, content in files.items()
        },
        notes={"files": sorted(files)},
    )
