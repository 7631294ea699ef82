"""
Make foreign text harmless in each form that a report takes.

Host names, command lines, task names, kernel messages and load names come from a
machine or by mail. `all_printable` is applied once, to records before a model is built
of them; each renderer then adds the escaping of its own form. HTML is escaped by the
template engine (autoescape), rich by passing `Text`, never markup.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")

_NUMBERS = frozenset({int, float, bool, type(None)})

MAX_CHARACTERS = 2_000
"""Longer foreign text is cut in a report; the record keeps all of it."""

# Control, format (bidirectional overrides, zero width), surrogate, private use,
# unassigned, line and paragraph separators: each can hide or reorder other text.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

_MARKDOWN = re.compile(r"([\\`*_{\[\]<>#|~&$@]|:(?=//))")
_MARKDOWN_START = re.compile(r"^(\s*)([-=+]|\d+(?=[.)](?:\s|$)))")


def printable(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """Write each hidden or terminal-controlling character as `\\x1b`, `\\u202e`…"""
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text
    visible = "".join(_visible(character) for character in text[:limit])
    return visible + ("…" if len(text) > limit else "")


def visible_lines(text: str) -> str:
    """Write hidden characters like `printable`, but keep the lines and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else _visible(c) for c in text)


def all_printable(value: T) -> T:
    """
    Return a record, or anything else of plain values, with each text printable.

    What has no other text in it is returned as it is: most of a record are numbers.
    """
    made: Any = value
    if type(made) in _NUMBERS:
        return value
    if type(made) is str:
        made = printable(made)
    elif isinstance(made, tuple | list):
        if not all(type(one) in _NUMBERS for one in made):
            new = [all_printable(one) for one in made]
            if any(one is not old for one, old in zip(new, made, strict=True)):
                made = type(made)(new)
    elif isinstance(made, Mapping):
        items = tuple(made.items())
        new_items = all_printable(items)
        made = made if new_items is items else dict(new_items)
    elif dataclasses.is_dataclass(made) and not isinstance(made, type):
        changed = {
            name: new
            for name in _field_names(type(made))
            if (new := all_printable(old := getattr(made, name))) is not old
        }
        made = dataclasses.replace(made, **changed) if changed else made
    return cast("T", made)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    # What a class computes from its other fields, it computes again.
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


def for_markdown(text: str) -> str:
    """Keep text from acting as Markdown, in a paragraph, a list or a table cell."""
    escaped = _MARKDOWN.sub(r"\\\1", text.replace("\n", " "))
    return _MARKDOWN_START.sub(_escaped_start, escaped)


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped_start(match: re.Match[str]) -> str:
    space, start = match.groups()
    # "1." would open a list, and "\1" is no escape: the entity is.
    return space + (f"&#{ord(start[0])};{start[1:]}")
