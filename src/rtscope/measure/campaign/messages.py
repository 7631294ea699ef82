"""
What is wrong with a value of a file or an option, what to write instead, and help.

For every file whose values are of the types in `values.py`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails

from rtscope.host.errors import UsageError, no_such, quote
from rtscope.measure.campaign.values import MAX_ITEMS

MEASURE, WHERE, VERDICT = "What to measure", "Where", "Verdict"
BOARDS, SETTINGS = "Virtual boards", "Settings of the machine"
CLUSTER = "Cluster"
OUTPUT = "Output"
"""Groups of options in `rtscope run --help`."""


def table_at(value: object, where: str) -> Mapping[str, object]:
    """Return a table of a document; UsageError for what is none."""
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise UsageError(f"{where}: {quote(value)}: write a table")
    return value


def wanted(error: ErrorDetails, schema: Mapping[str, Any]) -> str:
    """Write the wrong value, and a right one by the schema of its key."""
    kind, value = error["type"], quote(error["input"])
    one = element(schema)
    match kind:
        case "value_error":
            return str(error["ctx"]["error"])
        case "too_short" | "too_long":
            return f"write 1 to {MAX_ITEMS} values"
        case "string_type" | "string_unicode":
            return f"{value} is no text; write it in quotes"
        case "string_too_short" | "string_too_long":
            return f"write 1 to {one['maxLength']} characters"
        case "string_pattern_mismatch":
            return f"{value}: write for example {one['examples'][0]}"
        case "literal_error":
            return no_such(one["title"], error["input"], one["enum"])
        case "bool_type":
            return f"{value}: write true or false"
        case "int_type":
            return f"{value}: write a whole number, {bounds(one)}"
    return f"{value}: write {bounds(one)}"


def help_text(text: str, schema: Mapping[str, Any], default: object) -> str:
    """Return the help of an option: what it is, its default, an example."""
    value = ",".join(map(str, default)) if isinstance(default, list) else default
    if value:
        text += f" (default: {'on' if value is True else value})"
    examples = schema.get("examples") or element(schema).get("examples", ())
    return f"{text}{', e.g. ' * bool(examples)}{' or '.join(examples)}."


def element(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of one value: the item of a list, the type without None."""
    while "anyOf" in schema or "items" in schema:
        schema = schema["anyOf"][0] if "anyOf" in schema else schema["items"]
    return schema


def bounds(schema: Mapping[str, Any]) -> str:
    """Return the range of a number, such as `1 to 99`."""
    return f"{schema['minimum']} to {schema['maximum']}"
