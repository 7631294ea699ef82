"""
Draws settings in which threads meet: what a rare worst case needs, whatever makes it.

A thread that does nothing while the judged one waits or executes cannot delay it. So
settings are drawn in which threads run at the same time as the judged one, in one and
the same cycle of it. That is a small part of all settings, and has nearly all of the
meetings. Within it no instant is preferred, as no call of the kernel shows when a lock
is held that nobody waits for; but where the judged thread waited, one is known.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from rtscope.verbs.test.search.levers import Lever, Settings, Space
from rtscope.verbs.test.search.trials import Instant, Trial

ANOTHER = 0.35
"""Chance that a draw changes a second lever; half of it: a third one."""

KEPT = 0.75
"""Share of the draws that leave alone who held the judged thread up: a cycle that is
worse by one of two meetings keeps it while the other is looked for."""

OF_OTHERS = 0.3
"""Share of the meetings not with the judged thread, but with who held it up, and of the
rest those with any: who keeps the holder of a lock from its CPU is needed there."""

TAIL = 0.15
"""Share of the draws outside the range of a meeting: what a thread leaves behind, such
as a full queue, acts when it sleeps again. The farther, the rarer."""

INSIDE = 0.5
"""Share of the draws in which it is due earlier: what it holds itself counts then."""

Body = tuple[int, int]
"""From when to when a party was busy, in ns after the judged release."""


def met(space: Space, trial: Trial, drawn: Random) -> Settings:
    """Return the settings of a trial with some changes, after which parties meet."""
    bodies = bodies_of(trial)
    shifts_ns: Counter[str] = Counter()
    values = list(trial.settings)
    for axis in _axes(space, trial, drawn):
        lever = space.levers[axis]
        change_ns = _change_ns(lever, trial, bodies, shifts_ns, drawn)
        if change_ns is None:
            values[axis] = lever.at_share(drawn.random())
            continue
        value = lever.nearest(values[axis] + round(change_ns / lever.ns_per_unit))
        if value is not None:
            shifts_ns.update(dict.fromkeys(lever.moves, change_ns))
            values[axis] = value
    return tuple(values)


def together(space: Space, trial: Trial) -> Settings:
    """
    Return the settings of a trial with all that moves due when the judged thread is.

    On one CPU no other start takes longer, if nobody waits for a lock: the critical
    instant of Liu and Layland, "Scheduling algorithms for multiprogramming in a
    hard-real-time environment", 1973.
    """
    due_ns = {trial.judged: 0}
    for one in sorted(trial.instants, key=lambda one: abs(one.at_ns)):
        if one.kind == "release":
            due_ns.setdefault(one.party, one.at_ns)
    moved = frozenset[str]().union(*(lever.moves for lever in space.levers))
    still_ns = [due_ns[one] for one in sorted(due_ns.keys() - moved)]
    # Only where the judged thread moves too is the nearest that stays a choice.
    at_ns = min(still_ns, key=abs) if still_ns and trial.judged in moved else 0
    values = list(trial.settings)
    for axis, lever in enumerate(space.levers):
        known = sorted(lever.moves & due_ns.keys())
        if lever.is_time and known:
            by_ns = at_ns - due_ns[known[0]]
            value = lever.nearest(values[axis] + round(by_ns / lever.ns_per_unit))
            values[axis] = values[axis] if value is None else value
    return tuple(values)


def held_longer(space: Space, trial: Trial, drawn: Random) -> Settings | None:
    """
    Return settings in which one more is due while the judged thread waits; None: none.

    While it waits it is known that another holds what it waits for, and who takes the
    CPU of that one then makes the wait longer: the inversion of priorities, and its
    chains. When it was taken is not known: as long before as the wait took.
    """
    still = {trial.judged, *trial.involved}
    free = [
        axis
        for axis, lever in enumerate(space.levers)
        if lever.is_time and lever.moves and not lever.moves & still
    ]
    if not free or not trial.waits_ns:
        return None
    axis = drawn.choice(free)
    lever = space.levers[axis]
    begin_ns, end_ns = drawn.choice(trial.waits_ns)
    at_ns = end_ns - round(2 * (end_ns - begin_ns) * drawn.random())
    party = drawn.choice(sorted(lever.moves))
    due_ns = [
        one.at_ns
        for one in trial.instants
        if one.kind == "release" and one.party == party
    ]
    if not due_ns:
        return None
    bodies = bodies_of(trial).get(party, ())
    if bodies and drawn.random() < INSIDE:
        first_ns, last_ns = drawn.choice(bodies)
        at_ns -= round((last_ns - first_ns) * drawn.random())
    by_ns = min((at_ns - one for one in due_ns), key=abs)
    values = list(trial.settings)
    value = lever.nearest(values[axis] + round(by_ns / lever.ns_per_unit))
    values[axis] = values[axis] if value is None else value
    return tuple(values)


def some_of(axes: Sequence[int], drawn: Random) -> list[int]:
    """Return the levers to change together: mostly one."""
    count = 1 + (drawn.random() < ANOTHER) + (drawn.random() < ANOTHER / 2)
    return drawn.sample(axes, min(len(axes), count))


def _axes(space: Space, trial: Trial, drawn: Random) -> list[int]:
    axes = range(len(space.levers))
    free = [axis for axis in axes if not space.levers[axis].moves & trial.involved]
    return some_of(free if free and drawn.random() < KEPT else axes, drawn)


def _change_ns(
    lever: Lever,
    trial: Trial,
    bodies: Mapping[str, Sequence[Body]],
    shifts_ns: Mapping[str, int],
    drawn: Random,
) -> int | None:
    """Return by how much to move a lever so that two parties meet; None: none can."""
    pairs = list(_pairs(lever, trial.judged, bodies))
    if not lever.is_time or not pairs:
        return None
    for parties in ({trial.judged}, trial.involved):
        some = [pair for pair in pairs if parties & set(pair)]
        if some and drawn.random() >= OF_OTHERS:
            pairs = some
            break
    still, moving = drawn.choice(pairs)
    begin_ns, end_ns = _moved(_nearest(bodies[still]), shifts_ns.get(still, 0))
    first_ns, last_ns = _moved(_nearest(bodies[moving]), shifts_ns.get(moving, 0))
    low_ns, high_ns = begin_ns - last_ns, end_ns - first_ns
    if drawn.random() >= TAIL:
        return low_ns + int((high_ns - low_ns) * drawn.random())
    half = max(1.0, lever.count / 2)
    beyond_ns = int(half ** drawn.random()) * lever.step * lever.ns_per_unit
    return low_ns - beyond_ns if drawn.random() < 0.5 else high_ns + beyond_ns


def _pairs(
    lever: Lever, judged: str, bodies: Mapping[str, Sequence[Body]]
) -> Iterator[tuple[str, str]]:
    """
    Yield parties that a lever moves relative to each other, the moving one last.

    A lever of which nothing is known is tried with each party but the judged one.
    """
    for moving in sorted(bodies):
        if moving in lever.moves or (not lever.moves and moving != judged):
            for still in sorted(bodies):
                if still not in lever.moves and still != moving:
                    yield still, moving


def bodies_of(trial: Trial) -> Mapping[str, Sequence[Body]]:
    """Return when each party was busy; the judged one from its release to its end."""
    began: dict[str, int] = {}
    bodies: dict[str, list[Body]] = {trial.judged: [(0, trial.worst_ns)]}
    for one in trial.instants:
        if one.party == trial.judged:
            continue
        if one.kind == "running":
            began.setdefault(one.party, one.at_ns)
        elif one.kind == "stopped" and one.party in began:
            body = (began.pop(one.party), one.at_ns)
            bodies.setdefault(one.party, []).append(body)
    return bodies


def _nearest(bodies: Sequence[Body]) -> Body:
    """Return the body that is nearest to the judged release."""
    return min(bodies, key=lambda one: max(one[0], -one[1], 0))


def _moved(body: Body, by_ns: int) -> Body:
    return body[0] + by_ns, body[1] + by_ns


def instants_near(
    instants: Sequence[Instant], *, before_ns: int, after_ns: int
) -> tuple[Instant, ...]:
    """Return the instants in a window around the release, each once, in order."""
    near = {i for i in instants if -before_ns <= i.at_ns <= after_ns}
    return tuple(sorted(near, key=lambda i: (i.at_ns, i.party, i.kind)))
