"""The results of a board: the files of its /out, read without trusting them."""

import io
import tarfile
from pathlib import Path, PurePosixPath

from rtscope.errors import BoardError

MAX_RESULTS_BYTES = 256 << 20
MAX_FILES = 10_000

_BLOCK = tarfile.BLOCKSIZE


def read_results(path: Path) -> dict[str, bytes]:
    """
    Return the files of a board's /out by name.

    Raises BoardError if the board has not sent all of it: it hung, panicked or ran out
    of something; see its console.
    """
    with path.open("rb") as file:
        content = file.read(MAX_RESULTS_BYTES + 1)
    if len(content) > MAX_RESULTS_BYTES:
        raise BoardError(f"the board sent more than {MAX_RESULTS_BYTES >> 20} MiB")
    if not content:
        raise BoardError("the board sent no results")
    try:
        files, end = _files(content)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise BoardError(f"the board's results are damaged: {error}") from error
    # tarfile takes whatever is no header for the end; the format has two zero blocks.
    rest = content[end:]
    if len(rest) < 2 * _BLOCK or len(rest) % _BLOCK or any(rest):
        raise BoardError("the board's results are cut short or damaged")
    return files


def _files(content: bytes) -> tuple[dict[str, bytes], int]:
    """Return the files, and where the last of them ends."""
    files: dict[str, bytes] = {}
    end = 0
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for count, member in enumerate(archive, 1):
            if count > MAX_FILES:
                raise BoardError(f"the board sent more than {MAX_FILES} files")
            end = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
            opened = archive.extractfile(member) if member.isreg() else None
            if opened is not None:
                files[str(PurePosixPath(member.name))] = opened.read()
    return files, end
