"""
How many trials a search for the worst start takes, beside one that draws blindly.

Each program of tests/search/programs is started on a virtual board at all points of a
grid of phases, many starts in a boot. Searches are then played over what was recorded,
with many seeds: they may ask for the points of the grid, and each gets the start that
was really made there. So 20 seeds of each search cost no more boots than one grid.

    lab/search_worst.py record FOLDER [PROGRAM ...]    goes on where it was ended
    lab/search_worst.py play FOLDER [PROGRAM ...] --seeds 20 --budget 200
"""

import argparse
import pickle
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random

from rtscope.host.units import NS_PER_US
from rtscope.verbs.test.file import ProgramTest, load_test
from rtscope.verbs.test.plan import Boot, boots_of
from rtscope.verbs.test.running import Ran, run_boots
from rtscope.verbs.test.search.levers import Lever, Settings, Space
from rtscope.verbs.test.search.proposals import propose
from rtscope.verbs.test.search.rounds import BOOTS, STARTS
from rtscope.verbs.test.search.searching import started, with_proposals
from rtscope.verbs.test.search.seen import (
    STEP_US,
    party_of,
    thread_of,
    trial_of,
)
from rtscope.verbs.test.search.trials import Proposal, Trial

SOURCES = Path(__file__).parent.parent / "tests" / "search" / "programs"

EACH_BOOT = 42
"""Starts."""

TEST = """
[program]
command = ["./{name}"]
[board]
kernel = ["debian-6.12-rt"]
[time]
warmup = "60ms"
duration = "9ms"
settle = "500ms"
[thread.{judged}]
response = "{found_us}us"
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, its grid, and from where on its rare worst case is found."""

    name: str
    judged: str
    found_us: int
    """Half-way between all that is not rare and the rare case, by the sums in its
    source: written before any start."""
    periods_us: tuple[int, ...]
    """Of its threads, of which the first that it makes is number 2."""
    scanned: Mapping[int, int]
    """Threads whose phases the grid has, and its steps in us."""
    fixed: Mapping[int, int]
    """Phases of the others in us."""
    tuned: bool = False
    """Whether constants of the search were chosen with it."""


PROGRAMS = (
    Program(
        *("convoy", "control", 120, (2000, 2000, 4000, 1000)),
        *({4: 16}, {2: 950, 3: 950, 5: 0}),
        tuned=True,
    ),
    Program(
        *("ceiling", "high", 330, (4000, 2000, 1000), {2: 250, 3: 125}, {4: 0}),
        tuned=True,
    ),
    Program("pathfinder", "bus", 400, (4000, 4000, 1000), {2: 250, 3: 250}, {4: 0}),
    Program(
        *("rates", "control", 180, (4000, 4000, 4000, 2000)),
        *({2: 16}, {3: 80, 4: 30, 5: 0}),
    ),
    Program("queue", "control", 250, (500, 4000, 4000), {3: 16}, {2: 460, 4: 0}),
    Program(
        *("timers", "control", 220, (4000, 4000, 2000, 4000)),
        *({2: 16}, {3: 40, 4: 0, 5: 0}),
    ),
)


# --- recording ------------------------------------------------------------------------


def record(program: Program, folder: Path) -> None:
    """Boot as often as the grid needs, and keep each boot's trials in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    test = _built(program, folder)
    [boot] = boots_of(test, log=print, progress=lambda _step: None)
    space = _space(program)
    points = _points(program, space)
    for at in range(0, len(points), EACH_BOOT):
        kept = folder / f"{at:05}.trials"
        if kept.exists():
            continue
        proposals = [Proposal(one, "grid") for one in points[at : at + EACH_BOOT]]
        found = started(test, _run([with_proposals(boot, space, proposals)]))
        trials = [
            trial_of(proposal, one, space, program.judged)
            for proposal, (_, one, _) in zip(proposals, found, strict=True)
        ]
        _keep(kept, (_scanned_levers(program, space), _reduced(program, space, trials)))
        print(f"{program.name}: {at + len(trials)} of {len(points)}", flush=True)


def _space(program: Program) -> Space:
    """Return what a search varies; a short start would not show the longest periods."""
    return Space.of(
        [
            Lever(
                *(f"phase {number}", 0, period_us - 1, STEP_US),
                ns_per_unit=NS_PER_US,
                moves=frozenset({party_of(number)}),
                period=period_us,
            )
            for number, period_us in enumerate(program.periods_us, 2)
        ]
    )


def _built(program: Program, folder: Path) -> ProgramTest:
    out = folder / program.name
    words = ["gcc", "-O2", "-static", "-o", str(out)]
    source = SOURCES / f"{program.name}.c"
    subprocess.run([*words, str(source), "-lpthread"], check=True)
    text = TEST.format(
        name=program.name, judged=program.judged, found_us=program.found_us
    )
    path = folder / f"{program.name}.toml"
    path.write_text(text)
    return load_test(path)


def _run(boots: Sequence[Boot]) -> Sequence[Ran]:
    return list(run_boots(boots, jobs=1, progress=lambda _step: None))


def _points(program: Program, space: Space) -> Sequence[Settings]:
    """Return the points of the grid, shuffled: what carries over is no neighbour's."""
    axes = [
        range(0, program.periods_us[number - 2], program.scanned[number])
        if number in program.scanned
        else [program.fixed[number]]
        for number in range(2, len(space.levers) + 2)
    ]
    points = list(product(*axes))
    Random(program.name).shuffle(points)
    return points


