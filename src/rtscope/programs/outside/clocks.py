"""The kernel's clock beside the board's time, as timers show it. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from statistics import median_low

from rtscope.programs.outside.wakeups import OwnThread


class Clock:
    """
    The kernel's CLOCK_MONOTONIC beside the board's time, by timers that were due.

    The kernel corrects its clock by a few ns in a ms: between two timers it is taken as
    it was at the nearer one.
    """

    def __init__(self, threads: Sequence[OwnThread]) -> None:
        seen = sorted(
            (one.expires_ns, one.release_ns)
            for thread in threads
            for one in thread.wakeups
            if one.release_ns is not None and one.expires_ns is not None
        )
        self._monotonic = [expires for expires, _ in seen]
        self._apart = [release - expires for expires, release in seen]
        self._usual_ns = median_low(self._apart) if seen else 0

    def on_grid(self, monotonic_ns: int) -> int:
        """Return a time in which periods of the kernel's clock stay exact."""
        return monotonic_ns + self._usual_ns

    def of_board(self, monotonic_ns: int) -> int | None:
        """Return the board's time; None: no timer tells it."""
        if not self._apart:
            return None
        at = bisect_left(self._monotonic, monotonic_ns)
        near = [n for n in (at - 1, at) if 0 <= n < len(self._apart)]
        best = min(near, key=lambda n: abs(self._monotonic[n] - monotonic_ns))
        return monotonic_ns + self._apart[best]
