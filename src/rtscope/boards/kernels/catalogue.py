"""
The kernels that are known by name: packaged ones, and recipes for those that we build.

A packaged kernel (`kernels.toml`) is not touched. Its modules for the storage load are
decompressed, because busybox inserts them as they are.
"""

import difflib
import lzma
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import read_table, tuples
from rtscope.boards.kernels import build
from rtscope.boards.kernels.recipe import Recipe, get_recipe, recipe_names
from rtscope.boards.parts import aptroot, initrd
from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.guestkernel import without_signature
from rtscope.host.errors import BoardError, UsageError
from rtscope.machine.kernelimage import arch_of_image, image_bytes, missing_bytes

RECIPE = 1
"""Counts up when what is kept of a package changes."""

IMAGE = "kernel"
CONFIG = "config"
MODULES = "modules.cpio"
EVENT_MODULES = "event-modules.cpio"
SYMBOLS = "System.map"
DEVICE_TREES = "dtbs.tar"

MAX_MODULE_BYTES = 64 << 20

BOOTS = {"x86_64": "bzImage", "aarch64": "Image or Image.gz", "riscv64": "Image"}
"""What of a kernel's build QEMU boots."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A row of `kernels.toml` for one architecture; the file explains the fields."""

    name: str
    title: str
    arch: str
    package: str = ""
    modules: tuple[str, ...] = ()
    event_modules: tuple[str, ...] = ()
    device_trees: tuple[str, ...] = ()
    suite: str = aptroot.SUITE
    recipe: Recipe | None = None
    """How it is built, of a kernel that is not packaged."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that a board can boot."""

    name: str
    image: Path
    digest: str
    """SHA-256 of the image: the identity of the kernel."""
    release: str | None = None
    """As `uname -r` prints it; None for a file of the user's."""
    config: Path | None = None
    modules: Path | None = None
    """An archive of what the storage load needs; None if all is built in."""
    event_modules: Path | None = None
    """The same of what events need."""
    device_trees: Path | None = None
    """An archive with dtbs/VENDOR/*.dtb; None if there are none."""


def kernel_names(arch: str | None = None) -> tuple[str, ...]:
    """Return the names of all kernels, or of those for an architecture."""
    packaged = [n for n, rows in _catalogue().items() if arch is None or arch in rows]
    ours = [n for n in recipe_names() if arch is None or get_recipe(n).arch == arch]
    return (*packaged, *ours)


def get_kernel_row(name: str, arch: str) -> KernelRow:
    """Return a kernel of the catalogue; UsageError names those there are."""
    names = kernel_names(arch)
    if name not in names:
        near = difflib.get_close_matches(name[:64], names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"no kernel {name[:64]!r} for {arch}{hint} (kernels: {', '.join(names)}, "
            "or the path of an image)"
        )
    if name in _catalogue():
        return _catalogue()[name][arch]
    return recipe_row(get_recipe(name), arch)


def recipe_row(recipe: Recipe, arch: str) -> KernelRow:
    """Return the row of a recipe; UsageError if it is for another architecture."""
    if recipe.arch != arch:
        raise UsageError(f"{recipe.name} is a kernel for {recipe.arch}, not for {arch}")
    return KernelRow(recipe.name, recipe.title, arch, recipe=recipe)


def kernel_of_part(part: Part, name: str) -> Kernel:
    """Return the kernel of a built part."""
    files = part.manifest["files"]

    def file_of(file: str) -> Path | None:
        return part.file(file) if file in files else None

    return Kernel(
        name=name,
        image=part.file(IMAGE),
        digest=files[IMAGE]["sha256"],
        release=part.manifest["notes"]["release"],
        config=file_of(CONFIG),
        modules=file_of(MODULES),
        event_modules=file_of(EVENT_MODULES),
        device_trees=file_of(DEVICE_TREES),
    )


def keep_packaged(work: Path, root: Path, row: KernelRow) -> Mapping[str, Any]:
    """Keep, of an unpacked package, the image, its configuration and some modules."""
    images = sorted((root / "boot").glob("vmlinu[xz]-*"))
    if len(images) != 1:
        raise BoardError(f"{row.package}: {len(images)} kernel images in the package")
    release = images[0].name.partition("-")[2]
    (work / IMAGE).write_bytes(images[0].read_bytes())
    (work / CONFIG).write_bytes((root / "boot" / f"config-{release}").read_bytes())
    folders = [root / base / release for base in ("usr/lib/modules", "lib/modules")]
    (work / MODULES).write_bytes(_pack_modules(row.modules, folders, work=work))
    (work / EVENT_MODULES).write_bytes(
        _pack_modules(row.event_modules, folders, work=work)
    )
    _pack_device_trees(row, root / f"usr/lib/linux-image-{release}", work)
    return {"release": release, "modules": list(row.modules)}


