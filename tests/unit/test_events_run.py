"""Of a run on a real machine: its worst wake-ups, its traits, and its counters."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.measurements import record, thread
from fakes.traces import AROUND, tracing
from rtscope.contract import Around, CounterDelta, CpuRuns, ThreadEvent
from rtscope.explain.carrying import UNKNOWN_WAY
from rtscope.explain.events.explain import machine_of
from rtscope.explain.events.run import (
    around_words,
    counted_wakeups,
    explained_windows,
    worst_wakeups,
)
from rtscope.explain.events.threadstates import MachineTraits, TracedWakeup
from rtscope.explain.model import Explanation, Since
from rtscope.machine.facts import FactValue
from rtscope.record.events.text import TextTrace, text_trace
from rtscope.record.model import RunRecord

MS = 1_000_000


NOTHING = {"guest": None, "preemption_model": None, "kernel_release": None}


def with_facts(**facts: str | int | bool | None) -> RunRecord:
    one = record([thread([1000])])
    kept = {n: v for n, v in one.facts_before.items() if n not in facts}
    kept |= {
        name: FactValue(value, "a test")
        for name, value in facts.items()
        if value is not None
    }
    return replace(one, facts_before=kept)


@pytest.mark.parametrize(
    ("facts", "machine"),
    [
        (
            {"guest": True, "preemption_model": "full", "kernel_release": "6.12.43+x"},
            MachineTraits(guest=True, preemptible=True, release=(6, 12)),
        ),
        (
            {"guest": False, "preemption_model": "none", "kernel_release": "5.4"},
            MachineTraits(guest=False, preemptible=False, release=(5, 4)),
        ),
        (
            {**NOTHING, "kernel_cmdline": "quiet highres=off"},
            MachineTraits(high_resolution=False),
        ),
        (
            {**NOTHING, "kernel_cmdline": "highres=off highres=on"},
            MachineTraits(),
        ),
        (
            {"guest": "x", "preemption_model": "x", "kernel_release": "odd-6.1"},
            MachineTraits(),
        ),
        (
            NOTHING,
            MachineTraits(),
        ),
    ],
)
def test_a_machine_has_the_traits_of_its_facts(
    facts: dict[str, str | int | bool | None], machine: MachineTraits
) -> None:
    assert machine_of(with_facts(**facts)) == machine


@pytest.mark.parametrize(
    ("model", "preemptible"),
    [("PREEMPT_RT", True), ("lazy", True), ("voluntary", False)],
)
def test_a_preemption_model_says_whether_a_real_time_thread_preempts_at_once(
    model: str, preemptible: bool
) -> None:
    assert machine_of(with_facts(preemption_model=model)).preemptible is preemptible


def test_the_worst_wake_ups_of_all_threads_come_first_and_16_at_most() -> None:
    first = thread([5_000, 9_000, 7_000], cpu=0)
    second = thread([8_000, 9_000], cpu=3)
    found = worst_wakeups(record([first, second]))

    assert [(one.latency_ns, one.cpu) for one in found] == [
        *((9_000, 0), (9_000, 3), (8_000, 3)),
        *((7_000, 0), (5_000, 0)),
    ]
    kept = first.worst[0]
    assert found[0] == TracedWakeup(
        pid=1000,
        comm="rtscope/0",
        cpu=0,
        expiry_ns=kept.expiry_ns,
        wake_ns=kept.wake_ns,
        sequence=kept.seq,
    )
    assert (found[1].pid, found[1].comm) == (1003, "rtscope/3")
    many = record([thread(range(1_000, 41_000, 1_000))])
    assert [one.latency_ns for one in worst_wakeups(many)] == [
        *range(40_000, 24_000, -1_000)
    ]


# --- traces -----------------------------------------------------------------------


def traced(*pids: int, waker: str = "<idle>-0 [000] d.h2.") -> TextTrace:
    """A trace in which these threads sleep, and are woken 5 us after 1 ms."""
    lines = []
    for pid in pids:
        task = f"prev_comm=t prev_pid={pid} prev_prio=0 prev_state=S"
        back = f"next_comm=t next_pid={pid} next_prio=0"
        lines += [
            f" t-{pid} [000] d..2. 1000.000900: sched_switch: {task} ==> "
            "next_comm=swapper/0 next_pid=0 next_prio=120",
            f" {waker} 1000.001002: sched_waking: comm=t pid={pid} "
            "prio=0 target_cpu=000",
            " <idle>-0 [000] d..2. 1000.001005: sched_switch: prev_comm=swapper/0 "
            f"prev_pid=0 prev_prio=120 prev_state=R ==> {back}",
        ]
    return text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")


def test_each_of_the_worst_is_explained_with_its_window_and_its_number() -> None:
    run = record([thread([9_000, 2_000])])
    first, second = explained_windows(run, traced(1000), machine_of(run))

    assert (first.title, second.title) == (
        f"{run.run.id}, worst wake-up 1",
        f"{run.run.id}, worst wake-up 2",
    )
    assert first.wakeup.latency_ns == first.explanation.latency_ns == 9_000
    assert [e.at_ns for e in first.window.events] == [
        1000 * 10**9 + us * 1000 for us in (900, 1_002, 1_005)
    ]
    assert first.explanation.segments
    assert first.explanation.residual_ns == 0


def test_what_woke_the_threads_of_a_run_chooses_how_they_are_explained() -> None:
    of = ThreadEvent("futex", 1, 2000, "fifo", 98, *([0] * 7))
    run = record([replace(thread([9_000]), event=of)])
    by_event = replace(run, run=replace(run.run, event="futex"))
    by_itself = replace(run, run=replace(run.run, event="poll"))
    trace = traced(1000, waker="rtscope-ev/1-2000 [001] d..2.")

    found = [
        explained_windows(one, trace, machine_of(one))[0].explanation
        for one in (run, by_event, by_itself)
    ]

    assert [one.since for one in found] == [Since.DUE, Since.SENT, Since.GAP]
    assert UNKNOWN_WAY not in found[1].notes
    assert all(one.residual_ns == 0 for one in found)


def test_a_trace_without_the_thread_explains_nothing_and_says_so() -> None:
    run = record([thread([9_000], cpu=2)])

    (found,) = explained_windows(run, traced(77), machine_of(run))

    assert found.explanation == Explanation(
        2, 1, 9_000, (), ("the trace has no event of this thread",)
    )
    assert found.wakeup.pid == 1002


# --- counters ---------------------------------------------------------------------


@pytest.mark.parametrize(("cpu", "told"), [(2, 2), (None, 0)])
def test_a_wakeup_with_counters_alone_has_its_figures_and_no_cause(
    cpu: int | None, told: int
) -> None:
    run = record([thread([7_000])])
    around = replace(AROUND, cpu=cpu)
    kept = replace(tracing(cause="lockdown"), counter_deltas=(around,))
    notes = tuple(around_words(around))

    assert counted_wakeups(run) == []
    assert counted_wakeups(replace(run, result=replace(run.result, tracing=kept))) == [
        Explanation(told, 17, 7_000, (), notes)
    ]


def words(**changes: object) -> Sequence[str]:
    around: Around = replace(AROUND, **changes)  # type: ignore[arg-type]
    return list(around_words(around))


def grown(*rows: tuple[str, str, dict[int, int]]) -> tuple[CounterDelta, ...]:
    return tuple(CounterDelta(*row) for row in rows)


def test_counters_are_told_with_their_window_and_no_cause() -> None:
    assert words() == [
        "no events were recorded, only counters, from 60 ms before the expiry to "
        "41 ms after the wake-up: the cause cannot be determined",
        "interrupts on this CPU: Local timer interrupts 107",
        "softirqs on this CPU: TIMER 4",
        "tasks ran 350 times on this CPU, and waited 5.0 ms for it in total",
    ]


def test_a_snapshot_that_came_late_and_stolen_time_are_told() -> None:
    stolen = replace(AROUND.cpu_times[0], cpu=0, steal_ns=7 * MS)
    other = replace(stolen, cpu=1)

    assert words(truncated=True, cpu_times=(other, stolen))[1:3] == [
        "the first counter snapshot came after the expiry: counts are too low",
        "a hypervisor took 7 ms of this CPU",
    ]
    assert not [w for w in words(cpu_times=(other,)) if "hypervisor" in w]


def test_the_four_counters_that_grew_most_are_named() -> None:
    rows = grown(
        *(("1", "a", {0: 5, 1: 900}), ("2", "", {0: 1234}), ("3", "c", {0: 7})),
        *(("5", "e", {0: 7}), ("4", "d", {0: 6}), ("6", "f", {0: 0, 1: 3})),
    )

    assert words(interrupts=rows)[1] == (
        "interrupts on this CPU: 2 1,234, c 7, e 7, d 6"
    )
    # Of an unpinned thread it is not known which CPU it was on.
    assert words(interrupts=rows, cpu=None, softirqs=())[1] == (
        "interrupts on this CPU: 2 1,234, a 905, c 7, e 7"
    )
    nothing = words(interrupts=grown(("6", "f", {1: 3})), softirqs=())
    assert not [w for w in nothing if "on this CPU:" in w]


def test_without_schedstat_the_switches_of_all_cpus_are_told() -> None:
    assert words(schedstat=())[-1] == "700 task switches on all CPUs"
    assert words(schedstat=(), switches=0)[-1] == "0 task switches on all CPUs"
    assert "switches" not in words(schedstat=(), switches=-1)[-1]
    other = (CpuRuns(1, 350, 99 * MS, 5 * MS),)
    assert not [w for w in words(schedstat=other) if "switches" in w or "ran" in w]
