"""A disk image boots by its own boot files, its bytes repeat, and none is lost."""

import json
import shutil
from pathlib import Path

import pytest
from rig import NEEDS_APT, are_built, rtscope

from rtscope.verbs.board.diskimage import TOOLS

KERNELS = {
    "jh7110": "jh7110-6.12-rt",
    "pc": "debian-6.12-rt",
    "rpi3": "debian-6.12-rt",
}

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
    pytest.mark.skipif(
        any(
            shutil.which(tool) is None and not Path("/sbin", tool).exists()
            for tool in TOOLS
        ),
        reason="apt install fdisk mtools",
    ),
]


@pytest.mark.parametrize("board", KERNELS)
def test_an_image_boots_and_its_bytes_repeat(tmp_path: Path, board: str) -> None:
    kernel = KERNELS[board]
    if not kernel.startswith("debian") and not are_built(kernel):
        pytest.skip(f"rtscope kernel build {kernel}")
    words = ("board", "image", board, "--kernel", kernel, "--json", "--out")
    image = tmp_path / "board.img"
    with rtscope(*words, image, "--check") as first:
        done = first.finish()
    assert done.status == 0, done.stderr
    told = json.loads(done.stdout)
    assert f"Linux version {told['release']} " in told["check"]["kernel"]
    assert told["check"]["samples"] >= 500
    assert image.stat().st_size == told["size_bytes"]

    with rtscope(*words, image) as again:
        refused = again.finish()
    assert (refused.status, "--force" in refused.stderr) == (2, True)
    with rtscope(*words, image, "--force") as second:
        done = second.finish()
    assert json.loads(done.stdout)["sha256"] == told["sha256"]
    assert [path.name for path in tmp_path.iterdir()] == ["board.img"]
