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


@dataclass(frozen=True, slots=True)
class CaveatKind:
    """A row of the catalogue."""

    id: str
    effect: Effect
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
            message=row["message"],
            remedy=row["remedy"],
        )
        for name, row in tomllib.loads(text).items()
    }


def kind_of(caveat: Caveat) -> CaveatKind:
    """Look a caveat up; one from a newer rtscope is kept and limits the verdict."""
    unknown = CaveatKind(
        id=caveat.id,
        effect=Effect.LIMIT,
        message=f"{caveat.id}: a caveat that this version of rtscope does not know",
        remedy="read the record with the version that wrote it",
    )
    return catalogue().get(caveat.id, unknown)


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
