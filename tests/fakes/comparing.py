"""A comparison of groups of runs under one load: a family of one member."""

from collections.abc import Mapping, Sequence

from rtscope.record.model import RunRecord
from rtscope.stats.compare import ALPHA, Comparison, compare_loads
from rtscope.stats.runsets import run_sets


def compare(
    groups: Mapping[str, Sequence[RunRecord]],
    *,
    deadline_ns: int | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
) -> Comparison:
    """Compare the second and further groups with the first."""
    sets = run_sets(groups, deadline_ns=deadline_ns)
    [comparison] = compare_loads([sets], alpha=alpha, seed=seed)
    return comparison
