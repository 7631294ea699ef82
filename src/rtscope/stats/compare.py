"""
Compare groups of runs, for instance of two kernels: the unit is the run.

Samples within a run depend on each other: a test on samples finds a difference between
a machine and itself (Kolmogorov-Smirnov: 97 % of pairs of runs). So each run gives
three numbers, and their labels are permuted:

    mean     the average latency, missed periods included
    misses   log(1 + misses of the deadline); only if a deadline is given
    max      log of the maximum

Each direction, worse and better, is a question of its own: its tests are one-sided and
share `alpha` by Holm's method. If nothing differs, at most alpha of all comparisons
answer `worse`, and at most alpha `better`. Runs to compare should alternate (A B A B):
no test can tell a kernel from the afternoon it was measured in.

A run of a virtual board is one trajectory: measured again it is the same, and counts
once. Two trajectories differ exactly or not at all, which needs no test; over seeds
they are a sample of trajectories, and the same tests hold with the trajectory as unit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from rtscope.caveats.catalogue import Caveat, Effect, kind_of
from rtscope.errors import UsageError
from rtscope.record.model import RunRecord
from rtscope.stats.determinism import caveats_among, contradictions, distinct
from rtscope.stats.episodes import misses_of
from rtscope.stats.lint import clock_coarse
from rtscope.stats.permutation import holm, is_exact, labellings, one_sided, smallest_p
from rtscope.stats.summary import observed_ns, summarize
from rtscope.stats.tracing import was_traced
from rtscope.units import format_duration

ALPHA = 0.05

MIN_RUNS = 4
"""4 v 4 is the smallest design in which Holm over three tests can reach 5 % (3/70)."""

MAX_LENGTH_RATIO = 1.1
"""The maximum and the misses grow with the length of a run."""


class Word(StrEnum):
    """The outcome of a comparison."""

    DIFFERENT = "DIFFERENT"
    NO_EVIDENCE = "NO EVIDENCE"
    TOO_FEW_RUNS = "TOO FEW RUNS"
    TOO_FEW_SEEDS = "TOO FEW SEEDS"
    """Virtual boards: there is an exact difference, and no sample of trajectories."""
    IDENTICAL = "IDENTICAL"
    """Virtual boards: the same results, to the last count."""
    NOT_DETERMINISTIC = "DETERMINISM FAILURE"
    """Virtual boards: equal inputs gave different results."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one run contributes to a comparison."""

    id: str
    started: str
    mean_ns: float
    max_ns: int
    misses: int | None
    digest: str


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one label; `left_out` had no valid measurement."""

    label: str
    runs: tuple[RunFigures, ...]
    left_out: tuple[str, ...]
    repeats: int
    """Exact repetitions of a virtual run: in no figure and no test."""
    virtual: bool


@dataclass(frozen=True, slots=True)
class FeatureTest:
    """One feature, tested in both directions; p-values as they are and after Holm."""

    feature: str
    p_worse: float
    p_better: float
    holm_worse: float
    holm_better: float


@dataclass(frozen=True, slots=True)
class Pair:
    """One group against the baseline."""

    baseline: str
    candidate: str
    word: Word
    worse: tuple[str, ...]
    """Features in which the candidate is shown to be worse."""
    better: tuple[str, ...]
    tests: tuple[FeatureTest, ...]
    """Empty with too few runs."""
    smallest_p: float
    """The smallest p that so many runs can give, after Holm."""
    exact: bool
    """False if the labellings were too many and were drawn at random (seeded)."""
    in_turns: bool
    """False if all runs of one group came before all of the other."""
    mean_shift_ns: float | None
    """Hodges-Lehmann: the median of all differences of two runs' averages."""
    max_ratio: float | None
    """Median of the candidate's maxima over the median of the baseline's."""
    max_ratio_range: tuple[float, float] | None
    """The least and the greatest ratio of two runs' maxima."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Groups of runs under one load; the first is the baseline of each pair."""

    load: str
    deadline_ns: int | None
    alpha: float
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]
    needed_runs: int
    """Runs of each group with which every pair could be told apart."""


def compare(
    groups: Mapping[str, Sequence[RunRecord]],
    *,
    deadline_ns: int | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
) -> Comparison:
    """
    Compare the second and further groups with the first.

    Runs without a valid measurement are left out, by name. Raises UsageError for fewer
    than two groups, and for runs that differ in load, interval or length.
    """
    load = _require_comparable(groups)
    sets = tuple(
        _group(label, runs, deadline_ns=deadline_ns) for label, runs in groups.items()
    )
    features = ("mean", "max") if deadline_ns is None else ("mean", "misses", "max")
    tests = len(features) * (len(sets) - 1)
    needed = _needed_runs(tests, alpha)
    enough = all(
        min(len(sets[0].runs), len(other.runs)) >= MIN_RUNS
        and tests / labellings(len(sets[0].runs), len(other.runs)) <= alpha
        for other in sets[1:]
    )
    tested = [
        _tests(sets[0], other, features=features, seed=seed) if enough else ()
        for other in sets[1:]
    ]
    broken = bool(contradictions([r for runs in groups.values() for r in runs]))
    return Comparison(
        load=load,
        deadline_ns=deadline_ns,
        alpha=alpha,
        groups=sets,
        pairs=tuple(
            _pair(
                sets[0],
                other,
                outcome,
                tests=tests,
                alpha=alpha,
                needed=needed,
                broken=broken,
            )
            for other, outcome in zip(sets[1:], _adjusted(tested), strict=True)
        ),
        needed_runs=needed,
    )


