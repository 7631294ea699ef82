"""How a generated page is written: sentences, and cells of tables."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rtscope.present.words import capital


def sentences(text: str) -> str:
    """Put each sentence on a line of its own; repair none of them."""
    text = " ".join(text.split())
    return re.sub(r"(?<=[.!?]) (?=[A-Z`])", "\n", text)


def whole(text: str) -> str:
    """Make a sentence of a phrase."""
    return ended(capital(text))


def ended(text: str) -> str:
    """End a sentence, unless it has an end."""
    return text if text.endswith((".", "?", "!", "`")) else text + "."


def cell(text: str) -> str:
    """Write a text into a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def row(words: Iterable[str]) -> str:
    """Write a row of a table."""
    return f"| {' | '.join(map(cell, words))} |"


_PLAIN = {"null": "null", "boolean": "`true` or `false`", "object": "table"}

MAX_SHORT = 64
"""The longest text whose limit a reader wants to know."""


def plain_type(schema: Mapping[str, Any]) -> str:
    """Write what a JSON schema admits in plain English: `whole number, at least 1`."""
    if "anyOf" in schema:
        *first, last = map(plain_type, schema["anyOf"])
        return f"{', '.join(first)} or {last}"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        words = schema.get("enum") or [schema["const"]]
        return f"{'one of ' * (len(words) > 1)}{', '.join(f'`{one}`' for one in words)}"
    if "items" in schema:
        return f"list of: {plain_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"table of: {plain_type(schema['additionalProperties'])}"
    if schema["type"] in ("integer", "number"):
        return f"{'whole ' * (schema['type'] == 'integer')}number{_range(schema)}"
    return _PLAIN.get(schema["type"]) or _text(schema)


def _range(schema: Mapping[str, Any]) -> str:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    if (most := schema.get("maximum", 2**63 - 1)) < 2**63 - 1:
        return f", {least} to {most}"
    bounded = "minimum" in schema or "exclusiveMinimum" in schema
    return f", at least {least}" if bounded else ""


def _text(schema: Mapping[str, Any]) -> str:
    most = schema.get("maxLength", MAX_SHORT + 1)
    size = f", at most {most} characters" if most <= MAX_SHORT else ""
    example = f", for example `{schema['examples'][0]}`" if "examples" in schema else ""
    return f"{schema.get('format', 'text')}{size}{example}"
