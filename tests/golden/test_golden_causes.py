"""Each wake-up that the unit tests explain is held, and none that no test explains."""

import re
from pathlib import Path

import pytest

from fakes.heldcauses import FIGURES, MODULES, WORDS, read, write

UNIT = Path(__file__).parents[1] / "unit"
_KEY = re.compile(r"(\w+): (\w+)")


@pytest.mark.parametrize("file", [FIGURES, WORDS], ids=lambda file: file.stem)
def test_what_is_held_is_that_of_a_test(file: Path, rewrite: bool) -> None:
    held = {key: match.groups() for key in read(file) if (match := _KEY.match(key))}
    there = {
        (path.stem, name)
        for module in MODULES
        for path in UNIT.glob(f"{module}*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    }

    if rewrite:
        write(file, {key: one for key, one in read(file).items() if held[key] in there})

    assert held
    assert {held[key] for key in read(file)} <= there, "of no test: make golden"
