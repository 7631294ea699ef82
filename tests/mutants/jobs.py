"""The tests that each mutant has to pass, in the order in which they run."""

import difflib
from collections import Counter
from dataclasses import dataclass

from mutants import drawing
from mutants.baseline import Baseline
from mutants.drawing import Mutant

FIRST = 25
"""Tests that run before the others are collected, of the files with most of them."""


@dataclass(frozen=True, slots=True)
class Job:
    """A mutant, and the tests to run, in groups one after the other."""

    mutant: Mutant
    original: str
    mutated: str
    groups: tuple[tuple[str, ...], ...]
    limit_s: int
    """Of CPU time."""

    @property
    def key(self) -> tuple[str, int, bool]:
        """That of its result."""
        return self.mutant.file, self.mutant.number, self.mutated == self.original

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
    mutant: Mutant, text: str, known: Baseline, users: dict[str, list[str]]
) -> Job:
    """Decide which tests a mutant has to pass."""
    lines = drawing.lines_to_run(text, mutant)
    narrow = known.covering(mutant.file, lines)
    wide = known.of_files([mutant.file] if lines else users[mutant.file])
    modules = Counter(test.partition("::")[0] for test in narrow or wide)
    near = {name for name, _ in modules.most_common(3)}
    ordered = known.fastest(narrow or wide)
    first = [test for test in ordered if test.partition("::")[0] in near][:FIRST]
    second = [test for test in ordered if test not in set(first)]
    third = known.fastest(wide - narrow) if narrow else []
    groups = tuple(tuple(group) for group in (first, second, third) if group)
    expected_s = sum(known.cpu_s[test] for group in groups for test in group)
    return Job(
        mutant=mutant,
        original=text,
        mutated=drawing.mutated(text, mutant.number),
        groups=groups,
        limit_s=int(20 + 5 * expected_s),
    )
