"""What each number means, its weaknesses first; the texts are `definitions.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Definition:
    """One number of the report."""

    key: str
    name: str
    weakness: str
    meaning: str


@cache
def definitions() -> tuple[Definition, ...]:
    """Return the definitions in the order of the main table."""
    text = resources.files("rtscope.report").joinpath("definitions.toml")
    rows = tomllib.loads(text.read_text("utf-8"))
    return tuple(Definition(key=key, **row) for key, row in rows.items())
