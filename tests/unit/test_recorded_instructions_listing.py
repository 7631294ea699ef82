"""Steps of a recorded path: merged per function, all that was executed counted once."""

import struct

import pytest

from rtscope.record.instructions.file import parse_trace, with_windows
from rtscope.record.instructions.section import ExecTrace, RecordKind
from rtscope.record.instructions.symbols import NO_SYMBOLS, parse_symbols
from rtscope.verbs.board.trace import path_of

KERNEL = 0xFFFFFFFF81000000
SYMBOLS = parse_symbols(f"{KERNEL:x} T first\n{KERNEL + 0x100:x} T second\n")


def record(kind: int, cpu: int, at: int, value: int) -> bytes:
    return struct.pack("<QQ", kind << 56 | cpu << 48 | at, value)


def section(
    records: list[bytes], *, kind: int, first: int, last: int, flags: int = 0
) -> bytes:
    worst = kind == 1
    head = (kind, 1 if worst else 0, 100 if worst else 0, 7 if worst else 0)
    about = struct.pack("<IIQQQQQII", *head, first, last, len(records), flags, 0)
    return about + b"".join(records)


def trace(*sections: bytes) -> ExecTrace:
    header = struct.pack("<8sII16sIIQ", b"RTSCOPE\n", 2, len(sections), b"x", 2, 1, 9)
    return parse_trace(header + b"".join(sections))


WORST = section(
    [
        record(2, 1, 900, 1),
        record(1, 1, 900, KERNEL),
        record(1, 1, 930, KERNEL + 0x10),
        record(10, 1, 940, 0),
        record(2, 1, 960, 0),
        record(1, 1, 960, KERNEL + 0x100),
        record(1, 1, 970, 0x4000),
        record(1, 1, 980, KERNEL - 0x200000),
        record(5, 1, 1000, 100),
        record(6, 1, 1000, 7),
        record(1, 0, 940, KERNEL),
        record(10, 0, 960, 0),
    ],
    kind=1,
    first=900,
    last=1000,
)


def test_blocks_of_a_function_are_one_step_with_all_that_they_took() -> None:
    (only,) = trace(WORST).sections
    path = path_of(only, SYMBOLS, cpu=1)

    assert path.expiry_ns == 900
    assert [
        (s.at_ns, s.after_expiry_ns, s.kind, s.what, s.executed_ns) for s in path.steps
    ] == [
        (900, 0, RecordKind.INTERRUPTS, "interrupts on", 0),
        (900, 0, RecordKind.BLOCK, "first", 40),
        (960, 60, RecordKind.INTERRUPTS, "interrupts off", 0),
        (960, 60, RecordKind.BLOCK, "second", 10),
        (970, 70, RecordKind.BLOCK, "(user space)", 10),
        (980, 80, RecordKind.BLOCK, f"{KERNEL - 0x200000:#x}", 20),
        (1000, 100, RecordKind.MARK, "mark: 100 ns late", 0),
    ]
    assert path.functions[:2] == (("first", 40), (f"{KERNEL - 0x200000:#x}", 20))
    assert path.unnamed == 1


@pytest.mark.parametrize("changes", [[], [record(2, 1, 930, 0)]])
def test_a_step_counts_from_the_expiry_however_it_is_cut(
    changes: list[bytes],
) -> None:
    rows = [
        record(1, 1, 890, KERNEL),
        *changes,
        record(1, 1, 930, KERNEL),
        record(5, 1, 1000, 100),
    ]
    (only,) = trace(section(rows, kind=1, first=880, last=1000)).sections

    assert path_of(only, SYMBOLS, cpu=1).functions == (("first", 100),)


def test_a_step_ends_where_its_cpu_pauses() -> None:
    rows = [
        *(record(1, 1, 900, KERNEL), record(10, 1, 920, 0)),
        *(record(1, 1, 970, KERNEL + 0x10), record(1, 1, 980, KERNEL + 0x20)),
    ]
    (only,) = trace(section(rows, kind=1, first=900, last=1000)).sections

    steps = path_of(only, SYMBOLS, cpu=1).steps

    assert [(s.at_ns, s.what, s.executed_ns) for s in steps] == [
        (900, "first", 20),
        (970, "first", 30),
    ]


