"""
QEMU as a board's exact, private emulator, and the command line that boots a board.

Instruction-counted time: each instruction of the guest takes 2^shift ns, idle time is
skipped, and no clock, entropy, input, disk or network of the host reaches the guest.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtscope import process
from rtscope.board import elf
from rtscope.board.cache import Part
from rtscope.board.catalogue import NO_QUANTUM, Arch, Board
from rtscope.errors import BoardError, TargetError, UsageError

RECIPE = 1
"""Counts up when what is kept of the packages changes."""

SUMMARY, PROGRESS, STREAM = "summary.json", "progress", "stream"
"""What the plugin writes of a boot."""

VERSION_PATIENCE_S = 30.0

# What results depend on, were QEMU left to choose: with the host's memory it would size
# its translation cache, and from the host's devices make the guest's.
_ALWAYS = (
    *("-no-user-config", "-nodefaults", "-display", "none", "-nic", "none"),
    *("-no-reboot", "-accel", "tcg,thread=single,tb-size=256"),
    *("-rtc", "base=2026-01-01,clock=vm"),
)

# panic=-1: a panic ends QEMU at once (-no-reboot). The addresses of kernel and
# programs must not be drawn at random.
_APPEND = ("rdinit=/init", "quiet", "nokaslr", "norandmaps", "panic=-1")


@dataclass(frozen=True, slots=True)
class Qemu:
    """A QEMU that can be started."""

    prefix: tuple[str, ...]
    """The beginning of its command line."""
    version: str
    digest: str
    """Of the part, or of one's own program."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Which paths a boot records (`format/plugin.md`); the guest does the same."""

    worst: int
    """How many of the worst wake-ups of all CPUs."""
    windows: tuple[tuple[int, int], ...] = ()
    """Instruction counts, first and last, ascending: everything between them."""
    layout: Mapping[str, str] = field(default_factory=dict)
    """Where this kernel keeps what windows tell of it; `plugin/options.h`."""
    sections: Mapping[str, int] = field(default_factory=dict)
    """By what the longest sections are known, if they are to be recorded; likewise."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of a board; all paths are of this machine."""

    kernel: Path
    initrd: Path
    console: Path
    """Where the kernel's messages go."""
    results: Path
    """Where `results.read_results` finds what the job has left in /out."""
    seed: int
    quantum: tuple[str, ...]
    """What bounds the quantum of several CPUs: see `with_plugin`."""


def build_qemu(work: Path, root: Path, arch: Arch) -> Mapping[str, Any]:
    """Keep, of unpacked packages, the program with what it loads and boots from."""
    program = root / "usr/bin" / arch.qemu
    libs = root / "usr/lib/x86_64-linux-gnu"
    _copy(program, work / "bin" / arch.qemu)
    for name, path in elf.libraries_of([program], libs=libs).items():
        _copy(path, work / "lib" / name)
    for name in arch.firmware:
        _copy(
            _inside(root, root / "usr/share" / name), work / "share" / Path(name).name
        )
    loader = Path(elf.interpreter(program) or "").name
    prefix = _prefix(work, arch.qemu, loader)
    return {"program": arch.qemu, "loader": loader, "version": _version(prefix)}


def packed_qemu(part: Part) -> Qemu:
    """Return the QEMU of a part."""
    notes = part.manifest["notes"]
    prefix = _prefix(part.path, notes["program"], notes["loader"])
    return Qemu(prefix, version=notes["version"], digest=part.digest)


def quantum_by_plugin(plugin: Path, board: Board) -> tuple[str, ...]:
    """Return the options by which the plugin bounds the CPUs' quantum."""
    return ("-plugin", f"{escaped(plugin)},quantum={board.quantum_instructions or 0}")


def with_plugin(
    plugin: Path,
    board: Board,
    *,
    folder: Path,
    recording: Recording | None,
    progress: bool = True,
) -> tuple[str, ...]:
    """
    Return the options by which the plugin bounds the quantum, and writes into a folder.

    That is SUMMARY, PROGRESS and STREAM. With `progress` it ends QEMU where the
    standard input does: rtscope is gone then.
    """
    option, quantum = quantum_by_plugin(plugin, board)
    words = [quantum, f"summary={escaped(folder / SUMMARY)}"]
    if progress:
        words.append(f"progress={escaped(folder / PROGRESS)}")
    if recording is not None:
        words += [
            f"out={escaped(folder / STREAM)}",
            f"shift={board.shift}",
            f"worst={recording.worst}",
            *(f"window={first}:{last}" for first, last in recording.windows),
            *(f"{name}={place}" for name, place in recording.layout.items()),
            *(f"{name}={value}" for name, value in recording.sections.items()),
        ]
    return (option, ",".join(words))


def command_line(qemu: Qemu, board: Board, boot: Boot) -> tuple[str, ...]:
    """Return what to type to boot; UsageError for CPUs with an unbounded quantum."""
    if board.cpus > 1 and not boot.quantum:
        raise UsageError(f"{board.name}: {NO_QUANTUM}")
    return (
        *qemu.prefix,
        *_ALWAYS,
        *("-M", board.machine, "-cpu", board.cpu),
        *("-smp", str(board.cpus), "-m", board.memory),
        *("-icount", f"shift={board.shift},sleep=off,align=off"),
        *("-seed", str(boot.seed)),
        *("-chardev", f"file,id=console,path={escaped(boot.console)}"),
        *("-serial", "chardev:console"),
        *("-chardev", f"file,id=results,path={escaped(boot.results)}"),
        *board.results_devices,
        *boot.quantum,
        *("-kernel", str(boot.kernel), "-initrd", str(boot.initrd)),
        *("-append", " ".join((f"console={board.console}", *_APPEND, *board.append))),
    )


def _prefix(part: Path, program: str, loader: str) -> tuple[str, ...]:
    # Through its own loader, for the system's may be older than its C library; without
    # the environment, by which QEMU and its libraries could be told to do otherwise.
    return (
        *("env", "-i", f"QEMU_MODULE_DIR={part}/modules"),
        *(str(part / "lib" / loader), "--library-path", str(part / "lib")),
        *(str(part / "bin" / program), "-L", str(part / "share")),
    )


def _version(prefix: Sequence[str]) -> str:
    try:
        done = process.run([*prefix, "--version"], timeout_s=VERSION_PATIENCE_S)
    except TargetError as error:
        raise BoardError(f"QEMU does not start: {error}") from error
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.status != 0 or not lines:
        raise BoardError(f"QEMU does not start: {done.stderr.strip()[-300:]}")
    return lines[0].removeprefix("QEMU emulator version ")


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise BoardError(f"the packages have no {source.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def _inside(root: Path, path: Path) -> Path:
    """Follow links, which for packages may be absolute, without leaving the root."""
    while path.is_symlink():
        target = path.readlink()
        path = (
            root / target.relative_to("/")
            if target.is_absolute()
            else (path.parent / target)
        )
    return path


def escaped(path: Path) -> str:
    """Write a path inside a QEMU option, where a comma ends the value."""
    return str(path).replace(",", ",,")
