"""Threads that a listing leaves out: unknown, and not quiet."""

from collections.abc import Collection, Iterator

from rtscope.record.caveats.catalogue import Caveat, make


def threads_left_out(
    numbers: Collection[int], *, known: int = 0, step: int = 1
) -> Iterator[Caveat]:
    """
    Yield the doubt about threads whose numbers are missing in a listing.

    Numbers count from 0 in steps of `step`; `known` is how many threads the file says
    that there were.
    """
    places = {number // step for number in numbers}
    count = max(known, max(places, default=-1) + 1)
    missing = sorted(set(range(min(count, 1 << 16))) - places)
    if missing:
        shown = ", ".join(str(place * step) for place in missing[:8])
        more = ", ..." if len(missing) > 8 else ""
        yield make(
            "import_left_out",
            f"{len(places)} of at least {count} threads are in it; not in it: "
            f"{shown}{more}",
        )
