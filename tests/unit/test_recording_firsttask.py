"""Offsets of a kernel without BTF, from its first task as it was compiled."""

import struct

import pytest

from rtscope.boards.recording.firsttask import LARGEST_TASK, offsets_of_first_task
from rtscope.host.errors import BoardError
from rtscope.machine.kernelconfig import KernelConfig, parse_config

TASK, STACK = 0xFFFF_FFFF_8056_4F00, 0xFFFF_FFFF_8055_8000
STATE, PRIO, PID, NAME = 72, 156, 1128, 1600


def first_task(*, canary: bool = False) -> bytearray:
    """A task as init/init_task.c fills it in."""
    made = bytearray(LARGEST_TASK)
    struct.pack_into("<IIQ", made, STATE, 0, 0, STACK)
    struct.pack_into("<4I", made, PRIO, 120, 120, 120, 0)
    parents = PID + (16 if canary else 8)
    lists = (parents + 16, parents + 32)
    struct.pack_into("<2Q", made, parents, TASK, TASK)
    for at in lists:
        struct.pack_into("<2Q", made, at, TASK + at, TASK + at)
    struct.pack_into("<Q", made, parents + 48, TASK)
    made[NAME : NAME + 8] = b"swapper\0"
    return made


def config(*lines: str) -> KernelConfig:
    text = "\n".join(
        ("# Linux/riscv 6.12 Kernel Configuration", "CONFIG_MMU=y", *lines)
    )
    return parse_config(text.encode(), source="a test")


def found(
    task: bytes, *lines: str, release: str = "6.12.117", stack: int = STACK
) -> dict[str, int]:
    return offsets_of_first_task(
        task, address=TASK, stack=stack, release=release, config=config(*lines)
    )


def test_members_of_a_task_are_found_by_what_stands_beside_them() -> None:
    offsets = found(bytes(first_task()), "CONFIG_PREEMPT_RT=y")

    assert {name: offsets[name] for name in ("pid", "tgid", "comm")} == {
        "pid": PID,
        "tgid": PID + 4,
        "comm": NAME,
    }
    assert (offsets["prio"], offsets["on_rq"]) == (PRIO, PRIO - 4)
    assert offsets["state"] == STATE
    assert offsets["delayed"] == 192 + 81


def test_a_stack_canary_stands_between_numbers_and_parents() -> None:
    offsets = found(bytes(first_task(canary=True)), "CONFIG_STACKPROTECTOR=y")

    assert offsets["pid"] == PID


@pytest.mark.parametrize(
    ("lines", "keeper", "offset", "rwsem"),
    [((), 8, 56, 8), (("CONFIG_PREEMPT_RT=y",), 16, 64, 0)],
)
def test_the_locks_of_preempt_rt_are_larger(
    lines: tuple[str, ...], keeper: int, offset: int, rwsem: int
) -> None:
    offsets = found(bytes(first_task()), *lines)

    assert (offsets["keeper"], offsets["offset"]) == (keeper, offset)
    assert offsets["rwsem"] == rwsem


def test_before_6_12_no_dequeue_is_delayed() -> None:
    assert found(bytes(first_task()), release="6.6.1")["delayed"] == 0


@pytest.mark.parametrize("release", ["", "5.15.1", "6.13.0", "7.0.0"])
def test_kernels_of_other_series_are_refused(release: str) -> None:
    with pytest.raises(BoardError, match="CONFIG_DEBUG_INFO_BTF"):
        found(bytes(first_task()), release=release)


def test_a_kernel_with_lock_debugging_is_refused() -> None:
    with pytest.raises(BoardError, match="CONFIG_DEBUG_INFO_BTF"):
        found(bytes(first_task()), "CONFIG_DEBUG_LOCK_ALLOC=y")


@pytest.mark.parametrize(
    ("at", "what"),
    [(NAME, "name"), (PRIO, "priorities"), (STATE + 8, "stack"), (PID + 8, "parents")],
)
def test_what_is_missing_is_named(at: int, what: str) -> None:
    task = first_task()
    task[at] ^= 0xFF

    with pytest.raises(BoardError, match=what):
        found(bytes(task))
