"""What a program needs of others, read from its ELF headers: nothing of it is run."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from rtscope.host.errors import BoardError


def needed(program: Path) -> tuple[str, ...]:
    """Return the shared libraries that a program or library names, in its order."""
    with program.open("rb") as file:
        section = _elf(file, program).get_section_by_name(".dynamic")
        if not isinstance(section, DynamicSection):
            return ()
        return tuple(
            str(tag.needed)
            for tag in section.iter_tags()
            if tag.entry.d_tag == "DT_NEEDED"
        )


def interpreter(program: Path) -> str | None:
    """Return the path of the loader that a program names; None for a static one."""
    with program.open("rb") as file:
        for segment in _elf(file, program).iter_segments():
            if isinstance(segment, InterpSegment):
                return str(segment.get_interp_name())
    return None


def libraries_of(programs: Iterable[Path], *, libs: Path) -> dict[str, Path]:
    """
    Return every library that programs need, directly or through others.

    By the name they are needed by, sorted; `libs` is where they are. Raises BoardError
    for one that is not there.
    """
    libraries: dict[str, Path] = {}
    todo = list(programs)
    while todo:
        user = todo.pop()
        for name in needed(user):
            if name in libraries:
                continue
            path = libs / name
            if "/" in name or not path.is_file():
                raise BoardError(f"{user.name} needs {name}, and no package has it")
            libraries[name] = path
            todo.append(path)
    return dict(sorted(libraries.items()))


def _elf(file: object, program: Path) -> ELFFile:
    try:
        return ELFFile(file)
    except ELFError as error:
        raise BoardError(f"{program.name}: not an ELF file ({error})") from error


def module_needs(module: Path) -> Iterator[str]:
    """Yield the names of the modules that a kernel module depends on."""
    with module.open("rb") as file:
        section = _elf(file, module).get_section_by_name(".modinfo")
        facts = section.data().split(b"\0") if section is not None else []
    for fact in facts:
        if fact.startswith(b"depends="):
            names = fact.removeprefix(b"depends=").decode("ascii", "replace")
            yield from (name for name in names.split(",") if name)