def _require_comparable(groups: Mapping[str, Sequence[RunRecord]]) -> str:
    records = [record for runs in groups.values() for record in runs]
    if len(groups) < 2 or not all(groups.values()):
        raise UsageError("nothing to compare: name two sets of runs or more")
    loads = sorted({r.run.load for r in records})
    if len(loads) > 1:
        raise UsageError(f"runs under different loads ({', '.join(loads)}): one a time")
    if len({r.virtual is None for r in records}) > 1:
        raise UsageError(
            "a virtual board's time and a machine's do not compare: one counts "
            "instructions, the other microseconds"
        )
    if len({was_traced(r) for r in records}) > 1:
        raise UsageError(
            "a traced run and one that was not do not compare: tracing makes every "
            "wake-up later; measure both with --explain, or both without"
        )
    intervals = sorted({r.run.interval_ns for r in records})
    if len(intervals) > 1:
        shown = ", ".join(format_duration(ns) for ns in intervals)
        raise UsageError(f"runs with different intervals ({shown}) do not compare")
    lengths = sorted(observed_ns(r.result.threads) for r in records)
    if lengths[-1] > MAX_LENGTH_RATIO * lengths[0]:
        raise UsageError(
            f"runs of {format_duration(lengths[0])} to {format_duration(lengths[-1])} "
            "do not compare: a longer run has a larger maximum; measure equally long"
        )
    return loads[0]


def _group(
    label: str, records: Sequence[RunRecord], *, deadline_ns: int | None
) -> Group:
    valid, left_out = [], []
    for record, raised in zip(records, caveats_among(records), strict=True):
        if _valid(record, raised, deadline_ns):
            valid.append(record)
        else:
            left_out.append(record.run.id)
    counted = distinct(valid)
    return Group(
        label=label,
        runs=tuple(_figures(r, deadline_ns) for r in counted),
        left_out=tuple(left_out),
        repeats=len(valid) - len(counted),
        virtual=all(r.virtual for r in records),
    )


def _valid(
    record: RunRecord, raised: Sequence[Caveat], deadline_ns: int | None
) -> bool:
    coarse = () if deadline_ns is None else clock_coarse(record, deadline_ns)
    caveats = (*raised, *coarse)
    return record.max_ns is not None and all(
        kind_of(c).effect is not Effect.INVALID for c in caveats
    )


def _figures(record: RunRecord, deadline_ns: int | None) -> RunFigures:
    summary = summarize(record.result.threads, percentiles=())
    missed = None if deadline_ns is None else misses_of(record, deadline_ns).total
    return RunFigures(
        id=record.run.id,
        started=record.started_at,
        mean_ns=summary.mean_with_missed_periods_ns,
        max_ns=summary.max_ns,
        misses=missed,
        digest=record.result_digest,
    )


def _feature(run: RunFigures, feature: str) -> float:
    if feature == "mean":
        return run.mean_ns
    if feature == "misses":
        return math.log1p(run.misses or 0)
    return math.log(max(run.max_ns, 1))


def _tests(
    baseline: Group, candidate: Group, *, features: Sequence[str], seed: int
) -> tuple[tuple[str, float, float], ...]:
    """Return, by feature, the p-values of worse and of better."""
    return tuple(
        (
            feature,
            *one_sided(
                [_feature(run, feature) for run in baseline.runs],
                [_feature(run, feature) for run in candidate.runs],
                seed=seed,
            ),
        )
        for feature in features
    )


def _adjusted(
    tested: Sequence[Sequence[tuple[str, float, float]]],
) -> list[tuple[FeatureTest, ...]]:
    """Adjust the tests of all pairs together, each direction by itself."""
    flat = [test for tests in tested for test in tests]
    worse, better = holm([p for _, p, _ in flat]), holm([p for _, _, p in flat])
    adjusted = iter(
        FeatureTest(*test, w, b) for test, w, b in zip(flat, worse, better, strict=True)
    )
    return [tuple(next(adjusted) for _ in tests) for tests in tested]


def _needed_runs(tests: int, alpha: float) -> int:
    runs = MIN_RUNS
    while tests / labellings(runs, runs) > alpha:
        runs += 1
    return runs


