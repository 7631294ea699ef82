"""Lines of the agent's `demo`, for threads whose runs a test names."""

from collections.abc import Mapping, Sequence

from rtscope.contract import (
    DemoBegin,
    DemoEnd,
    DemoEvent,
    DemoEvents,
    DemoThread,
    DemoThreadEnd,
    Line,
)
from rtscope.verbs.demo.model import Case, Scenario, demos

MS = 1_000_000

Runs = Sequence[tuple[float, float]]
"""From and until, in ms."""


def ran(runs: Runs, *, due_ms: float | None = None) -> tuple[DemoEvent, ...]:
    """Return the events of a thread that woke, ran these times and was done."""
    first, last = int(runs[0][0] * MS), int(runs[-1][1] * MS)
    due = first if due_ms is None else int(due_ms * MS)
    return (
        ("woke", 0, first, due),
        *(("ran", 1, int(a * MS), int(b * MS)) for a, b in runs),
        *(
            ("unit", 1, int((a + 1 + k) * MS), 1)
            for a, b in runs
            for k in range(int(b - a))
        ),
        ("done", 2, last, 0),
    )


def case_lines(
    case: Case,
    events: Mapping[str, Sequence[DemoEvent]],
    *,
    policies: Mapping[str, tuple[str, int]] | None = None,
    affinity: str = "1",
    faults: Mapping[str, int] | None = None,
    slice_ns: int = 0,
    room: int = 6000,
    memory_locked: bool | None = None,
    parameters: tuple[int, int] | None = None,
    stolen_ns: int = 0,
) -> list[Line]:
    """
    Return what the agent would write; policies and so on as the scripts want.

    Of more events than there is room for, all but the first and the last are lost.
    `stolen_ns` are CPU time of each thread, in which it did not see itself run.
    """
    written = {
        name: tuple(some) if len(some) <= room else (*some[: room - 1], some[-1])
        for name, some in events.items()
    }
    threads: list[DemoThread] = []
    ends: list[DemoThreadEnd] = []
    for script in case.threads:
        name, policy, parameter, _ = script.split(":")
        priority = int(parameter) if policy in ("fifo", "rr") else 0
        policy, priority = (policies or {}).get(name, (policy, priority))
        runtime, _, period = parameter.partition("/")
        had = parameters or (int(runtime or 0), int(period or 0))
        threads.append(
            DemoThread(
                name=name,
                tid=100 + len(threads),
                policy=policy,
                priority=priority,
                runtime_ns=had[0] if period else 0,
                period_ns=had[1] if period else 0,
                slice_ns=slice_ns if policy == "rr" else 0,
                affinity=affinity,
            )
        )
        mine = events[name]
        ends.append(
            DemoThreadEnd(
                name=name,
                cpu_time_ns=stolen_ns
                + sum(value - at for word, _, at, value in mine if word == "ran"),
                minor_faults=(faults or {}).get(name, 0),
                major_faults=0,
                voluntary_switches=1,
                involuntary_switches=0,
                events=len(written[name]),
                events_lost=len(mine) - len(written[name]),
            )
        )
    return [
        DemoBegin(
            schema=2,
            arch="x86_64",
            kernel="6.12.0",
            cpu=1,
            start_ns=1000,
            memory_locked=case.lock_memory if memory_locked is None else memory_locked,
            unit_ns=MS,
            pause_ns=50_000,
            threads=tuple(threads),
        ),
        *(DemoEvents(thread=name, events=some) for name, some in written.items()),
        DemoEnd(end_ns=10**9, stopped="", threads=tuple(ends)),
    ]


def an_example() -> list[Line]:
    """Return the lines of threads that do what they must."""
    (case,) = demos()[Scenario.PREEMPT].cases
    events = {
        "m": ran([(0, 200), (760, 960)]),
        "2": ran([(200, 400), (610, 760)]),
        "3": ran([(400, 610)]),
    }
    return case_lines(case, events)
