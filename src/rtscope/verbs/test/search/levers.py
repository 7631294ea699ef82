"""
What a search may change from one start of a program to the next.

A lever has a value in whole units: the time for which a thread stands still at its
birth, the phase of a load, a parameter of the user's, the board's seed. Its values are
a grid, so that a search never tries two that differ by less than matters. A lever of a
phase has a period: past it, the same instants meet again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from rtscope.host.errors import UsageError

GOLDEN = 1.618033988749895
"""Its powers spread points evenly in one dimension."""

Settings = tuple[int, ...]
"""The value of each lever, in the order of the levers."""


@dataclass(frozen=True, slots=True)
class Lever:
    """Values `low`, `low + step`, ... up to `high`, which is one of them or above."""

    name: str
    low: int
    high: int
    step: int = 1
    ns_per_unit: int = 1
    """By how much later the instants of `moves` are, for each unit."""
    moves: frozenset[str] = frozenset()
    """The parties whose instants it moves; none: nothing is known about its effect."""
    period: int | None = None
    """In units: with a value that is larger by so much, the same instants meet."""
    is_time: bool = True
    """Whether values beside each other do nearly the same; a seed's do not."""

    def __post_init__(self) -> None:
        if self.step < 1 or self.ns_per_unit < 1 or self.high < self.low:
            raise UsageError(
                f"the search cannot vary {self.name} from {self.low} to {self.high} in "
                f"steps of {self.step}: give it as LOW..HIGH, and a step of 1 or more"
            )

    @property
    def count(self) -> int:
        """How many values it has."""
        return (self.high - self.low) // self.step + 1

    def at_share(self, share: float) -> int:
        """Return the value at a share of the range, from 0 to below 1."""
        return self.low + self.step * int(share * self.count)

    def nearest(self, value: int) -> int | None:
        """Return the nearest value on the grid, by whole periods inside the range."""
        if self.period:
            value = self.low + (value - self.low) % self.period
        if not self.low <= value <= self.high:
            return None
        steps = (value - self.low + self.step // 2) // self.step
        return self.low + self.step * min(steps, self.count - 1)


@dataclass(frozen=True, slots=True)
class Space:
    """All levers of a search."""

    levers: tuple[Lever, ...]
    root: float = field(init=False)

    def __post_init__(self) -> None:
        if not self.levers:
            raise UsageError("the search has nothing to vary: add a lever to [search]")
        object.__setattr__(self, "root", _root(len(self.levers)))

    @classmethod
    def of(cls, levers: Sequence[Lever]) -> Self:
        """Return the space of these levers."""
        return cls(tuple(levers))

    @property
    def count(self) -> int:
        """How many settings there are."""
        product = 1
        for lever in self.levers:
            product *= lever.count
        return product

    @property
    def first(self) -> Settings:
        """The settings of a start without a search: every lever at its lowest."""
        return tuple(lever.low for lever in self.levers)

    def spread(self, number: int, shifts: Sequence[float]) -> Settings:
        """
        Return point `number` of a sequence that fills the space evenly at any length.

        The points are those of an additive recurrence with the powers of one number,
        shifted by a share of each lever's range (`shifts`, from 0 to below 1).
        """
        return tuple(
            lever.at_share((shift + number * self.root ** -(axis + 1)) % 1.0)
            for axis, (lever, shift) in enumerate(zip(self.levers, shifts, strict=True))
        )

    def by_name(self, settings: Settings) -> Mapping[str, int]:
        """Return the values by the names of their levers."""
        return {
            lever.name: value
            for lever, value in zip(self.levers, settings, strict=True)
        }


def _root(dimensions: int) -> float:
    """Return the positive root of x ** (dimensions + 1) = x + 1."""
    root = GOLDEN
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    return root
