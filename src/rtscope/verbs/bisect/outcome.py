"""What a search came to, as data. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from rtscope.record.directory.journal import Tried
from rtscope.stats.comparison.design import Exact, typical
from rtscope.verbs.bisect.criterion import Margin, Values, threshold_of, unit_of_values

SCHEMA = 1

WHOLE = 0.75
"""With less than this share of the difference, other changes have parts of it."""


class Kind(StrEnum):
    """What is searched."""

    COMMIT = "commit"
    PATCH = "patch"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Change:
    """One that a search ended with."""

    name: str
    """A commit, a patch, or a symbol as NAME=VALUE."""
    title: str = ""
    """The subject of a commit or a patch; of a symbol its value before."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a search ended."""

    changes: tuple[Change, ...]
    """One commit or patch, unless others could not be tested; of settings, all."""
    before: str
    """The kernel without them, as the journal names it."""
    after: str
    along: tuple[Change, ...] = ()
    """What Kconfig made change with them; it is not bad without them."""
    without: str = ""
    """The kernel in which only that was changed; empty: there is none."""
    narrowed: bool = True
    """Whether nothing that was skipped can be the cause as well, or a part of it."""


@dataclass(frozen=True, slots=True)
class Side:
    """A kernel beside the change."""

    name: str
    values: Values
    explanation: str = ""
    """Its worst wake-up in a sentence; empty: not explained."""

    @property
    def typical(self) -> float:
        """The median over seeds."""
        return typical(self.values)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search came to."""

    kind: Kind
    figure: str
    load: str
    margin: float
    candidates: int
    good: Side
    """The two ends of the search."""
    bad: Side
    located: Located | None = None
    """None: the ends do not differ by more than the margin."""
    before: Side | None = None
    """The two kernels beside the change."""
    after: Side | None = None
    without: Side | None = None
    """The kernel in which only what Kconfig made change with it was changed."""
    builds: int = 0
    boots: int = 0
    skipped: tuple[Tried, ...] = field(default=())

    @property
    def differs(self) -> bool:
        """Whether there was anything to search for."""
        return self.located is not None

    @property
    def share(self) -> float:
        """Part of the difference of the ends that the change makes."""
        return self._share_of(self.after)

    @property
    def share_without(self) -> float:
        """The part of what Kconfig made change with it, without the change itself."""
        return self._share_of(self.without)

    def _share_of(self, side: Side | None) -> float:
        if self.before is None or side is None:
            return 0
        ends = Exact(self.good.typical, self.bad.typical, self.margin)
        return ends.share_of(self.before.values, side.values)

    @property
    def is_found(self) -> bool:
        """Whether the search ended with the change, and nothing else can be it."""
        return self.located is not None and self.located.narrowed


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome for JSON."""
    return {
        "schema": SCHEMA,
        **asdict(outcome),
        "unit": unit_of_values(outcome.figure),
        "differs": outcome.differs,
        "found": outcome.is_found,
        "share": round(outcome.share, 4) if outcome.differs else None,
        "share_without": round(outcome.share_without, 4) if outcome.without else None,
    }


def ends_of(good: Tried, bad: Tried, margin: Margin) -> tuple[Side, Side, Exact]:
    """Return the ends of a search, and what they say about kernels between them."""
    threshold = threshold_of(good.values, bad.values, margin)
    return Side(good.name, good.values), Side(bad.name, bad.values), threshold


def skipped_of(steps: Sequence[Tried]) -> tuple[Tried, ...]:
    """Return the kernels that could not be tested."""
    return tuple(tried for tried in steps if not tried.values)
