"""
A program of the user's for a board: its files, its loader and its libraries.

Nothing of it is run here. On the board it has a root directory of its own, so that its
libraries are not mixed with those of the board's stress-ng. What the tree of its files
lacks is taken from this computer: the program itself, its loader, its libraries.
"""

import posixpath
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

from rtscope.boards.catalogue import Arch
from rtscope.boards.parts.elfheaders import MAGIC, Elf, elf_of
from rtscope.boards.parts.initrd import MAX_FILES_BYTES, Entry, File
from rtscope.boards.parts.programtree import ProgramTree
from rtscope.host.errors import UsageError

ROOT = "program"
"""The directory of the board that the program has as its root directory."""

LIBRARIES = "lib"
"""Where libraries of this computer are, below its root directory."""

PATH = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
"""Where a name without a slash is looked up in the tree."""

PACKAGES = {
    **{"python3": "python3-minimal", "perl": "perl-base", "sh": "dash"},
    **{
        "bash": "bash",
        "dash": "dash",
        "lua": "lua5.4",
        "ruby": "ruby",
        "env": "coreutils",
    },
}
"""Packages of interpreters."""

_SYSTEM = ("lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib")
_STATIC = "link it statically (gcc -static)"
_MAX_SCRIPT_LINE = 255


@dataclass(frozen=True, slots=True)
class Program:
    """What a board needs to run a command."""

    command: tuple[str, ...]
    """With the path that the program has below its own root directory."""
    tree: Mapping[str, Entry]
    """By their paths on the board, without the first slash."""
    libraries: tuple[str, ...]
    """Directories below its root for LD_LIBRARY_PATH; empty: a static program."""

    @property
    def files(self) -> Mapping[str, bytes]:
        """The regular files by their paths on the board, without the first slash."""
        return {
            path: entry.content
            for path, entry in self.tree.items()
            if isinstance(entry, File)
        }

    def image(self, path: str) -> bytes | None:
        """Return the file that the board has at an absolute path; None: not of it."""
        entry = self.tree.get(path.removeprefix("/"))
        return entry.content if isinstance(entry, File) else None


def program_of(
    command: Sequence[str],
    arch: Arch,
    *,
    tree: ProgramTree | None = None,
    base: Path = Path(),
    checked: Sequence[str] = (),
    scripts: bool = True,
) -> Program:
    """
    Return a command with all files that it needs; UsageError if a board cannot run it.

    The first word is a file of the tree, a file of this computer, or a name in their
    PATHs; the others are passed on as they are. A script needs a tree with its
    interpreter, and none is taken without `scripts`. Relative paths of this computer
    begin at `base`. The libraries of the files `checked` of the tree are looked up too:
    those that a program opens itself.
    """
    own = ProgramTree(MAX_FILES_BYTES) if tree is None else tree
    found = _Finder(own, arch, libraries=[LIBRARIES])
    place, origin = _placed(command[0], own, base)
    words: list[str] = [f"/{place}"]
    content = _at(own, place)
    if scripts and tree is not None and content.startswith(b"#!"):
        words = [*_interpreter(place, content, own), f"/{place}"]
        origin = None
    elf = found.take(words[0], origin)
    for path in checked:
        if _at(own, path).startswith(MAGIC):
            found.take(path)
    entries = {f"{ROOT}/{path}": entry for path, entry in own.entries.items()}
    return Program(
        (*words, *command[1:]),
        dict(sorted(entries.items())),
        tuple(f"/{one}" for one in found.libraries) if elf.loader else (),
    )


def _at(tree: ProgramTree, place: str) -> bytes:
    file = tree.file(place)
    return b"" if file is None else file.content


# --- the program ----------------------------------------------------------------------


def _placed(word: str, tree: ProgramTree, base: Path) -> tuple[str, Path | None]:
    """
    Return where the tree has the program; put it there from this computer.

    With its path on this computer, if it is from there.
    """
    if "/" not in word:
        inside = _in_path(word, tree)
    else:
        inside = word if word.startswith("/") and tree.file(word) else None
    if inside is not None:
        return tree.real(inside), None
    path = Path(shutil.which((base / word).absolute() if "/" in word else word) or "")
    if not path.name:
        if "/" in word and tree.file(word):
            return tree.real(word), None
        raise UsageError(
            f"{word}: there is no such program on this computer, or it may not be run: "
            "name the file that the board gets, e.g. ./control"
        )
    resolved = path.resolve()
    tree.put(resolved.name, File(_content(resolved), runs=True))
    return tree.real(resolved.name), resolved


