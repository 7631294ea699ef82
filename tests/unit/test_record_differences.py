"""Two records of one virtual run: what must be equal, and what the host may choose."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.contract import CounterDelta
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import FILE_LOST, RunRecord
from rtscope.verbs.sweep.doubts import Difference, differences

NOTE: Mapping[str, Any] = {"sha256": "a" * 64, "paths": 16, "truncated": 0}

ONE = on_board(
    record([thread([5_000])], facts={"memory_available_kb": 945_008}),
    plugin_counters={"last_mark": 353_772_631},
    trace=NOTE,
)
LOAD = replace(ONE.load, throughput={"switch": 60_796.9}, operations={"switch": 70_464})
FIRST = replace(ONE, load=LOAD)


def virtual(**others: Any) -> RunRecord:
    return replace(FIRST, virtual=replace(FIRST.require_virtual(), **others))


def traced(**others: Any) -> RunRecord:
    return virtual(trace={**NOTE, **others})


def with_caveats(*caveats: Caveat) -> RunRecord:
    return replace(FIRST, caveats=(*FIRST.caveats, *caveats))


def interrupted(times: int) -> RunRecord:
    counted = CounterDelta("IPI0", "Rescheduling interrupts", {0: times})
    assert FIRST.result.machine is not None
    machine = replace(FIRST.result.machine, interrupts=(counted,))
    return replace(FIRST, result=replace(FIRST.result, machine=machine))


def test_a_record_does_not_differ_from_itself() -> None:
    assert not list(differences(FIRST, FIRST))


@pytest.mark.parametrize(
    "second",
    [
        replace(FIRST, started_at="2026-11-27T01:40:33+00:00", host_duration_s=17.2),
        virtual(worker="tcp://10.0.0.13:40001"),
        virtual(reused=True),
        with_caveats(make("result_reused", "computed at noon")),
        with_caveats(make(FILE_LOST, "kernel.log: no space left on device")),
    ],
    ids=["times", "worker", "stored", "caveat of it", "lost file"],
)
def test_the_host_of_a_run_may_differ(second: RunRecord) -> None:
    assert not list(differences(FIRST, second))
    assert not list(differences(second, FIRST))


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (
            replace(FIRST, load=replace(LOAD, operations={"switch": 70_465})),
            Difference("load.operations.switch", "70464", "70465"),
        ),
        (
            replace(FIRST, load=replace(LOAD, throughput={})),
            Difference("load.throughput.switch", "60796.9", "absent"),
        ),
        (
            virtual(plugin_counters={"last_mark": 353_772_632}),
            Difference("virtual.plugin_counters.last_mark", "353772631", "353772632"),
        ),
        (
            traced(sha256="b" * 64),
            Difference("virtual.trace.sha256", f'"{"a" * 59}...', f'"{"b" * 59}...'),
        ),
        (
            interrupted(3),
            Difference("result.machine.interrupts", "0 items", "1 item"),
        ),
        (
            with_caveats(make("load_died", "exit status 1")),
            Difference("caveats", "0 items", "1 item"),
        ),
    ],
    ids=["operations", "throughput", "instructions", "paths", "interrupts", "caveats"],
)
def test_everything_else_must_be_equal(second: RunRecord, found: Difference) -> None:
    assert list(differences(FIRST, second)) == [found]


def test_an_item_of_a_list_is_named_by_its_number() -> None:
    (found,) = differences(interrupted(3), interrupted(4))

    assert found == Difference("result.machine.interrupts[0].per_cpu.0", "3", "4")


def test_of_long_texts_the_part_is_shown_where_they_differ() -> None:
    first, second = (
        replace(FIRST, load=replace(LOAD, log_tail=f"{'word ' * 100}{end}"))
        for end in ("passed", "failed")
    )

    (found,) = differences(first, second)

    assert found.first == '...word word word word passed"'
    assert found.second == '...word word word word failed"'


def test_differences_come_in_the_order_of_the_record() -> None:
    """That is about the order of time: the first one is nearest to the cause."""
    second = on_board(record([thread([6_000])], facts={"memory_available_kb": 945_004}))

    places = [found.place for found in differences(ONE, second)]

    assert places[0] == "facts_before.memory_available_kb.value"
    assert "result_digest" in places


@pytest.mark.parametrize(
    "other",
    [
        virtual(trace={"reason": "the plugin wrote no stream"}),
        virtual(trace=None),
        traced(sha256="b" * 64, truncated=2),
    ],
    ids=["not written", "an older record", "no memory for the second pass"],
)
def test_paths_that_a_host_could_not_keep_are_not_compared(other: RunRecord) -> None:
    assert not list(differences(FIRST, other))
    assert not list(differences(other, FIRST))
