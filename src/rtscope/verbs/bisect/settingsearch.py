"""
Find the settings of a configuration that make a kernel bad, by delta debugging.

What is found is smallest: each setting is needed for the effect. What it must be
changed with is tried without it at the end, because that may be the cause itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rtscope.verbs.bisect.ddmin import minimize
from rtscope.verbs.bisect.symbols import Differences, Setting


@dataclass(frozen=True, slots=True)
class Blamed:
    """The settings that make a kernel bad."""

    settings: tuple[Setting, ...]
    along: tuple[Setting, ...]
    """What they must be changed with, and which is not bad without them."""


def blame(
    differences: Differences,
    is_bad: Callable[[Sequence[Setting]], bool],
    *,
    progress: Callable[[int], None] = lambda _left: None,
) -> Blamed:
    """
    Return the settings that make the good configuration bad.

    `is_bad` gets sets that hold all that their settings must be changed with; what
    cannot be tested is not bad. `progress` gets the number of settings in question.
    """

    def closed_is_bad(chosen: Sequence[Setting]) -> bool:
        progress(len(chosen))
        return is_bad(differences.closed(chosen))

    candidates: Sequence[Setting] = differences.settings
    while True:
        chosen = minimize(candidates, closed_is_bad)
        rests = _without_one(differences, chosen)
        smaller = next((rest for rest in rests if closed_is_bad(rest)), None)
        if smaller is None:
            return _blamed(differences, chosen)
        candidates = smaller


def _without_one(
    differences: Differences, chosen: Sequence[Setting]
) -> list[Sequence[Setting]]:
    """
    Return sets with what a setting needs and without itself, for each that needs any.

    The search has tried to leave it out, but what it needs went with it.
    """
    whole = differences.closed(chosen)
    rests: list[Sequence[Setting]] = []
    for one in chosen:
        rest = [x for x in whole if x != one and one not in differences.needs[x]]
        others = [other for other in chosen if other != one]
        if rest and set(rest) != set(differences.closed(others)):
            rests.append(rest)
    return rests


def _blamed(differences: Differences, chosen: Sequence[Setting]) -> Blamed:
    """Tell what has an effect from what only goes along; inseparable ones have both."""
    whole = differences.closed(chosen)
    blamed = {
        one for one in whole if one in chosen or differences.needs[one] & set(chosen)
    }
    return Blamed(
        tuple(one for one in whole if one in blamed),
        tuple(one for one in whole if one not in blamed),
    )
