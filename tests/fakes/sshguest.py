"""
A board that is a machine of its own: a guest of QEMU with an OpenSSH server.

The guest has this machine's own sshd, busybox and libraries, and a kernel of the
virtual boards. It has no network: QEMU hands what a TCP port of 127.0.0.1 receives to a
serial port of the guest, on which sshd serves one connection after the other. It runs
as fast as the host executes it, unlike a virtual board.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fakes.sshd import SSHD, Board, free_port, write_files
from rtscope.boards.parts.initrd import Entry, File, Folder, Link, pack
from rtscope.boards.parts.prepared import Prepared

BUSYBOX = shutil.which("busybox")

_PATIENCE_S = 120.0

_APPLETS = ("sh", "cat", "chmod", "id", "mkdir", "mount", "rm", "sleep", "uname")

_SESSION = ("sshd-session", "sshd-auth")
"""Since OpenSSH 9.8 sshd executes others for each connection."""

_INIT = """\
#!/bin/busybox sh
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /run/sshd /root
chmod 600 {directory}/host_key
while sleep 0.1; do read up _ </proc/uptime; echo "up $up"; done >/dev/ttyS0 &
while :; do
    {sshd} -i -e -f {directory}/sshd_config <>/dev/vport0p1 >&0 2>/dev/ttyS0
    sleep 0.5
done
"""

_ON_A_BUSY_HOST = "no_timer_check"
"""
Linux counts interrupts of the timer in ten of its periods, and panics where the host
gave QEMU no time for them: 2 of 12 boots, with ten times as much to run as CPUs.
"""

_PASSWD = """\
root:x:0:0:root:/root:/bin/sh
sshd:x:100:65534:sshd:/run/sshd:/bin/false
"""


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest that runs."""

    board: Board
    """How to reach it; its process is QEMU."""
    monitor: Path
    console: Path

    def up_s(self) -> float:
        """Return how long its kernel has run, as it last said: ten times a second."""
        said = _text(self.console).split("\n")[:-1]
        times = [line[3:] for line in said if line.startswith("up ")]
        return float(times[-1]) if times else 0.0

    def last_words(self) -> str:
        """Return what QEMU and the guest said last."""
        return _text(self.board.directory / "qemu.log") + _text(self.console)[-2_000:]

    def stop(self) -> None:
        """Let its monitor stop it: no CPU of it executes any more."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(_PATIENCE_S)
            monitor.connect(str(self.monitor))
            answers = monitor.makefile("r")
            answers.readline()  # QEMU's greeting
            for command in ("qmp_capabilities", "stop"):
                monitor.sendall(json.dumps({"execute": command}).encode() + b"\n")
                while "return" not in json.loads(answers.readline()):
                    pass


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.exists() else ""


@contextlib.contextmanager
def guest(directory: Path, prepared: Prepared, *, cpus: int = 1) -> Iterator[Guest]:
    """Boot a guest with the QEMU and the kernel of a virtual PC."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    write_files(directory, port, user="root")
    (directory / "initrd").write_bytes(pack(_files(directory)))
    monitor, console = directory / "monitor", directory / "console"
    argv = [
        *prepared.qemu.prefix,
        *("-no-user-config", "-nodefaults", "-display", "none", "-nic", "none"),
        *("-M", "pc,usb=off", "-cpu", "max", "-smp", str(cpus), "-m", "512"),
        *("-accel", "tcg", "-no-reboot"),
        *("-serial", f"file:{console}"),
        *("-device", "virtio-serial-pci", "-device", "virtserialport,chardev=ssh"),
        *("-chardev", f"socket,id=ssh,host=127.0.0.1,port={port},server=on,wait=off"),
        *("-qmp", f"unix:{monitor},server=on,wait=off"),
        *("-kernel", str(prepared.kernel.image), "-initrd", f"{directory}/initrd"),
        *("-append", f"console=ttyS0 quiet panic=-1 rdinit=/init {_ON_A_BUSY_HOST}"),
    ]
    with (directory / "qemu.log").open("wb") as log:
        qemu = subprocess.Popen(argv, stdout=log, stderr=log, process_group=0)
    try:
        running = Guest(Board(directory, port, qemu.pid), monitor, console)
        end = time.monotonic() + _PATIENCE_S
        while not running.up_s():
            assert qemu.poll() is None, running.last_words()
            assert time.monotonic() < end, "the guest has not booted"
            time.sleep(0.05)
        yield running
    finally:
        qemu.kill()
        qemu.wait(_PATIENCE_S)


def _files(directory: Path) -> dict[str, Entry]:
    """Return the root of the guest: programs of this machine, where they are here."""
    assert SSHD is not None
    assert BUSYBOX is not None
    beside = Path("/usr/lib/openssh")
    programs = [Path(SSHD), *(p for n in _SESSION if (p := beside / n).exists())]
    files: dict[str, Entry] = {
        "init": File(_INIT.format(directory=directory, sshd=SSHD).encode(), runs=True),
        "bin/busybox": File(Path(BUSYBOX).read_bytes(), runs=True),
        "etc/passwd": File(_PASSWD.encode()),
        "etc/group": File(b"root:x:0:\nnogroup:x:65534:\n"),
        "etc/shells": File(b"/bin/sh\n"),
        **{name: Folder() for name in ("dev", "proc", "sys", "tmp", "run", "root")},
        **{f"bin/{applet}": Link("busybox") for applet in _APPLETS},
    }
    for program in (*programs, *_libraries([*programs, Path(BUSYBOX)])):
        files[str(program)[1:]] = File(program.read_bytes(), runs=True)
    for name in ("host_key", "user_key.pub", "sshd_config"):
        files[str(directory / name)[1:]] = File((directory / name).read_bytes())
    return files


def _libraries(programs: list[Path]) -> set[Path]:
    """Return what programs load, the loader among them, as paths that they open."""
    listed = subprocess.run(
        ["ldd", *map(str, programs)], check=False, capture_output=True, text=True
    )
    return {
        Path(word)
        for line in listed.stdout.splitlines()
        for word in line.split()
        if word.startswith("/") and not word.endswith(":")
    }
