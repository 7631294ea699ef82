"""The outcomes of a comparison of two groups of runs, and the sentence of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


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
