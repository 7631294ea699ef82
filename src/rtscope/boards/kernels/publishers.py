"""Where the maker of a source or patch publishes it, for one that is not there."""

import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

from rtscope.host.errors import UsageError


def require_there(path: Path) -> None:
    """Raise UsageError for a file or folder that is not there: where it comes from."""
    if not path.exists():
        raise UsageError(
            f"cannot read {path}: no such file or folder{published(path.name)}"
        )


def published(name: str) -> str:
    """Return, for the end of a message, who publishes a file; empty if nobody known."""
    for pattern, at in _publishers():
        if found := re.fullmatch(pattern, name):
            return f"; its maker publishes it in {at.format(**found.groupdict())}"
    return ""


@cache
def _publishers() -> tuple[tuple[str, str], ...]:
    file = resources.files("rtscope.boards.kernels").joinpath("publishers.toml")
    rows = tomllib.loads(file.read_text("utf-8"))["publisher"]
    return tuple((row["pattern"], row["at"]) for row in rows)
