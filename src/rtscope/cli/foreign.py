"""
Answer files of other tools with what to type here.

Every command loads this module, before it knows whether it reads records: what reads
them is imported where it is used.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.host.errors import RecordError, UsageError

if TYPE_CHECKING:
    from rtscope.record.model import RunRecord


def open_ours(path: Path) -> "list[RunRecord]":
    """
    Return the records there, as `open_records` does.

    Raises UsageError with the command to import a file of another tool.
    """
    from rtscope.record.directory.records import open_records

    try:
        return open_records(path)
    except RecordError:
        if path.is_file() and (name := _foreign_format(path)):
            raise UsageError(
                f"{path}: a result of another tool ({name}); import it first: "
                f"rtscope import {shlex.quote(str(path))}"
            ) from None
        raise


def _foreign_format(path: Path) -> str:
    from rtscope.record.foreign import format_of
    from rtscope.record.foreign.source import Source

    return format_of(Source(path))
