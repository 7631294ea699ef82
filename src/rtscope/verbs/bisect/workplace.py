"""Where a search checks out and compiles: a directory of the cache."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rtscope.host.errors import KernelError
from rtscope.host.files.heldfolders import held_folder

FOLDER = "bisect"


@contextmanager
def workplace(cache: Path) -> Iterator[Path]:
    """Give an empty directory; remove it at the end, whatever the end is."""
    folder = cache / FOLDER
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place = stack.enter_context(held_folder(folder, prefix="search-"))
        except OSError as error:
            raise KernelError(
                f"cannot make a directory in {folder}: {error.strerror}; make it "
                "writable, or set XDG_CACHE_HOME to another directory"
            ) from error
        yield place
