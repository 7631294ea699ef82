"""Statistics of programs are read as the library writes them, after crashes too."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fakes.printed import printed
from rtscope.machine.reader import Content, Denied, Missing
from rtscope.machine.tasks.statistics import (
    LAYOUT,
    PATTERN,
    TRIES,
    Program,
    State,
    Statistics,
    bucket_low_ns,
    read_statistics,
)
from rtscope.present.formats.taskstatistics import statistics_blocks, statistics_rows

PATH = "/dev/shm/rtscope-task.40"
BEGUN = 3
FREE = [0] * 2048


class Files:
    """Machines whose files differ from read to read; the last one stays."""

    def __init__(self, *contents: Content) -> None:
        self.contents = list(contents)
        self.reads = 0

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        assert paths == [PATTERN]
        self.reads += 1
        content = self.contents[min(self.reads, len(self.contents)) - 1]
        return {PATTERN if isinstance(content, Missing) else PATH: content}


def histogram(*values_ns: int) -> list[int]:
    words = [0] * 504
    words[0], words[5] = len(values_ns), sum(values_ns)
    words[3], words[4] = min(values_ns, default=2**64 - 1), max(values_ns, default=0)
    for value in values_ns:
        words[8 + value] += 1
    return words


def slot(
    *,
    cycles: int = BEGUN - 1,
    sequence: int = 8,
    usage_cycle: int = 1,
    fault_since: int = 1,
) -> list[int]:
    """A task in its third cycle, in whose second there were two page faults."""
    words = [sequence, State.RUNNING, 41, 1, 80, 0, 0, 0, 1_000_000, 0, 900_000, 0]
    words += [cycles, 1, 0, 4, 2, 0, 5, 6, 1, 2, 7, 8, 1]
    name = b"control".ljust(32, b"\0")
    words += struct.unpack("<4Q", name)
    words += [usage_cycle, 2_000_500, fault_since]
    for values in ((3, 5, 4), (9, 9), (12, 13), (1, 2)):
        words += histogram(*values)
    return words


def page(*slots: list[int], layout: int = LAYOUT, order: str = "<") -> bytes:
    magic = b"rtsctask" if order == "<" else b"ksatcstr"
    words = [layout, 4096, 16384, len(slots), 4, 34, 40, 1, 2, 0]
    head = magic + struct.pack(f"{order}10Q", *words)
    text = head.ljust(128, b"\0") + b"arm\0"
    return text.ljust(4096, b"\0") + b"".join(
        struct.pack(f"{order}2048Q", *words) for words in slots
    )


def read(*contents: Content, pids: tuple[int, ...] = (40,)) -> Statistics:
    return read_statistics(Files(*contents), pids)


def only(statistics: Statistics) -> Program:
    (program,) = statistics.programs
    return program


def test_a_task_is_read_word_for_word() -> None:
    program = only(read(page(slot(), FREE)))
    (task,) = program.tasks

    assert (program.pid, program.name, program.crashed) == (40, "arm", False)
    assert (task.tid, task.name, task.state) == (41, "control", State.RUNNING)
    assert (task.period_ns, task.deadline_ns) == (1_000_000, 900_000)
    assert (task.cycles, task.missed, task.overruns, task.skipped) == (2, 1, 0, 4)
    assert (task.minor_faults, task.major_faults, task.last_fault_cycle) == (2, 0, 1)
    assert (task.fault_since_cycle, task.usage_cycle, task.usage_ns) == (1, 1, 2000500)
    assert (task.voluntary_switches, task.involuntary_switches) == (5, 6)
    assert (task.number, task.in_cycle, task.torn) == (2, True, False)
    assert (task.latency.min_ns, task.latency.max_ns, task.latency.mean_ns) == (3, 5, 4)
    assert task.execution.buckets == ((9, 2),)


def test_before_the_first_count_there_is_neither_cycle_nor_time() -> None:
    words = slot(usage_cycle=2**64 - 1)
    words[20] = 2**64 - 1
    (task,) = only(read(page(words))).tasks

    assert (task.last_fault_cycle, task.fault_since_cycle) == (None, None)
    assert (task.usage_cycle, task.usage_ns) == (None, None)


def test_a_machine_of_the_other_byte_order_is_read_too() -> None:
    words = slot()
    name = struct.unpack(">4Q", b"control".ljust(32, b"\0"))
    words[25:29] = name

    assert only(read(page(words, order=">"))).tasks[0].name == "control"


def test_a_copy_whose_counts_disagree_is_taken_again() -> None:
    whole, torn = page(slot()), page(slot(cycles=3))
    files = Files(torn, torn, whole)
    program = only(read_statistics(files, (40,)))

    assert files.reads == 3
    assert not program.tasks[0].torn


def test_what_never_agrees_is_shown_as_torn() -> None:
    files = Files(page(slot(sequence=9)))
    program = only(read_statistics(files, (40,)))

    assert files.reads == TRIES
    assert program.tasks[0].torn


def test_a_crashed_program_is_read_once_and_named() -> None:
    files = Files(page(slot(sequence=9)))
    statistics = read_statistics(files, ())

    assert files.reads == 1
    assert only(statistics).crashed
    assert statistics.of((), whole=True).programs
    assert statistics.of((40,), whole=False).programs
    assert not statistics.of((50,), whole=False).programs


def test_what_is_no_page_is_named_and_not_guessed() -> None:
    assert read(Missing()) == Statistics((), ())
    assert read(Denied("no right")).unread == (f"{PATH}: no right",)
    assert "no statistics" in read(b"").unread[0]
    assert "layout 9 is unknown" in read(page(layout=9)).unread[0]
    assert "cut off" in read(page(slot())[:-1]).unread[0]


def test_buckets_begin_where_those_of_the_library_do() -> None:
    assert [bucket_low_ns(b) for b in (0, 31, 32, 33, 48)] == [0, 31, 32, 34, 64]


def test_the_list_names_crash_and_fault() -> None:
    said = printed(statistics_blocks(read(page(slot()), pids=())), width=120)

    assert "arm [40] ended without closing the statistics of its tasks" in said
    assert "control: was in the cycle of release 2" in said
    assert "page faults are counted up to the end of the cycle of release 1" in said
    assert "last page fault in the cycle of release 1" in said
    assert "13ns" in said


def test_the_list_has_the_cycles_that_the_last_fault_may_have_been_in() -> None:
    said = printed(statistics_blocks(read(page(slot(fault_since=0)))), width=120)

    assert "last page fault in one of the cycles of releases 0 to 1" in said
    assert "are counted" not in said


def test_a_program_without_tasks_has_no_table_of_them() -> None:
    none = replace(only(read(page(slot()))), tasks=())
    said = printed(statistics_blocks(Statistics((none,), ())), width=120)

    assert "it has started none" in said
    assert "CYCLES" not in said


def test_json_has_states_as_words() -> None:
    (row,) = statistics_rows(read(page(slot())))

    assert row["tasks"][0]["state"] == "running"  # type: ignore[index]


def test_a_name_cannot_command_the_terminal() -> None:
    program = only(read(page(slot())))
    evil = replace(program, name="\x1b[2J")
    said = printed(statistics_blocks(Statistics((evil,), ())), width=120)

    assert "\x1b" not in said


def by_events(latencies: tuple[int, ...] = (), *, overruns: int = 0) -> list[int]:
    words = slot()
    words[8], words[14] = 0, overruns
    begin = len(words) - 4 * 504
    words[begin : begin + 504] = histogram(*latencies)
    words[-504:] = histogram()
    return words


def test_a_task_woken_by_events_has_latencies_of_those_whose_time_is_known() -> None:
    for latencies in ((), (4,), (3, 5, 4)):
        (task,) = only(read(page(by_events(latencies)))).tasks

        assert (task.period_ns, task.torn) == (0, False)
        assert task.latency.count == len(latencies)
        assert task.response.count == task.cycles == 2


def test_counts_that_no_task_woken_by_events_can_have_are_torn() -> None:
    for words in (by_events((1, 2, 3, 4)), by_events(overruns=1)):
        (task,) = only(read(page(words))).tasks

        assert task.torn
