"""
Place sections of a known length in the image of a kernel of the jh7110.

The image is the kernel's text as it lies in memory, so that a function in it can be
overwritten: here a system call that no load uses.
"""

import os
import subprocess
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

from rtscope.boards.kernels.catalogue import IMAGE, SYMBOLS
from rtscope.boards.kernels.recipe import get_recipe
from rtscope.boards.kernels.sourcekernel import newest_of
from rtscope.boards.parts.cache import all_parts, cache_dir

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

PLACE = "__riscv_sys_ptrace"
"""The system call that is overwritten; `explain` blames what is planted by its name."""

_FUNCTIONS = {
    "LOCK_IRQSAVE": "_raw_spin_lock_irqsave",
    "UNLOCK_IRQRESTORE": "_raw_spin_unlock_irqrestore",
}
_STATE, _STATE_AT = "poweroff_cmd", 128
"""A command of 256 bytes for orderly_poweroff(), which no board calls."""


def patched_kernel(kernel: str, into: Path) -> Path:
    """Return the image of a kernel that is built here, with the sections in it."""
    part = newest_of(all_parts(cache_dir()), get_recipe(kernel))
    assert part is not None
    rows = [line.split() for line in part.file(SYMBOLS).read_text().splitlines()]
    addresses = {name: int(address, 16) for address, _kind, name in rows}
    begin = addresses[PLACE]
    end = min(address for address in addresses.values() if address > begin)
    code = _code(into, addresses)
    assert len(code) <= end - begin
    image = bytearray(part.file(IMAGE).read_bytes())
    at = begin - addresses["_start"]
    image[at : at + len(code)] = code
    patched = into / f"{kernel}-planted"
    patched.write_bytes(image)
    return patched


def build_sweep(into: Path) -> Path:
    """Compile the program that plants."""
    made = into / "sweep"
    _compile(HERE / "sweep.c", made, "-nostdlib", "-static")
    return made


def _code(into: Path, addresses: dict[str, int]) -> bytes:
    defined = {key: addresses[name] for key, name in _FUNCTIONS.items()}
    defined["STATE"] = addresses[_STATE] + _STATE_AT
    made = into / "section.o"
    _compile(
        HERE / "section.c",
        made,
        *("-c", "-mno-relax"),
        *(f"-D{name}={value:#x}UL" for name, value in defined.items()),
    )
    with made.open("rb") as file:
        elf = ELFFile(file)
        # What is placed elsewhere must need nothing of its former place.
        assert elf.get_section_by_name(".rela.text") is None
        symbols = elf.get_section_by_name(".symtab")
        (section,) = symbols.get_symbol_by_name("section")
        assert section["st_value"] == 0
        return bytes(elf.get_section_by_name(".text").data())


def _compile(source: Path, made: Path, *options: str) -> None:
    cache = str(ROOT / "agent/build/zig-cache")
    zig_dirs = {"ZIG_LOCAL_CACHE_DIR": cache, "ZIG_GLOBAL_CACHE_DIR": cache}
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "riscv64-freestanding")
    words = (*zig, *options, "-ffreestanding", "-g0", "-Os", "-Wall", "-Wextra")
    subprocess.run(
        [*words, "-o", str(made), str(source)],
        env={**os.environ, **zig_dirs},
        check=True,
    )
