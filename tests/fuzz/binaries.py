"""Mutated ELF files and debug information, read as the process does that may end."""

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from fuzz.mutate import mutated
from rtscope.programs.binaries.callsites import is_entered_from, pointer_called_before
from rtscope.programs.binaries.debuginfo import DebugInfo
from rtscope.programs.binaries.demangling import demangled
from rtscope.programs.binaries.elf import Damaged, ElfFile
from rtscope.programs.binaries.image import Image

ERRORS = (Damaged, IndexError, KeyError, OverflowError, ValueError, struct.error)
"""What `serving` takes for damage: the file is left out, and has a reason."""

_SOURCE = """
struct S { int a; struct S *next; };
static inline __attribute__((always_inline)) int inner(int n) { return n * 3 + 1; }
static __attribute__((noinline)) int middle(struct S *s, int n)
{ int sum = 0; for (int i = 0; i < n; i++) sum += inner(i) + s->a; return sum; }
int outer(struct S *s, char **v) { volatile char big[4000]; big[0] = v[0][0];
  return middle(s, big[0]) + inner(s->a); }
int main(int c, char **v) { struct S s = { c, 0 }; return outer(&s, v); }
"""
_CPP = """
#include <vector>
namespace n { template <class T> struct A { T t; int f(T x) { v.push_back(x);
 return v.size(); } std::vector<T> v; }; }
int main(int c, char **) { n::A<int> a; try { return a.f(c); } catch (...) {} }
"""
_LIBRARY = ("-shared", "-fPIC", "-nostdlib")
_BUILDS: Sequence[tuple[str, str, Sequence[str]]] = (
    *(("gcc", _SOURCE, ("-O1", "-g", f"-gdwarf-{n}")) for n in (2, 3, 4, 5)),
    ("gcc", _SOURCE, ("-O2", "-g", "-gz=zlib")),
    ("gcc", _SOURCE, ("-O2", "-g", "-ffunction-sections", *_LIBRARY)),
    ("gcc", _SOURCE, ("-O1", "-s")),
    ("gcc", _SOURCE, ("-O1", "-g", "-m32", *_LIBRARY)),
    ("gcc", _SOURCE, ("-O1", "-g", "-fno-asynchronous-unwind-tables", *_LIBRARY)),
    ("g++", _CPP, ("-O1", "-g", *_LIBRARY)),
)


@cache
def elf_files() -> Sequence[bytes]:
    """Return small programs and objects, with debug information of each version."""
    demangled("_Z3foov")  # loads the library of C++: no case may
    files = []
    with tempfile.TemporaryDirectory(prefix="rtscope-seeds-") as folder:
        for number, (compiler, text, options) in enumerate(_BUILDS):
            if shutil.which(compiler) is None:
                continue  # a minimal machine has none for C++
            source = Path(folder, f"s.{'c' if compiler == 'gcc' else 'cc'}")
            source.write_text(text)
            out = Path(folder, str(number))
            subprocess.run(
                [compiler, *options, "-o", out, source], check=True, cwd=folder
            )
            files.append(out.read_bytes())
    return files


def read_elf(data: bytes) -> object:
    """Read all that a check asks of a file in memory, but its debug information."""
    image = Image(data, "mutated")
    places = _places(image)
    return (
        image.build_id,
        image.lazy,
        image.why_hidden,
        image.functions_named("malloc"),
        image.slots,
        [
            is_entered_from(image, one, places, ("malloc",))
            for one in image.functions_named("outer")
        ],
        [pointer_called_before(image, one) for one in places],
        [image.symbol_at(one) for one in places],
        [image.frames.row_at(one) for one in places],
        [image.offset_of(one) for one in places],
    )


def read_debug_info(data: bytes) -> object:
    """Read the functions and lines of places in a file, and demangle them."""
    image = Image(data, "mutated")
    found = DebugInfo(image.elf).places(_places(image))
    return [demangled(one.function) for places in found.values() for one in places]


def _places(image: Image) -> Sequence[int]:
    begins = [one.vaddr for one in image.elf.segments if one.type == 1]
    code = image.elf.section(".text")
    begins += [] if code is None else [code.address]
    steps = (0, 1, 16, 0x33, 0x60, 0x1000, 0x1139, 0x1160, 0x1190)
    return [begin + step for begin in begins[:6] for step in steps]


_ALL = (1 << 64) - 1
_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, _ALL)


def mutated_elf(data: bytes, random: Random, *, most: int) -> bytes:
    """Change headers, symbols, notes and frames more often than code."""
    return _mutated(data, random, most, debug=False)


def mutated_debug_info(data: bytes, random: Random, *, most: int) -> bytes:
    """Change debug information more often than anything else."""
    return _mutated(data, random, most, debug=True)


def _mutated(data: bytes, random: Random, most: int, *, debug: bool) -> bytes:
    if not random.randrange(6):
        return mutated(data, random, most=most)
    parts = _parts(data, debug=debug)
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        part = random.choice(parts)
        if part.start >= len(content):
            continue
        at = random.randrange(part.start, min(part.stop, len(content)))
        size = random.choice((1, 1, 2, 4, 8))
        new = random.choice((*_NUMBERS, random.getrandbits(64)))
        content[at : at + size] = (new & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(content[:most])


def _parts(data: bytes, *, debug: bool) -> list[range]:
    """Return where something is that is read; all of it for a damaged file."""
    try:
        sections = ElfFile(data).sections
    except ERRORS:
        return [range(len(data))]
    words = ("debug",) if debug else ("sym", "str", "eh_frame", "note", "dyn", "rel")
    parts = [
        range(one.offset, one.offset + one.size)
        for one in sections
        if one.size and one.type != 8 and any(word in one.name for word in words)
    ]
    headers = int.from_bytes(data[40:48], "little")
    parts += [range(64), range(headers, headers + 64 * len(sections))]
    return [one for one in parts if one.start < min(one.stop, len(data))]
