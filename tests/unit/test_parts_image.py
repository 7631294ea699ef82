"""What kernel images say about themselves."""

import gzip
from pathlib import Path

import pytest

from rtscope.boards.kernels.catalogue import bootable_image, refuse_unbootable
from rtscope.host.errors import UsageError
from rtscope.machine.kernelimage import arch_of_image, missing_bytes


def with_bytes(*parts: tuple[int, bytes]) -> bytes:
    image = bytearray(4096)
    for at, content in parts:
        image[at : at + len(content)] = content
    return bytes(image)


BZIMAGE = with_bytes(
    (0x1F1, b"\x01"),  # one sector of setup, after the boot sector
    (0x1F4, ((4096 - 1024) // 16).to_bytes(4, "little")),
    (0x1FE, b"\x55\xaa\xeb\x66HdrS"),
    (0x236, b"\x01\0"),
)
ARM64 = with_bytes((0, b"MZ"), (0x38, b"ARM\x64"))
RISCV = with_bytes((0, b"MZ"), (0x30, b"RISCV\0\0\0RSC\x05"))


@pytest.mark.parametrize(
    ("image", "arch"),
    [
        (BZIMAGE, "x86_64"),
        (with_bytes((0x1FE, b"\x55\xaa\xeb\x66HdrS")), "i386"),
        (ARM64, "aarch64"),
        (RISCV, "riscv64"),
        (gzip.compress(ARM64, mtime=0), "aarch64"),
        (with_bytes((0, b"\x7fELF\x02\x01"), (18, b"\xf3\0")), "riscv64"),
        (with_bytes((0, b"MZ"), (0x3C, b"\x40"), (0x40, b"PE\0\0\x64\xaa")), "aarch64"),
        (b"no kernel", None),
        (b"\x1f\x8bno gzip", None),
        (b"", None),
    ],
)
def test_an_image_says_its_architecture(image: bytes, arch: str | None) -> None:
    assert arch_of_image(image) == arch


def test_a_bzimage_says_how_long_it_is() -> None:
    assert missing_bytes(BZIMAGE) == 0
    assert missing_bytes(BZIMAGE[:-100]) == 100
    assert missing_bytes(RISCV) == 0


@pytest.mark.parametrize(
    ("image", "arch", "words"),
    [
        (RISCV, "x86_64", "a kernel for riscv64, and the board is x86_64"),
        (ARM64, "riscv64", "a kernel for aarch64, and the board is riscv64"),
        (gzip.compress(RISCV, mtime=0), "riscv64", "only arm64's boot loader unpacks"),
        (BZIMAGE[:-100], "x86_64", "cut short: 100 bytes are missing"),
        (b"no kernel" * 9, "x86_64", "no kernel image"),
    ],
)
def test_an_image_that_cannot_boot_is_refused(
    image: bytes, arch: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        refuse_unbootable(image, Path("Image"), arch)


def test_an_image_of_the_boards_architecture_is_not_refused() -> None:
    refuse_unbootable(BZIMAGE, Path("bzImage"), "x86_64")


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        bootable_image(path, "x86_64")
    return str(caught.value).removeprefix(f"--kernel {path}: ")


def test_what_is_no_image_is_refused_with_what_to_name(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"no kernel" * 1000)
    arm = tmp_path / "Image"
    arm.write_bytes(ARM64)

    assert refused(tmp_path / "none") == "no such file"
    assert refused(tmp_path) == "a directory; name the image in it (bzImage)"
    assert refused(text).startswith("no kernel image; for x86_64 name")
    assert bootable_image(arm, "aarch64") == ARM64


def test_the_size_of_an_image_has_one_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtscope.machine.kernelimage.MAX_IMAGE_BYTES", 1 << 16)
    (tmp_path / "Image").write_bytes(bytes((1 << 16) + 1))

    assert "more than the 65,536 bytes" in refused(tmp_path / "Image")
