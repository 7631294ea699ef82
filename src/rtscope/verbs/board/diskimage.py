"""
A disk image that boots a board: kernel, modules, user space and boot files.

One FAT partition, which U-Boot starts by its `extlinux.conf`, and EFI firmware by
systemd-boot. Kernel modules, stress-ng and the agent are in the initrd. sfdisk and
mtools write it: without root, without loop devices, and the same inputs give the same
bytes.
"""

import os
import tomllib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import resources
from os import posix_fallocate
from pathlib import Path
from shutil import copyfile, which
from typing import Any

from rtscope.boards.catalogue import Board, get_arch, tuples
from rtscope.boards.kernels.build import archived
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.buildcontext import BuildContext, part_of_packages
from rtscope.boards.parts.cache import locked
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared, write_initrd
from rtscope.boards.parts.qemu import IMAGE_APPEND, escaped, image_command_line
from rtscope.boards.runs.boot import read_results
from rtscope.boards.runs.script import agent_line
from rtscope.contract.lines import parse_line
from rtscope.contract.measurement import AgentResult
from rtscope.host import process
from rtscope.host.errors import BoardError, HostError, TargetError, UsageError
from rtscope.host.files import advice_for, new_file
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.machine.kernelimage import read_image

TOOLS = {"sfdisk": "fdisk", "mformat": "mtools", "mmd": "mtools", "mcopy": "mtools"}
"""The programs that write an image, and Debian's packages that have them."""

SECTOR = 512
START_BYTES = 1 << 20
ROOM_BYTES = 16 << 20
"""Of a file system beside its files: its tables, and space for a second kernel."""
SMALLEST_BYTES = 64 << 20
"""FAT32 has at least 65525 clusters."""
MAX_IMAGE_BYTES = 1 << 30

ENVIRONMENT = "uboot.env"
ENVIRONMENT_BYTES = 16 << 10
"""CONFIG_ENV_SIZE of Debian's U-Boot for the Raspberry Pi."""

BOOT_S = 240.0
"""Host time within which an image has booted and measured; 5 to 20 s on a free CPU."""

_MEASURE = ("measure", "--duration-ns", "1000000000", "--priority", "98")
_UUIDS = tuple(f"7274736f-0000-4000-8000-00000000000{at}" for at in range(2))
_TABLES = {
    "gpt": (_UUIDS[0], f"type=uefi, uuid={_UUIDS[1]}, attrs=LegacyBIOSBootable"),
    "dos": ("0x7274736f", "type=c, bootable"),
}
"""sfdisk's identity of the disk, and its words for the partition, by label."""
_ENVIRONMENT = ("SOURCE_DATE_EPOCH=1767225600", "MTOOLSRC=/dev/null", "LC_ALL=C")


@dataclass(frozen=True, slots=True)
class Copy:
    """A program on an image that the board's firmware starts, from a package."""

    package: str
    arch: str
    """As Debian calls the package's."""
    file: str
    name: str
    """Where firmware looks for it."""


@dataclass(frozen=True, slots=True)
class Loader:
    """What boots an image, on its board and in QEMU."""

    packages: tuple[str, ...]
    loader: str
    option: str
    disk: str
    copies: tuple[Copy, ...] = ()
    efi: bool = False
    label: str = "gpt"
    texts: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    device_trees: str = ""
    adds: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """What an image answered that was booted."""

    kernel: str
    """`Linux version …`, by its own word: release, builder and time of its build."""
    samples: int
    """Wake-ups that the agent measured, on all CPUs."""
    max_ns: int
    """The latest of them."""


def loader_of(board: Board) -> Loader:
    """Return what boots images of a board; UsageError if there is none."""
    text = resources.files("rtscope.verbs.board").joinpath("images.toml")
    rows = tomllib.loads(text.read_text("utf-8"))
    if board.name not in rows:
        raise UsageError(
            f"{board.name}: no disk image is written for it; name one of "
            f"{', '.join(rows)}, or pack its kernel: rtscope kernel package"
        )
    row = tuples(rows[board.name])
    copies = tuple(Copy(**copy) for copy in row.pop("copies", ()))
    return Loader(**row, copies=copies)


def refuse_without_tools() -> None:
    """Raise UsageError that names the programs that are missing, and their packages."""
    path = f"{os.environ.get('PATH', os.defpath)}:/sbin:/usr/sbin"
    missing = [tool for tool in TOOLS if which(tool, path=path) is None]
    if missing:
        packages = dict.fromkeys(TOOLS[tool] for tool in missing)
        raise UsageError(
            f"an image needs {', '.join(missing)}, which this machine lacks; install "
            f"{'them' if len(missing) > 1 else 'it'}: apt install {' '.join(packages)}"
        )


