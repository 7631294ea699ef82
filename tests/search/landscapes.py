"""
Simulated programs, each with a worst case that is rare, and how bad that is.

Constants of the search were chosen with the programs of TUNED. The six of HELD_OUT were
written afterwards, from descriptions of bugs that others published, each named in the
program of the same name in tests/search/programs; nothing was changed after they were
searched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from statistics import median
from typing import Protocol

from rtscope.verbs.test.search.levers import Lever, Space
from rtscope.verbs.test.search.proposals import propose
from rtscope.verbs.test.search.trials import Proposal, Trial
from search.simulated import Part, Simulated, Worst, simulate

US, MS = 1_000, 1_000_000


@dataclass(frozen=True)
class Landscape:
    """A program, what may be varied, and from where on the worst case is found."""

    name: str
    threads: tuple[Simulated, ...]
    levers: tuple[Lever, ...]
    judged: str
    found_ns: int
    until_ns: int = 13 * MS

    @property
    def space(self) -> Space:
        return Space.of(self.levers)

    def run(self, proposal: Proposal) -> Trial:
        """
        Execute the program with these settings, and return what a trial shows.

        As on a board, no instant shows a lock, and times vary by 1 %.
        """
        phases: dict[str, int] = {}
        for lever, value in zip(self.levers, proposal.settings, strict=True):
            for party in lever.moves:
                phases[party] = phases.get(party, 0) + value * lever.ns_per_unit
        worst = simulate(
            self.threads, phases, judged=self.judged, until_ns=self.until_ns
        )
        worst = _as_on_a_board(worst, proposal)
        return Trial(
            proposal,
            worst.response_ns,
            self.judged,
            worst.involved,
            worst.instants,
            worst.waits_ns,
        )


_LOCKING = ("asks", "locked", "unlocked")


def _as_on_a_board(worst: Worst, proposal: Proposal) -> Worst:
    drawn = Random(str(proposal.settings)).random()
    instants = tuple(one for one in worst.instants if one.kind not in _LOCKING)
    noise_ns = int(worst.response_ns * drawn / 100)
    return replace(worst, response_ns=worst.response_ns + noise_ns, instants=instants)


def phase(*parties: str, period_us: int) -> Lever:
    return Lever(
        f"phase of {parties[0]}",
        0,
        period_us - 1,
        step=2,
        ns_per_unit=US,
        moves=frozenset(parties),
        period=period_us,
    )


def _runs(us: int) -> tuple[str, int]:
    return ("run", us * US)


LOCK_AT_ONE_INSTANT = Landscape(
    "a lock that is held at one instant",
    (
        Simulated(
            "control", 90, MS, (_runs(30), ("lock", "a"), _runs(5), ("unlock", "a"))
        ),
        Simulated(
            "logger",
            10,
            8 * MS,
            (_runs(200), ("lock", "a"), _runs(14), ("unlock", "a"), _runs(100)),
            phase_ns=300 * US,
            cpu=1,
        ),
    ),
    (phase("logger", period_us=8000),),
    "control",
    45 * US,
)

THREE_MEET = Landscape(
    "three threads of one CPU meet",
    (
        Simulated("control", 50, 2 * MS, (_runs(24),)),
        Simulated("network", 80, 2 * MS, (_runs(18),), phase_ns=700 * US),
        Simulated("motor", 90, 2 * MS, (_runs(22),), phase_ns=1300 * US),
    ),
    (phase("network", period_us=2000), phase("motor", period_us=2000)),
    "control",
    64 * US,
)

CHAIN_OF_LOCKS = Landscape(
    "a chain of two locks",
    (
        Simulated(
            "control", 90, MS, (_runs(40), ("lock", "a"), _runs(5), ("unlock", "a"))
        ),
        Simulated(
            "filter",
            60,
            MS,
            (
                _runs(30),
                ("lock", "a"),
                _runs(6),
                ("lock", "b"),
                _runs(4),
                ("unlock", "b"),
                _runs(2),
                ("unlock", "a"),
            ),
            phase_ns=400 * US,
            cpu=1,
        ),
        Simulated(
            "storage",
            20,
            2 * MS,
            (_runs(90), ("lock", "b"), _runs(36), ("unlock", "b")),
            phase_ns=600 * US,
            cpu=2,
        ),
    ),
    (phase("filter", period_us=1000), phase("storage", period_us=2000)),
    "control",
    80 * US,
)

BURST = Landscape(
    "a burst preempts the holder of a lock",
    (
        Simulated(
            "control", 90, MS, (_runs(25), ("lock", "a"), _runs(5), ("unlock", "a"))
        ),
        Simulated(
            "reader",
            30,
            2 * MS,
            (_runs(60), ("lock", "a"), _runs(20), ("unlock", "a"), _runs(30)),
            phase_ns=500 * US,
            cpu=1,
        ),
        Simulated("burst", 70, 8 * MS, (_runs(120),), phase_ns=5 * MS, cpu=1),
    ),
    (phase("reader", period_us=2000), phase("burst", period_us=8000)),
    "control",
    120 * US,
)

TWO_PROCESSES = Landscape(
    "two processes with two threads each",
    (
        Simulated(
            "a/control", 90, MS, (_runs(20), ("lock", "m"), _runs(8), ("unlock", "m"))
        ),
        Simulated("a/helper", 95, 4 * MS, (_runs(12),), phase_ns=250 * US),
        Simulated(
            "b/writer",
            40,
            4 * MS,
            (_runs(50), ("lock", "m"), _runs(16), ("unlock", "m")),
            phase_ns=600 * US,
            cpu=1,
        ),
        Simulated("b/signal", 60, 4 * MS, (_runs(40),), phase_ns=100 * US, cpu=1),
    ),
    (
        phase("b/writer", "b/signal", period_us=4000),
        phase("a/helper", period_us=4000),
        phase("b/signal", period_us=4000),
    ),
    "a/control",
    75 * US,
)

INTERRUPT = Landscape(
    "a tick meets the interrupt of a device",
    (
        Simulated("control", 50, MS, (_runs(16),), phase_ns=120 * US),
        Simulated("tick", 99, 4 * MS, (_runs(9),)),
        Simulated("device", 98, 4 * MS, (_runs(14),), phase_ns=900 * US),
    ),
    (
        phase("control", period_us=1000),
        phase("device", period_us=4000),
    ),
    "control",
    39 * US,
)

TUNED = (
    LOCK_AT_ONE_INSTANT,
    THREE_MEET,
    CHAIN_OF_LOCKS,
    BURST,
    TWO_PROCESSES,
    INTERRUPT,
)


def _locked(us: int) -> tuple[Part, ...]:
    return (("lock", "m"), _runs(us), ("unlock", "m"))


def _published(name: str, judged: str, found_us: int, *all_: Simulated) -> Landscape:
    """Return a program in which all phases but that of one thread may be varied."""
    still = "sampler" if name == "rates" else judged
    threads = tuple(
        replace(one, phase_ns=one.period_ns * number // 7)
        for number, one in enumerate(all_)
    )
    levers = tuple(
        phase(one.name, period_us=one.period_ns // US)
        for one in threads
        if one.name != still
    )
    return Landscape(name, threads, levers, judged, found_us * US)


HELD_OUT = (
    _published(
        *("pathfinder", "bus", 400),
        Simulated("bus", 80, MS, (_runs(20), *_locked(10), _runs(10))),
        Simulated("comms", 50, 4 * MS, (_runs(400),)),
        Simulated("weather", 20, 4 * MS, (_runs(100), *_locked(150), _runs(50))),
    ),
    _published(
        *("convoy", "control", 120),
        Simulated("control", 80, MS, (_runs(20), *_locked(5))),
        Simulated("daemon", 60, 4 * MS, (_runs(200),), cpu=1),
        Simulated("first", 40, 2 * MS, (_runs(30), *_locked(20), _runs(20)), cpu=1),
        Simulated("second", 30, 2 * MS, (_runs(30), *_locked(20), _runs(20)), cpu=1),
    ),
    _published(
        *("ceiling", "high", 330),
        Simulated(
            *("high", 80, MS),
            (_runs(10), *_locked(5), ("lock", "b"), _runs(5), ("unlock", "b")),
        ),
        Simulated("middle", 50, 2 * MS, (_runs(20), *_locked(200), _runs(20))),
        Simulated(
            *("low", 20, 4 * MS),
            (_runs(50), ("lock", "b"), _runs(200), ("unlock", "b"), _runs(50)),
        ),
    ),
    _published(
        *("rates", "control", 180),
        Simulated("sampler", 90, 2 * MS, (_runs(40),)),
        Simulated("filter", 80, 4 * MS, (_runs(60),)),
        Simulated("motor", 70, 4 * MS, (_runs(50),)),
        Simulated("control", 50, 4 * MS, (_runs(40),)),
    ),
    # The lock is held while the queue is full, from the burst until the writer is due.
    _published(
        *("queue", "control", 250),
        Simulated("control", 80, 4 * MS, (_runs(20), ("lock", "m"), ("unlock", "m"))),
        Simulated("burst", 60, 4 * MS, (_runs(6), ("lock", "m")), cpu=1),
        Simulated("writer", 10, 500 * US, (("unlock", "m"), _runs(40)), cpu=1),
    ),
    _published(
        *("timers", "control", 220),
        Simulated("tick", 90, 4 * MS, (_runs(60),)),
        Simulated("control", 80, 2 * MS, (_runs(20), *_locked(5))),
        Simulated("stats", 70, 4 * MS, (_runs(200),), cpu=1),
        Simulated("flush", 10, 4 * MS, (_runs(100), *_locked(50), _runs(100)), cpu=1),
    ),
)

Next = Callable[[Space, list[Trial], int], Proposal]


class Searched(Protocol):
    """Something to search: its space, a start, and from where on it is found."""

    @property
    def space(self) -> Space: ...

    @property
    def found_ns(self) -> int: ...

    def run(self, proposal: Proposal) -> Trial: ...


def trials_until_found(
    landscape: Searched, next_proposal: Next, *, budget: int
) -> int | None:
    """Return how many trials it takes to find the worst case; None: more than these."""
    trials: list[Trial] = []
    for number in range(1, budget + 1):
        trial = landscape.run(next_proposal(landscape.space, trials, number))
        trials.append(trial)
        if trial.worst_ns >= landscape.found_ns:
            return number
    return None


IN_A_ROUND = 20


def directed(seed: int) -> Next:
    """Return the search of rtscope, which makes its trials in rounds."""
    queue: list[Proposal] = []

    def next_proposal(space: Space, trials: list[Trial], number: int) -> Proposal:
        if not queue:
            queue.extend(
                propose(space, trials, seed=seed, count=IN_A_ROUND if trials else 1)
            )
        return queue.pop(0)

    return next_proposal


def blind(seed: int) -> Next:
    """Return a search that draws every value by chance, as fuzzers without feedback."""
    drawn = Random(seed)

    def next_proposal(space: Space, trials: list[Trial], number: int) -> Proposal:
        settings = tuple(lever.at_share(drawn.random()) for lever in space.levers)
        return Proposal(settings, "blind")

    return next_proposal


def found_by(values: Mapping[int, int | None], budget: int) -> tuple[int, float]:
    """Return how many seeds found it, and the median of the trials (or the budget)."""
    counts = [budget if n is None else n for n in values.values()]
    return sum(n is not None for n in values.values()), median(counts)
