"""
The packages of a program, as a part of the cache: their files, in one archive.

Their install scripts never run, here or on the board. Documentation and translations
are left out: a program that is measured reads none.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import Arch
from rtscope.boards.parts import aptroot, initrd
from rtscope.boards.parts.buildcontext import (
    DOWNLOADS,
    BuildContext,
    part_of_packages,
)
from rtscope.boards.parts.cache import NotBuiltError, Part, locked
from rtscope.boards.parts.initrd import Entry
from rtscope.boards.parts.programtree import entries_of

ARCHIVE = "program.cpio"
KIND = "program"
RECIPE = 1
"""Counts up when other files of the packages are kept."""

_LEFT_OUT = tuple(
    f"usr/share/{name}/"
    for name in ("doc", "man", "info", "locale", "lintian", "bug", "doc-base", "icons")
)


def packages_part(context: BuildContext, names: Sequence[str], arch: Arch) -> Part:
    """
    Return the part with the files of packages and of what they depend on.

    Raises UsageError if a lock file lacks them, BoardError if they cannot be fetched.
    """
    with contextlib.suppress(NotBuiltError):
        if not context.upgrade:
            return _part(replace(context, may_build=False), names, arch)
    with locked(context.cache, log=context.log):
        part = _part(context, names, arch)
        shutil.rmtree(context.cache / DOWNLOADS, ignore_errors=True)
    return part


def packages_name(names: Sequence[str], arch: Arch) -> str:
    """Return the name by which a lock file knows the packages."""
    wanted = json.dumps(sorted(set(names)))
    return f"{KIND}-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}-{arch.name}"


def packages_entries(part: Part) -> Mapping[str, Entry]:
    """Return the files of such a part; BoardError if it was changed."""
    return initrd.unpack(part.content(ARCHIVE))


def _part(context: BuildContext, names: Sequence[str], arch: Arch) -> Part:
    return part_of_packages(
        context,
        packages_name(names, arch),
        partial(_resolve, sorted(set(names)), arch),
        recipe=RECIPE,
        build=_build,
    )


def _resolve(
    names: Sequence[str], arch: Arch, root: Path
) -> tuple[aptroot.Package, ...]:
    return aptroot.resolve(names, arch=arch.debian, root=root, dependencies=True)


def _build(work: Path, root: Path) -> Mapping[str, Any]:
    entries = {
        path: entry
        for path, entry in entries_of(root, "").items()
        if not f"{path}/".startswith(_LEFT_OUT)
    }
    (work / ARCHIVE).write_bytes(initrd.pack(entries))
    return {"files": len(entries)}
