"""Recorded paths: read as written, or refused."""

import struct

import pytest

from rtscope.host.errors import ContractError
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.section import (
    RecordKind,
    SectionKind,
    TaskSwitch,
    TraceSection,
    blocks_of,
    task_switches,
)


def header(*, version: int = 2, shift: int = 1) -> bytes:
    return struct.pack(
        "<8sII16sIIQ", b"RTSCOPE\n", version, 1, b"x86_64", 2, shift, 2500
    )


HEADER = header()


def record(kind: int, cpu: int, at: int, value: int) -> bytes:
    return struct.pack("<QQ", kind << 56 | cpu << 48 | at, value)


def section(records: list[bytes], *, kind: int = 1, flags: int = 0) -> bytes:
    head = (kind, 1, 40_000, 17, 5, 20_005, len(records), flags, 0)
    return struct.pack("<IIQQQQQII", *head) + b"".join(records)


WHOLE = HEADER + section(
    [
        record(2, 1, 5, 0),
        record(5, 1, 20_005, 40_000),
        record(1, 0, 2**48 - 1, 0xFFFFFFFF81000000),
    ]
)


def test_a_trace_is_read_as_written() -> None:
    trace = parse_trace(WHOLE)

    assert (trace.arch, trace.cpus, trace.instruction_ns, trace.quantum) == (
        "x86_64",
        2,
        2,
        2500,
    )
    (path,) = trace.sections
    assert (path.kind, path.cpu) == (SectionKind.WORST, 1)
    assert (path.latency_ns, path.sequence) == (40_000, 17)
    assert (path.first_ns, path.last_ns, path.cut) == (5, 20_005, False)
    assert list(path.kinds) == [
        RecordKind.INTERRUPTS,
        RecordKind.MARK,
        RecordKind.BLOCK,
    ]
    assert list(path.cpus) == [1, 1, 0]
    assert list(path.at_ns) == [5, 20_005, 2**48 - 1]
    assert list(path.values) == [0, 40_000, 0xFFFFFFFF81000000]


def test_a_path_that_was_cut_says_so() -> None:
    assert parse_trace(HEADER + section([], flags=1)).sections[0].cut


@pytest.mark.parametrize("length", [0, 7, 47, 48, 103, 104, len(WHOLE) - 1])
def test_a_trace_that_breaks_off_is_refused(length: int) -> None:
    with pytest.raises(ContractError, match="breaks off"):
        parse_trace(WHOLE[:length])


def test_what_comes_after_the_last_section_is_refused() -> None:
    with pytest.raises(ContractError, match="1 bytes too many"):
        parse_trace(WHOLE + b"\0")


def test_another_file_is_refused() -> None:
    with pytest.raises(ContractError, match="not a trace"):
        parse_trace(b"\x7fELF".ljust(100, b"\0"))


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(1, "measure again: rtscope run"), (3, "the newer rtscope that wrote it")],
)
def test_another_version_is_refused_with_the_remedy(version: int, remedy: str) -> None:
    with pytest.raises(ContractError, match=f"version {version}, not 2: .*{remedy}"):
        parse_trace(header(version=version) + section([]))


def test_an_unknown_kind_of_section_is_refused() -> None:
    with pytest.raises(ContractError, match="unknown kind 5"):
        parse_trace(HEADER + section([], kind=5))


def test_tasks_are_told_with_their_names_and_keep_them() -> None:
    words = [int.from_bytes(word, "little") for word in (b"kworker/", b"1:2\0\0\0\0\0")]
    rows = [
        record(4, 1, 10, 0xFFFF888000001000),
        *(record(9, 1, 10, word) for word in words),
        record(1, 1, 12, 0xFFFFFFFF81000000),
        record(4, 0, 20, 0xFFFF888000002000),
        record(4, 1, 30, 0xFFFF888000001000),
    ]
    (path,) = parse_trace(HEADER + section(rows)).sections

    assert task_switches(path) == [
        TaskSwitch(10, 1, 0xFFFF888000001000, "kworker/1:2"),
        TaskSwitch(20, 0, 0xFFFF888000002000, ""),
        TaskSwitch(30, 1, 0xFFFF888000001000, "kworker/1:2"),
    ]


