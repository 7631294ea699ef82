"""
Sources of kernels: fetched or copied into a directory, and what identifies each.

A source comes from Debian's archive, from a file, an address, a git repository or a
directory of the user's. The user's own is copied and stays as it is.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from importlib import resources
from pathlib import Path
from typing import Any

from rtscope.boards.kernels.publishers import require_there
from rtscope.boards.kernels.recipe import (
    Recipe,
    Source,
    get_arch,
    get_recipe,
    recipe_names,
)
from rtscope.boards.kernels.tree import (
    Series,
    copy_tree,
    kernel_version,
    read_series,
    tree_digest,
)
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.aptroot import Package, as_rows
from rtscope.boards.parts.buildcontext import (
    DOWNLOADS,
    BuildContext,
    cached_lock,
    fetched,
    packages_of,
)
from rtscope.host import process
from rtscope.host.errors import KernelError, UsageError
from rtscope.host.files.opening import open_named

UNPACK_PATIENCE_S = 1800.0
GIT_PATIENCE_S = 3600.0

MAX_TARBALL_BYTES = 8 << 30
"""Unpacked, the sources of a kernel have 2 GiB."""

NOT_FOUND = 127
"""The exit status of env(1) for a program that is not there."""

_COMMIT_LENGTH = 40
_BUILT_IN_PLACE = (".config", "include/config")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one recipe's source comes from, exactly."""

    inputs: Mapping[str, Any]
    """What identifies it, for the key of what is made of it."""
    unpack: Callable[[Path], None]
    """Make `source` below a directory, and `debian` if the package brings it."""


def part_name(recipe: Recipe) -> str:
    """Return the name of the part with a recipe's kernel."""
    return f"kernel-{recipe.name}-{recipe.arch}"


def find_origin(context: BuildContext, recipe: Recipe) -> Origin:
    """Return where the source comes from; asks the archive or git if it is new."""
    kinds: Mapping[str, Callable[[BuildContext, Recipe], Origin]] = {
        "package": _packaged,
        "source_package": _packaged,
        "tarball": _tarball,
        "git": _git,
        "directory": _directory,
    }
    origin = kinds[recipe.source.kind](context, recipe)

    def unpack(work: Path) -> None:
        origin.unpack(work)
        _check_tree(recipe, work / "source")

    wanted = {}
    if recipe.source.version and not recipe.source.source_package:
        # A kernel that is built is not checked: another version must not find it.
        wanted["wanted"] = recipe.source.version
    return Origin({**origin.inputs, **wanted}, unpack)


def series_of(recipe: Recipe, work: Path) -> list[Series]:
    """Return the series of a recipe; `work` is where its source was unpacked."""
    return [
        read_series(work / name if name.startswith("debian/") else path, name=name)
        for name, path in _series_paths(recipe)
    ]


def series_digests(recipe: Recipe) -> dict[str, str]:
    """Return the digests of those series that do not come with the source."""
    return {
        name: read_series(path, name=name).digest()
        for name, path in _series_paths(recipe)
        if not name.startswith("debian/")
    }


def wanted_version(recipe: Recipe) -> str | None:
    """Return the version that the source must have, if the recipe names one."""
    version = recipe.source.version
    if version and recipe.source.source_package:
        # Debian's own revision is no part of the kernel's version.
        return version.rpartition("-")[0]
    return version


def _series_paths(recipe: Recipe) -> list[tuple[str, Path]]:
    ours = resources.files("rtscope.boards.kernels").joinpath("patches")
    paths = []
    for name in recipe.patches:
        in_package = Path(str(ours.joinpath(name)))
        is_path = recipe.folder is not None and ("/" in name or not in_package.is_dir())
        paths.append((name, recipe.path(name) if is_path else in_package))
    return paths


def _packaged(context: BuildContext, recipe: Recipe) -> Origin:
    source = recipe.source
    known = cached_lock(context.cache).parts.get(part_name(recipe), ())
    # The recipe may have been changed since its packages were resolved.
    resolving = context if _are_of(known, source) else replace(context, upgrade=True)

    def resolve(root: Path) -> tuple[Package, ...]:
        if (twins := _of_a_twin(context, recipe)) and not context.upgrade:
            return twins
        if source.source_package:
            return aptroot.resolve_source(
                source.source_package,
                source.version or "",
                suite=source.suite,
                root=root,
            )
        # The same for all architectures, and every mirror has the lists of amd64.
        return aptroot.resolve(
            [source.package],
            arch="amd64",
            root=root,
            dependencies=False,
            suite=source.suite,
        )

    packages = packages_of(resolving, part_name(recipe), resolve)

    def unpack(work: Path) -> None:
        files = fetched(context, packages)
        context.log(f"unpacking the source of {recipe.name}")
        for package, file in zip(packages, files, strict=True):
            _unpack_package(package, file, work)

    return Origin({"packages": as_rows(packages)}, unpack)


def _are_of(packages: Sequence[Package], source: Source) -> bool:
    """Whether these are packages that a recipe with this source names."""
    if source.source_package:
        named = (source.source_package, source.version)
        return all((one.name, one.version) == named for one in packages)
    return all(re.fullmatch(source.package, one.name) for one in packages)


def _of_a_twin(context: BuildContext, recipe: Recipe) -> tuple[Package, ...] | None:
    """Return the packages of a recipe with the same source: twins must not differ."""
    known = cached_lock(context.cache).parts
    for name in recipe_names():
        other = get_recipe(name)
        packages = known.get(part_name(other))
        if (
            packages
            and other.source == recipe.source
            and _are_of(packages, other.source)
        ):
            return tuple(packages)
    return None