def _pair(
    baseline: Group,
    candidate: Group,
    outcome: tuple[FeatureTest, ...],
    *,
    tests: int,
    alpha: float,
    needed: int,
    broken: bool,
) -> Pair:
    sizes = len(baseline.runs), len(candidate.runs)
    virtual = baseline.virtual and candidate.virtual
    found = Outcome(
        baseline=baseline.label,
        candidate=candidate.label,
        sizes=sizes,
        virtual=virtual,
        same=bool(baseline.runs) and _digests(baseline) == _digests(candidate),
        broken=broken,
        tested=bool(outcome),
        worse=tuple(t.feature for t in outcome if t.holm_worse <= alpha),
        better=tuple(t.feature for t in outcome if t.holm_better <= alpha),
        alpha=alpha,
        least_p=min(tests * smallest_p(*sizes), 1.0),
        needed=needed,
    )
    different = found.word is Word.DIFFERENT
    shift_ns, ratio, ratio_range = _effects(baseline.runs, candidate.runs)
    return Pair(
        baseline=baseline.label,
        candidate=candidate.label,
        word=found.word,
        worse=found.worse if different else (),
        better=found.better if different else (),
        tests=outcome,
        smallest_p=found.least_p,
        exact=is_exact(*sizes),
        # Nothing drifts in virtual time.
        in_turns=virtual or _in_turns(baseline.runs, candidate.runs),
        mean_shift_ns=shift_ns,
        max_ratio=ratio,
        max_ratio_range=ratio_range,
        sentence=found.sentence,
    )


def _digests(group: Group) -> frozenset[str]:
    return frozenset(run.digest for run in group.runs)


def _effects(
    baseline: Sequence[RunFigures], candidate: Sequence[RunFigures]
) -> tuple[float | None, float | None, tuple[float, float] | None]:
    if not baseline or not candidate:
        return None, None, None
    shift_ns = median(c.mean_ns - b.mean_ns for b in baseline for c in candidate)
    # At least 1 ns: a clock in coarse steps can give a maximum of 0.
    ours = [max(run.max_ns, 1) for run in candidate]
    theirs = [max(run.max_ns, 1) for run in baseline]
    ratio = median(ours) / median(theirs)
    return shift_ns, ratio, (min(ours) / max(theirs), max(ours) / min(theirs))


def _in_turns(baseline: Sequence[RunFigures], candidate: Sequence[RunFigures]) -> bool:
    if not baseline or not candidate:
        return False
    ours = [run.started for run in candidate]
    theirs = [run.started for run in baseline]
    return max(theirs) >= min(ours) and max(ours) >= min(theirs)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a pair when its sentence is written."""

    baseline: str
    candidate: str
    sizes: tuple[int, int]
    virtual: bool
    same: bool
    """Whether both have the same results, by their digests."""
    broken: bool
    """Whether equal inputs had different results."""
    tested: bool
    worse: tuple[str, ...]
    better: tuple[str, ...]
    alpha: float
    least_p: float
    needed: int

    @property
    def word(self) -> Word:
        """The gravest that is true; only virtual results can be the same or broken."""
        if self.broken:
            return Word.NOT_DETERMINISTIC
        if self.virtual and self.same:
            return Word.IDENTICAL
        if not self.tested:
            return Word.TOO_FEW_SEEDS if self.virtual else Word.TOO_FEW_RUNS
        return Word.DIFFERENT if self.worse or self.better else Word.NO_EVIDENCE

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, without a full stop."""
        return _SAYS[self.word](self)


def _different(o: Outcome) -> str:
    return (
        f"{o.candidate} is {_directions(o.worse, o.better)} than {o.baseline} "
        f"({o.alpha:.0%} for each direction, {_size(o)} {_unit(o)})"
    )


def _no_evidence(o: Outcome) -> str:
    return (
        f"no evidence that {o.candidate} differs from {o.baseline}; {_size(o)} "
        f"{_unit(o)} can give p = {o.least_p:.2g} at best"
    )


def _too_few_runs(o: Outcome) -> str:
    return (
        f"too few runs to tell {o.candidate} from {o.baseline}: {_size(o)}, needed "
        f"{o.needed} v {o.needed}"
    )


def _too_few_seeds(o: Outcome) -> str:
    one = "one trajectory each" if o.sizes == (1, 1) else f"{_size(o)} trajectories"
    return (
        f"{one}, exact for these inputs; to tell {o.candidate} from {o.baseline} over "
        f"all seeds takes {o.needed} v {o.needed}"
    )


def _identical(o: Outcome) -> str:
    return (
        f"{o.candidate} and {o.baseline} have the same results to the last count "
        "(equal digests)"
    )


def _not_deterministic(_: Outcome) -> str:
    return (
        "runs of a virtual board with equal inputs have different results; nothing "
        "can be told from them"
    )


_SAYS = {
    Word.DIFFERENT: _different,
    Word.NO_EVIDENCE: _no_evidence,
    Word.TOO_FEW_RUNS: _too_few_runs,
    Word.TOO_FEW_SEEDS: _too_few_seeds,
    Word.IDENTICAL: _identical,
    Word.NOT_DETERMINISTIC: _not_deterministic,
}


def _size(o: Outcome) -> str:
    return f"{o.sizes[0]} v {o.sizes[1]}"


def _unit(o: Outcome) -> str:
    return "trajectories" if o.virtual else "runs"


def _directions(worse: Sequence[str], better: Sequence[str]) -> str:
    parts = []
    if worse:
        parts.append(f"worse in {' and '.join(worse)}")
    if better:
        parts.append(f"better in {' and '.join(better)}")
    return ", ".join(parts)
