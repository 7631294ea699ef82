"""Which kind of trace a file is."""

from pathlib import Path

from rtscope.errors import RecordError, UsageError
from rtscope.ftrace.dat import open_dat
from rtscope.ftrace.datfile import MAGIC, is_dat
from rtscope.ftrace.events import Trace
from rtscope.ftrace.text import open_text


def open_trace(path: Path) -> Trace:
    """
    Open a trace.dat file, or text of ftrace.

    Raises UsageError if there is none, RecordError for what cannot be read.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            begin = file.read(len(MAGIC))
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error
    if not begin:
        raise RecordError(f"{path}: empty")
    return open_dat(path) if is_dat(begin) else open_text(path)
