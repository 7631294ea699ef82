"""Determinism checks: some runs are computed twice, and results must be equal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checks:
    """What came of the checks; one with different results ends the sweep."""

    planned: int = 0
    equal: int = 0
    failures: tuple[str, ...] = ()
    """Why a check has no two results to compare."""


NO_CHECKS = Checks()
