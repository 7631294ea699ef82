"""
The modules for a packaged kernel, and the programs.

The modules are built by kbuild against the kernel's own headers, which are fetched as
the boards' packages are, and kept in the cache by the digest of sources and packages:
once 35 MB of packages for two kernels, and some 5 s of CPU time for each.
"""

import hashlib
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import get_kernel_row
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.aptroot import Package
from rtscope.boards.parts.buildcontext import (
    BuildContext,
    cached_lock,
    part_of_packages,
)
from rtscope.boards.parts.cache import cache_dir, locked
from rtscope.boards.parts.prepare import prepare_all
from rtscope.boards.recording.symbols import find_symbols, read_symbols
from rtscope.host import process
from rtscope.machine.target import agent_file

HERE = Path(__file__).parent
PATIENCE_S = 600.0

# The programs of kbuild are of the same release as the kernel, and need its C library.
RUN_HERE = ("linux-kbuild-", "libc6", "libelf1t64", "zlib1g", "libzstd1")
LIBS = "usr/lib/x86_64-linux-gnu"
PROGRAMS = {
    "scripts/basic/fixdep": "fixdep",
    "scripts/mod/modpost": "modpost.real-lsb-64",
    "tools/objtool/objtool": "objtool.real-x86",
}
# What newer compilers than this machine's may have been found able to do.
NOT_HERE = ("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=", "CONFIG_DEBUG_INFO_BTF_MODULES=")


@dataclass(frozen=True, slots=True)
class Kbuild:
    """How a module for another machine is built here."""

    debian: str
    """Debian's name of the architecture."""
    prefix: str = ""
    """Of the compiler's programs."""

    @property
    def words(self) -> tuple[str, ...]:
        """What to tell make."""
        if not self.prefix:
            return ("CC=gcc",)
        cross = f"CROSS_COMPILE={self.prefix}"
        return (f"ARCH={self.debian}", cross, f"CC={self.prefix}gcc")


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of modules that are built together."""

    name: str
    folder: Path
    modules: tuple[str, ...]
    headers: tuple[str, ...] = ()
    of_x86: tuple[str, ...] = ()
    """More modules, which only x86 has."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that kbuild reads."""
        names = (*self.modules, *self.of_x86)
        return ("Kbuild", *self.headers, *(f"{name}.c" for name in names))

    def on(self, arch: str) -> tuple[str, ...]:
        """Return the modules of an architecture."""
        return (*self.modules, *self.of_x86) if arch == "x86_64" else self.modules


MATRIX = Tree(
    "culprits",
    HERE / "modules",
    ("culprits", "dally", "near", "far", "styles", "held"),
    ("dally.h",),
    of_x86=("tricks", "probes"),
)

KBUILD = {
    "x86_64": Kbuild("amd64"),
    "aarch64": Kbuild("arm64", "aarch64-linux-gnu-"),
}


def build_rival(into: Path, *, arch: str = "x86_64") -> Path:
    """Compile the program for any board of an architecture."""
    return build_program(HERE / "rival.c", into, arch=arch)


def build_program(source: Path, into: Path, *, arch: str = "x86_64") -> Path:
    """Compile a program of one file for any board of an architecture."""
    made = into / source.stem
    if arch == "x86_64":
        compiler: tuple[str, ...] = ("gcc",)
    else:
        # With the agent's options its C library is already there, from the agent.
        cache = HERE.parents[1] / "agent/build/zig-cache"
        places = (f"ZIG_{of}_CACHE_DIR={cache}" for of in ("LOCAL", "GLOBAL"))
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl")
        compiler = ("env", *places, *zig, "-g0", "-s")
    options = ("-static", "-O2", "-pthread")
    _run(*compiler, *options, "-o", str(made), str(source))
    return made


