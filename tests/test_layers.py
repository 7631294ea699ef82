"""The architecture, as a test: which room may import which, and how few arrows."""

from pathlib import Path

import pytest

from structure.rooms import (
    arrows,
    files_of_one_verb,
    imported_names,
    imports,
    is_verb,
    room_of,
)

SRC = Path(__file__).parent.parent / "src" / "rtscope"

# room -> shared rooms that it may import. The rooms of verbs may import all of them.
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": {"host"},
    "__main__": {"cli"},
    "host": set(),
    "contract": {"host"},
    "machine": {"host", "contract"},
    "record": {"host", "contract", "machine"},
    "stats": {"host", "contract", "machine", "record"},
    "programs": {"host", "contract", "machine", "record"},
    "measure": {"host", "contract", "machine", "record", "stats"},
    "boards": {"host", "contract", "machine", "record", "measure", "programs"},
    "explain": {
        *("host", "contract", "machine", "record", "stats", "boards", "programs"),
    },
    "present": {"host", "contract", "machine", "record", "stats", "explain"},
    "cli": {"host", "contract", "machine", "record", "stats", "measure", "present"},
}

EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()
"""Modules that import another verb, or a verb from the shared part: never one more."""

OF_PROGRAMS = frozenset(
    {
        "rtscope.programs.binaries.lookups",
        "rtscope.programs.calls",
        "rtscope.programs.cycles.periods",
        "rtscope.programs.cycles.timeouts",
        "rtscope.programs.packages",
        "rtscope.programs.probes",
    }
)
"""Of `app check` alone: they lie beside what `rtscope test` uses too."""

MOST_SHARED_ARROWS = 50
MOST_ARROWS_OF_A_VERB = 10
MOST_FOLDERS, MOST_LOOSE_MODULES = 12, 5

# What a module needs that starts, opens or writes something.
EFFECTS = {"os", "shutil", "signal", "socket", "subprocess", "tempfile", "threading"}
EFFECTFUL = ("rtscope.host.process", "rtscope.machine.target", "rtscope.boards")


def test_the_package_has_few_rooms() -> None:
    folders = [path for path in SRC.iterdir() if (path / "__init__.py").is_file()]
    loose = [path for path in SRC.glob("*.py") if not path.name.startswith("__")]

    assert len(folders) <= MOST_FOLDERS
    assert len(loose) <= MOST_LOOSE_MODULES


@pytest.mark.parametrize("module", sorted(imports(SRC)))
def test_imports_follow_the_layers(module: str) -> None:
    room = room_of(module)
    used = {name: room_of(name) for name in imports(SRC)[module]}
    others = {name: to for name, to in used.items() if to != room}
    verbs = {(module, name) for name, to in others.items() if is_verb(to)}

    assert verbs <= EXCEPTIONS
    if not is_verb(room) and room != "verbs":
        shared = {to for to in others.values() if not is_verb(to)}
        assert shared <= MAY_IMPORT[room]


def test_no_exception_is_left_that_nothing_needs() -> None:
    pairs = {(one, used) for one, others in imports(SRC).items() for used in others}

    assert pairs >= EXCEPTIONS


def test_there_are_few_arrows() -> None:
    shared = {one for one in arrows(SRC) if not is_verb(one[0])}
    verbs = {room for room, _ in arrows(SRC) if is_verb(room)}
    of_verb = {verb: sum(room == verb for room, _ in arrows(SRC)) for verb in verbs}

    assert len(shared) <= MOST_SHARED_ARROWS
    assert {verb: n for verb, n in of_verb.items() if n > MOST_ARROWS_OF_A_VERB} == {}


def test_a_file_that_serves_one_verb_lies_in_its_room() -> None:
    found = files_of_one_verb(SRC)

    # The report writes CSV in one place, `rtscope export` in two.
    shared = OF_PROGRAMS | {"rtscope.host.files.csvtext"}
    assert {one for one in found if one not in shared} == set()


def test_presentation_has_no_effects() -> None:
    for module in (name for name in imports(SRC) if room_of(name) == "present"):
        path = SRC.joinpath(*module.split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = file.read_text("utf-8")
        packages = {name.partition(".")[0] for name in imported_names(file)}

        assert not packages & EFFECTS, module
        assert not any(name.startswith(EFFECTFUL) for name in imports(SRC)[module])
        assert "write_atomically" not in text, module


def test_only_what_opens_directories_or_boots_again_explains_with_boards() -> None:
    using = {
        module
        for module, others in imports(SRC).items()
        if room_of(module) == "explain"
        and any(room_of(name) == "boards" for name in others)
    }

    assert using == {"rtscope.explain.directory", "rtscope.explain.outsidecycle"}
