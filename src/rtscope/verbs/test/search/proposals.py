"""
The next starts of a search for the worst cycle: directed by what made the last worst.

A search that only follows the worst so far is worse than chance where the worst of all
is elsewhere. So a fixed share of the trials looks at nothing, whatever the others find:

- `spread`, every second one: the next point of a sequence that fills the space evenly;
- `together`: once, all that moves is due when the judged thread is;
- `meet`: settings in which threads run at the same time (`meetings`);
- `hold`: one more is due while the judged thread waits for what another holds;
- `refine`: settings beside one of the worst trials, mostly near, seldom far.

At worst the others find nothing, and it takes twice the trials of the sequence alone.
They go on from one of the worst few trials that differ, the worse the likelier, and
sometimes from any trial, so no hill holds the search.

The next trials are a function of the levers, the trials so far and a seed: the same
search makes the same trials again, and one that was ended goes on.
"""

from collections.abc import Sequence, Set
from random import Random
from statistics import median

from rtscope.verbs.test.search.levers import Lever, Settings, Space
from rtscope.verbs.test.search.meetings import held_longer, met, some_of, together
from rtscope.verbs.test.search.trials import Proposal, Trial

SPREAD_EVERY = 2
"""One of so many trials does not look at the others."""

BASES = 4
"""So many of the worst trials, each worse by another time, are gone on from."""

ANY_BASE = 0.15
"""Share of the directed trials that go on from any trial instead."""

REFINED, REFINED_LATER = 0.4, 0.2
"""Share of those that go on from one of the worst trials by going beside it."""

NEW = 8
"""A trial is gone beside more often until this was done so often, for each lever."""

HELD = 0.5
"""Share of the directed trials, from one with such a wait, that make it longer."""

NEARNESS = 2.0
"""Half of the steps beside a trial are shorter than this root of the longest one, as a
power of 2: with 2, the fourth root."""

NOISE = 0.03
"""Trials that differ by a smaller share of the usual worst are equally bad: the kernel
never does quite the same."""

FRESH_TRIES = 200
"""How often settings are passed over because they were tried."""


def propose(
    space: Space, trials: Sequence[Trial], *, seed: int, count: int
) -> tuple[Proposal, ...]:
    """
    Return the next trials, at most `count` and fewer only if all settings were tried.

    All of one call are made without the results of each other, as they share a boot.
    """
    tried = {one.settings for one in trials}
    proposals: list[Proposal] = []
    for number in range(len(trials), len(trials) + count):
        if len(tried) >= space.count:
            break
        proposal = _next(space, trials, tried, number=number, seed=seed)
        tried.add(proposal.settings)
        proposals.append(proposal)
    return tuple(proposals)


def _next(
    space: Space,
    trials: Sequence[Trial],
    tried: Set[Settings],
    *,
    number: int,
    seed: int,
) -> Proposal:
    if number == 0:
        return Proposal(space.first, "first")
    if trials and number % SPREAD_EVERY:
        at_once = together(space, trials[0])
        if at_once not in tried:
            return Proposal(at_once, "together", 0)
        drawn = Random(f"rtscope search {seed} {number}")
        for _ in range(FRESH_TRIES):
            proposal = _directed(space, trials, drawn)
            if proposal.settings not in tried:
                return proposal
    return Proposal(_spread(space, tried, number=number, seed=seed), "spread")


def _directed(space: Space, trials: Sequence[Trial], drawn: Random) -> Proposal:
    bases = bases_of(trials)
    if not bases or drawn.random() < ANY_BASE:
        base = drawn.randrange(len(trials))
    else:
        [base] = drawn.choices(bases, [1 / n for n in range(1, len(bases) + 1)])
        made = sum(
            t.proposal.base == base and t.proposal.how == "refine" for t in trials
        )
        longer = held_longer(space, trials[base], drawn)
        if longer is not None and drawn.random() < HELD:
            return Proposal(longer, "hold", base)
        share = REFINED if made < NEW * len(space.levers) else REFINED_LATER
        if drawn.random() < share:
            settings = _beside(space, trials[base].settings, drawn)
            return Proposal(settings, "refine", base)
    return Proposal(met(space, trials[base], drawn), "meet", base)


def bases_of(trials: Sequence[Trial]) -> list[int]:
    """
    Return the places of the worst trials that are worse than usual, the worst first.

    Of equals it is the first.
    """
    usual_ns = median([one.worst_ns for one in trials])
    near_ns = NOISE * usual_ns
    bases: list[int] = []
    # What is worst because all is due at once is no hill on which a lock is met.
    places = [n for n, one in enumerate(trials) if one.proposal.how != "together"]
    for place in sorted(places, key=lambda n: (-trials[n].worst_ns, n)):
        worst_ns = trials[place].worst_ns
        if len(bases) == BASES or worst_ns <= usual_ns + near_ns:
            break
        if not bases or worst_ns < trials[bases[-1]].worst_ns - near_ns:
            bases.append(place)
    return bases


def _beside(space: Space, settings: Settings, drawn: Random) -> Settings:
    """Return settings some steps away, by at most a quarter of a lever's range."""
    values = list(settings)
    axes = [axis for axis, lever in enumerate(space.levers) if lever.is_time]
    for axis in some_of(axes, drawn):
        lever = space.levers[axis]
        steps = round(max(1.0, lever.count / 4) ** drawn.random() ** NEARNESS)
        change = steps * lever.step * (1 if drawn.random() < 0.5 else -1)
        value = lever.nearest(values[axis] + change)
        values[axis] = values[axis] if value is None else value
    return tuple(values)


def _spread(space: Space, tried: Set[Settings], *, number: int, seed: int) -> Settings:
    """Return the next even point that was not tried, else the first such settings."""
    drawn = Random(f"rtscope search {seed}")
    shifts = [drawn.random() for _ in space.levers]
    first = number // SPREAD_EVERY
    for point in range(first, first + FRESH_TRIES):
        settings = space.spread(point, shifts)
        if settings not in tried:
            return settings
    settings = space.first
    while settings in tried:
        settings = _successor(space.levers, settings)
    return settings


def _successor(levers: Sequence[Lever], settings: Settings) -> Settings:
    """Return the settings after these, the last lever counting fastest."""
    values = list(settings)
    for axis in reversed(range(len(levers))):
        lever = levers[axis]
        if values[axis] + lever.step <= lever.high:
            values[axis] += lever.step
            break
        values[axis] = lever.low
    return tuple(values)
