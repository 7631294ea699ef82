"""
A campaign as tables of plain values: in a TOML file, in a bundle, in a record.

A document has the tables of `Campaign`'s aliases. Values are written as in a file, so
one reader reads files and records.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from rtscope.host.errors import UsageError, no_such, quote
from rtscope.host.files.documents import toml_tables
from rtscope.host.files.opening import read_named
from rtscope.measure.campaign.check import contradictions
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.values import MAX_ITEMS

MAX_FILE_BYTES = 1 << 20

At = Callable[[str, int], str]
"""From key and number of the [[run]] (0: none) to the name of that place."""


def load_campaign(path: Path) -> Campaign:
    """Read a campaign file; UsageError names file, table, key and remedy."""
    return from_dict(read_toml(path, kind="campaign"), source=str(path))


def read_toml(path: Path, *, kind: str) -> dict[str, Any]:
    """Read the tables of a file of a `kind`; UsageError names file and mistake."""
    content = read_named(
        path, limit=MAX_FILE_BYTES, kind=f"{kind} file", error=UsageError
    )
    return toml_tables(content, name=str(path))


def from_dict(document: object, *, source: str) -> Campaign:
    """
    Build a campaign from tables and check it; `source` begins every message.

    The document may come from anywhere; any mistake in it is a UsageError.
    """

    def at(key: str, number: int) -> str:
        table, _, name = key.partition(".")
        head = f"[[{table}]] number {number}" if number else f"[{table}]"
        return f"{source}: {head} {name}".rstrip()

    values: dict[str, object] = {}
    for name, table in _table(document, source).items():
        if name not in _tables():
            raise UsageError(f"{source}: {no_such('table', name, _tables())}")
        if name == "run":
            values[name] = table
        else:
            keys = _table(table, at(name, 0))
            values |= {f"{name}.{key}": value for key, value in keys.items()}
    return checked(validated(values, at), at)


def to_dict(campaign: Campaign) -> dict[str, Any]:
    """Write a campaign as JSON-able tables; `from_dict` gives it back unchanged."""
    document: dict[str, Any] = {table: {} for table in _tables()}
    for key, value in written(campaign).items():
        table, _, name = key.partition(".")
        if name:
            document[table][name] = value
        else:
            document[table] = value
    return document


def with_places(campaign: Campaign, base: Path) -> Campaign:
    """Return the campaign with its paths of this machine absolute, taken from base."""

    def place(path: str) -> str:
        return str((base / path).absolute())

    return replace(
        campaign,
        kernels=tuple(
            place(name) if "/" in name else name for name in campaign.kernels
        ),
        guest_files=tuple(map(place, campaign.guest_files)),
        qemu=campaign.qemu and place(campaign.qemu),
        lockfile=campaign.lockfile and place(campaign.lockfile),
    )


def validated(values: Mapping[str, object], at: At) -> Campaign:
    """Read the values of keys such as `target.address`; UsageError for the first."""
    try:
        return _adapter().validate_python(values)
    except ValidationError as error:
        raise UsageError(_message(error.errors(include_url=False)[0], at)) from error


def written(campaign: Campaign) -> dict[str, Any]:
    """Return the values of keys, and those of each [[run]], as in a file."""
    values: dict[str, Any] = _adapter().dump_python(
        campaign, mode="json", by_alias=True, exclude_none=True
    )
    values["run"] = [_without_empty(run) for run in values["run"]]
    return _without_empty(values)


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != []}


def checked(campaign: Campaign, at: At) -> Campaign:
    """Return the campaign; UsageError for contradicting values."""
    for key, number, message in contradictions(campaign):
        raise UsageError(f"{at(key, number)}: {message}")
    return campaign


@cache
def _adapter() -> TypeAdapter[Campaign]:
    return TypeAdapter(Campaign)


@cache
def key_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return each key, such as `run.load`, with the JSON schema of its value."""
    schema = _adapter().json_schema()
    properties: dict[str, Any] = schema["properties"]
    runs = schema["$defs"]["RunTable"]["properties"]
    del properties["run"]
    return properties | {f"run.{key}": value for key, value in runs.items()}


def description(key: str) -> str:
    """
    Return the help of a key: a phrase without a full stop.

    Empty where pydantic finds none: 2.10 of Debian 13 does not, with Python 3.13.
    """
    first = str(key_schemas()[key].get("description", "")).partition("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")


@cache
def _tables() -> Sequence[str]:
    return tuple(dict.fromkeys(key.partition(".")[0] for key in key_schemas()))


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise UsageError(f"{where}: {quote(value)}: write a table")
    return value


# --- messages for the errors of pydantic -----------------------------------------


def _message(error: ErrorDetails, at: At) -> str:
    """Write the message of an error: the place, the wrong value, the remedy."""
    first, *rest = error["loc"]
    key, number = str(first), 0
    if rest and first == "run":
        number = int(rest[0]) + 1
        key = f"run.{rest[1]}" if len(rest) > 1 else "run."
    kind, value = error["type"], error["input"]
    if kind == "unexpected_keyword_argument":
        table, _, name = key.partition(".")
        known = [
            k.partition(".")[2] for k in key_schemas() if k.startswith(f"{table}.")
        ]
        return f"{at(f'{table}.', number)}: {no_such('key', name, known)}"
    if kind == "dataclass_type":
        return f"{at(key, number)}: {quote(value)}: write a table"
    if key == "run":
        return (
            f"{at('run', 0)}: {quote(value)}: write 1 to {MAX_ITEMS} tables, each "
            "headed [[run]]"
        )
    return f"{at(key, number)}: {_wanted(kind, error, key_schemas()[key])}"


def _wanted(kind: str, error: ErrorDetails, schema: Mapping[str, Any]) -> str:
    """Write the wrong value, and a right one by the schema of its key."""
    value = quote(error["input"])
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


def element(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of one value: the item of a list, the type without None."""
    while "anyOf" in schema or "items" in schema:
        schema = schema["anyOf"][0] if "anyOf" in schema else schema["items"]
    return schema


def bounds(schema: Mapping[str, Any]) -> str:
    """Return the range of a number, such as `1 to 99`."""
    return f"{schema['minimum']} to {schema['maximum']}"
