"""An image on a real block device, a loop device, which the kernel keeps for one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtscope.host.errors import UsageError
from rtscope.verbs.board import disks, write

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("losetup", path="/sbin:/usr/sbin") is None,
        reason="needs root and losetup",
    ),
]

IMAGE = b"\0" * 510 + b"\x55\xaa" + b"rtscope" * 10_240


def losetup(*words: str) -> str:
    done = subprocess.run(
        ["/sbin/losetup", *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "board.img").write_bytes(IMAGE + b"\0" * (-len(IMAGE) % 512))
    with (tmp_path / "card").open("wb") as card:
        card.truncate(1 << 20)
    try:
        name = losetup("--find", "--show", str(tmp_path / "card"))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device: {error.stderr}")
    yield Path(name)
    losetup("--detach", name)


def test_a_device_is_written_read_back_and_kept_from_two_writers(
    tmp_path: Path, device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = write.WriteRequest(
        image=tmp_path / "board.img", device=device, yes=True, json=True
    )
    with pytest.raises(UsageError, match="not removable"):
        write.write(request)
    monkeypatch.setattr(disks, "_can_be_taken_out", lambda _: True)
    holder = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(UsageError, match="a program or mount uses it: lsblk /dev"):
            write.write(request)
    finally:
        os.close(holder)
    assert write.write(request) == 0
    assert (tmp_path / "card").read_bytes()[: len(IMAGE)] == IMAGE
