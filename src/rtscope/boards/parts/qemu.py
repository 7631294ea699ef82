"""
QEMU as a board's exact, private emulator, and the command line that boots a board.

Instruction-counted time: each instruction of the guest takes 2^shift ns, idle time is
skipped, and no clock, entropy, input, disk or network of the host reaches the guest.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import NO_QUANTUM, Arch, Board, get_arch
from rtscope.boards.parts import initrd
from rtscope.boards.parts.cache import Part
from rtscope.host import process
from rtscope.host.errors import BoardError, TargetError, UsageError

RECIPE = 2
"""Counts up when what is kept of the packages changes."""

SUMMARY, PROGRESS, STREAM = "summary.json", "progress", "stream"
PROGRAM_RECORD, PROGRAM_CODE = "program", "code"
"""The files that the plugin writes in a boot."""

MAX_USES = 64
"""OPTIONS_USES of `plugin/options.h`."""

TIMEOUT_S = 30.0

WITHOUT_MACHINE = (
    *("-nodefaults", "-no-user-config", "-display", "none"),
    *("-M", "none", "-S", "-qmp", "stdio"),
)
"""Starts QEMU to be asked by what `questions` returns, on its standard input."""

OLDEST = (10, 0)
"""The plugin uses QEMU's internals (plugin/qemu.h); older ones were never tested."""

# What results depend on, were QEMU left to choose: with the host's memory it would size
# its translation cache, and from the host's devices make the guest's.
_ALWAYS = (
    *("-no-user-config", "-nodefaults", "-display", "none", "-nic", "none"),
    *("-no-reboot", "-accel", "tcg,thread=single,tb-size=256"),
    *("-rtc", "base=2026-01-01,clock=vm"),
)

# panic=-1: a panic ends QEMU at once (-no-reboot). No address is drawn at random, and
# the kernel's tests of its own ciphers do not take a third of its boot.
_APPEND = "rdinit=/init quiet nokaslr norandmaps panic=-1 cryptomgr.notests"

IMAGE_APPEND = ("rdinit=/init", "quiet", "panic=10")
"""Of a disk image, which real boards boot too."""


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
    """Virtual times in ns, first and last, ascending: everything between them."""
    layout: Mapping[str, str] = field(default_factory=dict)
    """Where this kernel keeps the values that windows record; `plugin/options.h`."""
    sections: Mapping[str, int] = field(default_factory=dict)
    """By what the longest sections are known, if they are to be recorded; likewise."""
    ring: int | None = None
    """Records of the past; None for the plugin's own number."""
    room: int | None = None
    """Records of all paths together; likewise."""


@dataclass(frozen=True, slots=True)
class Phase:
    """
    When a thread of a program begins.

    That is its first own instruction at a real-time priority, and of the first thread
    the first one of all. Its CPU executes nothing before, as where firmware or a
    hypervisor takes it.
    """

    start: int
    """Of the program in this boot, from 1."""
    thread: int
    """Of the threads of that start, in the order in which they are made, from 1."""
    period_ns: int
    after_ns: int
    """After a multiple of the period, of the board's time."""

    def __str__(self) -> str:
        return f"{self.start}:{self.thread}:{self.period_ns}:{self.after_ns}"


@dataclass(frozen=True, slots=True)
class ProgramUse:
    """A function of a program: `plugin/uses.h`."""

    name: str
    path: str
    """The file that it is in, on the board."""
    offset: int
    """In its page of memory."""
    sum: int
    """Of the content of that page."""

    def __str__(self) -> str:
        """Write it as the plugin takes it."""
        return f"{self.offset}@{self.sum}"


