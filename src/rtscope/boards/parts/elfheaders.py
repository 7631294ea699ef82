"""The headers of a program or a library: its processor, its loader, its libraries."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from rtscope.boards.catalogue import Arch
from rtscope.host.errors import UsageError
from rtscope.programs.binaries.elf import Damaged, ElfFile, text_at

MAGIC = b"\x7fELF"
_INTERP = 3
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29


@dataclass(frozen=True, slots=True)
class Elf:
    """The headers of a program or a library."""

    path: PurePath
    content: bytes = field(repr=False)
    machine: str
    """The processor, as elf.h names it."""
    loader: str
    """The loader that it names; empty for a static program or a library."""
    needed: tuple[str, ...]
    """The libraries that it names."""
    own_places: tuple[PurePath, ...]
    """Where it says that its libraries are."""

    def refuse_other_than(self, arch: Arch) -> None:
        """Raise UsageError for a program that a board of this processor cannot run."""
        # a board has no libraries of 32 bits
        static32 = self.machine == arch.elf32 and not self.loader
        if self.machine != arch.elf and not static32:
            raise UsageError(
                f"{self.path} is built for {self.machine.removeprefix('EM_')}, and the "
                f"board is {arch.name}: compile it for {arch.name}"
            )


def elf_of(path: PurePath, content: bytes) -> Elf:
    """Read the headers, which may be damaged; UsageError then, and for a script."""
    try:
        elf = ElfFile(content)
        loader = _loader(elf)
        tags = list(_tags(elf))
    except Damaged as error:
        raise UsageError(
            f"{path}: no program in the ELF format ({error}); a board has no "
            "interpreter for scripts: name a compiled program"
        ) from error
    return Elf(
        path,
        content,
        elf.machine,
        loader,
        tuple(text for tag, text in tags if tag == _NEEDED),
        tuple(_own_places(path, tags)),
    )


def _loader(elf: ElfFile) -> str:
    for one in elf.segments:
        if one.type == _INTERP:
            return text_at(elf.data, one.offset)
    return ""


def _tags(elf: ElfFile) -> Iterator[tuple[int, str]]:
    """Yield the tags that name a text, with the text."""
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


def _own_places(path: PurePath, tags: list[tuple[int, str]]) -> Iterator[PurePath]:
    for kind in (_RUNPATH, _RPATH):
        for places in (text for tag, text in tags if tag == kind):
            for place in places.split(":"):
                for word in ("$ORIGIN", "${ORIGIN}"):
                    place = place.replace(word, str(path.parent))
                yield type(path)(place)
