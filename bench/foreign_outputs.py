"""
Run rtla and hwlatdetect on a virtual board, and keep what they print.

These programs need tracers that most kernels lack; Debian's PREEMPT_RT kernel of the
board pc has them. The programs are a Debian suite's own, unpacked into a directory of
the board, and run there as root:

    PYTHONPATH=src .venv/bin/python bench/foreign_outputs.py --suite trixie --out DIR

What they print are the files of tests/foreign: see the README there.
"""

import argparse
import io
import shutil
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.machine.target import agent_file

KERNEL = "debian-6.12-rt"

MEMORY = "2G"
"""The archive and what it has are in it."""

PACKAGES = ("rtla", "rt-tests", "python3-minimal")

NOT_NEEDED = ("doc", "man", "locale", "zoneinfo", "info", "terminfo", "gconv")

COMMANDS = {
    "timerlat-hist-loaded": "rtla timerlat hist -d 1s",
    "timerlat-hist-overflow": "rtla timerlat hist -d 1s -c 0 -E 12",
    "timerlat-hist-ns": "rtla timerlat hist -d 1s -n -b 500 -E 60",
    "timerlat-hist-irq": "rtla timerlat hist -d 1s -p 5000 --no-thread",
    "timerlat-hist-user": "rtla timerlat hist -d 1s -u",
    "timerlat-top": "rtla timerlat top -d 2s -q",
    "timerlat-top-screens": "rtla timerlat top -d 3s",
    "timerlat-top-ns": "rtla timerlat top -d 1s -q -n",
    "timerlat-top-user": "rtla timerlat top -d 1s -q -u",
    "osnoise-hist-loaded": "rtla osnoise hist -d 1s -c 1 -p 100000 -r 2000 -T 2",
    "osnoise-hist-both-loaded": "rtla osnoise hist -d 2s -p 100000 -r 20000 -T 2",
    "osnoise-hist-wide-loaded": "rtla osnoise hist -d 2s -p 100000 -r 20000 -T 2 -b 3",
    "osnoise-top": "rtla osnoise top -d 2s -q -p 100000 -r 2000",
    "osnoise-top-screens": "rtla osnoise top -d 3s -p 100000 -r 2000",
    "osnoise-top-loaded": "rtla osnoise top -d 1s -q -c 1 -p 100000 -r 2000 -T 5",
    "hwlatdetect": "hwlatdetect --duration=3s --threshold=1us --window=500ms"
    " --width=10ms",
    "hwlatdetect-loaded": "hwlatdetect --duration=2s --threshold=2us --window=100ms"
    " --width=2ms --hardlimit=100us",
    "hwlatdetect-none": "hwlatdetect --duration=2s --threshold=1s --window=500ms"
    " --width=2ms",
}
"""Short, and mostly of an idle board: what it waits takes no time of the host."""

SCRIPT = """\
mount -t debugfs debugfs /sys/kernel/debug
mkdir /tree && tar -C /tree -xf /job/tree.tar && rm /job/tree.tar
for at in proc sys dev; do mount --rbind /$at /tree/$at; done
busy() { while :; do ls -lR /tree/usr >/dev/null; done; }
cat >/tmp/commands <<'END'
{commands}
END
while IFS='|' read -r name command; do
    load=
    case $name in *-loaded) busy & load=$! ;; esac
    env PATH=/usr/sbin:/usr/bin TERM=dumb /bin/busybox chroot /tree $command \\
        >/out/$name.txt 2>/out/$name.err </dev/null
    echo $? >/out/$name.status
    [ -z "$load" ] || kill $load
done </tmp/commands
"""


def tree_of(suite: str, folder: Path) -> bytes:
    """Return the packages of a suite, with what they need, as an archive."""
    found = aptroot.resolve(
        PACKAGES, arch="amd64", root=folder / "apt", dependencies=True, suite=suite
    )
    tree = folder / "tree"
    for file in aptroot.fetch(found, folder / "downloads", log=print):
        aptroot.unpack(file, tree)
    for name in ("bin", "sbin", "lib", "lib64"):
        whole, part = tree / "usr" / name, tree / name
        if part.is_dir() and not part.is_symlink():
            shutil.copytree(part, whole, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(part)
        part.symlink_to(f"usr/{name}")
    for name in NOT_NEEDED:
        shutil.rmtree(tree / "usr/share" / name, ignore_errors=True)
    for name in ("proc", "sys", "dev", "tmp"):
        (tree / name).mkdir(exist_ok=True)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(tree, ".")
    return packed.getvalue()


def main() -> int:
    """Write what each command printed to --out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--suite", default=aptroot.SUITE)
    parser.add_argument("--tree", type=Path, help="an archive in place of the suite's")
    parser.add_argument("--only", default="", help="commands whose name has this")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    chosen = {n: c for n, c in COMMANDS.items() if asked.only in n}
    with tempfile.TemporaryDirectory() as folder:
        tree = (
            asked.tree.read_bytes()
            if asked.tree
            else tree_of(asked.suite, Path(folder))
        )
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=print)
    ready = prepare(get_board("pc"), KERNEL, context=context)
    lines = "\n".join(f"{name}|{command}" for name, command in chosen.items())
    booted = boot(
        replace(ready, board=replace(ready.board, memory=MEMORY)),
        Job(SCRIPT.replace("{commands}", lines), files={"tree.tar": tree}),
        seed=1,
        timeout=BootTimeout(0, boot_ns=600 * 10**9),
        stopped=lambda: False,
    )
    asked.out.mkdir(parents=True, exist_ok=True)
    for name, content in booted.files.items():
        if content:
            (asked.out / name).write_bytes(content)
    print(f"{len(booted.files)} files, {booted.host_seconds:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
