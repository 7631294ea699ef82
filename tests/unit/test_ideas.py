"""Each idea that verbs share has one module: see tests/structure/ideas.toml."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/rtscope"
IDEAS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (ROOT / "tests/structure/ideas.toml").read_text("utf-8")
)
OTHERS = ("bench", "lab", "tools")
SUFFIXES = {".py", ".toml", ".html", ".md"}


@cache
def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def has_one(line: str, patterns: list[str]) -> bool:
    return re.search("|".join(f"(?:{one})" for one in patterns), line) is not None


@pytest.mark.parametrize("name", IDEAS)
def test_no_second_place_has_the_idea(name: str) -> None:
    idea = IDEAS[name]
    files = [path for path in SRC.rglob("*") if path.suffix in SUFFIXES]
    if idea.get("everywhere"):
        files += (path for tree in OTHERS for path in (ROOT / tree).rglob("*.py"))
    own = {SRC / place for place in (idea["module"], *idea.get("also", ()))}
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if own.isdisjoint({path, *path.parents})
        for number, line in enumerate(lines_of(path), 1)
        if has_one(line, idea["patterns"])
    ]

    assert all(path.exists() for path in own)
    assert found == [], f"take it from {idea['module']}"


@pytest.mark.parametrize("name", IDEAS)
def test_a_second_place_would_be_found(name: str) -> None:
    idea = IDEAS[name]
    module = SRC / idea["module"]
    files = module.rglob("*.py") if module.is_dir() else [module]
    lines = [line for file in files for line in lines_of(file)]

    assert any(has_one(line, idea["patterns"]) for line in lines)
    for example in idea["examples"]:
        assert has_one(example, idea["patterns"]), example
    for pattern in idea["patterns"]:
        assert any(has_one(line, [pattern]) for line in (*lines, *idea["examples"]))