def _scanned_levers(program: Program, space: Space) -> tuple[Lever, ...]:
    return tuple(
        replace(lever, step=program.scanned[thread])
        for lever in space.levers
        if (thread := thread_of(lever.name) or 0) in program.scanned
    )


def _reduced(
    program: Program, space: Space, trials: Sequence[Trial]
) -> Sequence[Trial]:
    """Return the trials with the values of the scanned levers alone."""
    axes = [
        axis
        for axis, lever in enumerate(space.levers)
        if thread_of(lever.name) in program.scanned
    ]
    return [
        replace(
            one,
            proposal=Proposal(tuple(one.settings[axis] for axis in axes), "grid"),
            phases_ns=(),
        )
        for one in trials
    ]


def _keep(path: Path, kept: object) -> None:
    half = path.with_suffix(".half")
    half.write_bytes(pickle.dumps(kept))
    half.rename(path)


# --- playing --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Landscape:
    """What the starts at all points showed."""

    space: Space
    trials: Mapping[Settings, Trial]
    found_ns: int

    @property
    def rare(self) -> int:
        """At how many points the worst case was met."""
        return sum(one.worst_ns >= self.found_ns for one in self.trials.values())


def landscape_of(program: Program, folder: Path) -> Landscape:
    """Return what was recorded."""
    levers: tuple[Lever, ...] = ()
    trials: dict[Settings, Trial] = {}
    for path in sorted(folder.glob("*.trials")):
        levers, some = pickle.loads(path.read_bytes())
        trials |= {one.settings: one for one in some}
    return Landscape(Space.of(levers), trials, program.found_us * NS_PER_US)


Next = Callable[[Sequence[Trial], int], Sequence[Proposal]]


def directed(space: Space, seed: int) -> Next:
    """Return the search of rtscope, from a first start that is drawn by the seed."""
    first = _drawn(space, Random(f"first {seed}"))

    def following(trials: Sequence[Trial], count: int) -> Sequence[Proposal]:
        if not trials:
            return [Proposal(first, "first")]
        return propose(space, trials, seed=seed, count=count)

    return following


def blind(space: Space, seed: int) -> Next:
    """Return a search that draws every value, and none twice."""
    drawn = Random(f"first {seed}")

    def following(trials: Sequence[Trial], count: int) -> Sequence[Proposal]:
        tried = {one.settings for one in trials}
        fresh: list[Proposal] = []
        while len(fresh) < min(count, space.count - len(tried)):
            one = _drawn(space, drawn)
            if one not in tried:
                tried.add(one)
                fresh.append(Proposal(one, "blind"))
        return fresh

    return following


def _drawn(space: Space, drawn: Random) -> Settings:
    return tuple(one.at_share(drawn.random()) for one in space.levers)


def trials_until_found(land: Landscape, proposed: Next, budget: int) -> int | None:
    """Return how many trials a search takes; None: more than the budget."""
    trials: list[Trial] = []
    while len(trials) < budget:
        round_of = proposed(trials, BOOTS * STARTS if trials else 1)
        if not round_of:
            return None
        for proposal in round_of:
            trials.append(replace(land.trials[proposal.settings], proposal=proposal))
            if trials[-1].worst_ns >= land.found_ns:
                return len(trials)
    return None


def play(program: Program, land: Landscape, *, seeds: int, budget: int) -> None:
    """Print how often, and in how many trials, both searches find the worst."""
    cells = [_played(land, search, seeds, budget) for search in (directed, blind)]
    tuned = " (tuned)" if program.tuned else ""
    print(
        f"| {program.name}{tuned} | {land.rare} of {len(land.trials)} "
        f"| {cells[0]} | {cells[1]} |"
    )


def _played(
    land: Landscape, search: Callable[[Space, int], Next], seeds: int, budget: int
) -> str:
    taken = [
        trials_until_found(land, search(land.space, seed), budget)
        for seed in range(1, seeds + 1)
    ]
    counts = sorted(budget if one is None else one for one in taken)
    found = sum(one is not None for one in taken)
    middle = (counts[(seeds - 1) // 2] + counts[seeds // 2]) / 2
    return f"{found} of {seeds}, {middle:g}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["record", "play"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=200)
    given = parser.parse_args()
    for program in _asked(given.programs):
        folder = given.folder / program.name
        if given.verb == "record":
            record(program, folder)
        elif any(folder.glob("*.trials")):
            land = landscape_of(program, folder)
            play(program, land, seeds=given.seeds, budget=given.budget)


def _asked(names: Sequence[str]) -> Iterator[Program]:
    for program in PROGRAMS:
        if not names or program.name in names:
            yield program


if __name__ == "__main__":
    main()
