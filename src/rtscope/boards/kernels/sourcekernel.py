"""
Kernels built from a recipe into a part of the cache.

Every build takes these steps: source, patches, configuration (refused if kbuild changes
a requested setting), image, modules, device trees.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels import build
from rtscope.boards.kernels.catalogue import CONFIG, DEVICE_TREES, IMAGE, SYMBOLS
from rtscope.boards.kernels.kconfig import Symbol, read_kconfig
from rtscope.boards.kernels.recipe import (
    Recipe,
    base_text,
    configuration_digest,
    fragments_of,
    get_arch,
)
from rtscope.boards.kernels.resolved import (
    PREEMPTION,
    ConfigSetting,
    differences,
    lost,
    overridden,
    refuse,
    requested_preemption,
    requested_settings,
    unknown_and_off,
    values_of,
)
from rtscope.boards.kernels.source import (
    Origin,
    find_origin,
    part_name,
    series_digests,
    series_of,
    wanted_version,
)
from rtscope.boards.kernels.tree import (
    Series,
    apply_series,
    kernel_version,
    other_version,
)
from rtscope.boards.parts.buildcontext import BuildContext, Notes
from rtscope.boards.parts.cache import (
    Part,
    find_part,
    only_builder,
    open_to_others,
    part_key,
    unfinished,
)
from rtscope.host.errors import KernelError, UsageError

RECIPE = 5
"""Counts up when the way a kernel is built changes."""

KCONFIG = "kconfig.json"
"""From which symbols each symbol can follow."""
DEBUG = "vmlinux"
MODULE_TREE = "modules.tar"


@dataclass(frozen=True, slots=True)
class Configured:
    """A recipe's configuration, as kbuild resolved it."""

    text: str
    names: Mapping[str, Sequence[str]]
    """From which symbols each symbol can follow."""

    def values(self) -> dict[str, str]:
        """Return what is not n, without CONFIG_."""
        return values_of(self.text, source=CONFIG)


def kernel_part(context: BuildContext, recipe: Recipe) -> Part:
    """
    Return the part with a recipe's kernel, built if it is not there.

    Takes minutes on all CPUs, at low priority; the caller holds the lock of the cache,
    which others have while it compiles.
    Raises KernelError with the first error and the path of the whole log.
    """
    check_board(recipe)
    name = part_name(recipe)
    origin = find_origin(context, recipe)

    def make(work: Path) -> Notes:
        context.log(f"building {recipe.name}: minutes to an hour, once")
        return _build(context, recipe, origin, work)

    inputs = _inputs(recipe, origin)
    if not context.may_build:
        return context.build(name, inputs, make)
    with only_builder(context.cache, name, log=context.log):
        return context.build(name, inputs, make)


def check_board(recipe: Recipe) -> None:
    """Raise UsageError, before hours go into it, if it cannot boot on its board."""
    arch = get_board(recipe.board).arch
    if arch != recipe.arch:
        raise UsageError(
            f"{recipe.name}: a kernel for {recipe.arch} does not boot on the board "
            f"{recipe.board}, which is {arch}: change arch or board in the recipe"
        )


def built_kernel(context: BuildContext, recipe: Recipe) -> Part | None:
    """Return the part with a recipe's kernel if it is built already."""
    origin = find_origin(context, recipe)
    return find_part(
        context.cache, part_name(recipe), part_key(_inputs(recipe, origin))
    )


def configured(context: BuildContext, recipe: Recipe) -> Configured:
    """Return a recipe's configuration: the built kernel's, or made without building."""
    check_board(recipe)
    part = built_kernel(context, recipe) or _config_part(context, recipe)
    names = json.loads(part.file(KCONFIG).read_text())
    return Configured(part.file(CONFIG).read_text(), names)