def _in_path(name: str, tree: ProgramTree) -> str | None:
    places = (f"{folder}/{name}" for folder in PATH)
    return next((place for place in places if tree.file(place)), None)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _interpreter(place: str, content: bytes, tree: ProgramTree) -> list[str]:
    """Return the interpreter that a script names, and its argument."""
    line = content.partition(b"\n")[0][2:_MAX_SCRIPT_LINE]
    words = line.decode("utf-8", "replace").strip().split(maxsplit=1)
    name = PurePosixPath(words[0]).name if words else ""
    if name == "env" and len(words) > 1:
        words = shlex.split(words[1].removeprefix("-S "))
        name = PurePosixPath(words[0]).name if words else ""
    inside = words[0] if words and tree.file(words[0]) else _in_path(name, tree)
    if not name or inside is None:
        package = PACKAGES.get(name) or ("" if name else "python3-minimal")
        add = (
            f'add its package: packages = ["{package}"], or --package {package}'
            if package
            else "give the board its file (--files, --root), or name its package"
        )
        raise UsageError(
            f"/{place} is a script for {words[0] if words else 'no interpreter'}, "
            f"which the board does not have: {add}"
        )
    return [f"/{tree.real(inside)}", *words[1:]]


# --- its loader and its libraries -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Finder:
    tree: ProgramTree
    arch: Arch
    libraries: list[str]
    """Directories of the tree, in the order in which they were needed."""

    def take(self, place: str, origin: Path | None = None) -> Elf:
        """
        Put what a program of the tree needs beside it; UsageError if it cannot.

        `origin` is where this computer has the program, if it is from there.
        """
        content = _at(self.tree, place)
        program = elf_of(origin or PurePosixPath("/", place), content)
        program.refuse_other_than(self.arch)
        if program.loader and self.tree.file(program.loader) is None:
            loader = File(_loader(program, self.arch), runs=True)
            self.tree.put(program.loader, loader)
        there = elf_of(PurePosixPath("/", place), content)
        self._take_libraries(program, there)
        return program

    def _take_libraries(self, program: Elf, there: Elf) -> None:
        loader = PurePosixPath(program.loader).name
        taken, todo = {loader}, [program]
        while todo:
            user = todo.pop()
            for name in user.needed:
                if name in taken:
                    continue
                taken.add(name)
                library = self._library(name, (user, program, there))
                if library is None:
                    raise UsageError(
                        f"{program.path}: {user.path.name} needs {name}, which this "
                        f"computer does not have for {self.arch.name}: {_STATIC}"
                    )
                todo.append(library)

    def _library(self, name: str, users: Sequence[Elf]) -> Elf | None:
        own = [place for user in users for place in user.own_places]
        for folder in (*own, *_system(self.arch)):
            place = posixpath.join(str(folder), name)
            file = self.tree.file(place)
            if file is not None and (elf := self._fitting(place, file.content)):
                self._note(str(folder).strip("/"))
                return elf
        for folder in (*own, *_system(self.arch)):
            path = Path("/", folder, name)
            try:
                if not path.is_file():
                    continue
                content = _content(path)
            except OSError:
                continue
            if elf := self._fitting(path.resolve(), content):
                self.tree.put(f"{LIBRARIES}/{name}", File(content, runs=True))
                return elf
        return None

    def _fitting(self, path: PurePath | str, content: bytes) -> Elf | None:
        try:
            elf = elf_of(PurePath(path), content)
        except UsageError:
            return None  # a linker script, or a file of another user
        return elf if elf.machine == self.arch.elf else None

    def _note(self, folder: str) -> None:
        if folder not in self.libraries:
            self.libraries.append(folder)


def _system(arch: Arch) -> Iterator[PurePath]:
    for place in (arch.libs, *_SYSTEM):
        yield PurePosixPath("/", place)
    yield PurePosixPath("/usr/local/lib", arch.triplet)
    yield PurePosixPath("/usr", arch.triplet, "lib")


def _loader(elf: Elf, arch: Arch) -> bytes:
    for place in (Path(elf.loader), Path("/usr") / arch.triplet / elf.loader[1:]):
        if place.is_file():
            loader = elf_of(place, _content(place))
            if loader.machine == arch.elf:
                return loader.content
    raise UsageError(
        f"{elf.path} needs the loader {elf.loader}, which this computer does not have: "
        f"{_STATIC}"
    )
