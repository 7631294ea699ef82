"""
Functions and lines of 10,000 addresses: rtscope's beside those of addr2line.

The addresses are drawn by a seed from the functions of real files: libraries, programs
and debug files. Where binutils' addr2line says something else, that of elfutils or of
LLVM is asked, which read DWARF 5 as it was published. Names of one address are equal.
"""

import argparse
import mmap
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rtscope.programs.binaries.elf import Damaged
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.namer import Namer

Names = list[tuple[str, str]]
"""Functions, innermost first, each with name of the source file and line."""

JUDGES = {
    "addr2line": ("addr2line", "-aif", "-e"),
    "eu-addr2line": ("eu-addr2line", "-aif", "-e"),
    "llvm-symbolizer": (
        *("llvm-symbolizer", "--output-style=GNU", "-a", "-i", "--no-demangle"),
        *("--functions=linkage", "-e"),
    ),
}


def said_by(judge: str, path: Path, places: Sequence[int]) -> list[Names]:
    """Return what another tool says of places in a file."""
    done = subprocess.run(
        [*JUDGES[judge], str(path)],
        input="".join(f"{one:#x}\n" for one in places),
        capture_output=True,
        text=True,
        check=False,
    )
    groups = re.split(r"(?m)^0x[0-9a-f]+\n", done.stdout)[1:]
    names = []
    for group in groups:
        lines = group.strip().splitlines()
        functions = [_function(one) for one in lines[::2]]
        names.append(list(zip(functions, map(_place, lines[1::2]), strict=False)))
    return names


def _function(text: str) -> str:
    return re.sub(r"@.*| inlined at .*", "", text)


def _place(text: str) -> str:
    name = Path(text.split(" (")[0]).name
    parts = name.split(":")
    line = parts[1] if len(parts) > 1 and parts[1].isdigit() else "0"
    return f"{parts[0]}:{line}" if line != "0" else "??:0"


def image_of(path: Path) -> Image | str:
    """Return an ELF file, or why it is left out."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        return Image(data, str(path))
    except (OSError, ValueError, Damaged) as error:
        return f"left out: {path} is no ELF file that can be read: {error}"


def are_equal(image: Image, mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether each function is the same, or another name of its address."""
    return len(mine) == len(theirs) and all(
        one == other or bool(_places(image, one) & _places(image, other))
        for one, other in zip(mine, theirs, strict=True)
    )


def _places(image: Image, name: str) -> set[int]:
    return {one.vaddr for one in image.functions_named(name)}


def ours(image: Image, count: int, seed: int) -> tuple[dict[int, Names], float]:
    """Return names of places that are drawn, and the CPU seconds for them."""
    draw = random.Random(seed)
    functions = [(v, size) for v, size in image.symbols.ranges() if size > 1]
    places = set()
    for _ in range(count if functions else 0):
        begin, size = draw.choice(functions)
        places.add(begin + draw.randrange(size))
    began = time.process_time()
    found = Namer(lambda _: None, None, demangle=str).named(image, sorted(places))
    took_s = time.process_time() - began
    names = {
        place: [(f or "??", _place(f"{file}:{line}")) for f, file, line, _ in frames]
        or [("??", "??:0")]
        for place, frames in found.items()
    }
    return names, took_s


def main() -> None:
    """Print a row for each file, and what nobody else says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--show", type=int, default=3)
    asked = parser.parse_args()
    files = asked.files or [Path(sys.executable).resolve()]
    each = -(-asked.count // len(files))
    judges = [one for one in JUDGES if shutil.which(one)]
    if not judges:
        print("left out: no addr2line is installed")
        return
    print(f"| file | addresses | {' | '.join(judges)} | any of them | lines | CPU s |")
    print(f"|---|{'--:|' * (len(judges) + 4)}")
    for path in files:
        image = image_of(path)
        if isinstance(image, str):
            print(image)
            continue
        names, took_s = ours(image, each, asked.seed)
        places = list(names)
        said = {one: said_by(one, path, places) for one in judges}
        equal = {one: 0 for one in judges}
        any_, lines, shown = 0, 0, 0
        for number, place in enumerate(places):
            all_ = [said[one][number] for one in judges if number < len(said[one])]
            mine = [name for name, _ in names[place]]
            for one, theirs in zip(judges, all_, strict=False):
                equal[one] += are_equal(image, mine, [name for name, _ in theirs])
            same = any(are_equal(image, mine, [n for n, _ in said]) for said in all_)
            any_ += same
            lines += any(names[place] == theirs for theirs in all_)
            if not same and shown < asked.show:
                shown += 1
                print(f"  {path.name} {place:#x}: {mine}, not {all_}")
        numbers = " | ".join(f"{equal[one]:,}" for one in judges)
        print(
            f"| {path.name} | {len(places):,} | {numbers} | {any_:,} | {lines:,} "
            f"| {took_s:.1f} |"
        )


if __name__ == "__main__":
    main()
