"""Starts of a program that a search tried, and what each showed."""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.verbs.test.search.levers import Settings


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that a party did, relative to a release of the judged thread."""

    party: str
    """A thread, a load or an interrupt."""
    kind: str
    """`release`, `running`, `stopped`, `call`, `asks`, `locked`, `unlocked`, ..."""
    at_ns: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings to try, and how the search came to them."""

    settings: Settings
    how: str
    """`first`, `spread`, `meet` or `refine`."""
    base: int | None = None
    """The trial from which it was made, by its place in the order of trials."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One start: what was set, how bad its worst cycle was, what happened in it."""

    proposal: Proposal
    worst_ns: int
    judged: str = ""
    """The thread whose cycle was the worst."""
    involved: frozenset[str] = frozenset()
    """Who held it up in that cycle: holders of its locks, who preempted it."""
    instants: tuple[Instant, ...] = ()
    waits_ns: tuple[tuple[int, int], ...] = ()
    """From when to when it waited for what another held, after its release."""
    phases_ns: tuple[int | None, ...] = ()
    """For each lever, when its thread was due in its period; None: not seen."""

    @property
    def settings(self) -> Settings:
        """The value of each lever."""
        return self.proposal.settings


@dataclass(frozen=True, slots=True)
class Step:
    """A trial that was worse than all before."""

    trial: int
    """From 1."""
    worst_ns: int


def growth(trials: Sequence[Trial]) -> tuple[Step, ...]:
    """Return how the worst grew: the first trial, and each that exceeded all before."""
    steps: list[Step] = []
    for number, trial in enumerate(trials, start=1):
        if not steps or trial.worst_ns > steps[-1].worst_ns:
            steps.append(Step(number, trial.worst_ns))
    return tuple(steps)
