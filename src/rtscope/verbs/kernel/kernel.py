"""Kernels: recipes, their patches and configuration, builds and packages."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope.boards.kernels import build as pack
from rtscope.boards.kernels import sourcekernel
from rtscope.boards.kernels.catalogue import CONFIG, DEVICE_TREES, IMAGE, SYMBOLS
from rtscope.boards.kernels.recipe import Recipe, find_recipe, get_arch, recipe_names
from rtscope.boards.kernels.resolved import compare_configs
from rtscope.boards.kernels.source import wanted_version
from rtscope.boards.kernels.tree import (
    Series,
    kernel_version,
    other_version,
    states,
    try_series,
)
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import Part, all_parts, cache_dir, locked
from rtscope.cli.console import (
    Json,
    put,
    put_blocks,
    put_json,
    say,
    stderr_console,
)
from rtscope.cli.progress import Waiting
from rtscope.host.errors import KernelError, UsageError
from rtscope.host.units import NS_PER_S, format_duration, format_size
from rtscope.machine.target import agent_file
from rtscope.present.document import Column, Table

Name = Annotated[str, typer.Argument(help="Recipe, by name or path, e.g. ./my.toml.")]
Names = Annotated[
    list[str], typer.Argument(help="Recipes, by name or path, e.g. ./my.toml.")
]


def list_kernels(*, json: Json = False) -> int:
    """List the recipes, with release, build time, size and digest if built."""
    parts = all_parts(_build_context().cache)
    rows = [_row(find_recipe(name), parts) for name in recipe_names()]
    if json:
        put_json(rows)
        return 0
    columns = (
        *map(Column, ("kernel", "release")),
        *(Column(head, right=True) for head in ("built in", "CPU time", "image")),
        Column("kernel_digest", fit="wraps"),
    )
    put_blocks(Table(columns, list(map(_cells, rows))))
    return 0


def show(name: Name, *, json: Json = False) -> int:
    """Show a recipe: source, patches, configuration."""
    recipe = find_recipe(name)
    sourcekernel.check_board(recipe)
    if json:
        put_json(asdict(recipe) | {"folder": str(recipe.folder or "")})
        return 0
    source = recipe.source
    pins = (source.version, source.sha256, source.ref if source.git else None)
    where = " ".join(
        filter(None, (source.kind, str(getattr(source, source.kind)), *pins))
    )
    suite = f" of {source.suite}" if "package" in source.kind else ""
    put(
        f"{recipe.name}: {recipe.title}\n"
        f"board     {recipe.board} ({recipe.arch}), size {recipe.size}\n"
        f"source    {where}{suite}\n"
        f"patches   {', '.join(recipe.patches) or 'none'}\n"
        f"config    {recipe.base}, then {', '.join(recipe.fragments)}\n"
    )
    return 0


def patches(name: Name, *, json: Json = False) -> int:
    """Show the patch series of a recipe, and try to apply them to a copy of its source.

    The exit status is 1 if a patch does not apply.
    """
    recipe = find_recipe(name)
    context, rows, stopped = _build_context(), list[dict[str, Any]](), False
    if not recipe.patches:
        if json:
            put_json(rows)
        else:
            put(f"{recipe.name}: no patches\n")
        return 0
    with (
        locked(context.cache, log=context.log),
        sourcekernel.unpatched_source(context, recipe) as (tree, all_series),
    ):
        for series in all_series:
            wanted = wanted_version(recipe)
            tried = not stopped
            rejected = (
                try_series(series, tree, wanted=wanted, keep=True) if tried else None
            )
            stopped = stopped or rejected is not None
            doubt = other_version(series, kernel_version(tree))
            patch_states = states(series, rejected, tried=tried)
            rows.append(_series_row(series, patch_states, doubt=doubt))
            if not json:
                _print_series(rows[-1])
    if json:
        put_json(rows)
    return 1 if stopped else 0


def _series_row(
    series: Series, patch_states: Sequence[str], *, doubt: str
) -> dict[str, Any]:
    return {
        "series": series.name,
        "base": series.base,
        "patches": [
            {"name": patch.name, "subject": patch.subject, "state": state}
            for patch, state in zip(series.patches, patch_states, strict=True)
        ],
        "doubt": doubt,
    }


def _print_series(row: Mapping[str, Any]) -> None:
    count, doubt = len(row["patches"]), row["doubt"]
    put(
        f"{row['series']}: {count} patch{'es' if count > 1 else ''}"
        f"{doubt and f', {doubt}'}\n"
    )
    for patch in row["patches"]:
        put(f"    {patch['name']}: {patch['state']}\n        {patch['subject']}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRequest:
    """The arguments and options of `rtscope kernel config`."""

    name: Name
    diff: str | None = None
    """Recipe to compare with, by name or path, e.g. ./my.toml."""
    json: Json = False


def config(request: ConfigRequest) -> int:
    """Show a configuration as kbuild resolves it, or compare two of them.

    With --diff the exit status is 1 if they differ in more than the preemption setting
    and its consequences by kbuild's rules.
    """
    # Find both before minutes are spent on the first.
    wanted = (request.name, request.diff)
    recipes = [find_recipe(text) for text in wanted if text is not None]
    with Waiting(stderr_console()) as waiting, _locked_context(waiting) as context:
        configurations = [
            sourcekernel.configured(context, recipe) for recipe in recipes
        ]
    if request.diff is not None:
        return _print_diff(*configurations, json=request.json)
    if request.json:
        put_json(configurations[0].values())
    else:
        put(configurations[0].text)
    return 0


def _print_diff(
    one: sourcekernel.Configured, two: sourcekernel.Configured, *, json: bool
) -> int:
    names = {
        n: [*one.names.get(n, ()), *two.names.get(n, ())]
        for n in {*one.names, *two.names}
    }
    diff = compare_configs(one.values(), two.values(), names)
    if json:
        put_json(asdict(diff))
        return 1 if diff.other else 0
    for title, part in (
        ("preemption setting", diff.preemption),
        ("consequences of it", diff.follows),
        ("other differences", diff.other),
    ):
        put(f"{title}:{'' if part else ' nothing'}\n")
        for symbol, (left, right) in part.items():
            put(f"    {symbol:<28} {left or 'empty'} -> {right or 'empty'}\n")
    return 1 if diff.other else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """The arguments and options of `rtscope kernel build`."""

    names: Names
    upgrade: bool = False
    """Newest source of the archive, not the cached one."""
    json: Json = False


def build(request: BuildRequest) -> int:
    """Build kernels into the cache, unless they are there."""
    recipes, rows = [find_recipe(name) for name in request.names], []
    with Waiting(stderr_console()) as waiting, _locked_context(waiting) as context:
        context = replace(context, upgrade=request.upgrade)
        for recipe in recipes:
            row = _row_of(recipe, sourcekernel.kernel_part(context, recipe))
            rows.append(row)
            if not request.json:
                put(f"{row['kernel_digest']}  {recipe.name} {row['release']}\n")
    if request.json:
        put_json(rows)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRequest:
    """The arguments and options of `rtscope kernel package`."""

    name: Name
    out: Path = Path()
    """Directory for the archive and the package (default: this one), e.g. packages."""
    json: Json = False


def package(request: PackageRequest) -> int:
    """Package a kernel for its board: an archive, and a Debian package."""
    if not (folder := request.out).is_dir():
        raise UsageError(f"{folder}: no such directory; make it: mkdir -p {folder}")
    context, recipe = _build_context(), find_recipe(request.name)
    if recipe.size == "virtual":
        say(
            f"{recipe.name} is for the virtual board: it has few drivers, no modules "
            f"and no device trees{_board_size_of(request.name)}"
        )
    with locked(context.cache, log=context.log):
        part = sourcekernel.kernel_part(context, recipe)
        kernel = _built(part, recipe)
        files = [
            folder / f"{recipe.name}-{kernel.release}.tar.gz",
            folder / pack.deb_name(kernel),
        ]
        pack.write_tar(kernel, files[0])
        try:
            pack.write_deb(kernel, files[1])
        except KernelError as error:
            raise KernelError(
                f"{error}; the archive is complete: {files[0]}"
            ) from error
    if request.json:
        put_json([{"path": str(file), "bytes": file.stat().st_size} for file in files])
        return 0
    for file in files:
        put(f"{format_size(file.stat().st_size):>10}  {file}\n")
    return 0


def _built(part: Part, recipe: Recipe) -> pack.BuiltKernel:
    files = part.manifest["files"]

    def file_of(name: str) -> Path | None:
        return part.file(name) if name in files else None

    return pack.BuiltKernel(
        name=recipe.name,
        title=recipe.title,
        release=part.manifest["notes"]["release"],
        arch=get_arch(recipe.arch).debian,
        digest=files[IMAGE]["sha256"],
        image=part.file(IMAGE),
        config=part.file(CONFIG),
        symbols=part.file(SYMBOLS),
        modules=file_of(sourcekernel.MODULE_TREE),
        device_trees=file_of(DEVICE_TREES),
    )


def _board_size_of(name: str) -> str:
    """Return the command that packs the same recipe for the real board, if any."""
    try:
        find_recipe(name, size="board")
    except UsageError:
        return "; the recipe has no size for the real board ([size.board])"
    stem = name.removesuffix(".toml")
    board_name = f"{stem}-board{name.removeprefix(stem)}"
    return f"; for the real board: rtscope kernel package {board_name}"


def _row(recipe: Recipe, parts: Sequence[Part]) -> dict[str, Any]:
    return _row_of(recipe, sourcekernel.newest_of(parts, recipe))


def _row_of(recipe: Recipe, part: Part | None) -> dict[str, Any]:
    notes = part.manifest["notes"] if part else {}
    image = part.manifest["files"][IMAGE] if part else {}
    return {
        "name": recipe.name,
        "title": recipe.title,
        "arch": recipe.arch,
        "size": recipe.size,
        "release": notes.get("release"),
        "compiler": notes.get("compiler"),
        "build_seconds": notes.get("build_seconds"),
        "build_cpu_seconds": notes.get("build_cpu_seconds"),
        "image_bytes": image.get("size"),
        "kernel_digest": image.get("sha256"),
    }


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row["kernel_digest"] is None:
        return (row["name"], "not built", "", "", "", "")
    cpu = row["build_cpu_seconds"]
    return (
        row["name"],
        row["release"],
        format_duration(row["build_seconds"] * NS_PER_S),
        # An earlier rtscope did not record it.
        format_duration(cpu * NS_PER_S) if cpu else "",
        format_size(row["image_bytes"]),
        row["kernel_digest"][:16],
    )


@contextlib.contextmanager
def _locked_context(waiting: Waiting) -> Iterator[BuildContext]:
    """Give a context that shows what one waits for, and holds the cache."""
    context = replace(_build_context(), log=waiting.over(say), progress=waiting)
    with locked(context.cache, log=context.log):
        yield context


def _build_context() -> BuildContext:
    return BuildContext(cache=cache_dir(), agent=agent_file, log=say)
