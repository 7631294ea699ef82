"""trace.dat files: what is in them, and what is said of those that are damaged."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.tracefiles import (
    PAGE_BYTES,
    Layout,
    Page,
    Record,
    dat_file,
    mark_payload,
    switch_payload,
    timerlat_payload,
    waking_payload,
)
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.explain.events.window import (
    NoWakeup,
    WakeupSelector,
    choose,
    window_around,
)
from rtscope.host.errors import RecordError
from rtscope.record.events.dat import DatTrace, dat_trace
from rtscope.record.events.events import Event, Flag, window_of

LOAD, THREAD = (b"load", 100, 120), (b"rtscope/0", 77, 0)
TO_THREAD = switch_payload(LOAD, THREAD)
TO_LOAD = switch_payload(THREAD, LOAD, state=1)
WAKE = waking_payload(b"rtscope/0", 77, 0, by=100)


def opened(content: bytes) -> DatTrace:
    return dat_trace(memoryview(content), name="t.dat")


def events(trace: DatTrace) -> list[Event]:
    found = [
        event
        for rows in trace.rows
        for event in trace.events(rows, np.arange(len(rows.at_ns)))
    ]
    return sorted(found, key=lambda event: event.at_ns)


def cycles(begin_ns: int, number: int) -> Page:
    """Return a page of wake-ups, each 5 us from waking to switch."""
    cycle = (Record(90_000, WAKE), Record(5_000, TO_THREAD), Record(5_000, TO_LOAD))
    return Page(begin_ns, [record for _ in range(number) for record in cycle])


@pytest.mark.parametrize(
    "layout", [Layout(), Layout(big_endian=True), Layout(commit_bytes=4)]
)
def test_events_are_read_as_the_file_itself_lays_them_out(layout: Layout) -> None:
    wake = waking_payload(b"rtscope/0", 77, 0, by=100, layout=layout)
    to_thread = switch_payload(LOAD, THREAD, state=0x100, layout=layout)
    page = Page(1_000_000, [Record(250, wake), Record(4_000, to_thread)])

    waking, switch = events(opened(dat_file([[page]], layout=layout)))

    assert (waking.at_ns, waking.cpu, waking.name) == (1_000_250, 0, "sched_waking")
    assert (waking.pid, waking.comm) == (100, "load")
    assert waking.flags == Flag.IRQS_OFF | Flag.HARDIRQ
    assert waking.preempt_depth == 1
    assert waking.fields == {
        **{"comm": "rtscope/0", "pid": 77, "prio": 0},
        "target_cpu": 0,
    }
    assert switch.at_ns == 1_004_250
    assert switch.fields["prev_comm"] == "load"
    assert switch.fields["prev_state"] == "R"


@pytest.mark.parametrize("shifted", [0, 1, 2, 4])
@pytest.mark.parametrize("layout", [Layout(), Layout(big_endian=True)])
def test_numbers_are_read_wherever_the_pages_lie(layout: Layout, shifted: int) -> None:
    wake = waking_payload(b"rtscope/0", 77, 0, by=100, layout=layout)
    to_thread = switch_payload(LOAD, THREAD, layout=layout)
    page = Page(0, [Record(250, wake), Record(4_000, to_thread)])

    trace = opened(dat_file([[page]], layout=layout, shifted=shifted))

    (rows,) = trace.rows
    last = np.array([1])
    assert [trace.names[kind] for kind in rows.kinds] == [
        "sched_waking",
        "sched_switch",
    ]
    assert trace.numbers(rows, last, "prev_pid").tolist() == [100]
    assert trace.numbers(rows, last, "next_pid").tolist() == [77]
    assert trace.numbers(rows, last, "prev_prio").tolist() == [120]


@pytest.mark.parametrize(
    ("state", "letters"), [(0, "R"), (1, "S"), (4, "T"), (8, "R+"), (9, "S+")]
)
def test_states_have_the_letters_of_the_print_format(state: int, letters: str) -> None:
    page = Page(0, [Record(1, switch_payload(LOAD, THREAD, state=state))])

    (event,) = events(opened(dat_file([[page]])))

    assert event.fields["prev_state"] == letters


def test_times_go_on_over_long_pauses_absolute_stamps_and_padding() -> None:
    page = Page(
        5_000,
        [
            Record(1 << 30, WAKE),
            Record(10, b"\0" * 8, kind="padding"),
            Record(5, WAKE),
            Record(1 << 40, kind="stamp"),
            Record(7, WAKE),
        ],
    )

    found = [event.at_ns for event in events(opened(dat_file([[page]])))]

    assert found == [5_000 + 2**30, 5_000 + 2**30 + 15, 2**40 + 7]


def test_an_event_of_more_than_112_bytes_is_read_whole() -> None:
    text = b"x" * 300
    page = Page(0, [Record(1, mark_payload(text, pid=77)), Record(2, WAKE)])

    mark, waking = events(opened(dat_file([[page]])))

    assert mark.fields["buf"] == text.decode()
    assert waking.at_ns == 3


def test_lost_events_have_a_place_and_a_number() -> None:
    trace = opened(
        dat_file(
            [
                [
                    Page(1_000, [Record(1, WAKE)]),
                    Page(9_000, [Record(1, WAKE)], missed=12),
                    Page(20_000, [Record(1, WAKE)], missed=0),
                ]
            ]
        )
    )

    found = [(one.after_ns, one.before_ns, one.count) for one in trace.losses]
    assert found == [(1_001, 9_001, 12), (9_001, 20_001, None)]
    window = window_of(trace, 0, 5_000)
    assert [one.count for one in window.losses] == [12]


@pytest.mark.parametrize("at", range(6))
def test_a_page_that_contradicts_the_others_is_a_loss_and_not_events(at: int) -> None:
    good = [Page(n * 1_000_000, [Record(1, WAKE)]) for n in range(1, 7)]
    wrong = replace(good[at], begin_ns=0 if at else 10**9)
    trace = opened(dat_file([[*good[:at], wrong, *good[at + 1 :]]]))

    kept = [page.begin_ns + 1 for page in good if page is not good[at]]
    assert trace.rows[0].at_ns.tolist() == kept
    assert [one.reason for one in trace.losses] == ["a page of the file is damaged"]


def test_a_damaged_page_ends_where_it_makes_no_sense() -> None:
    content = bytearray(dat_file([[cycles(0, 8), cycles(1_000_000, 8)]]))
    at = len(content) - 2 * PAGE_BYTES
    second = at + 16 + 4 + len(WAKE)
    struct.pack_into("<II", content, second, 1 << 5, 0x7FFF_FFF0)
    trace = opened(bytes(content))

    assert len(trace.rows[0].at_ns) == 1 + 24
    assert [one.reason for one in trace.losses] == ["a page of the file is damaged"]


def test_names_of_functions_come_from_the_files_own_kallsyms() -> None:
    symbols = b"ffffffff81000000 T _stext\nffffffff81000100 t hrtimer_wakeup\n"
    trace = opened(dat_file([[Page(0, [Record(1, WAKE)])]], kallsyms=symbols))

    assert trace.symbols.name(0xFFFFFFFF81000150) == "hrtimer_wakeup"
    assert trace.symbols.begin == 0xFFFFFFFF81000000
    hidden = opened(dat_file([[Page(0, [Record(1, WAKE)])]], kallsyms=b"0 T a\n"))
    assert hidden.symbols.name(0x1234) == "0x1234"


@pytest.mark.parametrize(
    "content",
    [
        b"\x17\x08\x44tracing8\0",
        b"\x17\x08\x44tracing6\0",
        b"\x17\x08\x44tracing" + b"6" * 100,
        b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zstd\x001.5\0" + b"\0" * 8,
        dat_file([]),
        dat_file([[]]),
        dat_file([[Page(0, [Record(1, WAKE)])]], clock=b"[x86-tsc]"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(content: bytes) -> None:
    with pytest.raises(RecordError, match=r"^t\.dat: "):
        opened(content)


def test_extents_over_each_other_are_refused() -> None:
    content = bytearray(dat_file([[cycles(0, 8)], [cycles(0, 8)]]))
    table = content.index(b"flyrecord\0") + 10
    content[table + 16 : table + 32] = content[table : table + 16]
    struct.pack_into("<Q", content, table + 8, 1 << 40)

    with pytest.raises(RecordError, match="lie over another's"):
        opened(bytes(content))


def test_where_a_cpu_without_events_begins_does_not_matter() -> None:
    content = bytearray(dat_file([[cycles(0, 8)], []]))
    table = content.index(b"flyrecord\0") + 10
    assert struct.unpack_from("<Q", content, table + 24) == (0,)
    struct.pack_into("<Q", content, table + 16, 2**64 - 1)

    assert len(opened(bytes(content)).rows) == 1


def test_timerlat_and_cyclictest_say_themselves_how_late_they_were() -> None:
    lines = [
        Record(1_000, timerlat_payload(1, 0, 900_000, pid=50)),
        Record(1_000, timerlat_payload(1, 1, 40_000, pid=50)),
        Record(1_000, timerlat_payload(2, 1, 70_000, pid=50)),
    ]
    found = choose(opened(dat_file([[Page(10**6, lines)]])), WakeupSelector())
    assert (found.wakeup.pid, found.wakeup.latency_ns) == (50, 70_000)

    mark = mark_payload(b"hit latency threshold (312 > 300)", pid=77)
    page = Page(10**6, [Record(1, WAKE), Record(5, TO_THREAD), Record(9, mark)])
    found = choose(opened(dat_file([[page]])), WakeupSelector())
    assert (found.wakeup.pid, found.wakeup.latency_ns) == (77, 312_000)


def test_without_marks_it_is_the_longest_wait_of_a_real_time_thread() -> None:
    slow = [Record(5_000, WAKE), Record(80_000, TO_THREAD), Record(1_000, TO_LOAD)]
    trace = opened(dat_file([[cycles(0, 4), Page(10**6, slow), cycles(10**7, 4)]]))

    found = choose(trace, WakeupSelector())
    assert (found.wakeup.expiry_ns, found.wakeup.latency_ns) == (1_005_000, 80_000)
    assert not found.wakeup.programmed
    named = choose(trace, WakeupSelector(thread="rtscope/0", at_ns=10**7 + 91_000))
    assert (named.wakeup.expiry_ns, named.wakeup.latency_ns) == (10**7 + 90_000, 5_000)
    for asked in (WakeupSelector(thread="nobody"), WakeupSelector(at_ns=10**12)):
        with pytest.raises(NoWakeup):
            choose(trace, asked)


WHOLE = dat_file(
    [[cycles(0, 8), cycles(10**6, 8)], [cycles(0, 8), cycles(10**6, 8)]],
    kallsyms=b"ffffffff81000000 T _stext\n",
)


def use(content: bytes) -> None:
    """Read and explain as the verb does; only RecordError and NoWakeup may come."""
    try:
        trace = opened(content)
        for rows in trace.rows:
            assert (np.diff(rows.at_ns) >= 0).all()
        chosen = choose(trace, WakeupSelector())
    except (RecordError, NoWakeup):
        return
    window, wakeup = window_around(trace, chosen.wakeup)
    found = explain_events(window, wakeup, machine=MachineTraits())
    assert found.residual_ns == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_was_cut_anywhere_is_refused_or_its_loss_is_told(end: int) -> None:
    use(WHOLE[:end])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            # The head, the first page of a CPU, or anywhere.
            st.one_of(
                st.integers(0, 3_000),
                st.integers(PAGE_BYTES, PAGE_BYTES + 600),
                st.integers(0, len(WHOLE) - 1),
            ),
            st.integers(1, 255),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_flipped_bits_are_refused_or_explained_but_never_fatal(
    flips: list[tuple[int, int]],
) -> None:
    content = bytearray(WHOLE)
    for at, bits in flips:
        content[at % len(content)] ^= bits
    use(bytes(content))


def test_a_cut_file_says_how_much_is_missing() -> None:
    trace = opened(WHOLE[: -PAGE_BYTES - 7])

    assert any("the file ends" in one.reason for one in trace.losses)