def write_image(path: Path, prepared: Prepared, context: BuildContext) -> int:
    """
    Write the image of a prepared board, whole or not at all; return its size in bytes.

    Raises HostError if it cannot be written, UsageError if a program is missing.
    """
    refuse_without_tools()
    texts = boot_files(prepared)
    with temporary_folder("image", error=HostError) as folder:
        files = {
            **{name: folder / Path(name).name for name in texts},
            **_copied(context, prepared.board),
            "vmlinuz": prepared.kernel.image,
            "initrd.img": folder / "initrd.img",
        }
        try:
            write_initrd(folder / "initrd.img", prepared, _job(prepared.board))
            for name, text in texts.items():
                files[name].write_text(text)
            contents = {**device_trees(prepared), **environment(prepared.board)}
            for name, content in contents.items():
                files[name] = folder / Path(name).name
                files[name].write_bytes(content)
        except OSError as cause:
            raise HostError(f"cannot write {folder}: {cause.strerror}") from cause
        size = image_bytes(file.stat().st_size for file in files.values())
        with new_file(path, HostError) as new:
            _reserve(new, size, path)
            _fill(new, files, size, label=loader_of(prepared.board).label)
    return size


def _reserve(new: Path, size: int, path: Path) -> None:
    """Take the space of an image, so that a full disk is known before any work."""
    try:
        with new.open("r+b") as file:
            posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        why = f"{error.strerror}{advice_for(error)}"
        # not the temporary folder's: no cause that it would take for its own
        raise HostError(f"cannot write {path}: {why}") from None