def _pack_device_trees(row: KernelRow, folder: Path, work: Path) -> None:
    if not row.device_trees:
        return
    kept = work / "trees"
    for name in row.device_trees:
        if not (folder / name).is_file():
            raise BoardError(f"the package has no device tree {name}")
        (kept / "dtbs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, kept / "dtbs" / name)
    build.pack_folder(kept, work / DEVICE_TREES)
    shutil.rmtree(kept)


def event_modules_of(kernel: Kernel) -> Mapping[str, bytes]:
    """Return the modules that a kernel has for events, by the names of their files."""
    if kernel.event_modules is None:
        return {}
    entries = initrd.unpack(kernel.event_modules.read_bytes())
    order = entries[_ORDER]
    assert isinstance(order, initrd.File)
    found: dict[str, bytes] = {}
    for line in order.content.decode().splitlines():
        entry = entries[f"lib/modules/{line.split()[0]}"]
        assert isinstance(entry, initrd.File)
        found[line.split()[0]] = without_signature(entry.content)
    return found


_ORDER = "lib/modules/order"


def _pack_modules(
    names: Sequence[str], folders: Sequence[Path], *, work: Path
) -> bytes:
    entries: dict[str, initrd.Entry] = {}
    order = ""
    for line in names:
        name, _, parameters = line.partition(" ")
        content = _module(name, folders)
        loose = work / f"{name}.ko"
        loose.write_bytes(content)
        needs = [f"lib/modules/{need}.ko" for need in initrd.module_needs(loose)]
        loose.unlink()
        if late := [need for need in needs if need not in entries]:
            raise BoardError(f"{name} needs {', '.join(late)} to be inserted before it")
        entries[f"lib/modules/{name}.ko"] = initrd.File(content)
        order += f"{name}.ko {parameters}\n"
    entries[_ORDER] = initrd.File(order.encode())
    return initrd.pack(entries)


def _module(name: str, folders: Sequence[Path]) -> bytes:
    for path in _files_called(name, folders):
        if path.suffix == ".xz":
            return lzma.LZMADecompressor().decompress(
                path.read_bytes(), max_length=MAX_MODULE_BYTES
            )
        return path.read_bytes()
    raise BoardError(f"the package has no module {name}")


def _files_called(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for ending in (".ko", ".ko.xz"):
            yield from sorted(folder.rglob(f"{name}{ending}"))


@cache
def _catalogue() -> Mapping[str, Mapping[str, KernelRow]]:
    return {
        name: {
            arch: KernelRow(name=name, title=row["title"], arch=arch, **tuples(build))
            for arch, build in row["for"].items()
        }
        for name, row in read_table("kernels").items()
    }


def bootable_image(path: Path, arch: str) -> bytes:
    """Return an image; UsageError if it certainly does not boot on an architecture."""
    if path.is_dir():
        raise UsageError(
            f"--kernel {path}: a directory; name the image in it ({BOOTS[arch]})"
        )
    if not path.exists():
        raise UsageError(f"--kernel {path}: no such file")
    try:
        image = image_bytes(path)
    except UsageError as error:
        raise UsageError(f"--kernel {error}") from error
    refuse_unbootable(image, path, arch)
    return image


def refuse_unbootable(image: bytes, path: Path, arch: str) -> None:
    """Raise UsageError for an image that certainly does not boot on an architecture."""
    actual = arch_of_image(image)
    if actual is None:
        raise UsageError(
            f"--kernel {path}: no kernel image; for {arch} name the "
            f"build's {BOOTS[arch]}"
        )
    if actual != arch:
        raise UsageError(
            f"--kernel {path}: a kernel for {actual}, and the board is {arch}; name "
            "an image for it, or another board (rtscope board list)"
        )
    if image[:2] == b"\x1f\x8b" and arch != "aarch64":
        raise UsageError(
            f"--kernel {path}: in gzip, which only arm64's boot loader unpacks; for "
            f"{arch} name the build's {BOOTS[arch]}"
        )
    if cut := missing_bytes(image):
        raise UsageError(
            f"--kernel {path}: cut short: {cut} bytes are missing after its "
            f"{len(image)}; copy it again"
        )
