"""What this computer can do for boards: each part asked as a build would ask it."""

import platform
import shutil
from pathlib import Path

import pytest

from rtscope.boards.catalogue import board_names, get_board
from rtscope.boards.kernels import build
from rtscope.boards.kernels.recipe import Recipe
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.prepare import lacking
from rtscope.boards.runs import readiness
from rtscope.host.errors import BoardError, KernelError, TargetError
from rtscope.measure.preflight import Ability, State


@pytest.fixture(autouse=True)
def able(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A computer that has everything, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(readiness, "plugin_of_ours", lambda: tmp_path)
    monkeypatch.setattr(readiness, "lacking", lambda _board, _context: ())
    monkeypatch.setattr(aptroot, "check_programs", lambda: None)
    monkeypatch.setattr(build, "check_machine", lambda _recipe, where: "gcc")
    monkeypatch.setattr(readiness, "check_programs", lambda: None)
    monkeypatch.setattr(readiness, "agent_file", lambda _arch: tmp_path)


def found(place: Path) -> dict[str, Ability]:
    return {one.name: one for one in readiness.computer_abilities(place)}


def test_a_computer_that_has_everything_lacks_nothing(tmp_path: Path) -> None:
    abilities = found(tmp_path)

    assert {one.state for one in abilities.values()} == {State.WORKS}
    assert abilities["virtual boards"].what == ", ".join(board_names())
    assert abilities["building kernels"].what.startswith("for aarch64, riscv64, x86_64")


def test_boards_that_are_not_built_name_their_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = {"pc": ("debian-6.12-rt",), "rpi3": ("user space",)}
    monkeypatch.setattr(readiness, "lacking", lambda one, _: lacks.get(one.name, ()))

    boards = found(tmp_path)["virtual boards"]
    assert boards.state is State.LIMITED
    assert boards.remedy == "rtscope board build pc rpi3"
    ready = ", ".join(name for name in board_names() if name not in lacks)
    assert boards.what == (
        f"{ready} ready; pc lacks debian-6.12-rt; rpi3 lacks user space"
    )


def test_an_empty_cache_lacks_all_parts_and_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    cache = tmp_path / "cache"
    context = BuildContext(cache=cache, agent=lambda _arch: tmp_path)

    lacks = lacking(get_board("pc"), context)
    assert lacks[:2] == ("QEMU for x86_64", "user space")
    assert "debian-6.12-rt" in lacks
    assert not cache.exists()


def test_without_apt_nothing_can_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    with pytest.raises(BoardError, match="apt-get: not installed"):
        aptroot.check_programs()


def test_another_processor_runs_no_boards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")

    boards = found(tmp_path)["virtual boards"]
    assert (boards.state, "aarch64" in boards.what) == (State.MISSING, True)


def test_a_missing_compiler_limits_what_can_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(recipe: Recipe, *, where: Path) -> str:
        if recipe.arch == "riscv64":
            raise KernelError("building it needs riscv64-gcc: install it")
        return "gcc"

    monkeypatch.setattr(build, "check_machine", check)
    kernels = found(tmp_path)["building kernels"]

    assert kernels.state is State.LIMITED
    assert kernels.what == "aarch64, x86_64 only; building it needs riscv64-gcc"
    assert kernels.remedy == "install it"


def test_without_ssh_there_are_no_boards_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check() -> None:
        raise TargetError("ssh is not installed; install it")

    monkeypatch.setattr(readiness, "check_programs", check)
    assert found(tmp_path)["boards over SSH"] == Ability(
        "boards over SSH", State.MISSING, "ssh is not installed", "install it"
    )
