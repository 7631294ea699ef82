"""
Names of functions as they are in the source of D, without arguments. Pure.

A name is a path of identifiers, each behind its length; one that was there before is a
distance back in letters. Types are not read: what follows one is left out.
"""

import re

_LENGTH = re.compile(r"[1-9][0-9]{0,4}")
_BACK = re.compile(r"Q([A-Z]{0,4})([a-z])")
_TEMPLATE = ("__T", "__U")
_SPECIAL = {"__ctor": "this", "__dtor": "~this"}
_MOST_PARTS = 64
LEFT_OUT = "…"


def from_d(name: str) -> str | None:
    """Return the path of a name; None if it is no name of D."""
    if not name.startswith("_D"):
        return None
    parts: list[str] = []
    at, rest = len("_D"), ""
    while len(parts) < _MOST_PARTS:
        if name.startswith(_TEMPLATE, at):
            at, rest = at + len(_TEMPLATE[0]), f"!({LEFT_OUT})"
        part = _part(name, at)
        if part is None:
            break
        text, at = part
        parts.append(text)
        if rest:
            break
    if not rest and re.search(r"[0-9]", name[at:]):
        rest = f"({LEFT_OUT})"
    return f"{'.'.join(parts)}{rest}" if parts else None


def _part(name: str, at: int) -> tuple[str, int] | None:
    """Return an identifier, and where the next one begins; None if none is there."""
    if (back := _BACK.match(name, at)) is not None:
        distance = 0
        for letter in back[1]:
            distance = distance * 26 + ord(letter) - ord("A")
        distance = distance * 26 + ord(back[2]) - ord("a")
        known = _identifier(name, at - distance) if 0 < distance <= at else None
        return None if known is None else (known[0], back.end())
    return _identifier(name, at)


def _identifier(name: str, at: int) -> tuple[str, int] | None:
    rest = ""
    while (length := _LENGTH.match(name, at)) is not None:
        end = length.end() + int(length[0])
        text = name[length.end() : end]
        if not text.startswith(_TEMPLATE):
            is_whole = end <= len(name) and text.isidentifier()
            return (_SPECIAL.get(text, text) + rest, end) if is_whole else None
        # an older compiler has a whole instance of a template behind its length
        at, rest = length.end() + len(_TEMPLATE[0]), f"!({LEFT_OUT})"
    return None
