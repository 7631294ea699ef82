"""
The function that a delay is named after: the first up its chain that says something.

Delay helpers, locks, lists, copies, printing and dispatchers are in `primitives.toml`.
Pure.
"""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources

_ANY = "*"


def is_primitive(name: str) -> bool:
    """Tell whether a function says nothing of the cause: whoever calls it does."""
    exact, begins = _primitives()
    return name in exact or name.startswith(begins)


def is_clock(name: str) -> bool:
    """Tell whether a function does nothing but read a clock."""
    exact, begins = _of_kind("clock")
    return name in exact or name.startswith(begins)


def title_index(chain: Sequence[str], stops: Sequence[bool] = ()) -> int:
    """
    Return the first function of a chain, innermost first, that is no primitive.

    Not beyond one that `stops`, as the entry of an interrupt does; 0 if there is none.
    """
    for at, name in enumerate(chain):
        if at < len(stops) and stops[at]:
            return 0
        if not is_primitive(name):
            return at
    return 0


def _primitives() -> tuple[frozenset[str], tuple[str, ...]]:
    return _of_kind("")


@cache
def _of_kind(wanted: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a kind, and how others of it begin; of all kinds for ""."""
    file = resources.files("rtscope.explain").joinpath("primitives.toml")
    kinds = tomllib.loads(file.read_text("utf-8"))
    names = [
        name
        for kind, listed in kinds.items()
        if wanted in ("", kind)
        for name in listed.split()
    ]
    begins = tuple(name.removesuffix(_ANY) for name in names if name.endswith(_ANY))
    return frozenset(names), begins
