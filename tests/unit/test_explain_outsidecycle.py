"""Cycles of a program that are booted again: which, when, and as what path."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from fakes.programrecords import CLOCK_NANOSLEEP, Written, file_of
from rtscope.explain import outsidecycle
from rtscope.explain.outsidecycle import (
    ProgramBoot,
    cycle_section,
    merged,
    recorded_cycles,
    windows_of,
)
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import parse_program_record
from rtscope.programs.outside.model import OutsideCycle, OutsideThread
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
    task_switches,
)
from rtscope.record.instructions.symbols import NO_SYMBOLS

LOOP = 11


def thread_of(cycles: int) -> OutsideThread:
    """Return one with cycles of 1 ms."""
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(cycles):
        written.cycle(LOOP, 10_000 + 1_000 * number)
    (found,) = outside_of(parse_program_record(file_of(written.records))).threads
    return found


def worst_cycle() -> OutsideCycle:
    return thread_of(8).worst


def test_windows_that_overlap_are_recorded_as_one() -> None:
    assert list(merged([(900, 950), (100, 500), (400, 450), (500, 700)])) == [
        (100, 700),
        (900, 950),
    ]
    assert list(merged([])) == []


def test_a_cycle_is_recorded_from_before_its_begin_to_its_end() -> None:
    cycle = worst_cycle()
    ((first_ns, last_ns),) = windows_of([cycle])

    assert first_ns == cycle.begin_ns - 100_000
    assert last_ns == cycle.done_ns


def test_a_window_becomes_a_path_that_ends_with_the_cycle() -> None:
    cycle = worst_cycle()
    at_ns = np.array([cycle.begin_ns - 5, cycle.begin_ns, cycle.done_ns + 1])
    window = TraceSection(
        *(SectionKind.WINDOW, 0, 0, 0, int(at_ns[0]), int(at_ns[-1]), False, False),
        at_ns=at_ns,
        cpus=np.zeros(3, np.uint8),
        kinds=np.full(3, RecordKind.BLOCK, np.uint8),
        values=np.arange(3, dtype=np.uint64),
    )

    path = cycle_section(ExecTrace("x86_64", 2, 2, 1, (window,)), cycle, cpu=1)

    assert (path.kind, path.cpu) == (SectionKind.WORST, 1)
    assert path.last_ns - path.latency_ns == cycle.begin_ns
    assert path.at_ns.tolist() == [*at_ns[:2], cycle.done_ns]
    assert (path.kinds[-1], path.values[-1]) == (RecordKind.MARK, cycle.response_ns)
    assert path.cpus.dtype == np.uint8
    assert path.kinds.dtype == np.uint8
    assert path.values.dtype == np.uint64


def why_unknown(
    monkeypatch: pytest.MonkeyPatch, paths: bytes | ExecTrace
) -> Sequence[str]:
    """Return the log of a cycle whose second boot wrote these paths."""
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(4):
        written.cycle(LOOP, 10_000 + 1_000 * number)
    record = parse_program_record(file_of(written.records))
    (thread,) = outside_of(record).threads

    def boot_again(*_: object) -> ExecTrace:
        return parse_trace(paths) if isinstance(paths, bytes) else paths

    monkeypatch.setattr(outsidecycle, "_boot_again", boot_again)
    monkeypatch.setattr(outsidecycle, "_symbols", lambda _: NO_SYMBOLS)
    log: list[str] = []
    found = recorded_cycles(
        cast("ProgramBoot", None),
        record,
        [(thread, thread.worst)],
        log=log.append,
        progress=print,
    )
    assert found == {}
    return log


def test_a_second_boot_with_damaged_paths_leaves_the_cause_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (said,) = why_unknown(monkeypatch, b"RTSCEXEC, damaged")

    assert said.startswith("loop, cycle ")
    assert ": its cause is not known: " in said


def test_paths_without_the_window_of_a_cycle_leave_its_cause_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (said,) = why_unknown(monkeypatch, ExecTrace("x86_64", 2, 2, 1, ()))

    assert said.endswith("not known: the plugin recorded nothing at its begin")


def test_a_switch_that_a_window_has_twice_is_once_in_a_path() -> None:
    cycle, task, other = worst_cycle(), 0xFFFF_0000, 0xFFFF_8000
    name = int.from_bytes(b"loop\0\0\0\0", "little")
    rows = [
        (0, 1, RecordKind.TASK, task),  # it runs when the window begins
        (1, 0, RecordKind.TASK, other),
        (2, 1, RecordKind.TASK, other),  # the kernel's variable names it already
        (3, 0, RecordKind.BLOCK, 0),
        *((4, 1, RecordKind.TASK, other), (4, 1, RecordKind.NAME, name)),
        *((4, 1, RecordKind.NAME, 0), (4, 1, RecordKind.PRIORITY, 49)),
        (5, 1, RecordKind.TASK, task),  # as on a CPU whose tasks have no names
    ]
    window = TraceSection(
        *(SectionKind.WINDOW, 0, 0, 0, cycle.begin_ns, cycle.done_ns, False, False),
        at_ns=np.array([cycle.begin_ns + row[0] for row in rows]),
        cpus=np.array([row[1] for row in rows], np.uint8),
        kinds=np.array([row[2] for row in rows], np.uint8),
        values=np.array([row[3] for row in rows], np.uint64),
    )

    path = cycle_section(ExecTrace("x86_64", 2, 2, 1, (window,)), cycle, cpu=1)

    found = [
        (one.at_ns - cycle.begin_ns, one.cpu, one.task, one.prio)
        for one in task_switches(path)
    ]
    assert found == [
        (0, 1, task, None),
        (1, 0, other, None),
        (4, 1, other, 49),
        (5, 1, task, None),
    ]


def test_a_cycle_that_the_one_before_made_late_is_not_booted_again() -> None:
    written = Written()
    written.thread(LOOP, "loop")
    written.cycle(LOOP, 10_000)
    written.cycle(LOOP, 11_000, work=700_000)  # until 12,405: past the next one
    written.wake(LOOP, 12_420, due_us=12_000)
    written.runs(LOOP, 12_421, first_us=12_422)
    written.returns(LOOP, 12_422, CLOCK_NANOSLEEP)
    written.call(LOOP, 14_500, CLOCK_NANOSLEEP, asked_us=15_000)
    written.leaves(LOOP, 14_510)
    record = parse_program_record(file_of(written.records))
    (thread,) = outside_of(record).threads
    log: list[str] = []
    boot = cast("ProgramBoot", None)

    found = recorded_cycles(
        boot, record, [(thread, thread.worst)], log=log.append, progress=print
    )

    assert thread.worst.slept
    assert found == {}
    assert log == [
        f"loop, cycle {thread.worst.number}: its cause is not looked for: "
        "it was late already, by the cycle before"
    ]
