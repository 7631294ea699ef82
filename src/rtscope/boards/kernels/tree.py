"""Source trees: find the version, copy a tree, move files into one."""

import hashlib
import os
import re
import shutil
from pathlib import Path

from rtscope.host.errors import KernelError, UsageError

_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", re.M)

# What a copy for building has no use for; the version would get a suffix from .git.
_LEFT_OUT = (".git", ".hg", ".svn")


def kernel_version(tree: Path) -> str:
    """Return the version in a source tree's Makefile, such as `6.1.176`."""
    makefile = tree / "Makefile"
    if not makefile.is_file() or not (tree / "Kconfig").is_file():
        raise UsageError(
            f"{tree}: not the source of a kernel (no Makefile and Kconfig)"
        )
    version: dict[str, str] = dict(
        _VERSION.findall(makefile.read_text("utf-8", "replace"))
    )
    if "VERSION" not in version:
        raise UsageError(f"{makefile}: has no VERSION")
    numbers = [
        version[n] for n in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if version.get(n)
    ]
    return ".".join(numbers) + version.get("EXTRAVERSION", "")


def copy_tree(source: Path, tree: Path) -> None:
    """Copy a user's source tree, without its history; the original stays as it is."""
    kernel_version(source)
    try:
        shutil.copytree(
            source, tree, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT)
        )
    except shutil.Error as error:
        why = error.args[0][0][2] if error.args[0] else error
        raise KernelError(f"cannot copy {source}: {why}") from error


def tree_digest(tree: Path) -> str:
    """Return one digest over names, kinds and contents of all files of a tree."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(set(folders) - set(_LEFT_OUT))
        # Of a worktree .git is a file.
        for name in sorted(set(files) - set(_LEFT_OUT)):
            path = Path(folder) / name
            digest.update(f"{path.relative_to(tree)}\0".encode())
            digest.update(_content_digest(path))
    return digest.hexdigest()


def move_files(source: Path, tree: Path, *, touched: set[str]) -> None:
    """Make the touched files of a tree what they are in another one."""
    for name in sorted(touched):
        new, old = source / name, tree / name
        if not new.exists():
            old.unlink(missing_ok=True)
            continue
        old.parent.mkdir(parents=True, exist_ok=True)
        # Not into the old file: a copy of the tree may share it by a hard link.
        old.unlink(missing_ok=True)
        shutil.move(new, old)


def _content_digest(path: Path) -> bytes:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(path.readlink())).digest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
