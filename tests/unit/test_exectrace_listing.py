"""Steps of a recorded path: merged per function, every instruction counted once."""

import struct

from rtscope.exectrace.file import ExecTrace, RecordKind, parse_trace, with_windows
from rtscope.exectrace.listing import path_of
from rtscope.exectrace.symbols import NO_SYMBOLS, parse_symbols

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
    header = struct.pack("<8sII16sIIQ", b"RTSCOPE\n", 1, len(sections), b"x", 2, 1, 9)
    return parse_trace(header + b"".join(sections))


WORST = section(
    [
        record(2, 1, 900, 1),
        record(1, 1, 900, KERNEL),
        record(1, 1, 930, KERNEL + 0x10),
        record(1, 0, 940, KERNEL),
        record(2, 1, 960, 0),
        record(1, 1, 960, KERNEL + 0x100),
        record(1, 1, 970, 0x4000),
        record(1, 1, 980, KERNEL - 0x200000),
        record(5, 1, 1000, 100),
        record(6, 1, 1000, 7),
    ],
    kind=1,
    first=900,
    last=1000,
)


def test_blocks_of_a_function_are_one_step_with_their_instructions() -> None:
    (only,) = trace(WORST).sections
    path = path_of(only, SYMBOLS, shift=1, cpu=1)

    # 100 ns at 2 ns each: due 50 instructions before the mark
    assert path.expiry == 950
    assert [(s.at_ns, s.kind, s.what, s.instructions) for s in path.steps] == [
        (-100, RecordKind.INTERRUPTS, "interrupts on", 0),
        (-100, RecordKind.BLOCK, "first", 40),
        (20, RecordKind.INTERRUPTS, "interrupts off", 0),
        (20, RecordKind.BLOCK, "second", 10),
        (40, RecordKind.BLOCK, "(user space)", 10),
        (60, RecordKind.BLOCK, f"{KERNEL - 0x200000:#x}", 20),
        (100, RecordKind.MARK, "mark: 100 ns late", 0),
    ]
    assert path.functions[0] == (f"{KERNEL - 0x200000:#x}", 20)
    assert path.unnamed == 1


def test_all_cpus_together_account_for_every_instruction() -> None:
    (only,) = trace(WORST).sections
    path = path_of(only, SYMBOLS, shift=1, cpu=None)

    assert sum(s.instructions for s in path.steps) == only.last - only.first
    assert {s.cpu for s in path.steps} == {0, 1}


def test_a_cpu_that_did_nothing_has_no_steps() -> None:
    (only,) = trace(WORST).sections

    assert path_of(only, NO_SYMBOLS, shift=1, cpu=5).steps == ()


def test_a_path_that_was_left_out_has_no_steps() -> None:
    empty = trace(section([], kind=1, first=900, last=1000, flags=2)).sections[0]
    path = path_of(empty, SYMBOLS, shift=1, cpu=None)

    assert (path.steps, path.expiry) == ((), 950)


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

    assert (found.left_out, list(found.at)) == (False, [900, 900, 900])
    steps = path_of(found, SYMBOLS, shift=1, cpu=1).steps
    assert [s.what for s in steps] == [
        f"task {KERNEL:#x}",
        "preemption count 0x1",
        "first",
    ]


def test_a_window_that_begins_later_changes_nothing() -> None:
    window = section([record(1, 1, 950, KERNEL)], kind=2, first=901, last=1200)

    (found,) = with_windows(trace(WORST, window))

    assert found.first == 900
    assert len(found.at) == 10
