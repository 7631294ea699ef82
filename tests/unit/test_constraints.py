"""The pinned Python packages: complete for each Python that rtscope runs on."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
FILES = {
    "run": ("constraints.txt",),
    "dev": ("constraints.txt", "constraints-dev.txt"),
}


def pinned(file: str) -> list[Requirement]:
    """Return the packages of a file; each begins a line, its hashes follow."""
    lines = (ROOT / file).read_text().splitlines()
    starts = (line for line in lines if re.match(r"[A-Za-z]", line))
    return [Requirement(line.rstrip("\\").strip()) for line in starts]


def applies(requirement: Requirement, python: str) -> bool:
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "extra": "",
    }
    return requirement.marker is None or requirement.marker.evaluate(environment)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("purpose", FILES)
def test_what_a_pinned_package_needs_is_pinned_for_each_python(
    purpose: str, python: str
) -> None:
    everything = [package for file in FILES[purpose] for package in pinned(file)]
    there = {
        canonicalize_name(package.name): package
        for package in everything
        if applies(package, python)
    }
    missing = [
        f"{package.name} needs {needed}"
        for package in everything
        if applies(package, python) and installed(package)
        for needed in map(Requirement, distribution(package.name).requires or ())
        if applies(needed, python) and canonicalize_name(needed.name) not in there
    ]

    assert missing == []


def test_what_the_project_asks_for_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {
        canonicalize_name(one.name) for file in FILES["dev"] for one in pinned(file)
    }

    assert {canonicalize_name(Requirement(one).name) for one in asked} <= names


def installed(package: Requirement) -> bool:
    """Return whether this Python is one of those that a package is pinned for."""
    return package.marker is None or package.marker.evaluate()