def image_bytes(sizes: Iterable[int]) -> int:
    """Return the size of an image with files of these; HostError if it is too large."""
    whole = START_BYTES + ROOM_BYTES + sum(sizes)
    size = max(SMALLEST_BYTES, -(-whole // START_BYTES) * START_BYTES)
    if size > MAX_IMAGE_BYTES:
        raise HostError(
            f"the image would have {size >> 20} MiB, and {MAX_IMAGE_BYTES >> 20} is "
            "the most: name another kernel"
        )
    return size


def boot_files(prepared: Prepared) -> Mapping[str, str]:
    """Return the files of an image that say which kernel is started, by their names."""
    row = loader_of(prepared.board)
    if not row.efi:
        return {"extlinux/extlinux.conf": extlinux(prepared), **row.texts}
    return {
        **row.texts,
        "loader/loader.conf": "default rtscope.conf\ntimeout 1\n",
        "loader/entries/rtscope.conf": (
            f"title {prepared.kernel.name}, by rtscope\n"
            "linux /vmlinuz\n"
            "initrd /initrd.img\n"
            f"options {' '.join(_parameters(prepared.board))}\n"
        ),
    }


def _parameters(board: Board) -> tuple[str, ...]:
    row = loader_of(board)
    own = (word for word in board.append if word not in row.leaves_out)
    return (f"console={board.console}", *row.adds, *IMAGE_APPEND, *own)


def device_trees(prepared: Prepared) -> Mapping[str, bytes]:
    """Return those of the kernel that are for the board, by their names on an image."""
    wanted = loader_of(prepared.board).device_trees
    found = archived(prepared.kernel.device_trees) if wanted else ()
    return {name: tree for name, tree in found if fnmatch(name, f"dtbs/{wanted}")}


def environment(board: Board) -> Mapping[str, bytes]:
    """Return the file of variables of the U-Boot on an image; none if it has none."""
    values = loader_of(board).environment
    if not values:
        return {}
    lines = b"".join(f"{key}={value}\0".encode() for key, value in values.items())
    text = (lines + b"\0").ljust(ENVIRONMENT_BYTES - 4, b"\0")
    return {ENVIRONMENT: zlib.crc32(text).to_bytes(4, "little") + text}


def extlinux(prepared: Prepared) -> str:
    """Return the entry by which U-Boot starts the kernel."""
    words = _parameters(prepared.board)
    # U-Boot chooses by the name that it has of its board, and else has one already.
    folder = "    fdtdir /dtbs/\n" if device_trees(prepared) else ""
    return (
        "default rtscope\ntimeout 10\n\n"
        "label rtscope\n"
        f"    menu label {prepared.kernel.name}, by rtscope\n"
        "    linux /vmlinuz\n"
        f"    initrd /initrd.img\n{folder}"
        f"    append {' '.join(words)}\n"
    )


def check_image(path: Path, prepared: Prepared, context: BuildContext) -> ImageCheck:
    """
    Boot an image in QEMU by its own boot files, and return what its agent measured.

    Raises BoardError with the end of the console if it does not boot, if another kernel
    boots, or if the agent measures nothing.
    """
    row = loader_of(prepared.board)
    loader, option = _firmware(context, prepared.board), row.option
    with temporary_folder("image", error=HostError) as folder:
        argv = image_command_line(
            prepared.qemu,
            prepared.board,
            image=path,
            loader=(option, escaped(loader) if option == "-drive" else str(loader)),
            disk=row.disk,
            console=folder / "console",
            results=folder / "results",
        )
        try:
            process.run(argv, timeout_s=BOOT_S)
            files = read_results(folder / "results")
        except (TargetError, BoardError, OSError) as cause:
            raise BoardError(
                f"{path}: does not boot in QEMU: {cause}; its console ends with: "
                f"{_console_end(folder / 'console')}"
            ) from cause
    banner = read_image(prepared.kernel.image).banner
    return read_check(path, files, banner=banner or "")


def read_check(path: Path, files: Mapping[str, bytes], *, banner: str) -> ImageCheck:
    """Return what a booted image has sent; BoardError if that is not as it must be."""
    booted = files.get("version", b"").decode("utf-8", "replace").strip()
    if booted != banner:
        raise BoardError(f"{path}: {booted or 'no kernel'} booted, not {banner}")
    lines = map(parse_line, files.get("measure.jsonl", b"").splitlines())
    measured = [line for line in lines if isinstance(line, AgentResult)]
    threads = [thread for line in measured for thread in line.threads]
    samples = sum(thread.samples or 0 for thread in threads)
    if not samples:
        said = files.get("script.log", b"").decode("utf-8", "replace").strip()[-300:]
        raise BoardError(f"{path}: its agent measured nothing: {said or 'no message'}")
    return ImageCheck(booted, samples, max(thread.max_ns or 0 for thread in threads))


def _job(board: Board) -> Job:
    """Return what an image does at each boot: one short measurement, then a shell."""
    return Job(
        "cat /proc/version >/out/version\n"
        f"{agent_line(*_MEASURE)} >/out/measure.jsonl\n"
        "status=$?\n"
        # On a real board nobody fetches results: whoever sits at the console does.
        f"if [ ! -c /dev/{board.results} ]; then\n"
        "    echo 'rtscope: measured, see /out; type: rtscope-agent, stress-ng'"
        " >/dev/console\n"
        "    setsid cttyhack sh </dev/console >/dev/console 2>&1\n"
        "fi\n"
        "exit $status\n"
    )


def _fill(image: Path, files: Mapping[str, Path], size: int, *, label: str) -> None:
    """Write partition table, file system and files."""
    sectors = (size - 2 * START_BYTES) // SECTOR
    first, rest = _TABLES[label]
    table = (
        f"label: {label}\nlabel-id: {first}\n"
        f"start={START_BYTES // SECTOR}, size={sectors}, {rest}\n"
    )
    place = f"{escaped(image)}@@{START_BYTES}"
    _tool("sfdisk", "--quiet", "--no-reread", str(image), stdin=table.encode())
    volume = ("-F", "-N", "72747363", "-v", "RTSCOPE", "-T", str(sectors))
    _tool("mformat", "-i", place, *volume, "::")
    folders = {str(one) for name in files for one in Path(name).parents} - {"."}
    for folder in sorted(folders):
        _tool("mmd", "-i", place, f"::/{folder}")
    for name, file in files.items():
        _tool("mcopy", "-i", place, str(file), f"::/{name}")


def _tool(*argv: str, stdin: bytes = b"") -> None:
    path = f"PATH={os.environ.get('PATH', os.defpath)}:/sbin:/usr/sbin"
    try:
        done = process.run(
            ["env", path, *_ENVIRONMENT, *argv], timeout_s=BOOT_S, stdin=stdin
        )
    except TargetError as error:
        raise HostError(f"the image cannot be written: {error}") from error
    if done.status:
        raise HostError(
            f"the image cannot be written: {argv[0]}: {done.stderr.strip()[-300:]}"
        )


def _firmware(context: BuildContext, board: Board) -> Path:
    """Return what starts the image in QEMU, from packages."""
    row = loader_of(board)
    return _packaged(context, board, "loader", row.packages, row.loader)


def _copied(context: BuildContext, board: Board) -> Mapping[str, Path]:
    """Return what the board's firmware starts, by its name on the image."""
    return {
        one.name: _packaged(
            context, board, "manager", (one.package,), one.file, arch=one.arch
        )
        for one in loader_of(board).copies
    }


def _packaged(
    context: BuildContext,
    board: Board,
    part: str,
    packages: tuple[str, ...],
    file: str,
    *,
    arch: str = "amd64",
) -> Path:
    """Return a file of packages, kept as a part of its own."""

    def build(work: Path, root: Path) -> Mapping[str, Any]:
        copyfile(root / file, work / part)
        return {}

    with locked(context.cache, log=context.log):
        return part_of_packages(
            context,
            f"{part}-{get_arch(board.arch).name}",
            lambda root: aptroot.resolve(
                packages, arch=arch, root=root, dependencies=False
            ),
            recipe=file,
            build=build,
        ).file(part)


def _console_end(path: Path) -> str:
    text = path.read_text("utf-8", "replace") if path.exists() else ""
    return " / ".join(text.splitlines()[-5:]) or "nothing"
