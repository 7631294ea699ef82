"""
A program of the user's for a board: its file, its loader and its libraries.

Nothing of it is run here. On the board it has a root directory of its own, so that its
libraries are not mixed with those of the board's stress-ng.
"""

import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rtscope.boards.catalogue import Arch
from rtscope.boards.parts.initrd import MAX_FILES_BYTES
from rtscope.host.errors import UsageError
from rtscope.programs.binaries.elf import Damaged, ElfFile, text_at

ROOT = "program"
"""The directory of the board that the program has as its root directory."""

LIBRARIES = "lib"
"""Where its libraries are, below its root directory, all in one directory."""

_SYSTEM = ("lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib")
_INTERP = 3
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29
_STATIC = "link it statically (gcc -static)"


@dataclass(frozen=True, slots=True)
class Program:
    """What a board needs to run a command."""

    command: tuple[str, ...]
    """With the path that the program has below its own root directory."""
    files: Mapping[str, bytes]
    """By their paths on the board, without the first slash."""
    dynamic: bool

    def image(self, path: str) -> bytes | None:
        """Return the file that the board has at an absolute path; None: not of it."""
        return self.files.get(path.removeprefix("/"))


def program_of(command: Sequence[str], arch: Arch) -> Program:
    """
    Return a command with all files that it needs; UsageError if a board cannot run it.

    The first word is a file of this computer, or a name in PATH; the others are passed
    on as they are.
    """
    path = _program_path(command[0])
    elf = _Elf(path, _content(path))
    elf.refuse_other_than(arch)
    files = {f"{ROOT}/{path.name}": elf.content}
    if elf.loader:
        files[f"{ROOT}{elf.loader}"] = _loader(elf, arch)
    for name, content in _libraries(elf, arch).items():
        files[f"{ROOT}/{LIBRARIES}/{name}"] = content
    total = sum(map(len, files.values()))
    if total > MAX_FILES_BYTES:
        raise UsageError(
            f"{path}: with its libraries it has {total >> 20} MiB, and a board takes "
            f"{MAX_FILES_BYTES >> 20}: strip --strip-debug them"
        )
    return Program((f"/{path.name}", *command[1:]), files, dynamic=bool(elf.loader))


def _program_path(name: str) -> Path:
    path = shutil.which(name)
    if path is None:
        raise UsageError(
            f"{name}: there is no such program on this computer, or it may not be run: "
            "name the file that the board gets, e.g. ./control"
        )
    return Path(path).resolve()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


class _Elf:
    """The headers of a program or library, which may be damaged."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content
        try:
            self._file = ElfFile(content)
            self.loader = self._read_loader()
            self._tags = list(self._read_tags())
        except Damaged as error:
            raise UsageError(
                f"{path}: no program in the ELF format ({error}); a board has no "
                "interpreter for scripts: name a compiled program"
            ) from error

    @property
    def machine(self) -> str:
        """The processor, as elf.h names it."""
        return self._file.machine

    def _read_loader(self) -> str:
        """Return the loader that it names; empty for a static program or a library."""
        for one in self._file.segments:
            if one.type == _INTERP:
                return text_at(self._file.data, one.offset)
        return ""

    def _read_tags(self) -> Iterator[tuple[int, str]]:
        """Yield the tags that name a text, with the text."""
        elf = self._file
        dynamic = elf.section(".dynamic")
        if dynamic is None or dynamic.link >= len(elf.sections):
            return
        texts = elf.content(elf.sections[dynamic.link])
        form = elf.order + ("QQ" if elf.word_bytes == 8 else "II")
        content = elf.content(dynamic)
        whole = len(content) - len(content) % struct.calcsize(form)
        for tag, value in struct.iter_unpack(form, content[:whole]):
            if tag in (_NEEDED, _RPATH, _RUNPATH):
                yield tag, text_at(texts, value)

    @property
    def needed(self) -> tuple[str, ...]:
        """The libraries that it names."""
        return tuple(text for tag, text in self._tags if tag == _NEEDED)

    @property
    def own_places(self) -> Iterator[Path]:
        """Yield where it says that its libraries are."""
        for kind in (_RUNPATH, _RPATH):
            for places in (text for tag, text in self._tags if tag == kind):
                for place in places.split(":"):
                    here = str(self.path.parent)
                    for word in ("$ORIGIN", "${ORIGIN}"):
                        place = place.replace(word, here)
                    yield Path(place)

    def refuse_other_than(self, arch: Arch) -> None:
        # a board has no libraries of 32 bits
        static32 = self.machine == arch.elf32 and not self.loader
        if self.machine != arch.elf and not static32:
            raise UsageError(
                f"{self.path} is built for {self.machine.removeprefix('EM_')}, and the "
                f"board is {arch.name}: compile it for {arch.name}"
            )


def _loader(elf: _Elf, arch: Arch) -> bytes:
    for place in (Path(elf.loader), Path("/usr") / arch.triplet / elf.loader[1:]):
        if place.is_file():
            loader = _Elf(place, _content(place))
            if loader.machine == arch.elf:
                return loader.content
    raise UsageError(
        f"{elf.path} needs the loader {elf.loader}, which this computer does not have: "
        f"{_STATIC}"
    )


def _libraries(program: _Elf, arch: Arch) -> Mapping[str, bytes]:
    """Return every library that it needs, by name; UsageError for one not here."""
    libraries: dict[str, bytes] = {}
    todo = [program]
    loader = PurePosixPath(program.loader).name
    while todo:
        user = todo.pop()
        for name in user.needed:
            if name in libraries or name == loader:
                continue
            library = _library(name, (user, program), arch)
            if library is None:
                raise UsageError(
                    f"{program.path}: {user.path.name} needs {name}, which this "
                    f"computer does not have for {arch.name}: {_STATIC}"
                )
            libraries[name] = library.content
            todo.append(library)
    return dict(sorted(libraries.items()))


def _library(name: str, users: Sequence[_Elf], arch: Arch) -> _Elf | None:
    own = [place for user in users for place in user.own_places]
    cross = Path("/usr") / arch.triplet / "lib"
    system = [Path("/") / place for place in (arch.libs, *_SYSTEM)]
    multi = Path("/usr/local/lib") / arch.triplet
    for place in (*own, *system, multi, cross):
        path = place / name
        try:
            if not path.is_file():
                continue
            library = _Elf(path.resolve(), _content(path))
        except UsageError:
            continue  # a linker script, or a file of another user
        if library.machine == arch.elf:
            return library
    return None
