"""A trace for trace-cmd: its parts are where they belong, and a gap is told."""

import base64
import struct
from pathlib import Path

import pytest

from fakes import traces
from fakes.traces import PAGE_BYTES, page, trace_file, trace_pages, tracing
from rtscope.contract import TracePages
from rtscope.host.errors import ContractError
from rtscope.record.events.writer import TraceParts, trace_dat, trace_of
from tracecmd import needs_trace_cmd, trace_cmd


def parts(*sent: TracePages) -> TraceParts:
    made = TraceParts()
    for file in traces.FILES:
        made.take_file(file)
    for line in sent:
        made.take_pages(line)
    return made


def pages_in(content: bytes, cpu: int) -> list[tuple[int, int]]:
    """Return (time, commit) of each page of a CPU, found by the table at the end."""
    at = content.index(b"flyrecord\0") + 10 + 16 * cpu
    offset, size = struct.unpack_from("<QQ", content, at)
    assert offset % PAGE_BYTES == 0
    return [
        struct.unpack_from("<QQ", content, offset + n * PAGE_BYTES)
        for n in range(size // PAGE_BYTES)
    ]


def test_the_parts_follow_each_other_as_version_6_has_them() -> None:
    content = trace_dat(parts(trace_pages(0, 0, [page(5)])), stats={}, clock="[mono]")

    assert content.startswith(b"\x17\x08\x44tracing6\0\0\x08" + struct.pack("<I", 4096))
    wanted = (
        b"header_page\0" + struct.pack("<Q", len(traces.HEADER_PAGE)),
        b"header_event\0" + struct.pack("<Q", len(traces.HEADER_EVENT)),
        struct.pack("<II", 0, 1)
        + b"sched\0"
        + struct.pack("<IQ", 1, len(traces.SWITCH)),
        struct.pack("<II", 0, 0) + struct.pack("<Q", 13) + b"77 rtscope/0\n",
        struct.pack("<I", 1) + b"options  \0" + struct.pack("<HI", 4, 7) + b"[mono]\0",
        b"flyrecord\0",
    )
    places = [content.index(part) for part in wanted]
    assert places == sorted(places)
    assert pages_in(content, 0) == [(5, 0)]


def test_the_first_page_after_others_that_were_not_kept_says_so() -> None:
    content = trace_dat(
        parts(
            trace_pages(1, 7, [page(70, commit=16)]),
            trace_pages(1, 3, [page(30, commit=8), page(40)]),
            trace_pages(0, 0, [page(1)]),
        ),
        stats={},
        clock="[mono]",
    )

    missed = 1 << 31
    assert pages_in(content, 0) == [(1, 0)]
    assert pages_in(content, 1) == [(30, missed | 8), (40, 0), (70, missed | 16)]


def test_a_cpu_of_which_nothing_was_kept_has_no_data() -> None:
    content = trace_dat(parts(trace_pages(2, 0, [page(1)])), stats={}, clock="[mono]")

    assert [len(pages_in(content, cpu)) for cpu in range(3)] == [0, 0, 1]


def test_the_symbols_and_the_losses_of_each_cpu_are_in_it() -> None:
    some = parts(trace_pages(0, 0, [page(1)]))
    some.take_file(trace_file("kallsyms", b"ffffffff81000000 T _stext\n"))

    content = trace_of(some, tracing(overrun=9))

    assert content is not None
    assert struct.pack("<I", 26) + b"ffffffff81000000 T _stext\n" in content
    assert b"CPU: 0\noverrun: 9\n" in content


def test_without_a_page_there_is_no_file() -> None:
    assert trace_of(parts(), tracing()) is None
    assert trace_of(parts(trace_pages(0, 0, [page(1)])), None) is None


@pytest.mark.parametrize(
    "line",
    [
        TracePages(0, 0, "?"),
        TracePages(0, 0, ""),
        TracePages(0, 0, base64.b64encode(b"\0" * 4095).decode()),
    ],
    ids=["garbled", "empty", "half a page"],
)
def test_damaged_pages_are_no_trace(line: TracePages) -> None:
    with pytest.raises(ContractError):
        parts(line)


def test_pages_without_their_description_are_no_trace() -> None:
    with pytest.raises(ContractError, match="description"):
        TraceParts().take_pages(trace_pages(0, 0, [page(1)]))


def test_a_trace_without_an_end_is_given_up() -> None:
    some = parts()
    some._left_bytes = 2 * PAGE_BYTES
    some.take_pages(trace_pages(0, 0, [page(1), page(2)]))

    with pytest.raises(ContractError, match="too large"):
        some.take_pages(trace_pages(0, 2, [page(3)]))


@needs_trace_cmd
def test_trace_cmd_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "worst.trace.dat"
    file.write_bytes(
        trace_dat(parts(trace_pages(0, 0, [page(5)])), stats={}, clock="[mono]")
    )

    trace_cmd("report", "-i", file)
