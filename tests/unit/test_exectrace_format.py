"""Recorded paths: read as written, or refused."""

import struct

import pytest

from rtscope.errors import ContractError
from rtscope.exectrace.file import (
    RecordKind,
    SectionKind,
    TaskSwitch,
    parse_trace,
    task_switches,
)

HEADER = struct.pack("<8sII16sIIQ", b"RTSCOPE\n", 1, 1, b"x86_64", 2, 1, 2500)


def record(kind: int, cpu: int, at: int, value: int) -> bytes:
    return struct.pack("<QQ", kind << 56 | cpu << 48 | at, value)


def section(records: list[bytes], *, kind: int = 1, flags: int = 0) -> bytes:
    head = (kind, 1, 40_000, 17, 5, 20_005, len(records), flags, 0)
    return struct.pack("<IIQQQQQII", *head) + b"".join(records)


WHOLE = HEADER + section(
    [
        record(2, 1, 5, 0),
        record(1, 0, 2**48 - 1, 0xFFFFFFFF81000000),
        record(5, 1, 20_005, 40_000),
    ]
)


def test_a_trace_is_read_as_written() -> None:
    trace = parse_trace(WHOLE)

    assert (trace.arch, trace.cpus, trace.shift, trace.quantum) == (
        "x86_64",
        2,
        1,
        2500,
    )
    (path,) = trace.sections
    assert (path.kind, path.cpu) == (SectionKind.WORST, 1)
    assert (path.latency_ns, path.sequence) == (40_000, 17)
    assert (path.first, path.last, path.cut) == (5, 20_005, False)
    assert list(path.kinds) == [
        RecordKind.INTERRUPTS,
        RecordKind.BLOCK,
        RecordKind.MARK,
    ]
    assert list(path.cpus) == [1, 0, 1]
    assert list(path.at) == [5, 2**48 - 1, 20_005]
    assert list(path.values) == [0, 0xFFFFFFFF81000000, 40_000]


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


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(ContractError, match="version 2, not 1"):
        parse_trace(WHOLE[:8] + b"\2" + WHOLE[9:])


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
