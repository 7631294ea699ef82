"""
Delta debugging: a smallest set of changes that still makes a kernel bad. Pure.

The algorithm is ddmin (Zeller and Hildebrandt 2002): try halves, then their
complements, then smaller parts. One cause among n takes at most two tries each time the
set is halved; several causes that only work together take more, and are all found.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

Change = TypeVar("Change")


def minimize(
    changes: Sequence[Change], is_bad: Callable[[Sequence[Change]], bool]
) -> list[Change]:
    """
    Return changes that are bad together, and of which none can be left out.

    All of them together are known to be bad. A set that cannot be tested counts as not
    bad: what remains may then be larger than needed, and never lacks a cause.
    """
    left, parts = list(changes), 2
    while len(left) > 1:
        pieces = _split(left, parts)
        smaller = next((piece for piece in pieces if is_bad(piece)), None)
        if smaller is not None:
            left, parts = list(smaller), 2
            continue
        if parts > 2:
            rests = [_without(left, piece) for piece in pieces]
            smaller = next((rest for rest in rests if is_bad(rest)), None)
        if smaller is not None:
            left, parts = list(smaller), max(parts - 1, 2)
        elif parts < len(left):
            parts = min(2 * parts, len(left))
        else:
            break
    return left


def _split(changes: Sequence[Change], parts: int) -> list[Sequence[Change]]:
    """Cut into parts of nearly equal length, none empty."""
    size = math.ceil(len(changes) / min(parts, len(changes)))
    return [changes[at : at + size] for at in range(0, len(changes), size)]


def _without(changes: Sequence[Change], piece: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change not in piece]
