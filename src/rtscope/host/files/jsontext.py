"""JSON: every document that rtscope prints or writes, with an end of its last line."""

import json


def json_text(value: object, *, indent: int | None = 2, ascii_only: bool = True) -> str:
    """Return plain values as JSON; text that was made printable needs no escapes."""
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only) + "\n"
