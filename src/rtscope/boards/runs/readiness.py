"""What this computer can do for virtual boards, kernels and machines elsewhere."""

import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rtscope.boards.catalogue import board_names, get_board
from rtscope.boards.kernels import build
from rtscope.boards.kernels.recipe import get_recipe, recipe_names
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import all_parts, cache_dir
from rtscope.boards.parts.prepare import lacking, plugin_of_ours
from rtscope.boards.parts.qemu import packed_qemu
from rtscope.host.errors import RtscopeError, TargetError, UsageError
from rtscope.machine.target import agent_file
from rtscope.machine.target.ssh import check_programs
from rtscope.measure.preflight import Ability, State, refuse_full_disk, refused

HOSTS = ("x86_64",)
"""Where virtual boards run: QEMU's packages and the plugin are of these machines."""

ARCHES = ("x86_64", "aarch64", "armv7l", "riscv64")
"""Of machines over SSH."""


def computer_abilities(directory: Path) -> Iterator[Ability]:
    """Yield them; results would lie below the directory. Nothing is fetched."""
    yield _results(directory)
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    yield _boards(context)
    yield _kernels(context.cache)
    yield _over_ssh()


def _results(directory: Path) -> Ability:
    name = "results"
    try:
        refuse_full_disk(directory)
    except UsageError as error:
        return refused(name, error)
    return Ability(name, State.WORKS, f"{_free(directory)} in this directory")


def _boards(context: BuildContext) -> Ability:
    name = "virtual boards"
    if platform.machine() not in HOSTS:
        why = f"they run on {', '.join(HOSTS)}, and this is {platform.machine()}"
        return Ability(name, State.MISSING, why, "use a computer with such a CPU")
    try:
        plugin_of_ours()
        lacks = {one: lacking(get_board(one), context) for one in board_names()}
    except RtscopeError as error:
        return refused(name, error)
    ready = [one for one, parts in lacks.items() if not parts]
    if not any(lacks.values()):
        return Ability(name, State.WORKS, f"{', '.join(ready)}{_qemu(context.cache)}")
    try:
        aptroot.check_programs()
    except RtscopeError as error:
        return refused(name, error, state=State.LIMITED if ready else State.MISSING)
    unready = {one: parts for one, parts in lacks.items() if parts}
    said = "; ".join(f"{one} lacks {', '.join(p)}" for one, p in unready.items())
    builds = f"rtscope board build {' '.join(unready)}"
    if ready:
        said = f"{', '.join(ready)} ready; {said}"
    return Ability(name, State.LIMITED, said, builds)


def _qemu(cache: Path) -> str:
    parts = [part for part in all_parts(cache) if part.name.startswith("qemu-")]
    versions = sorted({packed_qemu(part).version.split()[0] for part in parts})
    return f", with QEMU {', '.join(versions)}" if versions else ""


def _kernels(cache: Path) -> Ability:
    """Whether kernels can be compiled, of each architecture that a recipe is for."""
    name = "building kernels"
    recipes = [get_recipe(one) for one in recipe_names(size="virtual")]
    by_arch = {recipe.arch: recipe for recipe in reversed(recipes)}
    where = next(one for one in (cache, *cache.parents) if one.is_dir())

    def check(arch: str) -> None:
        build.check_machine(by_arch[arch], where=where)

    return _for_arches(name, sorted(by_arch), check, of_all=f"; {_free(where)}")


def _over_ssh() -> Ability:
    name = "boards over SSH"
    try:
        check_programs()
    except TargetError as error:
        return refused(name, error)
    return _for_arches(name, ARCHES, agent_file)


def _for_arches(
    name: str,
    arches: Sequence[str],
    check: Callable[[str], object],
    *,
    of_all: str = "",
) -> Ability:
    """Return for which architectures something works, and why not for the others."""
    able: list[str] = []
    errors: list[RtscopeError] = []
    for arch in arches:
        try:
            check(arch)
            able.append(arch)
        except RtscopeError as error:
            errors.append(error)
    listed = ", ".join(able)
    if not errors:
        return Ability(name, State.WORKS, f"for {listed}{of_all}")
    first = refused(name, errors[0])
    if not able:
        return first
    return replace(first, state=State.LIMITED, what=f"{listed} only; {first.what}")


def _free(directory: Path) -> str:
    return f"{shutil.disk_usage(directory).free / 1e9:.0f} GB free"
