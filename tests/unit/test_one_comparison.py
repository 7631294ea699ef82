"""A comparison is made once, in `stats/comparison`: its ideas occur nowhere else."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "src/rtscope/stats/comparison"
TREES = ("src/rtscope", "bench", "lab", "tools")

IDEAS = {
    "labels dealt anew": r"\.permut(ed|ation)\(|\bcombinations\((?!.*, 2\))",
    "signs flipped": r"\(-1(\.0)?, 1(\.0)?\)|\(1(\.0)?, -1(\.0)?\)|def _?p_of_signs",
    "p of a family": r"count / rank|rank / count|def _?discover\w*\((?!self\))",
    "p of one figure": r"\bjoint_test|\bexact_p\b|def _?(smallest_)?p_values?\b"
    r"|\b(ttest_\w+|mannwhitneyu|wilcoxon|ks_2samp|permutation_test)\b"
    r"|def share\(sizes",
    "spread of runs": r"\bstdev\(|\.std\(|- (\w+\.)?f?mean(\(\w*\))?\) \*\* 2",
    "power": r"\bstdtrit|\b(norm|t|nct)\.ppf\(|\bndtri\b"
    r"|def _?(detectable|needed_(runs|pairs)|least_runs)\w*\((?!self\))",
}
"""Where each idea shows in a line of Python."""


def places(idea: str) -> set[Path]:
    """The files with a line that looks like the idea."""
    files = [file for tree in TREES for file in (ROOT / tree).rglob("*.py")]
    return {file for file in files if re.search(IDEAS[idea], file.read_text("utf-8"))}


@pytest.mark.parametrize("idea", IDEAS)
def test_an_idea_of_comparisons_is_in_their_package_and_nowhere_else(idea: str) -> None:
    found = places(idea)

    assert any(HOME in file.parents for file in found)
    others = {str(file.relative_to(ROOT)) for file in found if HOME not in file.parents}
    assert others == set(), f"{idea}: take it from rtscope.stats.comparison"


@pytest.mark.parametrize(
    ("idea", "line"),
    [
        ("labels dealt anew", "rows = rng.permuted(rows, axis=1)"),
        ("labels dealt anew", "for chosen in combinations(pooled, size):"),
        ("signs flipped", "for signs in product((-1, 1), repeat=len(changes)):"),
        ("signs flipped", "sums = _sums(groups, signs=(-1.0, 1.0))"),
        ("signs flipped", "def p_of_signs(differences):"),
        ("p of a family", "if p_values[n] <= 0.05 * rank / count:"),
        ("p of a family", "def discoveries(p_values):"),
        ("p of one figure", "p = scipy.stats.mannwhitneyu(a, b).pvalue"),
        ("p of one figure", "def exact_p(ours, theirs):"),
        ("spread of runs", "squares = sum((x - fmean(some)) ** 2 for x in some)"),
        ("spread of runs", "spread = stdev(differences)"),
        ("spread of runs", "spread = values.std(ddof=1)"),
        ("power", "critical = t.ppf(0.975, degrees)"),
        ("power", "def _needed_runs(spread, ratio):"),
        ("power", "def detectable_ratio_of_blocks(spread):"),
    ],
)
def test_a_second_one_is_noticed(idea: str, line: str) -> None:
    assert re.search(IDEAS[idea], line)