def know_kernel(kernel: str, *, board: str = "pc") -> BuildContext:
    """Have a packaged kernel of a board in the cache, with its symbols."""
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=lambda _text: None)
    (prepared,) = prepare_all(get_board(board), [kernel], context=context)
    parts = {part.name: part.digest for part in prepared.parts}
    digest = prepared.kernel.digest
    if find_symbols(context.cache, digest, modules={}, parts=parts) is None:
        # Without them the names of tasks would not be recorded.
        read_symbols(prepared, cache=context.cache, log=context.log)
    return context


def build_module(kernel: str, into: Path, *, board: str = "pc") -> Path:
    """Return the module `culprits` for a packaged kernel, named after its release."""
    return build_modules(kernel, into, board=board)["culprits"]


def build_modules(
    kernel: str, into: Path, *, board: str = "pc", tree: Tree = MATRIX
) -> Mapping[str, Path]:
    """Return the modules by name; RELEASE.ko is `culprits`, RELEASE-near.ko `near`."""
    context = know_kernel(kernel, board=board)
    arch = get_board(board).arch
    row = get_kernel_row(kernel, arch)
    kbuild = KBUILD[arch]
    modules = tree.on(arch)
    image = cached_lock(context.cache).parts[f"kernel-{kernel}-{arch}"][0]
    release = image.name.removeprefix("linux-image-").removesuffix("-unsigned")

    def resolve(root: Path) -> tuple[Package, ...]:
        found = [
            package
            for names, debian in (
                ([f"linux-headers-{release}"], kbuild.debian),
                ([f"linux-kbuild-{release.split('-')[0]}"], "amd64"),
            )
            for package in aptroot.resolve(
                names,
                arch=debian,
                root=root / debian,
                dependencies=True,
                suite=row.suite,
            )
            if package.name.startswith("linux-headers-")
            or (package.name.startswith(RUN_HERE) and debian == "amd64")
        ]
        return tuple(dict.fromkeys(found))

    sources = {name: (tree.folder / name).read_bytes() for name in tree.sources}
    digests = {n: hashlib.sha256(text).hexdigest() for n, text in sources.items()}

    def build(work: Path, root: Path) -> Mapping[str, Any]:
        headers = root / "usr/src" / f"linux-headers-{release}"
        _run_anywhere(root)
        _make_relative(headers, root)
        place = root / "module"
        place.mkdir()
        for name, text in sources.items():
            (place / name).write_bytes(text)
        words = (*kbuild.words, *NOT_HERE, "modules")
        _run("make", "-C", str(headers), f"M={place}", *words)
        strip = f"{kbuild.prefix}objcopy"
        for name in modules:
            made = f"{name}.ko"
            _run(strip, "--strip-debug", str(place / made), str(work / made))
        return {"release": release}

    with locked(context.cache, log=context.log):
        part = part_of_packages(
            context,
            f"{tree.name}-{release.replace('+', '-')}",
            resolve,
            recipe=digests,
            build=build,
        )
    named = {
        name: into / f"{release}{'' if name == 'culprits' else f'-{name}'}.ko"
        for name in modules
    }
    for name, path in named.items():
        shutil.copy(part.file(f"{name}.ko"), path)
    return named


def _run_anywhere(root: Path) -> None:
    """Let kbuild's programs run where the C library is older than theirs."""
    (kbuild,) = (root / "usr/lib").glob("linux-kbuild-*")
    loader = root / LIBS / "ld-linux-x86-64.so.2"
    if not loader.exists():
        loader = root / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    libs = f"{root / LIBS}:{loader.parent}"
    for place, real in PROGRAMS.items():
        path = kbuild / place
        target = path.with_name(real)
        if target == path:
            target = path.with_name(f"{path.name}.packaged")
            path.rename(target)
        path.write_text(
            f'#!/bin/sh\nexec {loader} --library-path {libs} {target} "$@"\n'
        )
        path.chmod(0o755)


def _make_relative(headers: Path, root: Path) -> None:
    """The headers' Makefile includes that of all flavours by its installed path."""
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src", f"{root}/usr/src"))


def _run(*argv: str) -> None:
    done = process.run(argv, timeout_s=PATIENCE_S)
    assert done.status == 0, f"{argv}: {done.stderr[-2000:]}"
