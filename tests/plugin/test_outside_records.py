"""What is seen of a program from outside, of a guest that has it by the instruction."""

import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from bare import PATIENCE_S, ROOT, UPPER_HALF, Board, address_of, build, compiled
from elftools.elf.elffile import ELFFile
from test_plugin import board, qemu

from rtscope.boards.recording.programuses import sum_of_page
from rtscope.programs.outside.file import (
    Entry,
    Kind,
    ProgramRecord,
    name_of,
    parse_program_record,
)
from rtscope.verbs.test.codefile import ProgramCode, parse_program_code

__all__ = ["board", "qemu"]

DUE_NS = 64
PLACED = (Kind.ARGUMENTS, Kind.FAULT, Kind.USED)
PROGRAM = 0x4000_0000 - 0x8000_0000
"""From where a symbol is to where the program executes it."""
HOOKS = (
    *("try_to_wake_up", "ttwu_do_activate", "finish_task_switch", "hrtimer_wakeup"),
    *("", "", "", "wake_up_new_task", "set_task_comm", "do_exit"),
    *("do_trap_ecall_u", "handle_mm_fault", "", "", "", ""),
)
FIELDS = (16, 20, 24, 40, 44, 48, 52, 0, 0, 0, 0, 0, 0, 8)
USES = ("used", "outer", "jumper")
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
        "use": ":".join(uses_in(guest)),
        "shift": 1,
    }


def uses_in(guest: Path) -> Iterator[str]:
    """Yield the functions of the program: all are in the first page of the guest."""
    with guest.open("rb") as file:
        code = next(one for one in ELFFile(file).iter_segments("PT_LOAD"))
        total = sum_of_page(code.data()[:4096])
    for name in USES:
        yield f"{address_of(guest, name) % 4096}@{total}"


def guest_with(*, wrong: int = 0, **more: int) -> Path:
    return build("outside.S", DUE=DUE_NS, WRONG=wrong, **more)


def recorded(board: Board, **more: object) -> ProgramRecord:
    guest, file = guest_with(), board.work / "program"
    given = {**arguments(guest), **more}
    done = board.start(guest, cpus=1, program=file, **given)
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
        (Kind.FORK, 7, 2, 8),
        (Kind.CALL, 7, 101, 0),
        (Kind.OUT, 7, 0, 1),
        (Kind.RELEASE, 7, 1, DUE_NS),
        (Kind.WAKE, 7, 1, 0),
        (Kind.ACTIVATE, 7, 0, 0),
        (Kind.IN, 7, 120, 0),
        (Kind.FIRST, 7, 0, at["behind_sleep"]),
        (Kind.RETURN, 7, 101, 0),
        (Kind.USED, 7, 0, at["behind_sleep"] + 8),
        (Kind.DONE, 7, 0, 21),
        (Kind.USED, 7, 1, at["behind_sleep"] + 12),
        (Kind.DONE, 7, 1, 22),
        (Kind.USED, 7, 2, at["behind_sleep"] + 16),
        (Kind.DONE, 7, 2, 21),
        (Kind.OUT, 7, 1, 9 << 32),
        (Kind.IN, 7, 120, 9),
        (Kind.FIRST, 7, 0, seen[20][3]),
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
    # nop; three calls of 3, 8 and 4; and the six instructions into the kernel
    assert preempted.user - first[0].user == 1 + 15 + 6
    assert preempted.at_ns > first[0].at_ns + 22 * 2


def test_only_what_can_be_seen_is_promised(record: ProgramRecord) -> None:
    assert Kind.HELD not in record.kinds
    assert Kind.STACK not in record.kinds
    assert {Kind.RELEASE, Kind.USED, Kind.FAULT} <= record.kinds


def test_the_stack_of_each_place_is_taken_once(board: Board) -> None:
    record = recorded(board, stacks=8, stack=64)
    placed = [one for one in record.entries if one.kind in PLACED and one.place]

    assert [(one.kind, one.place) for one in placed] == [
        (Kind.ARGUMENTS, 1),
        (Kind.ARGUMENTS, 2),
        (Kind.USED, 3),
        (Kind.USED, 4),
        (Kind.USED, 5),
    ]
    assert [one.function for one in placed[2:]] == [0, 1, 2]
    used = record.stacks[2]
    assert len(used.words) == 32
    assert used.words[0] == (address_of(guest_with(), "used") & 0xFFFF_FFFF) + PROGRAM
    assert used.words[1] == record.entries[record.entries.index(placed[2])].value


def test_no_more_stacks_are_taken_than_asked_nor_at_other_times(board: Board) -> None:
    # one before it executes another file: its places are others then
    assert len(recorded(board, stacks=1).stacks) == 1 + 1
    assert recorded(board, stacks=9, stacked="1000000:2000000").stacks == ()


