"""What a verb prints as JSON against the page that explains its keys."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/reference/sweeps.md"

ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<type>.*?) \| .+ \|$", re.M)
OF = re.compile(r"^(?P<form>list|table) of: (?P<inner>.*)$")


@cache
def tables() -> Mapping[str, Mapping[str, str]]:
    """Return the types of the keys by their names, for each heading of the page."""
    parts = re.split(r"^##+ (.*)$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    return {
        head: {row["name"]: row["type"] for row in ROW.finditer(text)}
        for head, text in zip(parts[::2], parts[1::2], strict=True)
    }


def keys_without_words(value: Any, *headings: str) -> list[str]:
    """Return the keys that the page does not have, or has with another form."""
    known = {name: kind for head in headings for name, kind in tables()[head].items()}
    return list(_of_table(value, known, headings[-1]))


def _of_table(value: Any, known: Mapping[str, str], place: str) -> Iterator[str]:
    for name, inner in value.items():
        here = f"{place}: {name}"
        if name not in known:
            yield here
        else:
            yield from _of_value(inner, known[name], here)


def _of_value(value: Any, kind: str, place: str) -> Iterator[str]:
    if value is None:
        if not kind.endswith(" or null"):
            yield f"{place}: null"
        return
    kind = kind.removesuffix(" or null")
    if found := OF.match(kind):
        if isinstance(value, list) != (found["form"] == "list"):
            yield f"{place}: {kind}"
            return
        inner = value if isinstance(value, list) else value.values()
        for one in inner:
            yield from _of_value(one, found["inner"], place)
    elif kind in tables():
        yield from _of_table(value, tables()[kind], kind)
    elif isinstance(value, (dict, list)):
        yield f"{place}: {kind}"
