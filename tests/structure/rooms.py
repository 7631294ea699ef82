"""
Who imports whom in a source tree: its rooms, and the arrows between them.

A room is a folder or a loose module directly in src/rtscope, and each folder in
`verbs`. An arrow is a pair of rooms, one of which imports the other in fact. The shared
part are all rooms but those in `verbs`.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

VERBS = "verbs"
PACKAGE = "rtscope"

Arrow = tuple[str, str]


def room_of(module: str) -> str:
    """Return the room of a module such as `rtscope.verbs.run.run`: `verbs.run`."""
    parts = module.split(".")[1:]
    if not parts:
        return "__init__"
    return ".".join(parts[:2]) if parts[0] == VERBS and parts[1:] else parts[0]


def is_verb(room: str) -> bool:
    """Whether this is the room of a verb."""
    return room.startswith(f"{VERBS}.")


def module_of(path: Path, source: Path) -> str:
    """Return the dotted name of a file below src/rtscope."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


@cache
def imports(source: Path) -> Mapping[str, frozenset[str]]:
    """Return the modules of the tree that each of its modules imports."""
    files = {module_of(path, source): path for path in sorted(source.rglob("*.py"))}
    return {
        module: frozenset(
            found
            for name in imported_names(path)
            if (found := _known(name, files)) and found != module
        )
        for module, path in files.items()
    }


def imported_names(path: Path) -> Iterator[str]:
    """Yield each name that a file imports, with the module that it comes from."""
    for node in _statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements in a tree; no expression has one in it."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.expr):
            yield child
            yield from _statements(child)


def _known(name: str, files: Mapping[str, Path]) -> str:
    """Return the module that a name is, or that it lies in; empty for others' names."""
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name


def arrows(source: Path) -> frozenset[Arrow]:
    """Return which room imports which."""
    return frozenset(
        (room_of(module), room_of(used))
        for module, others in imports(source).items()
        for used in others
        if room_of(module) != room_of(used)
    )


def files_of_one_verb(source: Path) -> Mapping[str, str]:
    """
    Return the shared modules most of whose importers are one verb, and that verb.

    Not those that a second verb imports too.
    """
    importers: dict[str, Counter[str]] = {}
    for module, others in imports(source).items():
        for used in others:
            importers.setdefault(used, Counter())[room_of(module)] += 1
    found = {}
    for module, rooms in importers.items():
        verbs = [room for room in rooms if is_verb(room)]
        if is_verb(room_of(module)) or len(verbs) != 1:
            continue
        if 2 * rooms[verbs[0]] > rooms.total():
            found[module] = verbs[0]
    return found