def test_a_page_with_another_content_is_not_the_functions(board: Board) -> None:
    other = recorded(board, use="0x8d0@1:0x8d0@2")

    assert Kind.USED not in {one.kind for one in other.entries}
    assert Kind.USED in other.kinds


@pytest.mark.slow
@pytest.mark.parametrize("use", ["", "1", "1@", "@1", "4096@1", "1@2:", "1@2@3", "x@1"])
def test_a_function_without_place_and_sum_is_refused(board: Board, use: str) -> None:
    guest = guest_with()
    given = {**arguments(guest), "use": use}
    done = board.start(guest, cpus=1, program=board.work / "program", **given)

    assert "bad argument: use=" in done.stderr


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


def test_a_time_is_read_across_pages_and_not_written_where_it_cannot_be(
    board: Board,
) -> None:
    guest, file = guest_with(ASKS=1), board.work / "program"
    done = board.start(guest, cpus=1, program=file, **arguments(guest))
    assert (done.returncode, done.stderr) == (0, "")
    entries = parse_program_record(file.read_bytes()).entries
    seen = [one for one in entries if one.kind == Kind.CALL and one.detail == 115]
    asked = [one.value for one in entries if one.kind == Kind.ASKED]

    assert len(seen) == 3
    assert asked == [2 * 10**9 + 7]


def test_a_function_that_every_boot_comes_by_is_missed(board: Board) -> None:
    guest, file = guest_with(), board.work / "program"
    given = arguments(guest)
    given["hooks"] = str(given["hooks"]).replace(
        str(address_of(guest, "do_exit")), str(address_of(guest, "do_exit") + 8)
    )
    done = board.start(guest, cpus=1, program=file, **given)

    assert "never came by do_exit" in done.stderr


def executed(board: Board, **more: object) -> ProgramCode:
    """Return what the program executed; its record is of the same boot."""
    file = board.work / "code"
    recorded(board, code=file, **more)
    return parse_program_code(file.read_bytes())


def test_the_code_of_the_program_is_counted_between_its_calls(board: Board) -> None:
    code = executed(board)
    pieces = code.threads[7]
    in_program = address_of(guest_with(), "behind_sleep") - UPPER_HALF + PROGRAM
    sums = [int(code.contents[one].instructions.sum()) for one in pieces.contents]

    # to the call that sleeps; behind it, with three calls; after the preemption
    assert sums == [7, 22, 7]
    assert in_program in code.contents[pieces.contents[1]].addresses.tolist()
    assert set(code.threads) == {7}
    assert code.lost == 0


def test_code_ends_where_the_record_has_its_call_and_its_switch(board: Board) -> None:
    file = board.work / "code"
    record = recorded(board, code=file)
    pieces = parse_program_code(file.read_bytes()).threads[7]
    calls = [one.at_ns for one in record.entries if one.kind == Kind.CALL]
    switches = [one.at_ns for one in record.entries if one.kind == Kind.OUT]

    assert pieces.ended_ns.tolist() == [calls[1], switches[1], switches[2]]


def test_the_record_is_the_same_with_and_without_code(board: Board) -> None:
    file = board.work / "program"
    recorded(board, code=board.work / "code")
    with_code = file.read_bytes()
    recorded(board)

    assert with_code == file.read_bytes()


def test_code_beyond_the_limit_is_counted(board: Board) -> None:
    cut = executed(board, **{"code-units": 4})

    assert (len(cut.contents), cut.lost) == (1, 2)


def test_a_block_is_never_begun_fewer_times_than_fit_into_its_count(
    tmp_path: Path,
) -> None:
    # In an argument, so that it is made again when the plugin's source is another.
    source = zlib.crc32((ROOT / "plugin/code.c").read_bytes())
    writer = compiled(
        "codetimes.c",
        *("-target", "x86_64-linux-gnu.2.31", "-D_GNU_SOURCE", "-O2"),
        *(f"-I{ROOT / 'agent'}", f"-DSOURCE={source}"),
    )
    subprocess.run([writer, tmp_path / "code"], check=True, timeout=PATIENCE_S)

    code = parse_program_code((tmp_path / "code").read_bytes())

    assert code.totals.tolist() == [2 * (2**32 - 1), 2]
    assert code.beyond_count.tolist() == [True, False]
    assert code.threads[7].contents.tolist() == [0, 1]
    assert code.lost == 0


def test_code_without_a_program_is_refused(board: Board) -> None:
    done = board.start(guest_with(), cpus=1, code=board.work / "code")

    assert "code=FILE needs program=FILE" in done.stderr
