"""
Compare groups of runs, for instance of two kernels: the unit is the run.

All figures of all loads are one family: if nothing differs, at most alpha of all
comparisons of two groups find any difference at all, under any load. Power, heat, clock
and memory are a second one, so that they take nothing from the search for latencies.

No test can tell a kernel from the afternoon it was measured in. So a difference is
shown only where the order of the runs was drawn at random, and the labels are permuted
as they were drawn. Other runs may differ because of their order, and the answer says
so.

A run of a virtual board is one trajectory: measured again it is the same, and counts
once. Two trajectories differ exactly or not at all, which needs no test; over seeds
they are a sample of trajectories, and the same tests hold with the trajectory as unit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from statistics import median

from rtscope.host.units import format_number
from rtscope.stats.comparison.design import (
    MIN_RUNS,
    Dealt,
    FigureOfRuns,
    Slot,
    least_runs,
)
from rtscope.stats.comparison.effect import Effect, effects_of_runs
from rtscope.stats.meters import METERS
from rtscope.stats.runsets import Group, RunSets

ALPHA = 0.05

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
class Pair:
    """One group against the baseline, under one load."""

    sets: RunSets
    group: Group
    needed: int
    """Runs of each group with which they could be told apart."""
    randomised: bool = False
    """Whether the order of the runs was drawn at random (always on virtual boards)."""
    figures: tuple[Effect, ...] = ()
    """Empty with too few runs."""
    meters: tuple[Effect, ...] = ()
    """Of power, heat, clock and memory: a family of their own."""
    tests: int = 0
    """The size of the family, over which the p-values are adjusted."""

    @property
    def groups(self) -> tuple[Group, Group]:
        """The baseline, which is the first group, and the candidate."""
        return self.sets.groups[0], self.group

    @property
    def baseline(self) -> str:
        """The label of the first group."""
        return self.groups[0].label

    @property
    def candidate(self) -> str:
        """The label of the other one."""
        return self.group.label

    @property
    def sizes(self) -> tuple[int, int]:
        """The runs of both."""
        return len(self.groups[0].runs), len(self.group.runs)

    @property
    def virtual(self) -> bool:
        """Whether both are of virtual boards."""
        return all(group.virtual for group in self.groups)

    @property
    def same(self) -> bool:
        """Whether both have the same results, by their digests."""
        digests = self.group.digests
        return self.virtual and bool(digests) and digests == self.groups[0].digests

    @property
    def max_ratios(self) -> tuple[float, float, float] | None:
        """
        How many times as high the candidate's maxima are; None without runs.

        The ratio of the medians, the least and the greatest of two runs.
        """
        if not all(self.sizes):
            return None
        # At least 1 ns: a clock in coarse steps can give a maximum of 0.
        theirs, ours = (
            [max(run.max_ns, 1) for run in group.runs] for group in self.groups
        )
        ratio = median(ours) / median(theirs)
        return ratio, min(ours) / max(theirs), max(ours) / min(theirs)

    @property
    def worse(self) -> tuple[str, ...]:
        """Figures in which the candidate's runs are higher."""
        return tuple(f.figure for f in self._tested if f.is_worse)

    @property
    def better(self) -> tuple[str, ...]:
        """Figures in which they are lower."""
        return tuple(f.figure for f in self._tested if f.is_better)

    @property
    def _tested(self) -> tuple[Effect, ...]:
        """Results that are the same or broken need no test."""
        return () if self.same or self.sets.broken else self.figures

    @property
    def word(self) -> Word:
        """The gravest that is true; only virtual results can be the same or broken."""
        if self.sets.broken:
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
        not_counted = (group.not_counted for group in self.groups)
        return "; ".join(filter(None, (_SAYS[self.word](self), *not_counted)))


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
    candidates = dict.fromkeys(g.label for sets in loads for g in sets.groups[1:])
    # Several candidates share alpha (Bonferroni); each has a family of its own.
    share = alpha / max(len(candidates), 1)
    needed = least_runs(share)
    tested: list[Pair] = []
    for label in candidates:
        pairs = [
            Pair(sets, group, needed)
            for sets in loads
            for group in sets.groups[1:]
            if group.label == label
        ]
        tested += _tested(pairs, alpha=share, seed=seed)
    return tuple(
        Comparison(sets.load, sets.groups, tuple(p for p in tested if p.sets is sets))
        for sets in loads
    )


