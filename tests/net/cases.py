"""What is typed, and on which stored inputs: `cases.toml`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True, slots=True)
class Case:
    """Commands that are typed one after the other in one directory."""

    name: str
    """`group/case`."""
    commands: Sequence[str]
    """The words after `rtscope`, quoted as in a shell."""
    inputs: Sequence[str] = ()
    """Archives and files that lie in the directory, from the repository's root on."""
    fake: str = ""
    """What takes the place of a machine, board or program: a name of `net.fakes`."""
    columns: int = 100
    """Width of the terminal."""


@cache
def all_cases() -> tuple[Case, ...]:
    """Return the cases in the order of the file."""
    groups = tomllib.loads((HERE / "cases.toml").read_text("utf-8"))
    return tuple(
        Case(
            name=f"{group}/{name}",
            commands=(typed,) if isinstance(typed, str) else tuple(typed),
            inputs=tuple(about.get("inputs", ())),
            fake=about.get("fake", ""),
            columns=about.get("columns", 100),
        )
        for group, about in groups.items()
        for name, typed in about["cases"].items()
    )
