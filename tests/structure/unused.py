"""
Public names of `src` that the product does not use: dead, or alive in tests alone.

A function, class or constant of a module is used if another module imports it or
reads it as an attribute, or if the rest of its own module names it. A module that is
passed on as a value (the formats, the checks) and the places of `verbs.toml` are used
by the words of the tables and templates. A method is used if anything reads an
attribute of its name; methods that a class of a library calls are not looked at.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_OWN_BASES = {"Protocol", "Exception"}
_TEXTS = {".toml", ".html", ".md"}


@dataclass(slots=True)
class _Uses:
    """All uses of names in the modules of a package."""

    names: set[tuple[str, str]] = field(default_factory=set)
    """A module and a name in it."""
    whole: set[str] = field(default_factory=set)
    """Modules that are passed on as a value."""
    attributes: set[str] = field(default_factory=set)
    """Names that are read of any value."""


def unused_names(package: Path) -> list[str]:
    """Return `module.name` and `module.Class.method` that nothing in a package uses."""
    trees = {
        _module_of(file, package): ast.parse(file.read_text("utf-8"))
        for file in sorted(package.rglob("*.py"))
    }
    nodes = {
        module: [(one, list(_nodes_of(one))) for one in tree.body]
        for module, tree in trees.items()
    }
    uses = _Uses()
    for statements in nodes.values():
        _read_uses([node for _, some in statements for node in some], trees, uses)
    words = _words_of_texts(package)
    unused = []
    for module, tree in trees.items():
        named = [(one, _names_in(some)) for one, some in nodes[module]]
        for name, node in _definitions(tree):
            in_tables = module in uses.whole or f"{module}:{name}" in words
            if not (
                name.startswith("_")
                or (module, name) in uses.names
                or any(name in some for one, some in named if one is not node)
                or (in_tables and name in words | uses.attributes)
            ):
                unused.append(f"{module}.{name}")
            if isinstance(node, ast.ClassDef):
                unused += [
                    f"{module}.{name}.{method}"
                    for method in _own_methods(node)
                    if method not in uses.attributes | words
                ]
    return unused


def _module_of(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _words_of_texts(package: Path) -> set[str]:
    """Return each word of tables and templates, and the places of verbs.toml."""
    files = [file for file in package.rglob("*") if file.suffix in _TEXTS]
    texts = [file.read_text("utf-8") for file in files]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    places = (re.findall(r'^place = "([\w.]+:\w+)"$', text, re.M) for text in texts)
    return words | {f"{package.name}.{place}" for some in places for place in some}


def _read_uses(
    nodes: Sequence[ast.AST], modules: Mapping[str, object], uses: _Uses
) -> None:
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                if (module := f"{node.module}.{one.name}") in modules:
                    aliases[one.asname or one.name] = module
                else:
                    uses.names.add((node.module, one.name))
    bases = set()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            uses.attributes.add(node.attr)
            if isinstance(node.value, ast.Name) and node.value.id in aliases:
                uses.names.add((aliases[node.value.id], node.attr))
                bases.add(id(node.value))
    uses.whole.update(
        aliases[node.id]
        for node in nodes
        if isinstance(node, ast.Name) and node.id in aliases and id(node) not in bases
    )


def _nodes_of(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield all nodes, and those of annotations that are quoted."""
    for node in ast.walk(statement):
        yield node
        match node:
            case (
                ast.arg(annotation=ast.Constant(value=str(text)))
                | ast.AnnAssign(annotation=ast.Constant(value=str(text)))
                | ast.FunctionDef(returns=ast.Constant(value=str(text)))
            ):
                yield from ast.walk(ast.parse(text, mode="eval"))


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign(targets=targets):
                yield from ((t.id, node) for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node


def _names_in(nodes: Sequence[ast.AST]) -> frozenset[str]:
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def _own_methods(definition: ast.ClassDef) -> Iterator[str]:
    """Return the public methods of a class that no class of a library calls."""
    bases = {base.id for base in definition.bases if isinstance(base, ast.Name)}
    if bases <= _OWN_BASES:
        for node in definition.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield node.name
