"""
The tests that each mutant has to pass, in the order in which they run.

Those that execute its lines, the fastest first, and at the end those that execute
anything of its file, for a fixture or a cache may stand between a test and a line.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mutants import comparison, drawing
from mutants.baseline import Baseline
from mutants.drawing import Mutant
from mutants.results import Result

FIRST = 25
"""Tests that run before the others are collected, of the files with most of them."""
MOST_S = 12
"""Of CPU time that the tests of one mutant take on unchanged code."""


@dataclass(frozen=True, slots=True)
class Job:
    """A mutant, and the tests to run, in groups one after the other."""

    mutant: Mutant
    original: str
    mutated: str
    groups: tuple[tuple[str, ...], ...]
    limit_s: int
    """Of CPU time."""
    capped: bool
    """Whether these are not all tests that execute it."""
    was: str = ""
    """Its name in the journal that this run is compared with."""

    @property
    def key(self) -> tuple[str, bool]:
        """That of its result."""
        return self.mutant.name, self.mutated == self.original

    @property
    def diff(self) -> str:
        """What is changed."""
        name = f"src/rtscope/{self.mutant.file}"
        before, after = self.original.splitlines(), self.mutated.splitlines()
        lines = difflib.unified_diff(before, after, name, name, lineterm="", n=1)
        return "\n".join(lines)


def importers(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return each file with those that import it: they may use its constants."""
    dotted = {
        file: "rtscope."
        + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for file in texts
    }
    return {
        file: [
            file,
            *(other for other, text in texts.items() if f"from {name} import" in text),
        ]
        for file, name in dotted.items()
    }


def job_of(
    mutant: Mutant,
    text: str,
    known: Baseline,
    users: dict[str, list[str]],
    *,
    before: Result | None = None,
) -> Job:
    """Decide which tests a mutant has to pass; first what killed it before."""
    lines = drawing.lines_to_run(text, mutant)
    narrow = known.covering(mutant.file, lines)
    wide = known.of_files([mutant.file] if lines else users[mutant.file])
    killers = comparison.killers(before.by, known.cpu_s) if before else []
    modules = Counter(test.partition("::")[0] for test in narrow or wide)
    near = {name for name, _ in modules.most_common(3)}
    ordered = known.fastest(narrow or wide)
    first = [test for test in ordered if test.partition("::")[0] in near][:FIRST]
    second = [test for test in ordered if test not in set(first)]
    third = known.fastest(wide - narrow) if narrow else []
    groups, capped = _capped((killers, first, second, third), known.cpu_s)
    expected_s = sum(known.cpu_s[test] for group in groups for test in group)
    return Job(
        mutant=mutant,
        original=text,
        mutated=drawing.mutated(text, mutant),
        groups=groups,
        limit_s=int(20 + 5 * expected_s),
        capped=capped,
        was=before.name if before else "",
    )


def _capped(
    groups: Sequence[Sequence[str]], cpu_s: dict[str, float]
) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """Return each test once, until they take MOST_S; and whether some are left out."""
    taken: list[tuple[str, ...]] = []
    seen: set[str] = set()
    used_s = 0.0
    for group in groups:
        kept: list[str] = []
        for test in group:
            if test in seen:
                continue
            if seen and used_s + cpu_s[test] > MOST_S:
                return (*taken, *([tuple(kept)] if kept else [])), True
            kept.append(test)
            seen.add(test)
            used_s += cpu_s[test]
        if kept:
            taken.append(tuple(kept))
    return tuple(taken), False
