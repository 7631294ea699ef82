"""
The guest files of a campaign, below /files: programs, modules, data.

They are a part like the others, so a replay and a bundle have the same files.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtscope.board import cpio
from rtscope.board.buildcontext import BuildContext, Notes
from rtscope.board.cache import Part, build_part
from rtscope.errors import UsageError

KIND = "files"
"""How the name of the part begins."""

ARCHIVE = "files.cpio"
FOLDER = "files"
MAX_FILES_BYTES = 64 << 20
"""Of all together: they lie in the board's memory."""


def read_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """
    Return the files' contents by their names.

    Raises UsageError for what cannot be read, is too large or has another's name.
    """
    found: dict[str, bytes] = {}
    left = MAX_FILES_BYTES
    for path in paths:
        if path.name in found:
            raise UsageError(
                f"{path}: two guest files are called {path.name}: rename one of them"
            )
        try:
            with path.open("rb") as file:
                found[path.name] = file.read(left + 1)
        except OSError as error:
            raise UsageError(
                f"cannot read the guest file {path}: {error.strerror}"
            ) from error
        left -= len(found[path.name])
        if left < 0:
            raise UsageError(
                f"{path}: the guest files together exceed {MAX_FILES_BYTES >> 20} MiB; "
                "they take the board's memory, so leave some out"
            )
    return found


def files_part(context: BuildContext, files: Mapping[str, bytes]) -> Part:
    """Return the part with the archive of these files, of which each can be run."""
    digests = {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }

    def build(work: Path) -> Notes:
        entries: dict[str, cpio.Entry] = {
            f"{FOLDER}/{name}": cpio.File(content, runs=True)
            for name, content in files.items()
        }
        (work / ARCHIVE).write_bytes(cpio.pack(entries))
        return {"files": sorted(files)}

    return build_part(
        context.cache,
        KIND + "-board",
        inputs=digests,
        build=build,
        may_build=context.may_build,
    )
