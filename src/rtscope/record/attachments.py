"""
The files beside a run's record: there before it, and what cannot be kept is a caveat.

Where a record is, its run counts as done; so whoever saves one lays these first.
"""

from collections.abc import Mapping
from dataclasses import replace

from rtscope.caveats.catalogue import gravest_first, make
from rtscope.errors import RecordError
from rtscope.record.model import RunRecord
from rtscope.record.resultdir import ResultDir

_LOST = "file_not_kept"


def lay_beside(
    store: ResultDir, run_id: str, beside: Mapping[str, bytes | None]
) -> dict[str, str]:
    """
    Write files, by name, where a run's record will be; return why some are not there.

    Without content a file is one that the run does not have. What could not be written
    has left no room taken, so that a full disk may still hold the record.
    """
    lost: dict[str, str] = {}
    for name, content in beside.items():
        try:
            # An earlier try's is never taken for this run's.
            store.detach(run_id, name)
            if content:
                store.attach(run_id, name, content)
        except RecordError as error:
            lost[name] = str(getattr(error.__cause__, "strerror", None) or error)
    return lost


def with_lost(record: RunRecord, lost: Mapping[str, str]) -> RunRecord:
    """Return the record with a caveat for each file that `lay_beside` lost."""
    if not lost:
        return record
    told = (make(_LOST, f"{name}: {why}") for name, why in lost.items())
    return replace(record, caveats=gravest_first((*record.caveats, *told)))


def why_lost(record: RunRecord, name: str) -> str:
    """Return why a file could not be kept; empty if that is not why it is missing."""
    mark = f"{name}: "
    told = (one.detail for one in record.caveats if one.id == _LOST)
    return next((one.removeprefix(mark) for one in told if one.startswith(mark)), "")
