"""
Find the settings of a configuration that make a kernel bad, by delta debugging.

What is found is smallest: each setting is needed for the effect. What it must be
changed with is tried alone at the end, because it may be the cause itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rtscope.bisect.ddmin import minimize
from rtscope.bisect.symbols import Differences, Setting


@dataclass(frozen=True, slots=True)
class Blamed:
    """The settings that make a kernel bad."""

    settings: tuple[Setting, ...]
    along: tuple[Setting, ...]
    """What they must be changed with, and which is not bad without them."""


def blame(
    found: Differences,
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
        return is_bad(found.closed(chosen))

    candidates = found.settings
    while True:
        chosen = minimize(candidates, closed_is_bad)
        along = tuple(one for one in found.closed(chosen) if one not in chosen)
        if not along or not closed_is_bad(along):
            return Blamed(tuple(chosen), along)
        candidates = along
