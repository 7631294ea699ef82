"""
Sources of kernels: fetched or copied into a directory, and what identifies each.

A source comes from Debian's archive, from a file, an address, a git repository or a
directory of the user's. The user's own is copied and stays as it is.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import file_digest
from importlib import resources
from pathlib import Path
from typing import Any

from rtscope import process
from rtscope.board import aptroot
from rtscope.board.packages import Package, as_rows
from rtscope.board.workshop import DOWNLOADS, Workshop, cached_lock, packages_of
from rtscope.errors import KernelError, UsageError
from rtscope.kernel.recipe import Recipe, get_arch, get_recipe, recipe_names
from rtscope.kernel.series import Series, read_series
from rtscope.kernel.tree import copy_tree, kernel_version, tree_digest

UNPACK_PATIENCE_S = 1800.0
GIT_PATIENCE_S = 3600.0

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


def find_origin(shop: Workshop, recipe: Recipe) -> Origin:
    """Return where the source comes from; asks the archive or git if it is new."""
    kinds: Mapping[str, Callable[[Workshop, Recipe], Origin]] = {
        "package": _packaged,
        "source_package": _packaged,
        "tarball": _tarball,
        "git": _git,
        "directory": _directory,
    }
    return kinds[recipe.source.kind](shop, recipe)


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
    """Return the version that the recipe's patches are for, if it says one."""
    version = recipe.source.version
    # Debian's own revision is no part of the kernel's version.
    return version.rpartition("-")[0] if version else None


def _series_paths(recipe: Recipe) -> list[tuple[str, Path]]:
    ours = resources.files("rtscope.kernel").joinpath("patches")
    found = []
    for name in recipe.patches:
        in_package = Path(str(ours.joinpath(name)))
        is_path = recipe.folder is not None and ("/" in name or not in_package.is_dir())
        found.append((name, recipe.path(name) if is_path else in_package))
    return found


def _packaged(shop: Workshop, recipe: Recipe) -> Origin:
    source = recipe.source

    def resolve(root: Path) -> tuple[Package, ...]:
        if (known := _of_a_twin(shop, recipe)) and not shop.upgrade:
            return known
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

    packages = packages_of(shop, part_name(recipe), resolve)

    def unpack(work: Path) -> None:
        files = aptroot.fetch(packages, shop.cache / DOWNLOADS, say=shop.say)
        shop.say(f"unpacking the source of {recipe.name}")
        for package, file in zip(packages, files, strict=True):
            _unpack_package(package, file, work)

    return Origin({"packages": as_rows(packages)}, unpack)


def _of_a_twin(shop: Workshop, recipe: Recipe) -> tuple[Package, ...] | None:
    """Return the packages of a recipe with the same source: twins must not differ."""
    known = cached_lock(shop.cache).parts
    for name in recipe_names():
        other = get_recipe(name)
        if other.source == recipe.source and part_name(other) in known:
            return tuple(known[part_name(other)])
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


def _tarball(shop: Workshop, recipe: Recipe) -> Origin:
    source = recipe.source
    text, sha256 = source.tarball or "", source.sha256 or ""

    def unpack(work: Path) -> None:
        if text.startswith(("https://", "http://")):
            file = aptroot.fetch_file(text, sha256, shop.cache / DOWNLOADS)
        else:
            file = recipe.path(text)
            _check_digest(file, sha256)
        (work / "source").mkdir()
        _untar(file, work / "source")
        kernel_version(work / "source")

    return Origin({"tarball": sha256}, unpack)


def _git(shop: Workshop, recipe: Recipe) -> Origin:
    address, ref = recipe.source.git or "", recipe.source.ref
    local = recipe.path(address)
    repository = str(local.resolve()) if local.is_dir() else address
    commit = _commit(repository, ref)

    def unpack(work: Path) -> None:
        tree = work / "source"
        shop.say(f"fetching {ref} of {address}")
        _run(["git", "init", "--quiet", str(tree)])
        _run(["git", "-C", str(tree), "fetch", "--depth", "1", repository, commit])
        _run(["git", "-C", str(tree), "checkout", "--quiet", "FETCH_HEAD"])
        shutil.rmtree(tree / ".git")
        kernel_version(tree)

    return Origin({"commit": commit}, unpack)


def _directory(shop: Workshop, recipe: Recipe) -> Origin:
    directory = recipe.path(recipe.source.directory or "")
    shop.say(f"reading {directory}")
    version = kernel_version(directory)
    digest = tree_digest(directory)

    def unpack(work: Path) -> None:
        shop.say(f"copying {directory}")
        copy_tree(directory, work / "source")
        # kbuild does not build elsewhere what was built in place before.
        if any((work / "source" / name).exists() for name in _BUILT_IN_PLACE):
            arch = f"ARCH={get_arch(recipe.arch).srcarch}"
            _run(["make", "-s", "-C", str(work / "source"), arch, "mrproper"])

    return Origin({"directory": digest, "version": version}, unpack)


def _commit(repository: str, ref: str) -> str:
    if len(ref) == _COMMIT_LENGTH and set(ref) <= set("0123456789abcdef"):
        return ref
    listed = _run(["git", "ls-remote", repository, ref, f"{ref}^{{}}"]).split()
    if not listed:
        raise UsageError(f"{repository}: has no branch or tag {ref!r}")
    # Of a tag that is an object of its own the commit comes last, as TAG^{}.
    return listed[-2]


def _check_digest(file: Path, sha256: str) -> None:
    try:
        with file.open("rb") as content:
            found = file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    if found != sha256:
        raise KernelError(
            f"{file}: its SHA-256 is {found}, and the recipe says {sha256}: another "
            "file, or damaged"
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
    if done.status != 0:
        words = " ".join(done.stderr.split())[-400:]
        raise KernelError(f"{' '.join(argv)[:160]}: {words or done.status}")
    return done.stdout.decode("utf-8", "replace")
