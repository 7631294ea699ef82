"""
Kernels that no distribution has: built from its source package and our fragments.

The same source, fragments and compiler give the same bytes. A symbol that the kernel's
own rules turned into something else than what was asked for is an error: the kernel
would be another one than its name says.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from rtscope import process
from rtscope.board.kernels import CONFIG, IMAGE, SYMBOLS, KernelRow
from rtscope.errors import BoardError, TargetError
from rtscope.kernel.config import parse_config

RECIPE = 1
"""Counts up when the way a kernel is built changes."""

UNPACK_PATIENCE_S = 900.0
BUILD_PATIENCE_S = 4 * 3600.0

# By `uname -m`: the kernel's own name, the compiler's prefix, the image.
_ARCHES = {"riscv64": ("riscv", "riscv64-linux-gnu-", "arch/riscv/boot/Image")}

# What would otherwise be the time, the user and the machine of the build.
_SAME_BYTES = (
    "KBUILD_BUILD_TIMESTAMP=2026-01-01",
    "KBUILD_BUILD_USER=rtscope",
    "KBUILD_BUILD_HOST=rtscope",
    "KBUILD_BUILD_VERSION=1",
)


def read_fragments(names: Sequence[str]) -> str:
    """Return configuration fragments as one text, in their order."""
    folder = resources.files("rtscope.kernel").joinpath("fragments")
    return "\n".join(
        folder.joinpath(f"{name}.config").read_text("utf-8") for name in names
    )


def build_kernel(work: Path, root: Path, row: KernelRow) -> Mapping[str, Any]:
    """
    Build a kernel from an unpacked source package.

    Takes minutes on all CPUs, at low priority. Raises BoardError with the end of what
    the compiler said.
    """
    arch, prefix, image = _ARCHES[row.arch]
    compiler = _compiler(prefix)
    tree = _unpack(root)
    make = _Make(tree, (f"ARCH={arch}", f"CROSS_COMPILE={prefix}", *_SAME_BYTES))
    make(row.base)
    wanted = read_fragments(row.fragments)
    with (tree / ".config").open("a") as file:
        file.write("\n" + wanted)
    make("olddefconfig")
    resolved = (tree / ".config").read_text()
    refuse_differences(wanted, resolved)
    make(Path(image).name)
    release = make("kernelrelease").strip()
    shutil.copyfile(tree / image, work / IMAGE)
    shutil.copyfile(tree / "System.map", work / SYMBOLS)
    shutil.copyfile(tree / "vmlinux", work / "vmlinux")
    (work / CONFIG).write_text(resolved)
    return {"release": release, "compiler": compiler}


def refuse_differences(wanted: str, resolved: str) -> None:
    """Raise BoardError if a symbol is not what the fragments ask for."""
    asked = parse_config(wanted.encode(), source="fragments").options
    got = parse_config(resolved.encode(), source=".config").options
    wrong = [
        f"{name}={value} (became {got.get(name, 'n')})"
        for name, value in sorted(asked.items())
        if got.get(name, "n") != value
    ]
    if wrong:
        raise BoardError(f"this source cannot have {', '.join(wrong[:8])}")


class _Make:
    """`make` in a kernel tree, with the same settings every time."""

    def __init__(self, tree: Path, settings: tuple[str, ...]) -> None:
        path = os.environ.get("PATH", "/usr/bin:/bin")
        self._prefix = ("env", "-i", f"PATH={path}", "LC_ALL=C", *settings)
        self._tree = tree

    def __call__(self, goal: str) -> str:
        jobs = len(os.sched_getaffinity(0))
        argv = ["nice", *self._prefix, "make", "-s", f"-j{jobs}", "-C", str(self._tree)]
        return _run([*argv, "--no-print-directory", goal], patience_s=BUILD_PATIENCE_S)


def _unpack(root: Path) -> Path:
    archives = sorted((root / "usr/src").glob("linux-source-*.tar.xz"))
    if len(archives) != 1:
        raise BoardError(f"{len(archives)} archives in the source package")
    argv = ["tar", "-C", str(root), "-xf", str(archives[0])]
    _run(argv, patience_s=UNPACK_PATIENCE_S)
    return root / archives[0].name.removesuffix(".tar.xz")


def _compiler(prefix: str) -> str:
    missing = [
        program
        for program in (f"{prefix}gcc", "gcc", "make", "flex", "bison", "bc")
        if shutil.which(program) is None
    ]
    if missing:
        raise BoardError(
            f"to build this kernel {', '.join(missing)} must be installed "
            "(Debian, Ubuntu: apt install gcc-riscv64-linux-gnu gcc libc6-dev make "
            "flex bison bc), or "
            "import a bundle that has it: rtscope board import FILE"
        )
    return _run([f"{prefix}gcc", "--version"], patience_s=60).splitlines()[0]


def _run(argv: Sequence[str], *, patience_s: float) -> str:
    try:
        done = process.run(argv, timeout_s=patience_s)
    except TargetError as error:
        raise BoardError(str(error)) from error
    if done.status != 0:
        words = (done.stderr or done.stdout.decode("utf-8", "replace")).strip()
        raise BoardError(f"{argv[-1]} failed: {words[-800:]}")
    return done.stdout.decode("utf-8", "replace")
