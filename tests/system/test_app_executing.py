"""A watched process that executes programs is answered as what it was at each time."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, repeated, rtscope

pytestmark = pytest.mark.system

SOURCE = Path(__file__).parent.parent / "offenders" / "executes.c"
CYCLES = "400"
"""Of 2 ms: some programs begin while it is watched, whenever that begins."""
PROGRAMS = 40


@pytest.fixture(autouse=True)
def _no_probe_is_taken_out_still() -> None:
    """The kernel takes out those of a watch that has ended: others open slowly then."""
    until_s = time.monotonic() + CLOSING_S
    while closers() and time.monotonic() < until_s:
        time.sleep(0.1)


CLOSING_S = 20.0
"""Other tests watch meanwhile, and may leave some all the time."""


def closers() -> list[Path]:
    """Return the agents that have no standard input: they only close what was open."""
    names = Path("/proc").glob("[0-9]*/comm")
    return [
        one.parent
        for one in names
        if _text(one) == "rtscope-agent\n" and not os.path.lexists(one.parent / "fd/0")
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    out = tmp_path_factory.mktemp("executes") / "executes"
    subprocess.run(["gcc", "-O1", "-g", "-o", out, SOURCE, "-pthread"], check=True)
    return out


AS_NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    # its directory is for root alone
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)


def checked(
    who: str, programs: Sequence[Path], *, by: Sequence[str] = ()
) -> dict[str, Any]:
    words = ("app", "check", "--json", "--duration", "3s", "--settle", "300ms")
    first, *others = map(str, programs)
    env = {**os.environ, "LD_BIND_NOW": "1"}
    command = (*by, first, who, CYCLES, *others)
    with rtscope(*words, "--", *command, env=env) as started:
        done = started.finish(3 * PATIENCE_S)
    assert done.status in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert "CONFIG_" not in json.dumps(document["not_seen"])
    return document


def images_of(document: dict[str, Any], id_: str) -> set[str]:
    """The files that the program's own function is in."""
    return {
        frame["image"]
        for one in document["findings"]
        if one["id"] == id_
        for stack in one["stacks"]
        for frame in stack["frames"]
        if frame["function"] == "allocate"
    }


@pytest.mark.parametrize("who", ["first", "worker"])
def test_the_stacks_of_each_program_are_named_by_its_file(
    who: str, program: Path, root: None
) -> None:
    another = Path(shutil.copy(program, program.with_name("another")))

    document = checked(who, [program, another] * PROGRAMS)

    executed = document["executed"]
    assert {one["file"] for one in executed} <= {str(program), str(another), ""}
    assert all(Path(one["file"]).name in (one["name"], "") for one in executed)
    assert all((x["tid"] == document["pid"]) == (who == "first") for x in executed)
    assert executed
    if who == "first":
        assert images_of(document, "RA07") == {"executes", "another"}
    assert "RA21" not in {one["id"] for one in document["findings"]}


def test_a_script_that_is_executed_is_named_with_what_runs_it(
    program: Path, root: None
) -> None:
    script = program.with_name("go")
    script.write_text(f'#!/bin/sh\nsleep 0.1\nexec {program} "$@"\n')
    script.chmod(0o755)

    executed = checked("first", [program, script] * PROGRAMS)["executed"]

    of_script = [one for one in executed if one["name"] == "go"]
    assert of_script
    assert all(Path(one["file"]).name != "go" for one in of_script)


@pytest.mark.long
def test_a_program_that_gets_other_rights_is_watched_on(
    program: Path, root: None
) -> None:
    """The kernel ends all events of a thread that executes it."""
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    of_root = Path(shutil.copy(program, program.with_name("of_root")))
    of_root.chmod(0o4755)

    document = checked("first", [program, *[of_root] * PROGRAMS], by=AS_NOBODY)

    assert "of_root" in {one["name"] for one in document["executed"]}
    assert len([one for one in document["findings"] if one["id"] == "RA07"]) > 1


def test_a_file_that_is_deleted_afterwards_names_its_stacks(
    program: Path, root: None
) -> None:
    def watched() -> dict[str, Any]:
        """Each deletes its own file; on a busy machine the last may be unseen."""
        names = [program.with_name(f"x{number}") for number in range(PROGRAMS)]
        return checked("deleted", [Path(shutil.copy(program, name)) for name in names])

    document = repeated(watched, lambda seen: images_of(seen, "RA07") != set())

    last = document["executed"][-1]["name"]
    assert not program.with_name(last).exists()
    assert f"{last} (deleted)" in images_of(document, "RA07")
