"""Versions of what lies in a result directory: 2 was the first, and 1 is never used."""

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import from_json

from rtscope.host.errors import RecordError
from rtscope.host.files import first_mistake
from rtscope.host.files.jsonvalues import holds_too_much


def refused(
    text: bytes, error: ValidationError, *, name: str, kind: str, known: int, again: str
) -> RecordError:
    """Return the error for a text that is of another version, or is damaged."""
    document = _document_of(text)
    if document is None or document.get("schema") == known:
        mistake = first_mistake(error, whole="the file")
        return RecordError(f"{name}: damaged {kind}: {mistake}")
    return wrong_schema(name, document.get("schema"), known, again=again)


def _document_of(text: bytes) -> Mapping[str, object] | None:
    """Return the object in a text, whatever its version; None if there is none."""
    if holds_too_much(text):
        return None
    try:
        document = from_json(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def wrong_schema(place: str, schema: object, known: int, *, again: str) -> RecordError:
    """Return the error for another version than the known one; `again` makes it new."""
    newer = isinstance(schema, int) and schema > known
    remedy = "read it with the newer rtscope that wrote it" if newer else again
    return RecordError(
        f"{place}: schema {schema!a:.40}, and this rtscope reads {known}: {remedy}"
    )
