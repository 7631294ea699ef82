"""A limit of memory, for where a library reads what a stranger sends without one."""

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DATA = re.compile(r"^VmData:\s*([0-9]+) kB$", re.MULTILINE)


@contextmanager
def at_most_more(more_bytes: int) -> Iterator[None]:
    """
    Let this process take so many bytes more, else whatever asks raises MemoryError.

    Programs that it starts meanwhile have the same limit of data.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    said = _DATA.search(Path("/proc/self/status").read_text())
    if said is None:  # not this kernel's: it has no such limit either
        yield
        return
    most = int(said[1]) * 1024 + more_bytes
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
