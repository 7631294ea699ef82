"""
The pieces of a path: neighbouring runs of one kind. Pure.

With a tracer on, each function has a piece of its own, so a path may have hundreds of
thousands. Such a path is divided into 200 parts, and within each part the pieces of one
cause become one: all durations stay, the order within a part is lost.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from rtscope.explain.instructions.calls import Run
from rtscope.explain.instructions.causes import Kind
from rtscope.explain.model import Part

MOST_PIECES = 1000
"""In a path with more, pieces are merged."""
GRAINS = 200
"""Parts of such a path; in each, the pieces of one cause become one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Runs that become one segment."""

    kind: Kind
    runs: Sequence[int]
    """Their indices in the path, in order; neighbours, unless it is `moved`."""
    moved: tuple[int, int] | None = None
    """Virtual begin and end, where that is not from its first run to its last."""


Also = Callable[[int], Hashable]
"""What else neighbours must share, of the run of an index."""


def pieces_of_path(
    kinds: Sequence[Kind], runs: Sequence[Run], *, begin_ns: int, first: int, also: Also
) -> Sequence[Piece]:
    """
    Return the pieces of a path from a time on.

    `kinds` are those of its runs from `first` on.
    """
    pieces = [*islice(_neighbours(kinds, first, also), MOST_PIECES + 1)]
    if len(pieces) <= MOST_PIECES:
        return pieces
    grain_ns = max(1, (runs[-1].end_ns - begin_ns) // GRAINS)
    every = _neighbours(kinds, first, also)
    return [*_fewer(every, runs, begin_ns, grain_ns, also)]


def _neighbours(kinds: Sequence[Kind], first: int, also: Also) -> Iterator[Piece]:
    at = range(first, first + len(kinds))
    begin = first
    for (kind, _), group in groupby(at, key=lambda i: (kinds[i - first], also(i))):
        end = begin + sum(1 for _ in group)
        yield Piece(kind, range(begin, end))
        begin = end


def _fewer(
    pieces: Iterable[Piece],
    runs: Sequence[Run],
    first_ns: int,
    grain_ns: int,
    also: Also,
) -> Iterator[Piece]:
    """Put the pieces of each grain of a part together, by their causes."""
    waiting: dict[Hashable, list[Piece]] = {}
    begin_ns, part = first_ns, Part.A
    for piece in pieces:
        since_ns = max(first_ns, runs[piece.runs[0]].begin_ns)
        # What held the thread itself back stays where it is.
        stays = piece.kind.held is not None
        if stays or piece.kind.part is not part or since_ns - begin_ns >= grain_ns:
            yield from _in_a_row(waiting.values(), runs, begin_ns)
            waiting, begin_ns, part = {}, since_ns, piece.kind.part
        if stays:
            yield piece
            begin_ns = runs[piece.runs[-1]].end_ns
            continue
        key = piece.kind.cause, piece.kind.in_place, also(piece.runs[0])
        waiting.setdefault(key, []).append(piece)
    yield from _in_a_row(waiting.values(), runs, begin_ns)


def _in_a_row(
    together: Iterable[Sequence[Piece]], runs: Sequence[Run], begin_ns: int
) -> Iterator[Piece]:
    since_ns = begin_ns
    for pieces in together:
        at = [i for piece in pieces for i in piece.runs]
        ns = sum(runs[i].end_ns - max(begin_ns, runs[i].begin_ns) for i in at)
        yield Piece(pieces[0].kind, at, (since_ns, since_ns + ns))
        since_ns += ns


def told_in_fewer(pieces: Sequence[Piece]) -> Iterator[str]:
    """Say that pieces of one cause were merged, if they were."""
    if any(piece.moved is not None for piece in pieces):
        yield (
            f"this path has more than {MOST_PIECES:,} pieces: it is shown in {GRAINS} "
            "parts, and in each the pieces of one cause are one, with their times added"
        )
