"""
What tracing costs: the same run without it, before and after, under the same load.

The runs without are kept in the record as they were, so that the cost can be worked out
again. Before and after: what drifts, such as temperature, then counts for both alike.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rtscope.contract import AgentResult, ThreadResult
from rtscope.errors import RecordError
from rtscope.files import first_mistake
from rtscope.record.model import RunRecord

UNTRACED = "untraced"
"""Key of a record's `extra`."""

Runs = tuple[tuple[ThreadResult, ...], ...]


@cache
def _adapter() -> TypeAdapter[Runs]:
    return TypeAdapter(Runs)


def untraced_as_dict(results: Sequence[AgentResult]) -> list[Any]:
    """Write the threads of the runs without tracing for a record."""
    written = _adapter().dump_python(tuple(r.threads for r in results), mode="json")
    assert isinstance(written, list)
    return written


def untraced_runs(record: RunRecord) -> Runs:
    """
    Return the threads of each run without tracing; empty if there was none.

    Raises RecordError for a record that was damaged.
    """
    if UNTRACED not in record.extra:
        return ()
    try:
        return _adapter().validate_python(record.extra[UNTRACED])
    except ValidationError as error:
        raise RecordError(
            f"{record.run.id}: damaged record: extra.{UNTRACED}: {first_mistake(error)}"
        ) from error