def test_the_steps_of_all_cpus_are_in_order_and_have_all_that_each_executed() -> None:
    (only,) = trace(WORST).sections
    path = path_of(only, SYMBOLS, cpu=None)

    assert [s.at_ns for s in path.steps] == sorted(s.at_ns for s in path.steps)
    spent = {
        cpu: sum(s.executed_ns for s in path.steps if s.cpu == cpu) for cpu in (0, 1)
    }
    assert spent == {0: 20, 1: 80}


def test_a_cpu_that_did_nothing_has_no_steps() -> None:
    (only,) = trace(WORST).sections

    assert path_of(only, NO_SYMBOLS, cpu=5).steps == ()


def test_a_path_that_was_left_out_has_no_steps() -> None:
    empty = trace(section([], kind=1, first=900, last=1000, flags=2)).sections[0]
    path = path_of(empty, SYMBOLS, cpu=None)

    assert (path.steps, path.expiry_ns) == ((), 900)


def test_a_window_that_holds_a_wake_up_tells_all_of_it() -> None:
    left_out = section([], kind=1, first=900, last=1000, flags=2)
    window = section(
        [
            record(1, 1, 800, KERNEL),
            record(4, 1, 900, KERNEL),
            record(3, 1, 900, 0x80000001),
            record(1, 1, 900, KERNEL),
            record(1, 1, 1100, KERNEL),
        ],
        kind=2,
        first=800,
        last=1200,
    )

    (found,) = with_windows(trace(left_out, window))

    assert (found.left_out, list(found.at_ns)) == (False, [900, 900, 900])
    steps = path_of(found, SYMBOLS, cpu=1).steps
    assert [s.what for s in steps] == [
        f"task {KERNEL:#x}",
        "preemption count 0x1",
        "first",
    ]


def test_a_window_that_begins_later_changes_nothing() -> None:
    window = section([record(1, 1, 950, KERNEL)], kind=2, first=901, last=1200)

    (found,) = with_windows(trace(WORST, window))

    assert found.first_ns == 900
    assert len(found.at_ns) == 12


def test_only_what_has_words_of_its_own_is_listed() -> None:
    records = [
        record(kind, 1, 910 + kind, 0)
        for kind in RecordKind
        if kind != RecordKind.BLOCK
    ]
    (only,) = trace(section(records, kind=1, first=900, last=1000)).sections

    listed = [step.kind for step in path_of(only, SYMBOLS, cpu=1).steps]

    assert listed == [
        RecordKind.INTERRUPTS,
        RecordKind.PREEMPT,
        RecordKind.TASK,
        RecordKind.MARK,
        RecordKind.WOKEN,
    ]


def test_whom_a_cpu_wakes_has_its_name_where_a_switch_to_it_tells_it() -> None:
    name = (int.from_bytes(word, "little") for word in (b"kworker/", b"u8:0\0\0\0\0"))
    records = [
        *(record(13, 1, 910, KERNEL + 64), record(13, 1, 920, KERNEL + 128)),
        record(4, 1, 930, KERNEL + 64),
        *(record(9, 1, 930, word) for word in name),
    ]
    (only,) = trace(section(records, kind=1, first=900, last=1000)).sections

    woken = [
        step.what
        for step in path_of(only, SYMBOLS, cpu=1).steps
        if step.kind is RecordKind.WOKEN
    ]

    assert woken == ["wakes kworker/u8:0", f"wakes task {KERNEL + 128:#x}"]


def test_a_task_that_is_woken_has_the_name_of_that_time() -> None:
    def named(at: int, name: bytes) -> list[bytes]:
        words = (int.from_bytes(word, "little") for word in (name, b""))
        return [record(4, 1, at, KERNEL), *(record(9, 1, at, word) for word in words)]

    wakes = [record(13, 1, at, KERNEL) for at in (10, 25, 40)]
    rows = [wakes[0], *named(20, b"old"), wakes[1], *named(30, b"new"), wakes[2]]
    (only,) = trace(section(rows, kind=2, first=0, last=100)).sections

    steps = path_of(only, SYMBOLS, cpu=1).steps

    woken = [one.what for one in steps if one.kind is RecordKind.WOKEN]
    assert woken == ["wakes old", "wakes old", "wakes new"]
