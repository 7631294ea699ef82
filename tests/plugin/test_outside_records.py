"""What is seen of a program from outside, of a guest that has it by the instruction."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from bare import Board, address_of, build
from test_plugin import board, qemu

from rtscope.programs.outside.file import (
    Entry,
    Kind,
    ProgramRecord,
    name_of,
    parse_program_record,
)

__all__ = ["board", "qemu"]

DUE_NS = 64
PROGRAM = 0x4000_0000 - 0x8000_0000
"""From where a symbol is to where the program executes it."""
HOOKS = (
    *("try_to_wake_up", "ttwu_do_activate", "finish_task_switch", "hrtimer_wakeup"),
    *("", "", "", "wake_up_new_task", "set_task_comm", "do_exit"),
    *("do_trap_ecall_u", "handle_mm_fault", "", "", "", ""),
)
FIELDS = (16, 20, 24, 40, 44, 48, 52, 0, 0, 0, 0, 0, 0, 8)
TIMES = (16, 24, 28, 32, 40, 24, 40, 48, 0, 64, 10**9)


def arguments(guest: Path) -> dict[str, object]:
    keeper = address_of(guest, "keeper")
    hooks = (address_of(guest, name) if name else 0 for name in HOOKS)
    return {
        "hooks": ":".join(map(str, hooks)),
        "fields": ":".join(map(str, FIELDS)),
        "time": ":".join(map(str, (keeper, keeper, *TIMES))),
        "task": "tp",
        "preempt": "tp@8:4",
        "use": (address_of(guest, "used") & 0xFFFF_FFFF) + PROGRAM,
        "shift": 1,
    }


def guest_with(*, wrong: int = 0) -> Path:
    return build("outside.S", DUE=DUE_NS, WRONG=wrong)


def recorded(board: Board, **more: object) -> ProgramRecord:
    guest, file = guest_with(), board.work / "program"
    done = board.start(guest, cpus=1, program=file, **arguments(guest), **more)
    assert (done.returncode, done.stderr) == (0, "")
    return parse_program_record(file.read_bytes())


@pytest.fixture(scope="module")
def record(
    qemu: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> ProgramRecord:
    return recorded(Board(qemu, tmp_path_factory.mktemp("outside")))


def rows(record: ProgramRecord) -> list[tuple[Kind, int, int, int]]:
    return [
        (Kind(one.kind), one.tid, one.detail, one.value)
        for one in record.entries
        if one.kind not in (Kind.THREAD, Kind.NAME, Kind.ARGUMENTS)
    ]


def one(record: ProgramRecord, kind: Kind) -> Entry:
    (found,) = (entry for entry in record.entries if entry.kind == kind)
    return found


def test_all_that_the_program_does_is_seen_in_its_order(record: ProgramRecord) -> None:
    at = {
        name: address_of(guest_with(), name) - 0xFFFF_FFFF_0000_0000 + PROGRAM
        for name in ("behind_exec", "behind_sleep")
    }
    seen = rows(record)

    assert seen == [
        (Kind.CALL, 7, 221, 0),
        (Kind.RETURN, 7, 221, seen[1][3]),
        (Kind.FAULT, 7, 1, 0x1234),
        (Kind.FORK, 7, 0, 8),
        (Kind.CALL, 7, 101, 0),
        (Kind.OUT, 7, 0, 1),
        (Kind.RELEASE, 7, 1, DUE_NS),
        (Kind.WAKE, 7, 1, 0),
        (Kind.ACTIVATE, 7, 0, 0),
        (Kind.IN, 7, 120, 0),
        (Kind.FIRST, 7, 0, at["behind_sleep"]),
        (Kind.RETURN, 7, 101, 0),
        (Kind.USED, 7, 0, at["behind_sleep"] + 8),
        (Kind.OUT, 7, 1, 9 << 32),
        (Kind.IN, 7, 120, 9),
        (Kind.FIRST, 7, 0, seen[15][3]),
        (Kind.EXIT, 7, 0, 5 << 8),
        (Kind.OUT, 7, 0, 128),
    ]


def test_threads_are_named_before_their_records(record: ProgramRecord) -> None:
    names: dict[int, list[str]] = {}
    for entry in record.entries:
        if entry.kind == Kind.NAME:
            names.setdefault(entry.tid, []).append(name_of(entry))
        elif entry.kind != Kind.THREAD:
            assert entry.tid in names
    own = {
        entry.tid
        for entry in record.entries
        if entry.kind == Kind.THREAD and entry.user
    }

    assert names == {
        7: ["shell", "program"],
        8: ["shell"],
        9: ["other"],
        0: ["swapper"],
    }
    assert own == {7, 8}


def test_times_and_instructions_are_those_of_the_guest(record: ProgramRecord) -> None:
    first = [entry for entry in record.entries if entry.kind == Kind.FIRST]
    preempted = [entry for entry in record.entries if entry.kind == Kind.OUT][1]

    assert one(record, Kind.RELEASE).expires_ns == DUE_NS
    assert one(record, Kind.WAKE).at_ns > DUE_NS
    # nop, jal, ret, and the six instructions into the kernel
    assert preempted.user - first[0].user == 9
    assert preempted.at_ns > first[0].at_ns + 9 * 2


def test_only_what_can_be_seen_is_promised(record: ProgramRecord) -> None:
    assert Kind.HELD not in record.kinds
    assert Kind.STACK not in record.kinds
    assert {Kind.RELEASE, Kind.USED, Kind.FAULT} <= record.kinds


def test_stacks_have_registers_and_what_the_stack_pointer_points_to(
    board: Board,
) -> None:
    record = recorded(board, stacks=1, stack=64)
    kinds = [record.entries[stack.at].kind for stack in record.stacks]

    assert kinds == [Kind.ARGUMENTS, Kind.ARGUMENTS, Kind.USED]
    used = record.stacks[-1]
    assert len(used.words) == 32
    assert used.words[0] == (address_of(guest_with(), "used") & 0xFFFF_FFFF) + PROGRAM


def test_more_records_than_the_limit_are_counted(board: Board) -> None:
    whole, cut = recorded(board), recorded(board, most=10)

    assert [entry.kind for entry in cut.entries[:-1]] == [
        entry.kind for entry in whole.entries[:10]
    ]
    assert cut.lost == len(whole.entries) - 10


def test_an_argument_that_is_none_makes_the_record_no_good(board: Board) -> None:
    guest = guest_with(wrong=0x1000)
    file = board.work / "program"
    done = board.start(guest, cpus=1, program=file, **arguments(guest))

    assert f"{file}: " in done.stderr
    assert "handle_mm_fault" in done.stderr


def test_a_function_that_every_boot_comes_by_is_missed(board: Board) -> None:
    guest, file = guest_with(), board.work / "program"
    given = arguments(guest)
    given["hooks"] = str(given["hooks"]).replace(
        str(address_of(guest, "do_exit")), str(address_of(guest, "do_exit") + 8)
    )
    done = board.start(guest, cpus=1, program=file, **given)

    assert "never came by do_exit" in done.stderr
