"""A program of the user's for a board: what it needs, and what no board can run."""

import platform
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rtscope.boards.catalogue import Arch, get_arch
from rtscope.boards.parts.program import program_of
from rtscope.host.errors import UsageError

MACHINE = slice(18, 20)
"""Of an ELF header: the processor."""


@pytest.fixture
def arch() -> Arch:
    try:
        return get_arch(platform.machine())
    except KeyError:
        pytest.skip("no board is of this machine")


Changed = Callable[[Callable[[bytes], bytes]], str]


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """Make a program of this computer with other bytes."""
    found = Path(shutil.which("env") or "/usr/bin/env").read_bytes()
    if b"libc.so.6\0" not in found:
        pytest.skip("the programs of this computer need no libc.so.6")

    def make(change: Callable[[bytes], bytes]) -> str:
        path = tmp_path / "prog"
        path.write_bytes(change(found))
        path.chmod(0o755)
        return str(path)

    return make


def test_a_program_gets_its_loader_and_all_libraries(
    arch: Arch, changed: Changed
) -> None:
    program = program_of([changed(lambda content: content), "-v", "a b"], arch)

    assert program.command == ("/prog", "-v", "a b")
    assert program.libraries
    paths = set(program.files)
    assert {"program/prog", "program/lib/libc.so.6"} <= paths
    (loader,) = (path for path in paths if "/ld-" in path)
    assert program.files[loader][:4] == b"\x7fELF"
    assert program.image("/program/prog") == program.files["program/prog"]
    assert program.image("/bin/busybox") is None


def test_a_program_of_another_processor_is_refused(
    arch: Arch, changed: Changed
) -> None:
    def for_s390(content: bytes) -> bytes:
        return content[: MACHINE.start] + b"\x16\0" + content[MACHINE.stop :]

    with pytest.raises(
        UsageError, match=f"built for S390, .* compile it for {arch.name}"
    ):
        program_of([changed(for_s390)], arch)


@pytest.mark.parametrize(
    ("machine", "named", "runs"),
    [("aarch64", "", True), ("aarch64", "/lib/ld.so", False), ("x86_64", "", False)],
)
def test_a_static_program_of_32_bits_is_for_boards_of_64_bits_of_arm(
    tmp_path: Path, machine: str, named: str, runs: bool
) -> None:
    path = tmp_path / "prog"
    path.write_bytes(arm_program(named.encode()))
    path.chmod(0o755)

    if runs:
        assert not program_of([str(path)], get_arch(machine)).libraries
        return
    with pytest.raises(UsageError, match=f"built for ARM, .* compile it for {machine}"):
        program_of([str(path)], get_arch(machine))


def arm_program(loader: bytes) -> bytes:
    """Return the headers of a 32-bit program, with the name of its loader."""
    ident = b"\x7fELF\1\1\1".ljust(16, b"\0")
    kind = 3 if loader else 1  # PT_INTERP, PT_LOAD
    header = struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    size = len(loader) + 1
    segment = struct.pack("<8I", kind, 84, 0, 0, size, size, 4, 4)
    return ident + header + segment + loader + b"\0"


def test_a_library_that_is_not_here_is_named(arch: Arch, changed: Changed) -> None:
    path = changed(lambda content: content.replace(b"libc.so.6\0", b"libc.so.x\0"))

    with pytest.raises(UsageError, match=r"prog needs libc\.so\.x.*link it statically"):
        program_of([path], arch)


def test_a_loader_that_is_not_here_is_named(arch: Arch, changed: Changed) -> None:
    path = changed(lambda content: content.replace(b"/ld-linux", b"/ld-other"))

    with pytest.raises(UsageError, match=r"needs the loader .*/ld-other.*statically"):
        program_of([path], arch)


def test_a_script_is_refused(arch: Arch, changed: Changed) -> None:
    path = changed(lambda _: b"#!/bin/sh\n")

    with pytest.raises(UsageError, match="no interpreter for scripts"):
        program_of([path], arch)


def test_a_program_that_is_not_there_is_refused(arch: Arch) -> None:
    with pytest.raises(UsageError, match="there is no such program"):
        program_of(["./none-of-this-name"], arch)


def test_a_program_that_fills_the_memory_of_a_board_is_refused(
    arch: Arch, changed: Changed
) -> None:
    path = changed(lambda content: content + bytes(64 << 20))

    with pytest.raises(UsageError, match="more than 64 MiB"):
        program_of([path], arch)


@pytest.mark.parametrize(
    "change",
    [
        lambda elf: elf[:70],
        lambda elf: elf[:54] + b"\xff\xff" + elf[56:],
        lambda elf: elf[:40] + b"\xff" * 8 + elf[48:],
        lambda elf: elf[:32] + b"\xff" * 8 + elf[40:],
        lambda elf: elf[:58] + b"\x01\x00\xff\xff" + elf[62:],
    ],
)
def test_a_damaged_program_is_refused_with_its_reason(
    change: Callable[[bytes], bytes], tmp_path: Path, arch: Arch
) -> None:
    program = tmp_path / "damaged"
    program.write_bytes(change(Path(sys.executable).resolve().read_bytes()))
    program.chmod(0o755)

    with pytest.raises(UsageError, match="no program in the ELF format"):
        program_of([str(program)], arch)
