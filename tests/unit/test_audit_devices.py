"""What an audit reads from devices, on trees that look like them."""

import os
from pathlib import Path

import pytest

from rtscope.machine.audit.context import NO_REQUEST_US, is_requested
from rtscope.machine.audit.observe import (
    latency_of,
    read_dma_latency,
    smi_counts,
    who_holds,
)


@pytest.mark.parametrize(
    ("content", "latency_us"),
    [(b"\0\0\0\0", 0), (b"\x00\x94\x35\x77", NO_REQUEST_US), (b"", None)],
)
def test_a_latency_is_four_bytes(content: bytes, latency_us: int | None) -> None:
    assert latency_of(content) == latency_us
    assert is_requested(latency_us) is (latency_us == 0)


def test_a_latency_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"1")

    assert read_dma_latency(str(tmp_path / "short"))[1].endswith("gave no number")
    nowhere = tmp_path / "nowhere"
    assert read_dma_latency(str(nowhere)) == (
        None,
        f"{nowhere} cannot be read: No such file or directory",
    )


def test_who_has_a_device_open_is_found_by_its_descriptors(tmp_path: Path) -> None:
    ours = os.getpid()
    for pid, name, target in (
        (ours + 1, "jackd", "/dev/x"),
        (ours + 2, "sh", "/dev/xy"),
        (ours, "rtscope", "/dev/x"),
    ):
        folder = tmp_path / str(pid) / "fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to(target)
        (folder.parent / "comm").write_text(f"{name}\n")
    (tmp_path / "self").mkdir()
    (tmp_path / str(ours + 3)).mkdir()  # it ended while it was looked at

    assert who_holds("/dev/x", tmp_path) == {f"{tmp_path}/{ours + 1}/fd/3": "jackd"}


def test_the_count_of_smis_is_a_register_of_each_cpu(tmp_path: Path) -> None:
    for cpu, count in ((0, 7), (10, 9)):
        (tmp_path / str(cpu)).mkdir()
        (tmp_path / str(cpu) / "msr").write_bytes(
            bytes(0x34) + bytes([count, *[0] * 7])
        )
    (tmp_path / "microcode").touch()

    assert smi_counts(tmp_path) == (
        {f"{tmp_path}/0/msr": 7, f"{tmp_path}/10/msr": 9},
        "",
    )


def test_without_the_registers_it_says_what_to_type(tmp_path: Path) -> None:
    assert smi_counts(tmp_path / "cpu") == (
        {},
        f"{tmp_path}/cpu has no registers: modprobe msr, as root",
    )
    (tmp_path / "0").mkdir()
    counts, why = smi_counts(tmp_path)
    assert counts == {}
    assert why == (
        f"{tmp_path}/0/msr cannot be read: No such file or directory; only root may"
    )


def test_registers_that_may_not_be_listed_are_told_with_the_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "cpu").write_text("no directory")

    assert smi_counts(tmp_path / "cpu") == (
        {},
        f"{tmp_path}/cpu cannot be read: Not a directory",
    )


def test_a_count_of_smis_is_read_from_all_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "msr").write_bytes(bytes(0x34) + bytes([1, 2, 0, 0, 0, 0, 0, 0]))

    assert smi_counts(tmp_path)[0] == {f"{tmp_path}/3/msr": 0x201}
