"""Programs that run, made of the files that /proc would have of them."""

import struct
from collections.abc import Mapping

from fakes.threads import listing, task
from rtscope.contract.commands import TaskLine
from rtscope.machine.audit.unit import parse
from rtscope.machine.reader import Content
from rtscope.verbs.app.running import RunningProgram, running_program
from rtscope.verbs.app.service import service_of
from rtscope.verbs.app.unit import render_unit

EXE = "/opt/app/control"
MAPS = f"""\
555500000000-555500001000 r--p 00000000 08:01 77                 {EXE}
7f0000000000-7f0000001000 r-xp 00000000 08:01 78                 /lib/libc.so.6
"""
STATUS = """\
Name:\tcontrol
Umask:\t0022
Uid:\t1000\t1000\t1000\t1000
NSpid:\t100
VmLck:\t    2048 kB
CapEff:\t0000000000000000
NoNewPrivs:\t0
"""
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max realtime timeout      unlimited            unlimited            us
"""
AUXV = struct.pack("=6Q", 6, 4096, 3, 0x555500000040, 0, 0)
FILES: Mapping[str, Content] = {
    "/proc/100/cmdline": b"./control\0--fast\0",
    "/proc/100/auxv": AUXV,
    "/proc/100/maps": MAPS.encode(),
    "/proc/100/status": STATUS.encode(),
    "/proc/100/limits": LIMITS.encode(),
    "/proc/100/environ": b"HOME=/root\0",
    "/proc/100/cgroup": b"0::/user.slice/session-3.scope\n",
    "/proc/100/oom_score_adj": b"0\n",
    "/etc/passwd": b"root:x:0:0::/root:/bin/sh\nrobot:x:1000:1000::/:/bin/sh\n",
    "/etc/group": b"root:x:0:\naudio:x:29:x,robot\nrt:x:44:\nrobot:x:1000:\n",
    "/sys/devices/system/cpu/online": b"0-3\n",
}
FIFO = task(100, "fifo", priority=80, name="control", cpus="1")
MAIN = task(100, name="control")


def program(*lines: TaskLine, **files: bytes | Content) -> RunningProgram:
    """Return a program of these threads; files of /proc/100 by their names."""
    changed = {f"/proc/100/{name}": content for name, content in files.items()}
    threads = listing(*(lines or (FIFO,))).threads
    return running_program(100, threads, {**FILES, **changed}, directory="/")


def text_of(seen: RunningProgram) -> str:
    return render_unit(service_of(seen))


def settings(seen: RunningProgram) -> dict[str, str]:
    found, odd = parse(text_of(seen), name="unit")
    assert odd == []
    return {a.key: a.value for a in found if a.section == "Service"}


def status(**changed: str) -> bytes:
    lines = dict(line.split(":\t", 1) for line in STATUS.splitlines())
    return "".join(f"{k}:\t{v}\n" for k, v in {**lines, **changed}.items()).encode()
