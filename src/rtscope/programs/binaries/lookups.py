"""Where a dynamic linker looks a function up at its first call: probed, as calls are.

The one of glibc then enters a routine of its own, by the stubs of a file that is linked
without `-z now`. It has no symbol in most distributions, but always begins alike.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from rtscope.programs.binaries.image import Image

LOOKUP = "lookup"
"""The event of a function that is looked up."""

LOADERS = ("ld-linux", "ld-2", "ld.so", "ld64")
"""How the names of dynamic linkers begin."""

_NAMES = ("", "_fxsave", "_xsave", "_xsavec")
# push %rbx; mov %rsp,%rbx; and $-64 or $-16,%rsp; before them maybe endbr64
_BEGINS = {
    "EM_X86_64": re.compile(rb"(\xf3\x0f\x1e\xfa)?SH\x89\xe3H\x83\xe4[\xc0\xf0]")
}
_MOST = 8
"""Places that are taken: more begin alike in no linker that was seen."""


def is_loader(image: Image) -> bool:
    """Whether a file is a dynamic linker."""
    return PurePosixPath(image.name).name.startswith(LOADERS)


def lookups_in(image: Image) -> Iterator[tuple[str, int]]:
    """Yield where a dynamic linker begins to look a function up; Damaged if cut."""
    known = [
        symbol.vaddr
        for name in _NAMES
        for symbol in image.functions_named(f"_dl_runtime_resolve{name}")
    ]
    for vaddr in dict.fromkeys((known or _by_code(image))[:_MOST]):
        offset = image.offset_of(vaddr)
        if offset is not None:
            yield LOOKUP, offset


def _by_code(image: Image) -> Sequence[int]:
    begins = _BEGINS.get(image.elf.machine)
    text = image.elf.section(".text")
    if begins is None or text is None:
        return ()
    found = begins.finditer(bytes(image.elf.content(text)))
    return [text.address + one.start() for one in found]
