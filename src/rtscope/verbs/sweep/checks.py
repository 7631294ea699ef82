"""Determinism checks: some runs are computed twice, and results must be equal."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checks:
    """What came of the checks; one with different results ends the sweep."""

    planned: int = 0
    """How many have ended."""
    equal: int = 0
    failures: tuple[str, ...] = ()
    """Why a check has no two results to compare."""


NO_CHECKS = Checks()


def checks_of(whys: Mapping[str, str]) -> Checks:
    """
    Return the checks of a sweep, of all its starts.

    By the run that was computed twice: why there are no two results; empty if they are
    equal.
    """
    failures = tuple(why for why in whys.values() if why)
    return Checks(len(whys), len(whys) - len(failures), failures)
