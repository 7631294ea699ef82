"""Boards and kernels as data: what is there is right, and what is wrong is refused."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from rtscope.boards.catalogue import (
    board_names,
    get_arch,
    get_board,
    parse_board,
    with_append,
)
from rtscope.boards.kernels.build import archived
from rtscope.boards.kernels.catalogue import (
    DEVICE_TREES,
    get_kernel_row,
    keep_packaged,
    kernel_names,
)
from rtscope.host.errors import BoardError, UsageError

BOARDS = resources.files("rtscope.boards") / "boards"
PC = (BOARDS / "pc.toml").read_text()


def test_each_file_of_the_folder_is_a_board() -> None:
    files = [file.name.removesuffix(".toml") for file in BOARDS.iterdir()]

    assert board_names() == tuple(sorted(files))
    assert "pc" in board_names()


@pytest.mark.parametrize("name", board_names())
def test_every_board_says_what_it_leaves_out_and_names_kernels_that_exist(
    name: str,
) -> None:
    board = get_board(name)

    assert board.leaves_out
    assert get_arch(board.arch).qemu.startswith("qemu-system-")
    for kernel in board.kernels:
        assert get_kernel_row(kernel, board.arch).arch == board.arch


@pytest.mark.parametrize("name", board_names())
def test_results_leave_without_a_thread_of_the_host_in_between(name: str) -> None:
    # By default QEMU hands a virtio notification to its main loop, and when that runs
    # is the host's affair: digests then differ from run to run (seen with 10.0.13).
    devices = " ".join(get_board(name).results_devices)

    assert "ioeventfd=off" in devices


def test_a_turn_of_2500_instructions_at_shift_1_lasts_5_us() -> None:
    board = get_board("pc")

    assert (board.quantum_instructions, board.shift) == (2500, 1)
    assert board.quantum_ns == 5000
    assert board.mips == 500


@pytest.mark.parametrize("quantum", ["", "quantum_instructions = 25001"])
def test_several_cpus_without_a_short_turn_are_refused_with_the_reason(
    quantum: str,
) -> None:
    text = PC.replace("quantum_instructions = 2500", quantum)

    with pytest.raises(UsageError, match="real machine has"):
        parse_board("pc", text)


def test_one_cpu_needs_no_turn_length() -> None:
    text = PC.replace("quantum_instructions = 2500", "").replace("cpus = 2", "cpus = 1")

    assert parse_board("pc", text).quantum_ns is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cpus = 2", "cpus = 0", "cpus"),
        ("cpus = 2", "cpus = 2\nsped = 1", "sped"),
        ('arch = "x86_64"', 'arch = "z80"', "arch: one of"),
        ('memory = "1G"', 'memory = "1G,slots=2"', "memory"),
        ('cpu = "Nehalem"', 'cpu = "a b"', "cpu"),
        ("shift = 1", "shift =", "Invalid value"),
    ],
)
def test_a_wrong_value_is_named(old: str, new: str, said: str) -> None:
    assert old in PC

    with pytest.raises(UsageError, match=said):
        parse_board("pc", PC.replace(old, new))


def test_an_unknown_board_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'jh7110'"):
        get_board("jh7100")


def test_an_unknown_kernel_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'debian-6\.12-rt'"):
        get_kernel_row("debian-6.12-tr", "x86_64")


def test_riscv_has_one_packaged_kernel_and_our_pair() -> None:
    names = kernel_names("riscv64")

    assert {"jh7110-6.12", "jh7110-6.12-rt"} <= set(names)
    packaged = {name for name in names if not get_kernel_row(name, "riscv64").recipe}
    assert packaged == {"debian-6.12"}


def test_a_kernel_for_another_architecture_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no kernel 'jh7110-6\.12-rt' for"):
        get_kernel_row("jh7110-6.12-rt", "x86_64")


def test_more_words_come_after_those_of_the_board() -> None:
    board = get_board("pc")
    more = with_append(board, ("isolcpus=managed_irq,domain,1", "trace_event=sched"))

    assert more.append == (
        *board.append,
        "isolcpus=managed_irq,domain,1",
        "trace_event=sched",
    )
    assert with_append(board, ()) == board


@pytest.mark.parametrize("word", ["b;c", "-x", '"a', "a b", "x" * 201, "a\x1b"])
def test_a_word_that_is_no_word_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="--append: "):
        with_append(get_board("pc"), ("quiet", word))


def test_of_a_package_the_device_trees_of_its_boards_are_kept(tmp_path: Path) -> None:
    """One that is not there is named, and the others are not kept."""
    row = replace(
        get_kernel_row("debian-6.12", "aarch64"), modules=(), event_modules=()
    )
    root, work = tmp_path / "root", tmp_path / "work"
    trees = root / "usr/lib/linux-image-6.12.1"
    (root / "boot").mkdir(parents=True)
    (root / "boot/vmlinuz-6.12.1").write_bytes(b"image")
    (root / "boot/config-6.12.1").write_bytes(b"CONFIG_X=y")
    (trees / "broadcom").mkdir(parents=True)
    work.mkdir()
    with pytest.raises(
        BoardError, match=r"no device tree broadcom/bcm2837-rpi-3-b\.dtb"
    ):
        keep_packaged(work, root, row)
    for name in (*row.device_trees, "broadcom/other.dtb"):
        (trees / name).write_bytes(name.encode())
    keep_packaged(work, root, row)

    kept = dict(archived(work / DEVICE_TREES))
    assert kept == {f"dtbs/{one}": one.encode() for one in row.device_trees}
    assert not (work / "trees").exists()
