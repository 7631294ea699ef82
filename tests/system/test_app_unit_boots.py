"""
A unit of `rtscope app unit` starts its program as it was seen.

On a virtual board: a program is started by hand and looked at; then Debian's systemd,
process 1 of a PID namespace, starts it by its unit on a board that boots anew, and it
is looked at again.
"""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.buildcontext import BuildContext, part_of_packages
from rtscope.boards.parts.cache import cache_dir, locked
from rtscope.boards.parts.initrd import Entry, File, Folder, Job, Link, pack
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.inspect import files_of
from rtscope.boards.runs.script import agent_line
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.machine.target import agent_file
from rtscope.machine.tasks.listing import PATHS, make_listing, read_surroundings
from rtscope.verbs.app.running import (
    FILES,
    ONLINE,
    PASSWD,
    RunningProgram,
    running_program,
)
from rtscope.verbs.app.service import service_of
from rtscope.verbs.app.unit import render_unit

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]

SOURCE = Path(__file__).parent.parent / "offenders" / "started.c"
PROGRAM = "/opt/started"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
SYSTEMD = "usr/lib/systemd"
PASSWORDS = b"root:x:0:0::/:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n"

LOOK = f"""\
pid=
for i in 1 2 3 4 5 6 7 8 9 10; do
    pid=$(pidof started) && break
    sleep 1
done
sleep 0.1
{agent_line("tasks")} >/out/tasks.jsonl
{agent_line("read", "--", *PATHS, PASSWD, ONLINE)} >/out/files.jsonl
for file in {" ".join(FILES)}; do
    rtscope-agent read -- /proc/$pid/$file >>/out/files.jsonl
done
echo $pid >/out/pid
"""
BY_HAND = f"{PROGRAM} launch &\n{LOOK}"
BY_SYSTEMD = f"""\
mount -t tmpfs run /run
env -i container=lxc PATH=/bin:/sbin unshare -p -f -m --mount-proc \
    /{SYSTEMD}/systemd --log-target=console --log-level=info \
    --unit=started.service >/out/systemd.log 2>&1 &
{LOOK}"""


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    return prepare(get_board("pc"), "debian-6.12-rt", context=context)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    out = tmp_path_factory.mktemp("started") / "started"
    subprocess.run(["gcc", "-static", "-O1", "-o", out, SOURCE], check=True)
    return out.read_bytes()


@pytest.fixture(scope="module")
def systemd() -> bytes:
    """An archive with Debian's systemd, from a cache beside that of the boards."""
    context = BuildContext(cache=cache_dir() / "tests", agent=agent_file)
    with locked(context.cache, log=print):
        part = part_of_packages(
            context,
            "systemd-x86_64",
            lambda root: aptroot.resolve(
                ["systemd"], arch="amd64", root=root, dependencies=True
            ),
            recipe=1,
            build=_keep,
        )
    return (part.path / "systemd.cpio").read_bytes()


def _keep(work: Path, root: Path) -> Mapping[str, Any]:
    """Keep systemd itself with its libraries and targets; no service of Debian's."""
    wanted = [
        *(root / SYSTEMD / name for name in ("systemd", "systemd-executor")),
        *(root / SYSTEMD / "system").glob("*.target"),
        *(root / SYSTEMD / "system").glob("*.slice"),
        *(root / LIBRARIES).glob("*.so*"),
        *(root / LIBRARIES / "systemd").glob("*.so"),
    ]
    entries: dict[str, Entry] = {
        str(path.relative_to(root)): Link(str(path.readlink()))
        if path.is_symlink()
        else File(path.read_bytes(), runs=True)
        for path in wanted
    }
    (work / "systemd.cpio").write_bytes(pack(entries))
    return {}


def _boot(
    prepared: Prepared, script: str, folder: Path, *archives: bytes
) -> tuple[Booted, RunningProgram]:
    paths = [folder / f"{number}.cpio" for number in range(len(archives))]
    for path, archive in zip(paths, archives, strict=True):
        path.write_bytes(archive)
    booted = boot(
        replace(prepared, archives=(*prepared.archives, *paths)),
        Job(script),
        seed=1,
        timeout=BootTimeout(100_000_000),
        stopped=lambda: False,
    )
    said = booted.text("systemd.log") + booted.text("script.log")
    assert booted.text("pid").strip().isdigit(), said
    pid = int(booted.text("pid"))
    reader = files_of(prepared, booted, "files.jsonl")
    listing = make_listing(booted.lines("tasks.jsonl"), read_surroundings(reader))
    files = reader.read_many(
        [*(f"/proc/{pid}/{name}" for name in FILES), PASSWD, ONLINE]
    )
    return booted, running_program(pid, listing.threads, files, directory="/")


def _archive(program: bytes, **more: bytes) -> bytes:
    entries: dict[str, Entry] = {
        PROGRAM.lstrip("/"): File(program, runs=True),
        "etc/passwd": File(PASSWORDS),
        "etc/group": File(b"root:x:0:\ndaemon:x:1:\n"),
        "etc/machine-id": File(b"00000000000040008000000000000000\n"),
        "var/log": Folder(),
    }
    entries |= {path: File(content) for path, content in more.items()}
    return pack(entries)


def test_systemd_starts_a_program_with_just_what_it_was_seen_to_have(
    prepared: Prepared, program: bytes, systemd: bytes, tmp_path: Path
) -> None:
    _, seen = _boot(prepared, BY_HAND, tmp_path, _archive(program))
    unit = render_unit(service_of(seen))
    place = "etc/systemd/system/started.service"
    files = _archive(program, **{place: unit.encode()})
    booted, started = _boot(prepared, BY_SYSTEMD, tmp_path, systemd, files)

    first = started.first.line
    assert started.service == "started.service", booted.text("systemd.log")
    assert (first.policy, first.priority) == ("fifo", 43)
    assert started.first.cpus == seen.first.cpus == frozenset({1})
    assert started.online == frozenset({0, 1})
    for limit in ("Max realtime priority", "Max locked memory", "Max realtime timeout"):
        assert started.limits[limit] == seen.limits[limit], limit
    assert started.limits["Max realtime priority"] == "43"
    assert started.limits["Max locked memory"] == "unlimited"
    assert started.argv[1:] == seen.argv[1:] == ("an argument", "$HOME", "50%")
    assert (started.executable, started.user) == (PROGRAM, "daemon")
    assert started.status["Umask"] == "0027"
    assert started.locked_kb > 0
    # What systemd started has the very same unit.
    assert service_of(started).settings == service_of(seen).settings
