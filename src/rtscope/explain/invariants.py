"""
What must hold of every explained wake-up: a broken invariant withdraws its explanation.

An explanation may add up to the nanosecond and be false: its sum proves nothing. These
statements are checked against the records that the explanation was not made from.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib import resources


class Invariant(Enum):
    """A statement that every explanation must fulfil; `invariants.toml` words them."""

    EXPIRY = auto()
    """The timer expired in the wake-up, not before it was due, nor long after."""
    ARRIVAL = auto()
    """Between the expiry and its own code the thread completed one sleep only."""
    RUNNABLE = auto()
    """The thread was runnable wherever another task is blamed."""
    IDLE = auto()
    """The idle task delayed nobody: an idle CPU runs a runnable thread."""
    CHOICE = auto()
    """The blamed task could be chosen before the thread."""
    KEPT = auto()
    """No less urgent task kept the CPU for long without evidence of why."""
    SWITCHES = auto()
    """Each switch of tasks was recorded, and the kernel's functions show it."""
    TIME = auto()
    """What was recorded accounts for the time that the clock says went by."""
    MARK = auto()
    """The record has the mark of this wake-up, with its latency."""


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold, and where; times in ns since the expiry."""

    invariant: Invariant
    begin_ns: int
    end_ns: int
    values: Mapping[str, int | str]
    """What was found, by the names in the text of the invariant."""


def text_of(broken: Broken) -> str:
    """Say which invariant is broken, and what was found instead."""
    return _texts()[broken.invariant.name].format(**broken.values)


def covered_ns(broken: Iterable[Broken], begin_ns: int, end_ns: int) -> int:
    """Return how much of a time broken invariants cover, each ns once."""
    covered, until = 0, begin_ns
    for one in sorted(broken, key=lambda one: one.begin_ns):
        since, end = max(one.begin_ns, until), min(one.end_ns, end_ns)
        if end > since:
            covered, until = covered + end - since, end
    return covered


def first_of_each(broken: Sequence[Broken]) -> tuple[Broken, ...]:
    """Return the longest of each invariant, in the order of the list."""
    longest: dict[Invariant, Broken] = {}
    for one in broken:
        best = longest.setdefault(one.invariant, one)
        if one.end_ns - one.begin_ns > best.end_ns - best.begin_ns:
            longest[one.invariant] = one
    return tuple(longest[kind] for kind in Invariant if kind in longest)


@cache
def _texts() -> Mapping[str, str]:
    file = resources.files("rtscope.explain").joinpath("invariants.toml")
    return dict(tomllib.loads(file.read_text("utf-8")))
