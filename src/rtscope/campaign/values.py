"""
Readers of values, whatever they are of: a text, a number, a duration, a list.

A reader takes what was found (in TOML, in JSON or as an option) and where, and
returns the value in rtscope's own units or raises UsageError with what to write.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rtscope.errors import UsageError
from rtscope.units import exact_duration, parse_duration

MAX_ITEMS = 1000
"""Of one list; a matrix that large is a mistake."""

MAX_TEXT = 4096

Read = Callable[[object, str], Any]


def shown(value: object) -> str:
    """Say what was found, short and on one line, whatever it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 64 else "a huge number"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Mapping):
        return "a table"
    return "nothing" if value is None else repr(value)[:40]


def no_such(what: str, found: object, known: Collection[str]) -> str:
    """Say that there is none, which was probably meant, and which there are."""
    near = difflib.get_close_matches(str(found)[:64], known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no such {what}: {shown(found)}{hint} (there are: {', '.join(known)})"


def read_text(value: object, where: str) -> str:
    """Read a text that can be seen, of bounded length."""
    if not isinstance(value, str):
        raise UsageError(f"{where}: {shown(value)} is no text; write it in quotes")
    if not 0 < len(value) <= MAX_TEXT:
        raise UsageError(f"{where}: write 1 to {MAX_TEXT} characters")
    if not value.isprintable():
        raise UsageError(
            f"{where}: {shown(value)} has control characters; write visible ones"
        )
    return value


def matching(pattern: str, *, example: str) -> Read:
    """Read a text that the pattern matches."""

    def read(value: object, where: str) -> str:
        text = read_text(value, where)
        if not re.fullmatch(pattern, text):
            raise UsageError(f"{where}: {shown(text)}: write for example {example}")
        return text

    return read


def whole(low: int, high: int) -> Read:
    """Read a whole number in a range."""

    def read(value: object, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(
                f"{where}: {shown(value)}: write a whole number, {low} to {high}"
            )
        if not low <= value <= high:
            raise UsageError(f"{where}: {shown(value)}: write {low} to {high}")
        return value

    return read


def flag(value: object, where: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{where}: {shown(value)}: write true or false")
    return value


def choice(what: str, *known: str) -> Read:
    """Read one of the known words."""

    def read(value: object, where: str) -> str:
        text = read_text(value, where)
        if text not in known:
            raise UsageError(f"{where}: {no_such(what, text, known)}")
        return text

    return read


def parsed(parse: Callable[[str], Any], *, example: str) -> Read:
    """Read a text as `parse` does."""

    def read(value: object, where: str) -> Any:
        if not isinstance(value, str):
            raise UsageError(
                f'{where}: {shown(value)}: write a text such as "{example}"'
            )
        try:
            return parse(value)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error

    return read


def duration(low_ns: int, high_ns: int, *, example: str) -> Read:
    """Read a duration in a range, in ns."""
    parse = parsed(parse_duration, example=example)

    def read(value: object, where: str) -> int:
        zero = isinstance(value, str) and value.strip() in ("0", "0s")
        duration_ns: int = 0 if zero and low_ns == 0 else parse(value, where)
        if not low_ns <= duration_ns <= high_ns:
            raise UsageError(
                f"{where}: {shown(value)}: write {exact_duration(low_ns)} to "
                f"{exact_duration(high_ns)}"
            )
        return duration_ns

    return read


def many(read_one: Read) -> Read:
    """A value, a list of values, or a text with commas; each value once."""

    def read(value: object, where: str) -> tuple[Any, ...]:
        if isinstance(value, str):
            items: list[object] = [part.strip() for part in value.split(",")]
        else:
            items = list(value) if isinstance(value, list | tuple) else [value]
        if not 0 < len(items) <= MAX_ITEMS:
            raise UsageError(f"{where}: write 1 to {MAX_ITEMS} values")
        values = tuple(read_one(item, where) for item in items)
        twice = [item for n, item in enumerate(items) if values[n] in values[:n]]
        if twice:
            raise UsageError(
                f"{where}: {shown(twice[0])} is there twice; write it once, and "
                "repetitions for more of it"
            )
        return values

    return read