def _unpack_package(package: Package, file: Path, work: Path) -> None:
    if package.arch == "source-debian":
        (work / "debian").mkdir()
        _untar(file, work / "debian")
        return
    if package.arch == "source-orig":
        (work / "source").mkdir()
        _untar(file, work / "source")
        return
    aptroot.unpack(file, work / "package")
    archives = sorted((work / "package/usr/src").glob("linux-source-*.tar.*"))
    if len(archives) != 1:
        raise KernelError(f"{package.name}: {len(archives)} archives of source in it")
    (work / "source").mkdir()
    _untar(archives[0], work / "source")
    shutil.rmtree(work / "package")


def _tarball(context: BuildContext, recipe: Recipe) -> Origin:
    source = recipe.source
    text, sha256 = source.tarball or "", source.sha256 or ""

    def unpack(work: Path) -> None:
        if text.startswith(("https://", "http://")):
            file = aptroot.fetch_file(
                text,
                sha256,
                context.cache / DOWNLOADS,
                progress=context.progress,
            )
        else:
            file = recipe.path(text)
            require_there(file)
            _check_digest(file, sha256)
        (work / "source").mkdir()
        _untar(file, work / "source")

    return Origin({"tarball": sha256}, unpack)


def _git(context: BuildContext, recipe: Recipe) -> Origin:
    address, ref = recipe.source.git or "", recipe.source.ref
    local = recipe.path(address)
    repository = str(local.resolve()) if local.is_dir() else address
    commit = _commit(repository, ref)

    def unpack(work: Path) -> None:
        tree = work / "source"
        context.log(f"fetching {ref} of {address}: commit {commit}")
        _run(["git", "init", "--quiet", str(tree)])
        _run(["git", "-C", str(tree), "fetch", "--depth", "1", repository, commit])
        _run(["git", "-C", str(tree), "checkout", "--quiet", "FETCH_HEAD"])
        shutil.rmtree(tree / ".git")

    return Origin({"commit": commit}, unpack)


def _directory(context: BuildContext, recipe: Recipe) -> Origin:
    directory = recipe.path(recipe.source.directory or "")
    require_there(directory)
    context.log(f"reading {directory}")
    version = kernel_version(directory)
    try:
        digest = tree_digest(directory)
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
    if recipe.source.sha256 not in (None, digest):
        raise KernelError(
            f"{directory}: the SHA-256 over its files is {digest}, the recipe expects "
            f"{recipe.source.sha256}: a file was changed"
        )

    def unpack(work: Path) -> None:
        context.log(f"copying {directory}")
        copy_tree(directory, work / "source")
        # kbuild does not build elsewhere what was built in place before.
        if any((work / "source" / name).exists() for name in _BUILT_IN_PLACE):
            arch = f"ARCH={get_arch(recipe.arch).srcarch}"
            _run(["make", "-s", "-C", str(work / "source"), arch, "mrproper"])

    return Origin({"directory": digest, "version": version}, unpack)


def _commit(repository: str, ref: str) -> str:
    if len(ref) == _COMMIT_LENGTH and set(ref) <= set("0123456789abcdef"):
        return ref
    # The pattern has the server send less; it matches the ends of names, too.
    listed = _run(["git", "ls-remote", repository, ref, f"{ref}^{{}}"])
    rows = (row.split() for row in listed.splitlines())
    commits = {name: commit for commit, name in rows}
    # Whole names only, in the order of gitrevisions(7): in a clone refs/remotes/origin/
    # HEAD ends like HEAD and is an older one. A tag may be an object: then ^{} has it.
    for name in (ref, f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}"):
        if name in commits:
            return commits.get(f"{name}^{{}}", commits[name])
    raise UsageError(
        f"{repository}: has no branch or tag {ref!r} (a commit needs all of its "
        f"{_COMMIT_LENGTH} digits)"
    )


def _check_tree(recipe: Recipe, tree: Path) -> None:
    """Raise KernelError if the tree is no kernel's source, or of another version."""
    source = str(getattr(recipe.source, recipe.source.kind))
    try:
        version = kernel_version(tree)
    except UsageError as error:
        # Where it was unpacked to is gone when this is read.
        raise KernelError(
            f"{source}: no source of a kernel (no Makefile and Kconfig at its top)"
        ) from error
    if wanted_version(recipe) not in (None, version):
        raise KernelError(
            f"{source}: is Linux {version}, the recipe expects {wanted_version(recipe)}"
        )


def _check_digest(file: Path, sha256: str) -> None:
    with open_named(
        file, kind="source of a kernel", error=UsageError, limit=MAX_TARBALL_BYTES
    ) as content:
        digest = file_digest(content, "sha256").hexdigest()
    if digest != sha256:
        raise KernelError(
            f"{file}: its SHA-256 is {digest}, the recipe expects {sha256}: it is "
            "damaged, or another file"
        )


def _untar(archive: Path, into: Path) -> None:
    """Unpack an archive whose one top folder is dropped, if it has one."""
    _run(["tar", "-C", str(into), "-xf", str(archive)], patience_s=UNPACK_PATIENCE_S)
    entries = list(into.iterdir())
    if len(entries) == 1 and entries[0].is_dir():
        # Its own name may be that of something inside.
        top = entries[0].rename(into / ".top")
        for entry in list(top.iterdir()):
            entry.rename(into / entry.name)
        top.rmdir()


def _run(argv: list[str], *, patience_s: float = GIT_PATIENCE_S) -> str:
    done = process.run(["env", "LC_ALL=C", *argv], timeout_s=patience_s)
    if done.status == NOT_FOUND:
        raise KernelError(
            f"{argv[0]} is needed and not installed: apt install {argv[0]}"
        )
    if done.status != 0:
        words = " ".join(done.stderr.split())[-400:]
        raise KernelError(f"{' '.join(argv)[:160]}: {words or done.status}")
    return done.stdout.decode("utf-8", "replace")
