"""
The map of a package: the lines of each `__init__` that name the contents of its folder.

A line has one name or several, then two spaces or more, then their purpose:

    rules.py, rules.toml  the rules, by name
    *checks.py            check functions, by subject
"""

import ast
import re
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

_LINE = re.compile(r"    (?P<names>\S+(?:, \S+)*)  +\S")
_ITSELF = ("__init__.py", "__pycache__")
_BUILT = ("agents", "plugins")
"""Programs that `make` or a wheel puts there; git does not have them."""


def packages(root: Path) -> list[Path]:
    """Return each folder below `root`, and `root`, that has an `__init__.py`."""
    return sorted(file.parent for file in root.rglob("__init__.py"))


def entries(folder: Path) -> list[list[str]]:
    """Return the names of each line of a package's map; a folder's ends in a slash."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
    lines = map(_LINE.match, (text or "").splitlines())
    return [line["names"].split(", ") for line in lines if line]


def contents(folder: Path) -> list[str]:
    """Return the names of the files and folders in a package but itself."""
    return sorted(
        f"{path.name}/" if path.is_dir() else path.name
        for path in folder.iterdir()
        if path.name not in (*_ITSELF, *_BUILT) and not _is_left_over(path)
    )


def not_in_map(folder: Path) -> list[str]:
    """Return the contents of a package that its map does not name."""
    names = list(chain(*entries(folder)))
    return [
        one
        for one in contents(folder)
        if not any(fnmatchcase(one, name) for name in names)
    ]


def not_in_folder(folder: Path) -> list[str]:
    """Return the names in the map of a package that nothing in it has."""
    there = contents(folder)
    return [
        name
        for name in chain(*entries(folder))
        if not any(fnmatchcase(one, name) for one in there)
    ]


def _is_left_over(path: Path) -> bool:
    """Whether git has removed this folder, and only compiled files are left."""
    return path.is_dir() and all(one.name == "__pycache__" for one in path.iterdir())
