"""
Where the parts of boards and kernels are built, and of which packages.

Which packages a part is made of is resolved once and kept in the cache's lock file; a
part is then found again without the network.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.boards.parts import aptroot
from rtscope.boards.parts.aptroot import (
    NO_LOCK,
    Lock,
    Package,
    as_rows,
    lock_text,
    read_lock,
)
from rtscope.boards.parts.cache import NotBuiltError, Part, build_part
from rtscope.host.errors import UsageError
from rtscope.host.process import Progress

LOCK_FILE = "packages.json"
DOWNLOADS = "downloads"

Notes = Mapping[str, Any]


def _nothing(_told: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class BuildContext:
    """Directories, kernel and package versions for building a board's parts."""

    cache: Path
    agent: Callable[[str], Path]
    """Where the agent for an architecture (`uname -m`) is."""
    lock: Lock | None = None
    """The user's lock file: exactly these packages, and no others."""
    upgrade: bool = False
    """Resolve packages anew."""
    log: Callable[[str], None] = _nothing
    progress: Progress = _nothing
    """Takes note of downloads and compilations while one waits for them."""
    may_build: bool = True
    """False without the lock of the cache: a missing part raises NotBuiltError."""

    def build(self, name: str, inputs: object, build: Callable[[Path], Notes]) -> Part:
        """Return a part, built if the cache lacks it; see `build_part`."""
        return build_part(
            self.cache, name, inputs=inputs, build=build, may_build=self.may_build
        )


def cached_lock(cache: Path) -> Lock:
    """Return the packages that the parts in the cache were made of."""
    path = cache / LOCK_FILE
    return read_lock(path) if path.exists() else NO_LOCK


def remember(cache: Path, lock: Lock) -> None:
    """Keep the cache's lock file; the caller holds the lock of the cache."""
    new = cache / f"{LOCK_FILE}.new"
    new.write_text(lock_text(lock))
    new.replace(cache / LOCK_FILE)


def part_of_packages(
    context: BuildContext,
    name: str,
    resolve: Callable[[Path], tuple[Package, ...]],
    *,
    recipe: object,
    build: Callable[[Path, Path], Notes],
) -> Part:
    """
    Return a part that is made of packages alone.

    `build` gets an empty directory to fill and one with the packages unpacked; `recipe`
    is what the result depends on besides them.
    """
    packages = packages_of(context, name, resolve)

    def build_it(work: Path) -> Notes:
        context.log(f"building {name}")
        root = work / "unpacked"
        for file in fetched(context, packages):
            aptroot.unpack(file, root)
        notes = build(work, root)
        shutil.rmtree(root)
        return notes

    inputs = {"packages": as_rows(packages), "recipe": recipe}
    return context.build(name, inputs, build_it)


def fetched(context: BuildContext, packages: Sequence[Package]) -> list[Path]:
    """Return the files of packages, fetched if they are not there."""
    return aptroot.fetch(
        packages,
        context.cache / DOWNLOADS,
        log=context.log,
        progress=context.progress,
    )


def content_part(
    context: BuildContext,
    name: str,
    file: str,
    content: bytes,
    *,
    inputs: object,
    notes: Notes | None = None,
) -> Part:
    """Return a part with one file of this content."""

    def build(work: Path) -> Notes:
        (work / file).write_bytes(content)
        return notes or {}

    return context.build(name, inputs, build)


def packages_of(
    context: BuildContext, name: str, resolve: Callable[[Path], tuple[Package, ...]]
) -> tuple[Package, ...]:
    """
    Return what a part is made of: as locked, as last time, or as of now.

    What the cache knows stays, whatever a lock file says; what it does not know, it
    learns from the lock file too.
    """
    known = cached_lock(context.cache)
    if context.lock is not None:
        if name not in context.lock.parts:
            raise UsageError(
                f"the lock file has no packages for {name}: write another with "
                "rtscope board build --save-lock FILE, or leave --lockfile out"
            )
        if context.may_build and name not in known.parts:
            locked = known.with_part(name, context.lock.parts[name])
            remember(context.cache, locked)
        return context.lock.parts[name]
    if name in known.parts and not context.upgrade:
        return known.parts[name]
    if not context.may_build:
        raise NotBuiltError(f"what {name} is made of is not known")
    context.log(f"asking the archive for {name}")
    root = context.cache / "apt"
    packages = resolve(root)
    shutil.rmtree(root, ignore_errors=True)
    remember(context.cache, known.with_part(name, packages))
    return packages


# --- names of parts, and of the files in them ---------------------------------------

PLUGIN = "rtscope-plugin.so"
AGENT_ARCHIVE = "agent.cpio"
USERLAND_ARCHIVE = "userland.cpio"
FILES_ARCHIVE = "files.cpio"

FILES_KIND = "files"
"""How the name of the part with the files of a campaign begins."""
