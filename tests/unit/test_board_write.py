"""A disk image on a card: what is refused, asked, written and read back."""

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rtscope.host.errors import HostError, UsageError
from rtscope.verbs.board import write
from rtscope.verbs.board.disks import Disk, find_disk, number_of

DEVICE = Path("/dev/sdq")
NUMBER = (8, 160)
CARD = {
    "size": "131072",
    "ro": "0",
    "removable": "1",
    "dev": "8:160",
    "device/vendor": "Generic ",
    "device/model": "Card Reader",
    "sdq1/partition": "1",
    "sdq1/dev": "8:161",
    "sdq1/holders/": "",
}
IMAGE = b"\0" * 510 + b"\x55\xaa" + b"rtscope" * 1024 + b"\0" * 1024


def machine(root: Path, files: dict[str, str], **others: str) -> Path:
    """Make the part of a machine that tells what its disks are."""
    disk = root / "sys/devices/usb1/block/sdq"
    for name, text in files.items():
        path = disk / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    numbers = root / "sys/dev/block"
    numbers.mkdir(parents=True)
    (numbers / "8:160").symlink_to(disk)
    (numbers / "8:161").symlink_to(disk / "sdq1")
    for name, text in others.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def found(root: Path, number: tuple[int, int] = NUMBER, need: int = 1 << 20) -> Disk:
    return find_disk(DEVICE, number, need_bytes=need, root=root)


def test_a_card_says_what_it_is(tmp_path: Path) -> None:
    udev = {"run__udev__data__b8:160": "E:ID_SERIAL_SHORT=0123\n"}
    disk = found(machine(tmp_path, CARD, **udev))

    assert disk == Disk(DEVICE, NUMBER, "Generic Card Reader", "0123", 64 << 20)


def test_a_reader_that_does_not_say_removable_has_an_sd_card(tmp_path: Path) -> None:
    card = {**CARD, "removable": "0", "device/type": "SD", "device/serial": "0xabc"}
    del card["device/vendor"], card["device/model"]
    disk = found(machine(tmp_path, {**card, "device/name": "SC16G"}))

    assert (disk.model, disk.serial) == ("SC16G", "0xabc")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"removable": "0"}, "not removable, so it may be a disk of this machine"),
        ({"removable": "0", "device/type": "MMC"}, "not removable"),
        ({"ro": "1"}, "protected from writing; move the card's switch"),
        ({"size": "0"}, "no card in it; put one in"),
        ({"size": "2047"}, "it has .* and the image 1 MiB; use a larger card"),
        ({"holders/dm-0": ""}, "sdq is a part of dm-0; look: lsblk /dev/sdq"),
        ({"sdq1/holders/md0": ""}, "sdq1 is a part of md0; look: lsblk /dev/sdq1"),
    ],
)
def test_a_disk_that_may_not_be_written_is_refused_in_words(
    tmp_path: Path, changes: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=f"^/dev/sdq: {why}"):
        found(machine(tmp_path, {**CARD, **changes}))


@pytest.mark.parametrize(
    ("mount", "why"),
    [
        ("30 1 8:161 / /media/a\\040b rw - ext4 /dev/sdq1 rw", "umount '/media/a b'$"),
        ("30 1 8:161 / /mnt rw - ext4 /dev/root rw", "sdq1 is mounted .* umount /mnt"),
        ("30 1 8:160 / /mnt rw shared:1 - vfat /dev/sdq rw", "type: umount /mnt$"),
        ("30 1 0:31 / /mnt rw - btrfs /dev/sdq1 rw", "sdq1 is mounted .* umount /mnt"),
        ("30 1 8:161 / / rw - ext4 /dev/sdq1 rw", "this system runs from it; name"),
        ("30 1 8:161 / /boot/efi rw - vfat /dev/sdq1 rw", "this system runs from it"),
    ],
)
def test_a_disk_that_is_mounted_is_refused_with_what_ends_that(
    tmp_path: Path, mount: str, why: str
) -> None:
    other = "29 1 8:1 / /srv rw - ext4 /dev/sda1 rw"
    root = machine(tmp_path, CARD, proc__self__mountinfo=f"{other}\n{mount}\n")
    with pytest.raises(UsageError, match=why):
        found(root)