@dataclass(frozen=True, slots=True)
class ProgramView:
    """Where this kernel keeps what is recorded of a program; `plugin/options.h`."""

    task: str
    """Where its current task is,"""
    preempt: str
    """and its preemption count."""
    hooks: tuple[int, ...]
    fields: tuple[int, ...]
    time: tuple[int, ...]
    most: int | None = None
    """Records; None for the plugin's own number."""
    uses: tuple[ProgramUse, ...] = ()
    """Functions of the program whose calls are recorded, MAX_USES at most."""
    stacks: int | None = None
    """Of how many places of a thread; None: none is taken."""
    stack_bytes: int | None = None
    """Of each of them; None for the plugin's own number."""
    stacked_ns: tuple[int, int] | None = None
    """The times after the program's begin, first and last, between which they are
    taken; None: all."""
    phases: tuple[Phase, ...] = ()
    """Of threads that begin at a certain time."""
    code: bool = False
    """Whether to count the blocks of each thread; not beside a Recording."""
    parts: tuple[int, ...] = ()
    """Where parts of the agent's wake-ups begin or end, `enum options_place`: they are
    in SUMMARY then, and no program is recorded."""


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
    for name, path in initrd.libraries_of([program], libs=libs).items():
        _copy(path, work / "lib" / name)
    for name in arch.firmware:
        _copy(
            _inside(root, root / "usr/share" / name), work / "share" / Path(name).name
        )
    loader = Path(initrd.interpreter(program) or "").name
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
    view: ProgramView | None = None,
    progress: bool = True,
) -> tuple[str, ...]:
    """
    Return the options by which the plugin bounds the quantum, and writes into a folder.

    That is SUMMARY, PROGRESS, STREAM, PROGRAM_RECORD and PROGRAM_CODE. With
    `progress` it ends QEMU where the standard input does: rtscope is gone then.
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
            *_assignments(ring=recording.ring, room=recording.room),
            *(f"window={first}:{last}" for first, last in recording.windows),
            *(f"{name}={place}" for name, place in recording.layout.items()),
            *(f"{name}={value}" for name, value in recording.sections.items()),
        ]
    if view is not None:
        words += [
            *(
                f"program={escaped(folder / PROGRAM_RECORD)}"
                for _ in range(not view.parts)
            ),
            *(f"shift={board.shift}" for _ in range(recording is None)),
            *(
                f"code={escaped(folder / PROGRAM_CODE)}"
                for _ in range(view.code and recording is None)
            ),
            *(
                f"{name}={':'.join(map(str, values))}"
                for name, values in (
                    ("hooks", view.hooks),
                    ("fields", view.fields),
                    ("time", view.time),
                    ("parts", view.parts),
                    ("use", view.uses),
                    ("stacked", view.stacked_ns),
                )
                if values
            ),
            *_assignments(most=view.most, stacks=view.stacks, stack=view.stack_bytes),
            *(f"phase={one}" for one in view.phases),
        ]
        layout = recording.layout if recording else {}
        own = {"task": view.task, "preempt": view.preempt}
        words += [f"{n}={place}" for n, place in own.items() if n not in layout]
    return (option, ",".join(words))


def _assignments(**options: int | None) -> Iterator[str]:
    for name, value in options.items():
        if value is not None:
            yield f"{name}={value}"


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
        *board.event_devices,
        *boot.quantum,
        *("-kernel", str(boot.kernel), "-initrd", str(boot.initrd)),
        *("-append", " ".join((f"console={board.console}", _APPEND, *board.append))),
    )


def image_command_line(
    qemu: Qemu,
    board: Board,
    *,
    image: Path,
    loader: tuple[str, str],
    disk: str,
    console: Path,
    results: Path,
) -> tuple[str, ...]:
    """Return what to type to boot a disk image by its own boot files, in host time."""
    return (
        *qemu.prefix,
        *("-no-user-config", "-nodefaults", "-display", "none", "-nic", "none"),
        *("-no-reboot", "-accel", "tcg"),
        *("-M", board.machine, "-cpu", board.cpu),
        *("-smp", str(board.cpus), "-m", board.memory),
        *("-chardev", f"file,id=console,path={escaped(console)}"),
        *("-serial", "chardev:console"),
        *("-chardev", f"file,id=results,path={escaped(results)}"),
        *board.results_devices,
        *loader,
        # The image stays as it is written.
        *("-drive", f"if=none,id=disk,format=raw,readonly=on,file={escaped(image)}"),
        *("-device", f"{disk},drive=disk"),
    )


def _prefix(part: Path, program: str, loader: str) -> tuple[str, ...]:
    # Through its own loader, for the system's may be older than its C library; without
    # the environment, which could change the behaviour of QEMU and its libraries.
    return (
        *("env", "-i", f"QEMU_MODULE_DIR={part}/modules"),
        *(str(part / "lib" / loader), "--library-path", str(part / "lib")),
        *(str(part / "bin" / program), "-L", str(part / "share")),
    )


def _version(prefix: Sequence[str]) -> str:
    try:
        done = process.run([*prefix, "--version"], timeout_s=TIMEOUT_S)
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


def questions(*names: str) -> bytes:
    """Return these commands of QEMU's machine protocol, then the one to quit."""
    words = ("qmp_capabilities", *names, "quit")
    return b"".join(json.dumps({"execute": word}).encode() + b"\n" for word in words)