def words(*names: bytes) -> list[int]:
    """Return the values of the records of names."""
    text = b"".join(name.ljust(16, b"\0") for name in names)
    return [
        int.from_bytes(text[at : at + 8], "little") for at in range(0, len(text), 8)
    ]


def test_a_task_has_the_name_of_each_time() -> None:
    """Also if its name was not recorded at a switch, and on whichever CPU it runs."""
    old_new = words(b"exe", b"rmmod")
    rows = [
        record(4, 0, 10, 0x1000),
        record(4, 1, 15, 0x2000),
        *(record(9, 1, 15, word) for word in words(b"other")),
        record(15, 1, 20, 0x1000),
        *(record(9, 1, 20, word) for word in old_new),
        record(4, 0, 30, 0x3000),
        record(15, 1, 40, 0x1000),
        *(record(9, 1, 40, word) for word in words(b"rmmod", b"last")),
        record(4, 0, 50, 0x1000),
    ]
    (path,) = parse_trace(HEADER + section(rows)).sections

    assert task_switches(path) == [
        TaskSwitch(10, 0, 0x1000, "exe"),
        TaskSwitch(15, 1, 0x2000, "other"),
        TaskSwitch(20, 0, 0x1000, "rmmod", changed=True),
        TaskSwitch(30, 0, 0x3000, ""),
        TaskSwitch(50, 0, 0x1000, "last"),
    ]


# --- several CPUs -----------------------------------------------------------------


def rows_of(path: TraceSection) -> list[tuple[int, int, int, int]]:
    columns = (path.at_ns, path.cpus, path.kinds, path.values)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_the_records_of_all_cpus_are_in_the_order_of_their_times() -> None:
    """QEMU executes one CPU after the other: the second begins at an earlier time."""
    words = [int.from_bytes(word, "little") for word in (b"first\0\0\0", b"\0" * 8)]
    mine = [record(4, 0, 30, 0x1000), *(record(9, 0, 30, word) for word in words)]
    theirs = [record(4, 1, 30, 0x2000), *(record(9, 1, 30, word) for word in words)]
    rows = [
        *(record(1, 0, 10, 0xA), *mine, record(1, 0, 40, 0xB)),
        *(record(1, 1, 5, 0xC), *theirs, record(1, 1, 35, 0xD)),
    ]

    (path,) = parse_trace(HEADER + section(rows)).sections

    assert path.at_ns.tolist() == [5, 10, *[30] * 6, 35, 40]
    # Of equal times those of one CPU stay together, in their own order.
    assert path.kinds.tolist() == [1, 1, *[4, 9, 9] * 2, 1, 1]
    assert path.cpus.tolist() == [1, 0, *[0] * 3, *[1] * 3, 1, 0]
    assert task_switches(path) == [
        TaskSwitch(30, 0, 0x1000, "first"),
        TaskSwitch(30, 1, 0x2000, "first"),
    ]


def test_what_a_block_took_ends_where_its_cpu_pauses() -> None:
    rows = [
        *(record(1, 1, 100, 0xA), record(10, 1, 130, 0), record(1, 1, 500, 0xB)),
        *(record(1, 0, 110, 0xC), record(1, 0, 20_000, 0xD), record(10, 1, 600, 0)),
    ]
    (path,) = parse_trace(HEADER + section(rows)).sections

    def taken(cpu: int) -> list[tuple[int, int]]:
        blocks = blocks_of(path, cpu)
        mine = (path.cpus == cpu) & (path.kinds == RecordKind.BLOCK)
        assert path.values[mine].tolist() == blocks.addresses.tolist()
        assert path.at_ns[mine].tolist() == blocks.at_ns.tolist()
        lengths = blocks.executed_ns.tolist()
        return list(zip(blocks.addresses.tolist(), lengths, strict=True))

    assert taken(1) == [(0xA, 30), (0xB, 100)]
    assert taken(0) == [(0xC, 19_890), (0xD, 5)]  # the last goes on to the mark
    assert taken(2) == []


def test_an_impossible_length_of_an_instruction_is_refused() -> None:
    with pytest.raises(ContractError, match="impossible shift"):
        parse_trace(header(shift=2**32 - 1) + section([]))
