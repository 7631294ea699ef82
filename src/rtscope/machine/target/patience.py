"""
How long a board is waited for in all: its answers together, and their end together.

Each answer has a limit of its own. A board that stays just below each of them, or falls
silent after slow answers, would take the sum of them; so all sessions with a board
share this.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

ANSWERS_S = 40.0
"""Seconds for all answers from the login on, and then for those of each run."""

WHOLE_COSTS = 0.25
"""Of the time that a whole answer took: its board is slow, and goes on."""

ENDING_S = 6.0
"""Seconds for all sessions to end in, after which each has the least of one.

Then it is killed. The agent goes on to put settings back, on the board.
"""
LEAST_S = 1.0


class Patience:
    """What is left of the time for one board; local time that passes is free."""

    def __init__(
        self, *, answers_s: float = ANSWERS_S, ending_s: float = ENDING_S
    ) -> None:
        self._whole = answers_s, ending_s
        self._answers_s, self._ending_s = self._whole

    def renew(self) -> None:
        """Begin again, for the next run."""
        self._answers_s, self._ending_s = self._whole

    @property
    def says(self) -> str:
        """What to do where it has run out."""
        return (
            f"the board took too long: it has {self._whole[0]:.0f} s for all answers; "
            "look at its load and its link"
        )

    @property
    def answers_s(self) -> float:
        """Seconds that are left for answers."""
        return max(self._answers_s, 0.0)

    @property
    def ending_s(self) -> float:
        """Seconds in which the next session is to end."""
        return max(self._ending_s, LEAST_S)

    @contextmanager
    def answering(self, free_s: float = 0.0) -> Iterator[None]:
        """Charge what happens meanwhile, but for the seconds that it was asked for."""
        began, share = time.monotonic(), 1.0
        try:
            yield
            share = WHOLE_COSTS
        finally:
            self._answers_s -= share * max(time.monotonic() - began - free_s, 0.0)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Charge what happens meanwhile as the end of a session."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._ending_s -= time.monotonic() - began
