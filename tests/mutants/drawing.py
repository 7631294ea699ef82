"""
Which mutants there are, and which of them are taken.

The operators are mutmut's, all of them. mutmut itself leaves out decorated functions
and the constants of modules, because its mutants are copies of functions within one
file; in this tree properties and constants decide verdicts and causes. Here a mutant is
a file of its own, and both are in.
"""

import ast
import hashlib
import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import libcst as cst
from libcst.metadata import (
    MetadataWrapper,
    PositionProvider,
    WhitespaceInclusivePositionProvider,
)
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

from mutants import areas

_DEFINED_BY_NAME = ("__all__",)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SHOWN_WORDS = 8
"""Of a line on each side of a change, in a mutant's name."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    name: str
    """
    Its module, function, change, and number among those with the same three.

    No folder and no line is in it: it is the same after a move.
    """
    area: str
    file: str
    """Below src/rtscope."""
    lines: tuple[int, int]
    """First and last line of the changed part."""
    span: tuple[int, int]
    """Where the changed part begins and ends, in characters."""
    new: str
    """The code in its place."""

    @property
    def name_in_module(self) -> str:
        """Its name without the module: a file may have a new name."""
        return self.name.partition(": ")[2]


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


def fitting(files: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the files that one of these patterns of the shell stands for."""
    return [f for f in files if any(fnmatchcase(f, pattern) for pattern in patterns)]


def mutants_of(text: str, *, file: str, area: str) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    wrapper.visit(visitor)
    places = wrapper.resolve(PositionProvider)
    wholes = wrapper.resolve(WhitespaceInclusivePositionProvider)
    starts = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
    functions = _functions(text)
    module = _module(file)
    alike: Counter[str] = Counter()
    for mutation in visitor.mutations:
        node = mutation.original_node
        if node not in places:
            continue
        place, whole = places[node], wholes[node]
        first = starts[whole.start.line - 1] + whole.start.column
        end = starts[whole.end.line - 1] + whole.end.column
        new = wrapper.module.code_for_node(mutation.mutated_node)
        if isinstance(node, cst.Match):  # the one statement with lines of its own
            new = textwrap.indent(new, " " * place.start.column)
        change = _change(text, first, end, new)
        name = f"{module}: {functions[place.start.line]}: {change}"
        alike[name] += 1
        yield Mutant(
            name=f"{name} #{alike[name]}",
            area=area,
            file=file,
            lines=(place.start.line, place.end.line),
            span=(first, end),
            new=new,
        )


def mutated(text: str, mutant: Mutant) -> str:
    """Return the file with one of its mutations."""
    first, end = mutant.span
    return text[:first] + mutant.new + text[end:]


def _module(file: str) -> str:
    """Return the last name of a module; of a package that of its folder."""
    path = PurePosixPath("rtscope", file)
    return path.parent.name if path.stem == "__init__" else path.stem


def _functions(text: str) -> list[str]:
    """Return for each line the function or class that it is in, by qualified name."""
    names = ["<module>"] * (text.count("\n") + 2)

    def enter(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = outer
            if isinstance(child, _NAMED):
                inner = f"{outer}.{child.name}".lstrip(".")
                end = child.end_lineno or child.lineno
                names[child.lineno : end + 1] = [inner] * (end + 1 - child.lineno)
            enter(child, inner)

    enter(ast.parse(text), "")
    return names


def _change(text: str, first: int, end: int, new: str) -> str:
    """Return the words of the lines, those that change as {old -> new}."""
    before = text[text.rfind("\n", 0, first) + 1 : first]
    after = text[end : (text + "\n").index("\n", end)]
    old_words = (before + text[first:end] + after).split()
    new_words = (before + new + after).split()
    head = _alike(old_words, new_words)
    tail = _alike(old_words[head:][::-1], new_words[head:][::-1])
    shown = old_words[max(0, head - _SHOWN_WORDS) : head]
    old = " ".join(old_words[head : len(old_words) - tail])
    new = " ".join(new_words[head : len(new_words) - tail])
    rest = old_words[len(old_words) - tail :][:_SHOWN_WORDS]
    return " ".join([*shown, "{" + f"{old} -> {new}" + "}", *rest])


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many words at the beginning are the same."""
    pairs = zip(a, b, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def unambiguous(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Return those whose name no other has: modules of one name may have the same."""
    counts = Counter(mutant.name for mutant in mutants)
    return [mutant for mutant in mutants if counts[mutant.name] == 1]


def drawn(mutants: Sequence[Mutant], count: int, *, seed: int) -> list[Mutant]:
    """
    Return so many of them, of each area its share, in the order of a hash.

    Names and the seed decide, so that the draw outlives a move, and a part of it is a
    sample of all areas.
    """
    if count >= len(mutants):
        return sorted(mutants, key=lambda mutant: _hash(mutant.name, seed))
    left = areas.quotas(Counter(mutant.area for mutant in mutants), count)
    taken = []
    for mutant in sorted(mutants, key=lambda mutant: _hash(mutant.name, seed)):
        if left[mutant.area]:
            left[mutant.area] -= 1
            taken.append(mutant)
    return taken


def _hash(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


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
