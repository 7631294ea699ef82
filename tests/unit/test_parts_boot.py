"""How a board is booted, and how what it sent is read."""

import io
import subprocess
import tarfile
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.initrd import Job, job_archive, write_initrd
from rtscope.boards.parts.qemu import Boot, Qemu, Recording, command_line, with_plugin
from rtscope.boards.runs.boot import read_results
from rtscope.host.errors import BoardError, UsageError

QEMU = Qemu(("qemu",), version="10", digest="")


def _boot(*quantum: str) -> Boot:
    return Boot(
        kernel=Path("/r/kernel"),
        initrd=Path("/r/initrd"),
        console=Path("/r/a,b"),
        results=Path("/r/results"),
        seed=7,
        quantum=quantum,
    )


def test_nothing_of_the_host_reaches_the_guest() -> None:
    line = " ".join(command_line(QEMU, get_board("pc"), _boot("-plugin", "t.so")))

    for part in (
        "-icount shift=1,sleep=off,align=off",
        "-rtc base=2026-01-01,clock=vm",
        "-seed 7",
        "-nodefaults",
        "-nic none",
        "thread=single,tb-size=256",
        "nokaslr norandmaps",
    ):
        assert part in line
    for word in ("-drive", "-hda", "-fsdev", "-virtfs", "-monitor", "-netdev"):
        assert word not in line


def test_a_comma_in_a_path_does_not_end_an_option() -> None:
    line = command_line(QEMU, get_board("pc"), _boot("-plugin", "t.so"))

    assert "file,id=console,path=/r/a,,b" in line


def test_several_cpus_with_an_unbounded_quantum_are_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="real machine has"):
        command_line(QEMU, get_board("jh7110"), _boot())


def test_one_cpu_needs_no_quantum() -> None:
    board = replace(get_board("pc"), cpus=1)

    assert "-plugin" not in command_line(QEMU, board, _boot())


def test_a_quantum_is_as_long_as_the_board_says() -> None:
    board = get_board("pc")

    words = with_plugin(
        Path("/t.so"),
        board,
        folder=Path("/a,b"),
        recording=Recording(worst=3, windows=((5, 9),), layout={"task": "tp"}),
    )

    assert words == (
        "-plugin",
        "/t.so,quantum=2500,summary=/a,,b/summary.json,progress=/a,,b/progress,"
        "out=/a,,b/stream,shift=1,worst=3,window=5:9,task=tp",
    )


def test_an_initrd_is_its_archives_in_order(tmp_path: Path) -> None:
    digest = write_initrd(tmp_path / "i", [b"base", b"job"])

    assert (tmp_path / "i").read_bytes() == b"basejob"
    assert len(digest) == 64


def test_a_job_asks_for_its_disk_with_a_file() -> None:
    assert b"job/disk" not in job_archive(Job("true"), results="hvc0")
    assert b"job/disk" in job_archive(Job("true", disk=True), results="hvc0")


def _sent(path: Path, **files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folder = tarfile.TarInfo(".")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        end = archive.offset
    path.write_bytes(buffer.getvalue()[: end + 2 * tarfile.BLOCKSIZE])
    return path.read_bytes()


def test_what_a_board_sent_is_read(tmp_path: Path) -> None:
    _sent(tmp_path / "r", a=b"1", b=bytes(600))

    assert read_results(tmp_path / "r") == {"a": b"1", "b": bytes(600)}


@pytest.mark.parametrize("lost", [1, 512, 1024, 1600, 2600])
def test_results_that_are_cut_short_are_refused(tmp_path: Path, lost: int) -> None:
    content = _sent(tmp_path / "r", a=b"x" * 512, b=b"y" * 600)
    (tmp_path / "r").write_bytes(content[:-lost])

    with pytest.raises(BoardError, match=r"cut short|damaged"):
        read_results(tmp_path / "r")


def test_results_with_bytes_lost_in_the_middle_are_refused(tmp_path: Path) -> None:
    content = _sent(tmp_path / "r", a=b"x" * 512, b=b"y" * 600)
    (tmp_path / "r").write_bytes(content[:1100] + content[1200:])

    with pytest.raises(BoardError, match=r"cut short|damaged"):
        read_results(tmp_path / "r")


def test_no_results_are_no_empty_results(tmp_path: Path) -> None:
    (tmp_path / "r").touch()

    with pytest.raises(BoardError, match="no results"):
        read_results(tmp_path / "r")


def test_a_link_sent_by_a_board_is_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "r", "w") as archive:
        link = tarfile.TarInfo("x")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)

    assert read_results(tmp_path / "r") == {}


@pytest.mark.parametrize(("there", "inserted"), [(False, "one two 3"), (True, "")])
def test_the_first_process_inserts_no_more_than_the_device_for_results_needs(
    there: bool, inserted: str, tmp_path: Path
) -> None:
    init = resources.files("rtscope.boards.parts").joinpath("init").read_text()
    body = init[init.index("insert_results() {") : init.index("if [ -e /job/disk ]")]
    (tmp_path / "order").write_text("one\ntwo 3\nspare\n")
    made = tmp_path / "device"
    made.symlink_to("/dev/null" if there else tmp_path / "later")
    body = body.replace("/lib/modules/order", "$PWD/order")
    body = body.replace("/lib/modules/", "").replace("/dev/$results", "$PWD/device")
    insmod = 'insmod() { echo "$@"; [ "$1" != two ] || ln -sf /dev/null device; }\n'

    done = subprocess.run(
        ["sh", "-c", f"{insmod}{body}insert_results"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert " ".join(done.stdout.split()) == inserted