def test_swap_space_is_in_use(tmp_path: Path) -> None:
    swaps = "Filename Type\n/dev/sdq1 partition 1 0 -2\n"
    with pytest.raises(UsageError, match="sdq1 is swap space; type: swapoff /dev/sdq1"):
        found(machine(tmp_path, CARD, proc__swaps=swaps))


def test_a_partition_names_its_disk(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a partition; .* the whole disk /dev/sdq$"):
        found(machine(tmp_path, CARD), (8, 161))


def test_a_number_without_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a disk of this machine; list them"):
        found(machine(tmp_path, CARD), (8, 1))


@pytest.mark.parametrize("path", ["/dev/null", "/tmp", "/nowhere"])
def test_what_is_no_disk_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="lsblk"):
        number_of(Path(path))


Typed = Callable[..., int]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Give the verb with a file in the place of the card."""
    card = tmp_path / "card"
    card.write_bytes(b"x" * 20_000)
    (tmp_path / "board.img").write_bytes(IMAGE)
    monkeypatch.setattr(write, "number_of", lambda device: (0, 0))
    monkeypatch.setattr(
        write, "find_disk", lambda *_, **__: Disk(card, (0, 0), "Card", "0123", 20_000)
    )

    def run(**options: Any) -> int:
        asked = {"image": tmp_path / "board.img", "device": card, **options}
        return write.write(write.WriteRequest(**asked))

    return run


def test_what_is_written_is_read_back(
    typed: Typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest of the card stays."""
    assert typed(yes=True, json=True) == 0
    told = capsys.readouterr()
    assert (tmp_path / "card").read_bytes() == IMAGE + b"x" * (20_000 - len(IMAGE))
    digest = hashlib.sha256(IMAGE).hexdigest()
    assert json.loads(told.out) == {
        "image": str(tmp_path / "board.img"),
        "device": str(tmp_path / "card"),
        "model": "Card",
        "serial": "0123",
        "disk_bytes": 20_000,
        "written_bytes": len(IMAGE),
        "sha256": digest,
        "read_back": digest,
        "same": True,
    }
    assert "Card, serial 0123" in told.err


def test_without_consent_nothing_is_written(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(UsageError, match=r"Card, serial 0123.* add --yes$"):
        typed()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    with pytest.raises(UsageError, match="not written"):
        typed()
    assert set((tmp_path / "card").read_bytes()) == {ord("x")}


def test_a_card_that_forgets_is_a_failed_check(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it keeps of the image is another byte."""
    kept = write._write_all
    monkeypatch.setattr(
        write, "_write_all", lambda file, block: kept(file, block[:-1] + b"!")
    )
    assert typed(yes=True) == 1
    assert "does not hold what was written" in capsys.readouterr().out


def test_a_card_that_fails_says_what_it_holds(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(write, "_write_all", fails)
    with pytest.raises(HostError, match="it holds a part of the image: try another"):
        typed(yes=True)


def test_a_path_that_means_another_device_by_now_is_refused(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path / "card", (8, 160), "Card", "0123", 20_000)
    monkeypatch.setattr(write, "find_disk", lambda *_, **__: disk)
    with pytest.raises(UsageError, match="another device by now"):
        typed(yes=True)
    assert set((tmp_path / "card").read_bytes()) == {ord("x")}


@pytest.mark.parametrize("content", [b"", b"text", b"\0" * 1024, IMAGE[:-1]])
def test_a_file_that_is_no_image_is_refused(
    typed: Typed, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "board.img").write_bytes(content)
    with pytest.raises(UsageError, match="not a disk image; write one: rtscope board"):
        typed(yes=True)
