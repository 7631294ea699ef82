"""
How much code a source tree has, and how large its pieces are: see `--help`.

* A line of Python counts if a token of code is on it: no blank line, no comment, no
  docstring (nor a string that stands alone below a constant).
* A line of C counts if anything but a comment is on it.
* A function of Python is as long as from the first statement behind its docstring to
  its last line, blank lines and comments between them included; the signature is not
  counted. A function of C is as long as what stands between the braces of its body.
  A function inside another counts by itself, and as lines of the outer one.
* A file is as long as it has lines, whatever is on them.
* A loose module lies directly in src/rtscope; `__init__` and `__main__` do not count.
* Rooms, and the arrows between them, are those of rooms.py.
"""

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from structure.rooms import arrows, imports, room_of

MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 60

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_C_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function, by the name that a reader looks for."""

    file: str
    name: str
    lines: int


def code_lines(text: str) -> int:
    """Count the lines of a Python file that have code on them."""
    told = set(_docstring_lines(ast.parse(text)))
    found: set[int] = set()
    source = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    return sum(bool(source[number - 1].strip()) for number in found - told)


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if _is_docstring(node):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and _is_text(node.value)


def c_code_lines(text: str) -> int:
    """Count the lines of a C file that have code on them."""
    code = _C_TOKEN.sub(_without_comment, text)
    return sum(bool(line.strip()) for line in code.splitlines())


def _without_comment(match: re.Match[str]) -> str:
    token = match[0]
    return "\n" * token.count("\n") if token[0] == "/" else token


def functions(root: Path, files: Sequence[Path]) -> list[Function]:
    """Return all functions of files of either language."""
    found: list[Function] = []
    for path in files:
        name, text = path.relative_to(root).as_posix(), path.read_text()
        of_c = path.suffix in (".c", ".h")
        found += _of_c(name, text) if of_c else _of_python(name, text)
    return found


def _of_python(file: str, text: str) -> Iterator[Function]:
    todo: list[tuple[str, ast.AST]] = [("", ast.parse(text))]
    while todo:
        outer, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(
                child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                todo.append((outer, child))
                continue
            name = f"{outer}{child.name}"
            todo.append((f"{name}.", child))
            if not isinstance(child, ast.ClassDef):
                yield Function(file, name, _length(child))


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[_is_docstring(function.body[0]) :]
    if not body:
        return 0
    return (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1


def _of_c(file: str, text: str) -> Iterator[Function]:
    """Yield functions as clang-format lays them out: their braces begin a line."""
    lines = text.splitlines()
    for begin, line in enumerate(lines):
        if line != "{":
            continue
        end = lines.index("}", begin)
        head = begin - 1
        while lines[head][:1] in ("", " ", "\t"):
            head -= 1
        name = re.search(r"(\w+)\(", lines[head])
        yield Function(file, name[1] if name else lines[head], end - begin - 1)


def python_of(root: Path, *folders: str) -> list[Path]:
    """Return the Python files below folders of a tree."""
    return sorted(p for folder in folders for p in (root / folder).rglob("*.py"))


def c_of(root: Path, *folders: str) -> list[Path]:
    """Return the C files below folders of a tree, but what was built."""
    found = sorted(p for f in folders for p in (root / f).rglob("*.[ch]"))
    return [path for path in found if "build" not in path.relative_to(root).parts]


def checked_files(root: Path) -> list[Path]:
    """Return the files whose sizes are bounded: the product, not its tests."""
    return [*python_of(root, "src/rtscope"), *c_of(root, "agent", "plugin")]


def long_files(root: Path) -> dict[str, int]:
    """Return the files of more lines than a file may have."""
    found = {
        path.relative_to(root).as_posix(): len(path.read_text().splitlines())
        for path in checked_files(root)
    }
    return {name: n for name, n in found.items() if n > MOST_LINES_OF_A_FILE}


def long_functions(root: Path) -> list[Function]:
    """Return the functions of more lines than a function may have."""
    found = functions(root, checked_files(root))
    return [one for one in found if one.lines > MOST_LINES_OF_A_FUNCTION]


def loose_modules(root: Path) -> list[str]:
    """Return the modules that lie in no package below rtscope."""
    found = sorted(path.stem for path in (root / "src/rtscope").glob("*.py"))
    return [name for name in found if not name.startswith("__")]


def _is_text(node: ast.AST | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def rooms_of(root: Path) -> set[str]:
    """Return the rooms of the architecture: see rooms.py."""
    return {room_of(module) for module in imports(root / "src/rtscope")}


def _python(*folders: str) -> Callable[[Path], int]:
    return lambda root: sum(
        code_lines(p.read_text()) for p in python_of(root, *folders)
    )


def _c(*folders: str, tests: bool) -> Callable[[Path], int]:
    return lambda root: sum(
        c_code_lines(path.read_text())
        for path in c_of(root, *folders)
        if ("tests" in path.relative_to(root).parts) is tests
    )


FIGURES: dict[str, Callable[[Path], int]] = {
    "code lines of src/rtscope": _python("src/rtscope"),
    "code lines of tests": _python("tests"),
    "code lines of C in agent": _c("agent", tests=False),
    "code lines of C in plugin": _c("plugin", tests=False),
    "code lines of C in their tests": _c("agent", "plugin", tests=True),
    "Python files in src/rtscope": lambda root: len(python_of(root, "src/rtscope")),
    "loose modules in src/rtscope": lambda root: len(loose_modules(root)),
    "rooms": lambda root: len(rooms_of(root)),
    "arrows between rooms": lambda root: len(arrows(root / "src/rtscope")),
    f"files over {MOST_LINES_OF_A_FILE} lines": lambda root: len(long_files(root)),
    f"functions over {MOST_LINES_OF_A_FUNCTION} lines": lambda root: len(
        long_functions(root)
    ),
}


def main() -> int:
    """Print a table of one tree or of several, then what is too long in the last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--tree", type=Path, action="append", required=True)
    trees = [tree.resolve() for tree in parser.parse_args().tree]
    print(f"{'':34}" + "".join(f"{tree.name[:14]:>16}" for tree in trees))
    for title, count in FIGURES.items():
        print(f"{title:34}" + "".join(f"{count(tree):16}" for tree in trees))
    for name, lines in long_files(trees[-1]).items():
        print(f"  {name}: {lines} lines")
    for one in long_functions(trees[-1]):
        print(f"  {one.file}: {one.name}: {one.lines} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
