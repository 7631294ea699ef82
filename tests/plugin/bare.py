"""
A board without firmware or kernel under the plugin: exact, and over in a moment.

Needs QEMU 10.0 for riscv64, which no test fetches: the one that `rtscope board build`
has left in the cache, or what RTSCOPE_TEST_QEMU_RISCV64 names.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.section import ExecTrace

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "plugin/tests"
BUILT = ROOT / "plugin/build/tests"
PLUGIN = ROOT / "src/rtscope/plugins/rtscope-plugin.so"
PATIENCE_S = 60
UPPER_HALF = 0xFFFF_FFFF_0000_0000

NO_QEMU = (
    "no QEMU 10.0 for riscv64: run rtscope board build jh7110, or set "
    "RTSCOPE_TEST_QEMU_RISCV64 to the command that starts one"
)


def _candidates() -> Sequence[Sequence[str]]:
    if named := os.environ.get("RTSCOPE_TEST_QEMU_RISCV64"):
        return [shlex.split(named)]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parts = (cache / "rtscope/parts").glob("qemu-riscv64-*")
    packed = [
        [
            *("env", "-i", f"QEMU_MODULE_DIR={part}/modules"),
            *(f"{part}/lib/ld-linux-x86-64.so.2", "--library-path", f"{part}/lib"),
            *(f"{part}/bin/qemu-system-riscv64", "-L", f"{part}/share"),
        ]
        for part in sorted(parts)
    ]
    return [*packed, ["qemu-system-riscv64"]]


def find_qemu() -> Sequence[str] | None:
    """Return how the first QEMU 10.0 is started."""
    for argv in _candidates():
        try:
            done = subprocess.run(
                [*argv, "--version"], capture_output=True, timeout=PATIENCE_S
            )
        except OSError:
            continue
        if b"QEMU emulator version 10.0" in done.stdout:
            return argv
    return None


def build_guest(
    *, rounds: int = 0, spins: int = 1, spins_off: int = 0, latency_ns: int = 0
) -> Path:
    """Build the guest of plugin/tests/guest.S, which says what it does."""
    return build(
        "guest.S",
        ROUNDS=rounds,
        SPINS=spins,
        SPINS_OFF=spins_off,
        LATENCY_NS=latency_ns,
    )


def build(source: str, **defined: int) -> Path:
    """Build a guest of plugin/tests with these numbers."""
    return compiled(
        source,
        *("-target", "riscv64-freestanding", "-nostdlib", "-static"),
        *("-Wl,--build-id=none", "-Wl,-T", f"-Wl,{SOURCES / 'guest.ld'}"),
        *(f"-D{name}={value}" for name, value in defined.items()),
    )


def compiled(source: str, *arguments: str) -> Path:
    """
    Return what zig makes of a file of plugin/tests.

    Made once, and again when a file there, the arguments or zig are others.
    """
    made_of = hashlib.sha256(repr((version("ziglang"), source, arguments)).encode())
    for path in sorted(SOURCES.iterdir()):
        made_of.update(path.read_bytes())
    built = BUILT / f"{source}-{made_of.hexdigest()[:16]}"
    if built.exists():
        return built
    built.parent.mkdir(parents=True, exist_ok=True)
    cache = str(ROOT / "plugin/build/zig-cache")
    zig_dirs = {"ZIG_LOCAL_CACHE_DIR": cache, "ZIG_GLOBAL_CACHE_DIR": cache}
    mine = built.with_name(f"{built.name}.{os.getpid()}")  # tests run side by side
    argv = [sys.executable, "-m", "ziglang", "cc", *arguments]
    argv += [str(SOURCES / source), "-o", str(mine)]
    subprocess.run(argv, env={**os.environ, **zig_dirs}, check=True)
    return mine.replace(built)


def address_of(guest: Path, symbol: str) -> int:
    """Return where something of the guest is in the upper half of the addresses."""
    with guest.open("rb") as file:
        (found,) = (
            ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name(symbol)
        )
    return int(UPPER_HALF | found["st_value"])


@dataclass(frozen=True, slots=True)
class Board:
    """Runs guests on QEMU's riscv64 `virt` machine: two instructions each 4 ns."""

    qemu: Sequence[str]
    work: Path
    stdin: int = subprocess.DEVNULL

    def start(
        self, guest: Path, *, cpus: int, **arguments: object
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end with these arguments of the plugin."""
        given = ",".join(f"{name}={value}" for name, value in arguments.items())
        return subprocess.run(
            [
                *(*self.qemu, "-M", "virt", "-cpu", "rv64", "-smp", str(cpus)),
                *("-m", "64M", "-bios", "none", "-kernel", str(guest)),
                *("-accel", "tcg,thread=single", "-display", "none", "-nodefaults"),
                *("-icount", "shift=1,sleep=off,align=off", "-rtc", "clock=vm"),
                *("-seed", "7", "-plugin", f"{PLUGIN},{given}"),
            ],
            stdin=self.stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def count(
        self, guest: Path, *, cpus: int, **arguments: object
    ) -> Mapping[str, Any]:
        """Return the summary of a run."""
        summary = self.work / "summary.json"
        done = self.start(guest, cpus=cpus, summary=summary, **arguments)
        assert done.returncode == 0, done.stderr
        read: Mapping[str, Any] = json.loads(summary.read_text())
        return read

    def record(self, guest: Path, *, cpus: int, **arguments: object) -> ExecTrace:
        """Return the recorded paths of a run."""
        out = self.work / "trace"
        done = self.start(guest, cpus=cpus, out=out, shift=1, **arguments)
        assert done.returncode == 0, done.stderr
        return parse_trace(out.read_bytes())