def refusal(prefix: Sequence[str], options: Sequence[str]) -> str:
    """
    Return the error of a QEMU that refuses a plugin; empty if it takes it.

    `prefix` begins its command line, `options` are those of the plugin. Raises
    TargetError if it does not start, or does not end.
    """
    words = (*prefix, *WITHOUT_MACHINE, *options)
    done = process.run(words, timeout_s=TIMEOUT_S, stdin=questions())
    if done.status == 0:
        return ""
    return done.stderr.strip() or f"exit status {done.status}"


@dataclass(frozen=True, slots=True)
class QemuInfo:
    """The answers of a QEMU about itself."""

    version: str
    number: tuple[int, int]
    """Major and minor."""
    arch: str
    """The emulated architecture, as `uname -m` prints it."""
    plugins: bool
    """Whether it takes plugins."""


def own_qemu(program: Path, board: Board, *, plugin: Path) -> Qemu:
    """
    Return the user's own QEMU for a board, once it has taken the plugin.

    Its results hold for it alone: the digest is of the program, not of the libraries
    that it loads. Raises UsageError with what is missing and what to do.
    """
    need = get_arch(board.arch).qemu
    if not program.is_file():
        reason = "a directory" if program.is_dir() else "no such file"
        raise UsageError(f"--qemu {program}: {reason}; name the program {need}")
    prefix = (str(program.absolute()),)
    try:
        info = _ask(prefix)
        digest = hashlib.sha256(program.read_bytes()).hexdigest()
    except (TargetError, OSError) as error:
        raise UsageError(f"--qemu {program}: does not start: {error}") from error
    if info is None:
        raise UsageError(
            f"--qemu {program}: no QEMU that emulates a whole machine; name the "
            f"program {need}"
        )
    reason = _unfit(info, board, need=need) or _why_no_plugin(prefix, board, plugin)
    if reason:
        raise UsageError(f"--qemu {program}: {reason}")
    return Qemu(prefix, version=info.version, digest=digest)


def _unfit(info: QemuInfo, board: Board, *, need: str) -> str:
    """Return why a QEMU cannot boot the board, and what to do; empty if it can."""
    if info.number < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return (
            f"QEMU {info.version} is too old: the plugin that bounds the CPUs' quantum "
            f"needs {oldest} or newer; name a newer one, or leave --qemu out for "
            "the pinned one"
        )
    if info.arch != board.arch:
        return (
            f"it emulates {info.arch}, and the board {board.name} is {board.arch}; "
            f"name the program {need}"
        )
    if not info.plugins:
        return (
            "it was built without plugins, and nothing else bounds the CPUs' quantum; "
            "build it with --enable-plugins, or leave --qemu out for the pinned one"
        )
    return ""


def _why_no_plugin(prefix: Sequence[str], board: Board, plugin: Path) -> str:
    """Return why a QEMU does not take the plugin, and what to do; empty if it does."""
    try:
        said = refusal(prefix, quantum_by_plugin(plugin, board))
    except TargetError as error:
        return f"does not start with the plugin that bounds the CPUs' quantum: {error}"
    if not said:
        return ""
    if missing := re.search(r"undefined symbol: (\w+)", said):
        # QEMU's plugins/meson.build: only modules make it export more than that.
        return (
            f"it does not export {missing[1]}, which the plugin that bounds the CPUs' "
            "quantum needs: without modules QEMU exports no more than its interface "
            "for plugins; build it with --enable-plugins --enable-modules, or leave "
            "--qemu out for the pinned one"
        )
    return (
        "it refuses the plugin that bounds the CPUs' quantum: "
        f"{said.splitlines()[-1]}; leave --qemu out for the pinned one"
    )


def _ask(prefix: Sequence[str]) -> QemuInfo | None:
    """Start it without a machine and ask; None if it does not answer as QEMU does."""
    words = (*prefix, *WITHOUT_MACHINE)
    done = process.run(words, timeout_s=TIMEOUT_S, stdin=questions("query-target"))
    answers = list(_answers(done.stdout))
    try:
        version = next(a["QMP"] for a in answers if "QMP" in a)["version"]
        major, minor, micro = (version["qemu"][n] for n in ("major", "minor", "micro"))
        targets = (a["return"] for a in answers if "return" in a)
        arch = next(target["arch"] for target in targets if "arch" in target)
        package = str(version["package"])
    except (KeyError, TypeError, StopIteration):
        return None
    options = process.run([*prefix, "-help"], timeout_s=TIMEOUT_S).stdout
    return QemuInfo(
        version=f"{major}.{minor}.{micro}" + (f" ({package})" if package else ""),
        number=(int(major), int(minor)),
        arch=str(arch),
        plugins=b"\n-plugin " in options,
    )


def _answers(stdout: bytes) -> Iterator[dict[str, Any]]:
    for line in stdout.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict):
            yield answer
