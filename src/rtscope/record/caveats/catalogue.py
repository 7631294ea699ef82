"""
Caveats as data: every one that a record may carry, with its effect on a verdict.

The catalogue is `caveats.toml`; a caveat that is not in it cannot be raised.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import Field


class Effect(StrEnum):
    """Effect of a caveat on a verdict, the worst first."""

    INVALID = "invalid"
    LIMIT = "limit"
    NOTE = "note"

    @property
    def label(self) -> str:
        """The word that a report shows."""
        return "LIMITS VERDICT" if self is Effect.LIMIT else self.value.upper()


class Counts(StrEnum):
    """Whether a run counts in a comparison, an effect, a ranking or a search."""

    YES = "yes"
    UNRANKED = "unranked"
    """It does, but its load is not shown to have run throughout, and has no rank."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class CaveatKind:
    """A row of the catalogue."""

    id: str
    effect: Effect
    counts: Counts
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Caveat:
    """A caveat of one run; `detail` has the numbers or names of this run."""

    id: Annotated[str, Field(max_length=64)]
    detail: Annotated[str, Field(max_length=4096)] = ""


@cache
def catalogue() -> Mapping[str, CaveatKind]:
    """Return every kind of caveat by its id, in the order of the file."""
    text = (
        resources.files("rtscope.record.caveats")
        .joinpath("caveats.toml")
        .read_text("utf-8")
    )
    return {
        name: CaveatKind(
            id=name,
            effect=Effect(row["effect"]),
            counts=Counts(row.get("counts", _counts_by(Effect(row["effect"])))),
            message=row["message"],
            remedy=row["remedy"],
        )
        for name, row in tomllib.loads(text).items()
    }


def _counts_by(effect: Effect) -> Counts:
    return Counts.NO if effect is Effect.INVALID else Counts.YES


def kind_of(caveat: Caveat) -> CaveatKind:
    """Look a caveat up; one from a newer rtscope is kept and limits the verdict."""
    unknown = CaveatKind(
        id=caveat.id,
        effect=Effect.LIMIT,
        counts=Counts.YES,
        message=f"{caveat.id}: a caveat that this version of rtscope does not know",
        remedy="read the record with the version that wrote it",
    )
    return catalogue().get(caveat.id, unknown)


def uncounted(caveats: Iterable[Caveat]) -> Caveat | None:
    """Return the first caveat for which a run does not count; None if it does."""
    return next((one for one in caveats if kind_of(one).counts is Counts.NO), None)


def make(caveat_id: str, detail: str = "") -> Caveat:
    """Raise a caveat; KeyError for an id that the catalogue lacks (a bug of ours)."""
    return Caveat(catalogue()[caveat_id].id, detail[:4096])


def gravest_first(caveats: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Sort by effect, then by the order of the catalogue; drop exact repetitions."""
    effects = list(Effect)
    order = list(catalogue())

    def rank(caveat: Caveat) -> tuple[int, int, str]:
        position = order.index(caveat.id) if caveat.id in order else len(order)
        return effects.index(kind_of(caveat).effect), position, caveat.detail

    return tuple(sorted(set(caveats), key=rank))
