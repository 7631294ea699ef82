"""
Which mutants there are, and which of them are taken.

The operators are mutmut's, all of them. mutmut itself leaves out decorated functions
and the constants of modules, because its mutants are copies of functions within one
file; in this tree properties and constants decide verdicts and causes. Here a mutant is
a file of its own, and both are in.
"""

import ast
import functools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

# area: (globs below src/rtscope that are in it, globs that are not); the first one
# that a file is in counts
AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "verdicts": (("stats/verdict*.py", "stats/evidence*.py", "caveats/*.py"), ()),
    "statistics": (("stats/**/*.py",), ()),
    "contract": (("contract/**/*.py",), ()),
    "causes": (("explain/**/*.py",), ("**/*perfetto*", "**/*bound*", "**/*sections*")),
    "audit": (("audit/**/*.py",), ()),
}
_DEFINED_BY_NAME = ("__all__",)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    area: str
    file: str
    """Below src/rtscope."""
    number: int
    """Of those of the file, in order."""
    lines: tuple[int, int]
    """First and last line of what is changed."""

    @property
    def name(self) -> str:
        """What it is called in a list."""
        return f"{self.file}:{self.lines[0]} #{self.number}"


class _Visitor(MutationVisitor):  # type: ignore[misc]
    """mutmut's, into decorated functions too."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            return False
        if isinstance(node, cst.Assign | cst.AnnAssign):
            targets = node.targets if isinstance(node, cst.Assign) else [node]
            names = [one.target for one in targets]
            return any(
                isinstance(name, cst.Name) and name.value in _DEFINED_BY_NAME
                for name in names
            )
        return bool(super()._skip_node_and_children(node))


def files_of(source: Path) -> dict[str, str]:
    """Return the files of all areas, and the area of each."""
    found: dict[str, str] = {}
    for area, (taken, left) in AREAS.items():
        out = {path for glob in left for path in source.glob(glob)}
        for path in sorted({p for glob in taken for p in source.glob(glob)} - out):
            found.setdefault(path.relative_to(source).as_posix(), area)
    return found


def fitting(files: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the files that one of these patterns of the shell stands for."""
    return [f for f in files if any(fnmatchcase(f, pattern) for pattern in patterns)]


def mutants_of(text: str, *, file: str, area: str) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    wrapper, found = _mutations(text)
    places = wrapper.resolve(PositionProvider)
    for number, (original, _) in enumerate(found):
        place = places[original]
        yield Mutant(area, file, number, (place.start.line, place.end.line))


def mutated(text: str, number: int) -> str:
    """Return the file with one of its mutations."""
    wrapper, found = _mutations(text)
    return str(deep_replace(wrapper.module, *found[number]).code)


@functools.lru_cache(maxsize=1)
def _mutations(
    text: str,
) -> tuple[MetadataWrapper, Sequence[tuple[cst.CSTNode, cst.CSTNode]]]:
    wrapper = MetadataWrapper(cst.parse_module(text))
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    wrapper.visit(visitor)
    places = wrapper.resolve(PositionProvider)
    found = [
        (one.original_node, one.mutated_node)
        for one in visitor.mutations
        if one.original_node in places
    ]
    return wrapper, found


def drawn(mutants: Sequence[Mutant], count: int, *, seed: int) -> list[Mutant]:
    """Return so many of them, the same ones for the same seed, in their order."""
    if count >= len(mutants):
        return list(mutants)
    chosen = random.Random(seed).sample(range(len(mutants)), count)
    return [mutants[i] for i in sorted(chosen)]


def lines_to_run(text: str, mutant: Mutant) -> set[int]:
    """
    Return the lines one of which a test must execute to notice a mutant.

    Those of the statement around it; of a signature, those of its function's body.
    Empty for what is executed when the module is imported.
    """
    first, last = mutant.lines
    inside: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    statement: ast.stmt | None = None
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt) or not (
            node.lineno <= first <= (node.end_lineno or node.lineno)
        ):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if first >= node.body[0].lineno:
                inside = node  # walked from outside in: the innermost one stays
            elif inside is None:
                return _range(node.body[0].lineno, node.end_lineno)
        statement = node
    if inside is None or statement is None:
        return set()
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if body else statement.end_lineno
    return _range(statement.lineno, max(last, end or last))


def _range(first: int, last: int | None) -> set[int]:
    return set(range(first, (last or first) + 1))
