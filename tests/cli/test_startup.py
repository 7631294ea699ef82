"""What every command pays for before it does anything."""

import importlib
import subprocess
import sys

import pytest

from rtscope.cli.app import tables

HEAVY = ("numpy", "scipy", "matplotlib", "rtscope.contract", "rtscope.record")


def loaded_by(*words: str) -> list[str]:
    """Return the modules that a command has loaded when it ends."""
    program = (
        "import sys\n"
        "from rtscope.cli.start import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    return done.stderr.splitlines()[-1].split()


def places() -> list[tuple[str, str]]:
    """Every verb: where it is, and its help in the list."""
    rows = [*tables()["verbs"].values()]
    for group in tables()["groups"].values():
        rows += group["verbs"].values()
    return [(row["place"], row["help"]) for row in rows]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["-h"], []])
def test_a_list_of_verbs_loads_none_of_them(words: list[str]) -> None:
    loaded = loaded_by(*words)

    assert not {*HEAVY} & {*loaded}
    for place, _ in places():
        assert f"rtscope.{place.partition(':')[0]}" not in loaded


def test_help_of_a_verb_loads_no_other_verb() -> None:
    loaded = loaded_by("report", "--help")

    assert "rtscope.verbs.report.report" in loaded
    assert not {"scipy", "matplotlib"} & {*loaded}
    for other in ("run", "compare", "audit", "board", "kernel", "tasks", "explain"):
        assert f"rtscope.verbs.{other}.{other}" not in loaded


@pytest.mark.parametrize(("place", "said"), places())
def test_the_list_says_of_a_verb_what_its_own_help_says(place: str, said: str) -> None:
    module, _, name = place.partition(":")
    verb = getattr(importlib.import_module(f"rtscope.{module}"), name)

    assert (verb.__doc__ or "").split("\n\n")[0].split() == said.split()
