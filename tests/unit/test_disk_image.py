"""The disk image of a board: what is asked, refused, and read of its boot."""

import errno
import os
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels import build
from rtscope.host.errors import BoardError, HostError, UsageError
from rtscope.verbs.board import diskimage, image

MIB = 1 << 20
NO_CONTEXT: Any = None


def test_its_size_is_whole_and_bounded() -> None:
    """Small ones have the least that FAT32 needs, and huge ones are refused."""
    assert diskimage.image_bytes([1]) == diskimage.SMALLEST_BYTES
    assert diskimage.image_bytes([100 * MIB + 1]) == 118 * MIB
    with pytest.raises(HostError, match="1024 is the most"):
        diskimage.image_bytes([2000 * MIB])


def test_a_board_without_loader_is_refused_by_name() -> None:
    board: Any = SimpleNamespace(name="vf1")
    with pytest.raises(UsageError, match=r"vf1: no disk image .* of jh7110, pc, rpi3,"):
        diskimage.loader_of(board)


def test_a_raspberry_pi_gets_its_device_trees_and_no_others(tmp_path: Path) -> None:
    """Its console is another than the virtual board's, and comes last."""
    tree = tmp_path / "trees" / "dtbs" / "broadcom"
    tree.mkdir(parents=True)
    for name in ("bcm2837-rpi-3-b.dtb", "bcm2711-rpi-4-b.dtb"):
        (tree / name).write_bytes(name.encode())
    build.pack_folder(tmp_path / "trees", tmp_path / "dtbs.tar")
    kernel = SimpleNamespace(name="k", device_trees=tmp_path / "dtbs.tar")
    prepared: Any = SimpleNamespace(board=get_board("rpi3"), kernel=kernel)

    name = "dtbs/broadcom/bcm2837-rpi-3-b.dtb"
    assert diskimage.device_trees(prepared) == {name: b"bcm2837-rpi-3-b.dtb"}
    files = diskimage.boot_files(prepared)
    assert set(files) == {"extlinux/extlinux.conf", "config.txt"}
    assert files["extlinux/extlinux.conf"].splitlines()[-2:] == [
        "    fdtdir /dtbs/",
        "    append console=ttyAMA0 console=ttyS1,115200 rdinit=/init quiet panic=10",
    ]
    assert "kernel=u-boot.bin\n" in files["config.txt"]
    assert "u-boot.bin" in [
        one.name for one in diskimage.loader_of(prepared.board).copies
    ]


def test_u_boot_of_the_raspberry_pi_gets_places_for_a_large_kernel() -> None:
    """Its file is as long as U-Boot reads, and has the sum that it checks."""
    files = diskimage.environment(get_board("rpi3"))
    content = files["uboot.env"]

    assert len(content) == 16 << 10
    assert int.from_bytes(content[:4], "little") == zlib.crc32(content[4:])
    variables = dict(
        line.split("=") for line in content[4:].decode().rstrip("\0").split("\0")
    )
    kernel, tree = (int(variables[f"{name}_addr_r"], 16) for name in ("kernel", "fdt"))
    assert tree - kernel > 100 * MIB
    assert diskimage.environment(get_board("jh7110")) == {}


def test_a_pc_gets_the_files_of_systemd_boot_without_the_virtual_boards_words() -> None:
    prepared: Any = SimpleNamespace(
        board=get_board("pc"), kernel=SimpleNamespace(name="debian-6.12-rt")
    )
    files = diskimage.boot_files(prepared)

    assert set(files) == {"loader/loader.conf", "loader/entries/rtscope.conf"}
    assert files["loader/entries/rtscope.conf"].splitlines() == [
        "title debian-6.12-rt, by rtscope",
        "linux /vmlinuz",
        "initrd /initrd.img",
        "options console=ttyS0 rdinit=/init quiet panic=10",
    ]


def test_missing_programs_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diskimage, "which", lambda tool, path: tool == "sfdisk" or None)
    with pytest.raises(UsageError, match=r"mformat, mmd, mcopy.*apt install mtools$"):
        diskimage.refuse_without_tools()


def test_a_program_that_fails_leaves_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words are in the refusal."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in diskimage.TOOLS:
        program = programs / name
        program.write_text("#!/bin/sh\necho no space on it >&2\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(diskimage, "write_initrd", lambda path, *_: path.touch())
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(b"kernel")
    board = SimpleNamespace(
        name="jh7110", console="ttyS0", append=(), results="vport0p1"
    )
    prepared: Any = SimpleNamespace(
        board=board,
        kernel=SimpleNamespace(name="k", image=kernel, device_trees=None),
    )
    with pytest.raises(HostError, match="sfdisk: no space on it"):
        diskimage.write_image(tmp_path / "board.img", prepared, NO_CONTEXT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "vmlinuz"]


def test_a_full_disk_is_known_before_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(diskimage, "refuse_without_tools", lambda: None)
    monkeypatch.setattr(diskimage, "write_initrd", lambda path, *_: path.touch())
    monkeypatch.setattr(diskimage, "posix_fallocate", full)
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    board = SimpleNamespace(
        name="jh7110", console="ttyS0", append=(), results="vport0p1"
    )
    prepared: Any = SimpleNamespace(
        board=board,
        kernel=SimpleNamespace(name="k", image=tmp_path / "vmlinuz", device_trees=None),
    )
    with pytest.raises(HostError, match=r"No space left on device; free some space"):
        diskimage.write_image(tmp_path / "board.img", prepared, NO_CONTEXT)
    assert [path.name for path in tmp_path.iterdir()] == ["vmlinuz"]


@pytest.mark.parametrize("error", [BoardError("does not boot"), KeyboardInterrupt()])
def test_an_image_that_does_not_boot_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise error

    out = tmp_path / "board.img"
    out.touch()
    monkeypatch.setattr(image, "check_image", fails)
    asked = image.ImageRequest(name="jh7110", out=out, check=True)
    nothing: Any = None
    with pytest.raises(type(error)):
        image._checked(asked, nothing, nothing)
    assert not out.exists()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"version": b"Linux version 6.12 #1\n"}, "6.12 #1 booted, not .* 6.12 #2"),
        ({}, "no kernel booted, not Linux version 6.12 #2"),
        (
            {"version": b"Linux version 6.12 #2\n", "script.log": b"not found"},
            "nothing: not found",
        ),
    ],
)
def test_a_boot_that_proves_nothing_is_refused(
    files: dict[str, bytes], why: str
) -> None:
    with pytest.raises(BoardError, match=why):
        diskimage.read_check(Path("x.img"), files, banner="Linux version 6.12 #2")