def check_configurations(context: BuildContext, recipes: Mapping[str, Recipe]) -> None:
    """
    Have kbuild resolve all configurations of several kernels before one is built.

    Recipes are by what the user calls them. Kernels of one source and one series of
    patches share a source tree. Does nothing for what is built already.
    Raises KernelError with the name of each that kbuild does not accept, and why.
    """
    refused = []
    for alike in _with_one_source(context, recipes):
        (_, first), *_ = alike
        with unfinished(context.cache) as work:
            name = f"{part_name(first)}-configuration"
            place = _place(context, first, work, log_name=name)
            build.check_programs(first)
            _unpack(context, first, find_origin(context, first), place)
            count = f"{len(alike)} kernel{'s' * (len(alike) != 1)}"
            context.log(f"configuring {count} to check the settings")
            for called, recipe in alike:
                shutil.rmtree(place.build, ignore_errors=True)
                try:
                    _resolve(replace(context, log=_unheard), recipe, place, called)
                except KernelError as error:
                    refused.append(str(error))
    if refused:
        raise KernelError("\n".join(refused))


def _with_one_source(
    context: BuildContext, recipes: Mapping[str, Recipe]
) -> list[list[tuple[str, Recipe]]]:
    """
    Return what is not built, by the source and patches that it is built from.

    Of equal kernels the first is enough.
    """
    alike: dict[str, dict[str, tuple[str, Recipe]]] = {}
    for name, recipe in recipes.items():
        check_board(recipe)
        if built_kernel(context, recipe) is None:
            inputs = find_origin(context, recipe).inputs
            source = [recipe.name, recipe.size, inputs, series_digests(recipe)]
            of_source = alike.setdefault(json.dumps(source, sort_keys=True), {})
            of_source.setdefault(configuration_digest(recipe), (name, recipe))
    return [list(of_source.values()) for of_source in alike.values()]


def _unheard(_text: str) -> None:
    """Take a message that the build of this kernel will say again."""


@contextmanager
def unpatched_source(
    context: BuildContext, recipe: Recipe
) -> Iterator[tuple[Path, list[Series]]]:
    """Give the source of a recipe as it came, and its series, for as long as needed."""
    with unfinished(context.cache) as work:
        find_origin(context, recipe).unpack(work)
        yield work / "source", series_of(recipe, work)


def _config_part(context: BuildContext, recipe: Recipe) -> Part:
    origin = find_origin(context, recipe)

    name = f"kernelconfig-{recipe.name}-{recipe.arch}"

    def make(work: Path) -> Notes:
        place = _place(context, recipe, work, log_name=name)
        build.check_programs(recipe)
        _configure(context, recipe, origin, place)
        _clear(work)
        return {"compiler": "", "release": None}

    return context.build(name, _inputs(recipe, origin), make)


def newest_of(parts: Sequence[Part], recipe: Recipe) -> Part | None:
    """Return the kernel of a recipe as it is now that was built, or imported, last."""
    built = [part for part in parts if is_of(part, recipe)]
    return max(built, key=lambda part: part.path.stat().st_mtime_ns, default=None)


def is_of(part: Part, recipe: Recipe) -> bool:
    """Whether a part is the kernel of a recipe as it is now, of whatever source."""
    inputs = part.manifest["inputs"]
    return (
        part.name == part_name(recipe)
        and inputs.get("recipe") == _made_from(recipe)
        and inputs.get("patches") == series_digests(recipe)
    )


def _inputs(recipe: Recipe, origin: Origin) -> dict[str, object]:
    made_from = {"patches": series_digests(recipe), "recipe": _made_from(recipe)}
    return {**origin.inputs, **made_from}


def _made_from(recipe: Recipe) -> list[object]:
    return [RECIPE, recipe.size, recipe.arch, configuration_digest(recipe)]


def _build(context: BuildContext, recipe: Recipe, origin: Origin, work: Path) -> Notes:
    began, cpu_before = time.monotonic(), _children_cpu_s()
    place = _place(context, recipe, work)
    compiler = build.check_machine(recipe, where=context.cache)
    version = _configure(context, recipe, origin, place)
    with open_to_others(context.cache):
        build.compile_kernel(recipe, place)
    release = build.release_of(place)
    arch = get_arch(recipe.arch)
    for path, name in (
        (arch.image, IMAGE),
        ("System.map", SYMBOLS),
        ("vmlinux", DEBUG),
    ):
        shutil.copyfile(place.build / path, work / name)
    for folder, name in (("modinstall", MODULE_TREE), ("dtbsinstall", DEVICE_TREES)):
        if (place.build / folder).is_dir():
            build.pack_folder(place.build / folder, work / name)
    _clear(work)
    return {
        "release": release,
        "compiler": compiler,
        "source": version,
        "build_seconds": round(time.monotonic() - began),
        # What the build took of the CPUs: the time that a busy machine does not change.
        "build_cpu_seconds": round(_children_cpu_s() - cpu_before),
    }


