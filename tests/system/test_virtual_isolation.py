"""Nothing of this machine reaches a virtual board, and nothing it does changes it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from rig import (
    NEEDS_APT,
    RISCV,
    Done,
    arguments_of,
    children_of,
    rtscope,
    until,
)

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.machine.target import agent_file
from rtscope.record.directory.records import open_records
from rtscope.record.explanation import EXPLAINED
from rtscope.record.instructions.file import FILE
from rtscope.stats.runcaveats import all_caveats

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]

BOARD = ("run", "--target", "virtual:jh7110", "--kernel", RISCV)
SHORT = ("--duration", "1s", "--interval", "1ms", "--warmup", "0s")
PATIENCE_S = 300.0

LOOK = """\
rtscope-agent measure --duration-ns 20000000 --worst 1 >/out/measure.jsonl
cat /proc/cmdline >/out/cmdline
date +%Y-%m-%d >/out/date
find /sys /dev -name '*fw_cfg*' -o -name 'hwrng' -o -name 'vd[a-z]' -o -name 'sd[a-z]' \
    >/out/found
ls /sys/class/net >/out/net
"""


def measured(*words: str, out: Path, env: Mapping[str, str] | None = None) -> Done:
    with rtscope(*BOARD, *SHORT, *words, "--out", out, env=env) as campaign:
        return campaign.finish(PATIENCE_S)


def digests(out: Path) -> dict[str, str | None]:
    return {record.run.load: record.result_digest for record in open_records(out)}


def test_environment_and_company_change_no_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    loads = ("--load", "idle,cpu")
    assert measured(*loads, "--jobs", "1", out=alone).status == 0
    strange = {
        "TZ": "Pacific/Kiritimati",
        "LANG": "tr_TR.UTF-8",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(cache_dir().parent),
        "QEMU_MODULE_DIR": "/nowhere",
        "LD_LIBRARY_PATH": "/nowhere",
        "TMPDIR": str(tmp_path),
    }
    monkeypatch.chdir("/")
    before = os.umask(0o077)
    try:
        source = str(Path(sys.modules["rtscope"].__file__ or "").parent.parent)
        env = {**strange, "PYTHONPATH": source}
        assert measured(*loads, "--jobs", "2", out=beside, env=env).status == 0
    finally:
        os.umask(before)

    assert digests(alone) == digests(beside)
    assert len(set(digests(alone).values())) == 2


def test_a_bundle_in_an_empty_cache_gives_the_same_explanation(tmp_path: Path) -> None:
    bundle, here, there = (tmp_path / name for name in ("pc.tar", "here", "there"))
    pc = ("--target", "virtual:pc", "--kernel", "debian-6.12-rt", "--load", "idle")
    elsewhere = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def done(*words: str | Path, env: Mapping[str, str] | None = None) -> None:
        with rtscope(*words, env=env) as running:
            assert running.finish(PATIENCE_S).status == 0

    done("board", "export", "pc", "--kernel", "debian-6.12-rt", "--out", bundle)
    done("run", *pc, *SHORT, "--out", here)
    done("run", *pc, *SHORT, "--bundle", bundle, "--out", there, env=elsewhere)
    done("explain", here)
    done("explain", there, env=elsewhere)

    for name in (EXPLAINED, FILE):
        (ours,), (theirs,) = (list(one.glob(f"runs/*/{name}")) for one in (here, there))
        assert ours.read_bytes() == theirs.read_bytes(), name


def test_the_guest_finds_nothing_of_the_host() -> None:
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    prepared = prepare(get_board("jh7110"), RISCV, context=context)
    files = boot(
        prepared,
        Job(LOOK),
        seed=1,
        timeout=BootTimeout(20_000_000),
        stopped=lambda: False,
    ).files

    assert files["cmdline"].split() == [
        *(b"console=ttyS0", b"rdinit=/init", b"quiet", b"nokaslr", b"norandmaps"),
        *(b"panic=-1", b"cryptomgr.notests"),
    ]
    # Of the board's clock, or that of a kernel without a driver for one.
    assert files["date"] in (b"2026-01-01\n", b"1970-01-01\n")
    assert b"hwrng" not in files["found"]
    assert b"/vd" not in files["found"]
    assert b"/sd" not in files["found"]
    assert set(files["net"].split()) <= {b"lo", b"sit0"}


@pytest.mark.usefixtures("private_tmp")
def test_qemu_is_given_no_device_that_leads_out(tmp_path: Path) -> None:
    words = (*BOARD, "--load", "idle", "--duration", "10m", "--out", tmp_path / "out")
    with rtscope(*words) as campaign:
        until(lambda: bool(_qemu(campaign.pid)), what="a QEMU", within_s=PATIENCE_S)
        argv = _qemu(campaign.pid)

    allowed = {"file,id=console", "file,id=results"}
    backends = [argv[i + 1] for i, word in enumerate(argv) if word == "-chardev"]
    assert {",".join(b.split(",")[:2]) for b in backends} == allowed
    assert argv[argv.index("-nic") + 1] == "none"
    assert "clock=vm" in argv[argv.index("-rtc") + 1]
    assert argv[argv.index("-seed") + 1] == "1"
    devices = [argv[i + 1] for i, word in enumerate(argv) if word == "-device"]
    assert devices == ["virtio-serial-device", "virtserialport,chardev=results"]
    out = {"-drive", "-hda", "-cdrom", "-netdev", "-net", "-fsdev", "-virtfs", "-usb"}
    out |= {"-monitor", "-qmp", "-mon", "-object", "-fw_cfg", "-smbios", "-snapshot"}
    assert out.isdisjoint(argv)


def _qemu(pid: int) -> list[str]:
    for child in children_of(pid):
        if "-icount" in (words := arguments_of(child)):
            return words
    return []


def test_a_load_that_dies_is_told_and_the_memory_load_runs_out_in_its_group(
    tmp_path: Path,
) -> None:
    died = tmp_path / "died"
    done = measured("-v", "--load", "custom", "--command", "sh -c 'exit 3'", out=died)
    assert b"exit status 3" in done.stdout, done.stderr
    (record,) = open_records(died)
    assert "load_died" in {c.id for c in all_caveats(record)}

    ran_out = tmp_path / "ran-out"
    done = measured("--load", "oom", out=ran_out)
    assert done.status == 0, done.stderr
    (record,) = open_records(ran_out)
    assert record.load.end is not None
    assert record.load.end.oom_kills
