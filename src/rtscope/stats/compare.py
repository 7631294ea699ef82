"""
Compare groups of runs, for instance of two kernels: the unit is the run.

All figures of all loads are one family: if nothing differs, at most alpha of all
comparisons of two groups find any difference at all, under any load.

No test can tell a kernel from the afternoon it was measured in. So a difference is
shown only where the order of the runs was drawn at random, and the labels are permuted
as they were drawn. Other runs may differ because of their order, and the answer says
so.

A run of a virtual board is one trajectory: measured again it is the same, and counts
once. Two trajectories differ exactly or not at all, which needs no test; over seeds
they are a sample of trajectories, and the same tests hold with the trajectory as unit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from rtscope.host.units import format_number
from rtscope.stats.permutation import (
    Design,
    Figure,
    FigureTest,
    Slot,
    aligned,
    joint_test,
)
from rtscope.stats.power import detectable_ratio, needed_runs
from rtscope.stats.runsets import Group, RunFigures, RunSets

ALPHA = 0.05

MIN_RUNS = 4
"""4 v 4 is the smallest design with a two-sided p below 5 % (2/70)."""

RATIOS = (1.1, 1.3)
"""Ratios of maxima for which an answer without evidence names the needed runs."""


class Word(StrEnum):
    """The outcome of a comparison."""

    DIFFERENT = "DIFFERENT"
    ORDER_NOT_RANDOMISED = "DIFFERS, ORDER NOT RANDOMISED"
    """The runs differ, and what changed over time may be the reason."""
    NO_EVIDENCE = "NO EVIDENCE"
    TOO_FEW_RUNS = "TOO FEW RUNS"
    TOO_FEW_SEEDS = "TOO FEW SEEDS"
    """Virtual boards: there is an exact difference, and no sample of trajectories."""
    IDENTICAL = "IDENTICAL"
    """Virtual boards: the same results, to the last count."""
    NOT_DETERMINISTIC = "DETERMINISM FAILURE"
    """Virtual boards: equal inputs gave different results."""


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of two groups: its test, and what the test could have found."""

    figure: str
    test: FigureTest
    spread: float
    """Standard deviation of its logarithm from run to run."""
    critical: float
    """What a statistic has to exceed."""
    runs: tuple[int, int]
    alpha: float
    """This figure's part of the family's."""
    least_runs: int
    """With fewer runs of each group nothing can be found."""

    @property
    def detectable_ratio(self) -> float | None:
        """The ratio found with 80 % by so many runs; None without a finite one."""
        return detectable_ratio(self.spread, critical=self.critical, runs=self.runs)

    @property
    def needed_runs(self) -> Mapping[float, int | None]:
        """By ratio, the runs of each group that find it with 80 %; None if too many."""
        return {
            ratio: needed_runs(
                self.spread, ratio=ratio, alpha=self.alpha, least=self.least_runs
            )
            for ratio in RATIOS
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """One group against the baseline."""

    baseline: str
    candidate: str
    sizes: tuple[int, int]
    not_counted: str
    """How many runs of which group do not count, and why; empty if all do."""
    virtual: bool
    same: bool
    """Whether both have the same results, by their digests."""
    broken: bool
    """Whether equal inputs had different results."""
    randomised: bool
    """Whether the order of the runs was drawn at random (always on virtual boards)."""
    figures: tuple[ComparedFigure, ...]
    """Empty with too few runs."""
    worse: tuple[str, ...]
    """Figures in which the candidate's runs are higher."""
    better: tuple[str, ...]
    tests: int
    """The size of the family, over which the p-values are adjusted."""
    needed: int
    """Runs of each group with which they could be told apart."""
    smallest_p: float
    """The smallest p that this design can give."""
    exact: bool
    """False if the labellings were too many and were drawn at random (seeded)."""
    max_ratio: float | None
    """Median of the candidate's maxima over the median of the baseline's."""
    max_ratio_range: tuple[float, float] | None
    """The least and the greatest ratio of two runs' maxima."""

    @property
    def word(self) -> Word:
        """The gravest that is true; only virtual results can be the same or broken."""
        if self.broken:
            return Word.NOT_DETERMINISTIC
        if self.same:
            return Word.IDENTICAL
        if not self.figures:
            return Word.TOO_FEW_SEEDS if self.virtual else Word.TOO_FEW_RUNS
        if not self.worse and not self.better:
            return Word.NO_EVIDENCE
        return Word.DIFFERENT if self.randomised else Word.ORDER_NOT_RANDOMISED

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, without a full stop."""
        said = _SAYS[self.word](self)
        return f"{said}; {self.not_counted}" if self.not_counted else said


@dataclass(frozen=True, slots=True)
class Comparison:
    """Groups of runs under one load; the first is the baseline of each pair."""

    load: str
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]


def compare_loads(
    loads: Sequence[RunSets], *, alpha: float = ALPHA, seed: int = 0
) -> tuple[Comparison, ...]:
    """Compare the groups of each load with the first; all loads are one family."""
    pairs: list[list[Pair]] = [[] for _ in loads]
    candidates = dict.fromkeys(g.label for sets in loads for g in sets.groups[1:])
    # Several candidates share alpha (Bonferroni); each has a family of its own.
    share = alpha / max(len(candidates), 1)
    needed = _least_runs(share)
    for label in candidates:
        sides = [
            _Side(at, sets, sets.groups[0], group)
            for at, sets in enumerate(loads)
            for group in sets.groups[1:]
            if group.label == label
        ]
        family = _test_family(sides, alpha=share, seed=seed)
        for side in sides:
            pairs[side.at].append(_pair(side, family, alpha=share, needed=needed))
    return tuple(
        Comparison(sets.load, sets.groups, tuple(of_load))
        for sets, of_load in zip(loads, pairs, strict=True)
    )


def _least_runs(alpha: float) -> int:
    """Return the runs of each group from which some p can be at most alpha."""
    runs = MIN_RUNS
    while 2 / math.comb(2 * runs, runs) > alpha:
        runs += 1
    return runs


@dataclass(frozen=True, slots=True)
class _Side:
    """A candidate and the baseline under one load."""

    at: int
    """Which load."""
    sets: RunSets
    baseline: Group
    candidate: Group

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.baseline.runs), len(self.candidate.runs)


@dataclass(frozen=True, slots=True)
class _Family:
    """All figures of one candidate, tested together."""

    design: Design
    randomised: bool
    tests: int
    figures: Mapping[int, tuple[ComparedFigure, ...]]
    """By load; empty where there are too few runs."""


def _test_family(sides: Sequence[_Side], *, alpha: float, seed: int) -> _Family:
    randomised = _is_randomised(sides)
    places: dict[object, int] = {}
    slots: list[Slot] = []
    tested: list[tuple[_Side, str, Figure]] = []
    for side in sides:
        if min(side.sizes) < MIN_RUNS:
            continue
        runs = []
        for group in (side.baseline, side.candidate):
            for number, run in enumerate(sorted(group.runs, key=lambda r: r.started)):
                drawn = run.drawn if randomised else None
                ours = group is side.candidate
                key = ours, drawn.slot if drawn else number
                if key not in places:
                    places[key] = len(slots)
                    slots.append(Slot(drawn.block if drawn else "all", ours))
                runs.append((places[key], run))
        for name in side.sets.figures:
            values = tuple(run.value(name) for _, run in runs)
            figure = Figure(tuple(place for place, _ in runs), values)
            tested.append((side, name, figure))
    design = Design(tuple(slots))
    by_load: dict[int, list[ComparedFigure]] = {}
    if tested and design.smallest_p <= alpha:
        tests, critical = joint_test(
            design, [figure for *_, figure in tested], alpha=alpha, seed=seed
        )
        for (side, name, figure), test in zip(tested, tests, strict=True):
            by_load.setdefault(side.at, []).append(
                ComparedFigure(
                    figure=name,
                    test=test,
                    spread=_spread(design, figure),
                    critical=critical,
                    runs=side.sizes,
                    alpha=alpha / len(tested),
                    least_runs=_least_runs(alpha),
                )
            )
    return _Family(
        design=design,
        randomised=randomised,
        tests=len(tested),
        figures={at: tuple(figures) for at, figures in by_load.items()},
    )


def _is_randomised(sides: Sequence[_Side]) -> bool:
    """
    Whether every run has a place that was drawn, and the labels are what was drawn.

    They are not if one variant of a plan has both labels. Nothing drifts in virtual
    time: its runs are a sample of trajectories in any order.
    """
    if all(side.baseline.virtual and side.candidate.virtual for side in sides):
        return True
    ours = [run.drawn for side in sides for run in side.candidate.runs]
    theirs = [run.drawn for side in sides for run in side.baseline.runs]
    places = [
        {(d.block, d.variant) for d in drawn if d is not None}
        for drawn in (ours, theirs)
    ]
    return None not in (*ours, *theirs) and not places[0] & places[1]


def _spread(design: Design, figure: Figure) -> float:
    """Return the standard deviation from run to run, within a label and a block."""
    values = aligned(design, figure)
    labels = np.array([design.slots[at].candidate for at in figure.slots])
    for label in (False, True):
        values[labels == label] -= values[labels == label].mean()
    blocks = len({design.slots[at].block for at in figure.slots})
    degrees = max(len(values) - 1 - blocks, 1)
    return math.sqrt(float((values**2).sum()) / degrees)


def _pair(side: _Side, family: _Family, *, alpha: float, needed: int) -> Pair:
    baseline, candidate = side.baseline, side.candidate
    figures = family.figures.get(side.at, ())
    virtual = baseline.virtual and candidate.virtual
    same = virtual and bool(baseline.runs) and baseline.digests == candidate.digests
    valid = () if same or side.sets.broken else figures
    significant = [f for f in valid if f.test.adjusted_p <= alpha]
    ratio, ratio_range = _max_ratios(baseline.runs, candidate.runs)
    return Pair(
        baseline=baseline.label,
        candidate=candidate.label,
        sizes=side.sizes,
        not_counted="; ".join(
            filter(None, (baseline.not_counted, candidate.not_counted))
        ),
        virtual=virtual,
        same=same,
        broken=side.sets.broken,
        randomised=family.randomised,
        figures=figures,
        worse=tuple(f.figure for f in significant if f.test.statistic > 0),
        better=tuple(f.figure for f in significant if f.test.statistic < 0),
        tests=family.tests,
        needed=needed,
        smallest_p=family.design.smallest_p,
        exact=family.design.is_exact,
        max_ratio=ratio,
        max_ratio_range=ratio_range,
    )


def _max_ratios(
    baseline: Sequence[RunFigures], candidate: Sequence[RunFigures]
) -> tuple[float | None, tuple[float, float] | None]:
    if not baseline or not candidate:
        return None, None
    # At least 1 ns: a clock in coarse steps can give a maximum of 0.
    ours = [max(run.max_ns, 1) for run in candidate]
    theirs = [max(run.max_ns, 1) for run in baseline]
    ratio = median(ours) / median(theirs)
    return ratio, (min(ours) / max(theirs), max(ours) / min(theirs))


def _different(o: Pair) -> str:
    named = {*o.worse, *o.better}
    p = max(f.test.adjusted_p for f in o.figures if f.figure in named)
    return (
        f"{o.candidate} is {_directions(o.worse, o.better)} than {o.baseline} "
        f"({_size(o)} {_unit(o)}, p = {format_number(p, 2)} after correction for "
        f"{o.tests} tests)"
    )


def _order_not_randomised(o: Pair) -> str:
    return (
        f"the runs of {o.candidate} are {_directions(o.worse, o.better)} than those of "
        f"{o.baseline}, but their order was not drawn at random: whatever else changed "
        "over time may be the reason; to compare in one campaign, give each its own "
        "[[run]] with a variant"
    )


def _no_evidence(o: Pair) -> str:
    said = f"no evidence that {o.candidate} differs from {o.baseline}"
    [maximum] = [f for f in o.figures if f.figure == "max"]
    if maximum.detectable_ratio is None:
        return f"{said}; {_size(o)} {_unit(o)} vary too much to find any difference"
    needs = ", ".join(
        f"{ratio:g} times {'over 10,000' if runs is None else f'{runs} v {runs}'}"
        for ratio, runs in maximum.needed_runs.items()
    )
    return (
        f"{said}; {_size(o)} {_unit(o)} find a maximum "
        f"{format_number(maximum.detectable_ratio, 3)} times as high with 80 % "
        f"probability (needed {_unit(o)} for {needs})"
    )


def _too_few_runs(o: Pair) -> str:
    return (
        f"too few runs to tell {o.candidate} from {o.baseline}: {_size(o)}, needed "
        f"{o.needed} v {o.needed}"
    )


def _too_few_seeds(o: Pair) -> str:
    one = "one trajectory each" if o.sizes == (1, 1) else f"{_size(o)} trajectories"
    return (
        f"{one}, exact for these inputs; to tell {o.candidate} from {o.baseline} over "
        f"all seeds takes {o.needed} v {o.needed}"
    )


def _identical(o: Pair) -> str:
    return (
        f"{o.candidate} and {o.baseline} have the same results to the last count "
        "(equal digests)"
    )


def _not_deterministic(_: Pair) -> str:
    return (
        "runs of a virtual board with equal inputs have different results; nothing "
        "can be told from them"
    )


_SAYS = {
    Word.DIFFERENT: _different,
    Word.ORDER_NOT_RANDOMISED: _order_not_randomised,
    Word.NO_EVIDENCE: _no_evidence,
    Word.TOO_FEW_RUNS: _too_few_runs,
    Word.TOO_FEW_SEEDS: _too_few_seeds,
    Word.IDENTICAL: _identical,
    Word.NOT_DETERMINISTIC: _not_deterministic,
}


def _size(o: Pair) -> str:
    return f"{o.sizes[0]} v {o.sizes[1]}"


def _unit(o: Pair) -> str:
    return "trajectories" if o.virtual else "runs"


def _directions(worse: Sequence[str], better: Sequence[str]) -> str:
    parts = []
    if worse:
        parts.append(f"worse in {' and '.join(worse)}")
    if better:
        parts.append(f"better in {' and '.join(better)}")
    return ", ".join(parts)