def _children_cpu_s() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def _configure(
    context: BuildContext, recipe: Recipe, origin: Origin, place: build.Workplace
) -> str:
    """Unpack, patch and configure; return the version of the source."""
    _unpack(context, recipe, origin, place)
    _resolve(context, recipe, place, recipe.name)
    return kernel_version(place.source)


def _unpack(
    context: BuildContext, recipe: Recipe, origin: Origin, place: build.Workplace
) -> None:
    """Unpack and patch the source."""
    origin.unpack(place.root)
    for series in series_of(recipe, place.root):
        made_for = other_version(series, kernel_version(place.source))
        context.log(
            f"applying {len(series.patches)} patches of {series.name}"
            f"{made_for and f', {made_for}'}"
        )
        apply_series(series, place.source, wanted=wanted_version(recipe))


def _resolve(
    context: BuildContext, recipe: Recipe, place: build.Workplace, name: str
) -> None:
    """Configure; KernelError with what kbuild does not accept, by the given name."""
    text = build.configure(recipe, place)
    symbols = read_kconfig(place.source, srcarch=get_arch(recipe.arch).srcarch)
    fragments = fragments_of(recipe)
    settings, values = (
        list(requested_settings(fragments)),
        values_of(text, source=CONFIG),
    )
    _tell_overridden(context, fragments)
    if base := base_text(recipe):
        settings += requested_preemption(recipe.base, base, settings)
        _tell_lost(context, recipe.base, values_of(base, source=recipe.base), values)
    refuse(differences(settings, values, symbols), recipe=name)
    _tell_unknown(context, settings, symbols)
    (place.root / CONFIG).write_text(text)
    (place.root / KCONFIG).write_text(_names_json(symbols))


def _tell_lost(
    context: BuildContext, name: str, base: Mapping[str, str], values: Mapping[str, str]
) -> None:
    if gone := lost(base, values):
        some = ", ".join(gone[:5]) + (", ..." if len(gone) > 5 else "")
        context.log(
            f"{name}: {len(gone)} of its {len(base)} settings are off in this kernel: "
            f"the source or a fragment turns them off: {some}"
        )


def _tell_overridden(context: BuildContext, fragments: Mapping[str, str]) -> None:
    """Log where a user's fragments, or two preemption models, contradict."""
    for before, later in overridden(fragments):
        # Ours build on each other: what a board needs is not what all boards need.
        users = "/" in before.fragment + later.fragment
        if users or later.name in PREEMPTION:
            context.log(
                f"{later.fragment} sets {later.name}={later.value} and overrides "
                f"{before.value}, set by {before.fragment}"
            )


def _tell_unknown(
    context: BuildContext,
    settings: Sequence[ConfigSetting],
    symbols: Mapping[str, Symbol],
) -> None:
    """Log symbols that a user's fragment switches off and that do not exist."""
    for one, near in unknown_and_off(settings, symbols).items():
        # Ours are for several versions, of which some have a symbol and some not.
        if "/" in one.fragment:
            like = f" (there is {', '.join(near)})" if near else ""
            context.log(
                f"{one.fragment}: this source has no {one.name} to switch off{like}"
            )


def _names_json(symbols: Mapping[str, Symbol]) -> str:
    names = {name: sorted(symbol.names()) for name, symbol in symbols.items()}
    return json.dumps(names, sort_keys=True, separators=(",", ":"))


def _place(
    context: BuildContext, recipe: Recipe, work: Path, *, log_name: str = ""
) -> build.Workplace:
    logs = context.cache / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{log_name or part_name(recipe)}.log"
    log.unlink(missing_ok=True)
    # ccache does not look at where paths are mapped to: another way, another cache.
    ccache = context.cache / f"ccache-{RECIPE}" if shutil.which("ccache") else None
    return build.Workplace(
        work / "source", work / "build", log, context.log, context.progress, ccache
    )


def _clear(work: Path) -> None:
    """Leave of a build only what a part keeps."""
    for folder in [path for path in work.iterdir() if path.is_dir()]:
        shutil.rmtree(folder)