def _tested(pairs: Sequence[Pair], *, alpha: float, seed: int) -> Iterator[Pair]:
    """Test all figures of one candidate together."""
    randomised = _is_randomised(pairs)
    enough = [pair for pair in pairs if min(pair.sizes) >= MIN_RUNS]
    effects: list[Iterator[Effect]] = []
    tests = []
    for names in (_latencies, _meters):  # a family each
        design, figures = _designed(enough, randomised=randomised, names=names)
        tests.append(len(figures))
        found: Sequence[Effect] = ()
        if figures and design.smallest_p <= alpha:
            found = effects_of_runs(design, figures, alpha=alpha, seed=seed)
        effects.append(iter(found))
    for pair in pairs:
        is_tested = pair in enough
        yield replace(
            pair,
            randomised=randomised,
            figures=tuple(islice(effects[0], len(_latencies(pair)) * is_tested)),
            meters=tuple(islice(effects[1], len(_meters(pair)) * is_tested)),
            tests=tests[0],
        )


def _latencies(pair: Pair) -> Sequence[str]:
    return pair.sets.figures


def _meters(pair: Pair) -> Sequence[str]:
    """Return the meters that every run of both groups has."""
    runs = [run for group in pair.groups for run in group.runs]
    return [key for key in METERS if all(key in run.meters for run in runs)]


Names = Callable[[Pair], Sequence[str]]
"""Returns the figures of a pair that are tested."""


def _designed(
    pairs: Sequence[Pair], *, randomised: bool, names: Names
) -> tuple[Dealt, list[FigureOfRuns]]:
    """Return the places of all runs of one candidate, and the figures so named."""
    places: dict[object, int] = {}
    slots: list[Slot] = []
    figures: list[FigureOfRuns] = []
    for pair in pairs:
        runs = []
        for group in pair.groups:
            for number, run in enumerate(sorted(group.runs, key=lambda r: r.started)):
                drawn = run.drawn if randomised else None
                ours = group is pair.group
                key = ours, drawn.slot if drawn else number
                if key not in places:
                    places[key] = len(slots)
                    slots.append(Slot(drawn.block if drawn else "all", ours))
                runs.append((places[key], run))
        for name in names(pair):
            values = tuple(run.value(name) for _, run in runs)
            figures.append(
                FigureOfRuns(
                    *(tuple(place for place, _ in runs), values, name),
                    more_is_better=name in METERS and METERS[name].less_is_worse,
                )
            )
    return Dealt(tuple(slots)), figures


def _is_randomised(pairs: Sequence[Pair]) -> bool:
    """
    Whether every run has a place that was drawn, and the labels are what was drawn.

    They are not if one variant of a plan has both labels. Nothing drifts in virtual
    time: its runs are a sample of trajectories in any order.
    """
    if all(pair.virtual for pair in pairs):
        return True
    ours = [run.drawn for pair in pairs for run in pair.group.runs]
    theirs = [run.drawn for pair in pairs for run in pair.groups[0].runs]
    places = [
        {(d.block, d.variant) for d in drawn if d is not None}
        for drawn in (ours, theirs)
    ]
    return None not in (*ours, *theirs) and not places[0] & places[1]


def _different(o: Pair) -> str:
    named = {*o.worse, *o.better}
    p = max(f.adjusted_p for f in o.figures if f.figure in named)
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
        for ratio, runs in ((ratio, maximum.needed_runs(ratio)) for ratio in RATIOS)
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
