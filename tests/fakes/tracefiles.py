"""trace.dat files made by hand, byte for byte as trace-cmd.dat.v6(5) tells."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

PAGE_BYTES = 4096
SWITCH, WAKING, PRINT, TIMERLAT = 300, 301, 5, 9
MISSED, MISSED_STORED = 1 << 31, 1 << 30

_COMMON = """\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
_STATES = '{ 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }'
SWITCH_FORMAT = f"""name: sched_switch
ID: {SWITCH}
format:
{_COMMON}\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "prev_state=%s", __print_flags(REC->prev_state, "|", {_STATES})
"""
WAKING_FORMAT = f"""name: sched_waking
ID: {WAKING}
format:
{_COMMON}\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:16;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:20;\tsize:4;\tsigned:1;

print fmt: "comm=%s", __get_str(comm)
"""
PRINT_FORMAT = f"""name: print
ID: {PRINT}
format:
{_COMMON}\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;

print fmt: "%ps: %s", (void *)REC->ip, REC->buf
"""
TIMERLAT_FORMAT = f"""name: timerlat
ID: {TIMERLAT}
format:
{_COMMON}\tfield:unsigned int seqnum;\toffset:8;\tsize:4;\tsigned:0;
\tfield:int context;\toffset:12;\tsize:4;\tsigned:1;
\tfield:u64 timer_latency;\toffset:16;\tsize:8;\tsigned:0;

print fmt: "seq"
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the kernel that wrote the file stores numbers."""

    big_endian: bool = False
    commit_bytes: int = 8

    @property
    def order(self) -> str:
        """As struct writes it."""
        return ">" if self.big_endian else "<"

    @property
    def header_page(self) -> bytes:
        """Of tracefs."""
        data = 8 + self.commit_bytes
        return (
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
            f"\tfield: local_t commit;\toffset:8;\tsize:{self.commit_bytes};"
            "\tsigned:1;\n"
            f"\tfield: char data;\toffset:{data};\tsize:{PAGE_BYTES - data};"
            "\tsigned:0;\n"
        ).encode()


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a page: an event, or one of the kinds without a payload."""

    delta_ns: int
    payload: bytes = b""
    kind: str = "event"
    """Or "stamp" (delta_ns is then a time), or "padding" (of the payload's length)."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the ring buffer."""

    begin_ns: int
    records: Sequence[Record]
    missed: int | None = None
    """How many events were lost before it; 0 if the kernel does not say."""


PLAIN = Layout()


def common(kind: int, *, pid: int, flags: int, depth: int, order: str) -> bytes:
    """Return the first fields of every event."""
    return struct.pack(f"{order}HBBi", kind, flags, depth, pid)


def switch_payload(
    prev: tuple[bytes, int, int],
    following: tuple[bytes, int, int],
    *,
    state: int = 0,
    flags: int = 1,
    layout: Layout = PLAIN,
) -> bytes:
    """Return a sched_switch; a task is its name, its pid and its priority."""
    head = common(SWITCH, pid=prev[1], flags=flags, depth=2, order=layout.order)
    return head + struct.pack(f"{layout.order}16siiq16sii", *prev, state, *following)


def waking_payload(
    comm: bytes, pid: int, prio: int, *, by: int = 0, layout: Layout = PLAIN
) -> bytes:
    """Return a sched_waking whose name lies behind its fields."""
    head = common(WAKING, pid=by, flags=9, depth=1, order=layout.order)
    place = 24 | (len(comm) + 1) << 16
    fields = struct.pack(f"{layout.order}Iiii", place, pid, prio, 0)
    text = comm + b"\0"
    return head + fields + text.ljust(-(-len(text) // 4) * 4, b"\0")


def mark_payload(text: bytes, *, pid: int, layout: Layout = PLAIN) -> bytes:
    """Return what a program wrote into trace_marker."""
    head = common(PRINT, pid=pid, flags=0, depth=0, order=layout.order)
    whole = head + struct.pack(f"{layout.order}Q", 0) + text + b"\0"
    return whole.ljust(-(-len(whole) // 4) * 4, b"\0")


def timerlat_payload(seq: int, context: int, latency_ns: int, *, pid: int) -> bytes:
    """Return a line of the timerlat tracer."""
    head = common(TIMERLAT, pid=pid, flags=0, depth=0, order="<")
    return head + struct.pack("<IiQ", seq, context, latency_ns)


def page_bytes(page: Page, layout: Layout = PLAIN) -> bytes:
    """Return a page as the kernel writes it."""
    data = b"".join(_record(record, layout) for record in page.records)
    commit, stored = len(data), b""
    if page.missed is not None:
        commit |= MISSED
    word = "Q" if layout.commit_bytes == 8 else "I"
    if page.missed:
        commit |= MISSED_STORED
        stored = struct.pack(f"{layout.order}{word}", page.missed)
    head = struct.pack(f"{layout.order}Q{word}", page.begin_ns, commit)
    return (head + data + stored).ljust(PAGE_BYTES, b"\0")


def _record(record: Record, layout: Layout) -> bytes:
    if record.kind == "stamp":
        return _special(31, record.delta_ns, layout)
    if record.kind == "padding":
        head = _header(29, max(1, record.delta_ns), layout)
        length = struct.pack(f"{layout.order}I", len(record.payload) + 4)
        return head + length + record.payload
    extend = b""
    delta = record.delta_ns
    if delta >= 1 << 27:
        extend, delta = _special(30, delta, layout), 0
    words = len(record.payload) // 4
    if words <= 28:
        return extend + _header(words, delta, layout) + record.payload
    length = struct.pack(f"{layout.order}I", len(record.payload) + 4)
    return extend + _header(0, delta, layout) + length + record.payload


def _special(kind: int, value: int, layout: Layout) -> bytes:
    low = _header(kind, value & (1 << 27) - 1, layout)
    return low + struct.pack(f"{layout.order}I", value >> 27)


def _header(kind: int, delta: int, layout: Layout) -> bytes:
    word = kind << 27 | delta if layout.big_endian else delta << 5 | kind
    return struct.pack(f"{layout.order}I", word)


def dat_file(
    pages: Sequence[Sequence[Page]],
    *,
    layout: Layout = PLAIN,
    clock: bytes = b"local global [mono] boot\n",
    cmdlines: bytes = b"77 rtscope/0\n100 load\n",
    kallsyms: bytes = b"",
    shifted: int = 0,
) -> bytes:
    """Return a file of version 6 with the pages of each CPU, some bytes later."""
    o = layout.order

    def sized(form: str, content: bytes) -> bytes:
        return struct.pack(o + form, len(content)) + content

    formats = [SWITCH_FORMAT.encode(), WAKING_FORMAT.encode()]
    own = [PRINT_FORMAT.encode(), TIMERLAT_FORMAT.encode()]
    head = b"".join(
        [
            b"\x17\x08\x44tracing6\0" + bytes([layout.big_endian, 8]),
            struct.pack(o + "I", PAGE_BYTES),
            b"header_page\0" + sized("Q", layout.header_page),
            b"header_event\0" + sized("Q", b""),
            struct.pack(o + "I", len(own)) + b"".join(sized("Q", f) for f in own),
            struct.pack(o + "I", 1) + b"sched\0" + struct.pack(o + "I", len(formats)),
            *(sized("Q", f) for f in formats),
            sized("I", kallsyms) + sized("I", b"") + sized("Q", cmdlines),
            struct.pack(o + "I", len(pages)),
            b"options  \0" + struct.pack(o + "H", 4) + sized("I", clock),
            struct.pack(o + "H", 0) + b"flyrecord\0",
        ]
    )
    at = -(-(len(head) + 16 * len(pages)) // PAGE_BYTES) * PAGE_BYTES + shifted
    places, data, where = b"", b"", at
    for cpu in pages:
        content = b"".join(page_bytes(page, layout) for page in cpu)
        places += struct.pack(o + "QQ", where, len(content))
        data += content
        where += len(content)
    return (head + places).ljust(at, b"\0") + data
