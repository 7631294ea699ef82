"""Kernel images are told by their first bytes."""

import gzip
from pathlib import Path

import pytest

from rtscope.board.imagefile import arch_of, read_image
from rtscope.errors import UsageError


def image(**at: bytes) -> bytes:
    """Return bytes with some at places such as x202."""
    head = bytearray(2048)
    for place, content in at.items():
        start = int(place[1:], 16)
        head[start : start + len(content)] = content
    return bytes(head)


BZIMAGE = image(x0=b"MZ", x1FE=b"\x55\xaa", x202=b"HdrS", x236=b"\x3f\x00")
ARM64 = image(x0=b"MZ", x38=b"ARM\x64")
RISCV = image(x30=b"RISCV\0\0\0", x38=b"RSC\x05")


@pytest.mark.parametrize(
    ("head", "arch"),
    [
        (BZIMAGE, "x86_64"),
        (image(x202=b"HdrS", x236=b"\x00"), "i386"),
        (ARM64, "aarch64"),
        (gzip.compress(ARM64), "aarch64"),
        (RISCV, "riscv64"),
        (gzip.compress(RISCV), None),
        (image(x0=b"\x7fELF", x12=b"\x3e\x00"), "x86_64"),
        (image(x0=b"\x7fELF", x12=b"\xf3\x00"), "riscv64"),
        (
            image(x0=b"MZ\0\0zimg", x3C=b"\x80", x80=b"PE\0\0", x84=b"\x64\xaa"),
            "aarch64",
        ),
        (b"", None),
        (b"no kernel" * 1000, None),
        (b"\x1f\x8b broken", None),
        (image(x0=b"MZ\0\0zimg", x3C=b"\xff\xff\xff\xff"), None),
    ],
)
def test_an_image_tells_its_architecture(head: bytes, arch: str | None) -> None:
    assert arch_of(head) == arch


def refused(path: Path, arch: str = "x86_64") -> str:
    with pytest.raises(UsageError) as caught:
        read_image(path, arch)
    return str(caught.value).removeprefix(f"--kernel {path}: ")


def test_what_is_no_image_for_the_board_is_refused_with_what_to_name(
    tmp_path: Path,
) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"no kernel" * 1000)
    arm = tmp_path / "Image"
    arm.write_bytes(ARM64)

    assert refused(tmp_path / "none") == "no such file"
    assert refused(tmp_path) == "a directory; name the image in it (bzImage)"
    assert refused(text) == "no kernel image; for x86_64 name the build's bzImage"
    assert refused(arm).startswith("a kernel for aarch64, and the board is x86_64; ")
    assert read_image(arm, "aarch64") == ARM64
