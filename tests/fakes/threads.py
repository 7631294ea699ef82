"""Threads for tests: lines as an agent writes them, and what surrounds them."""

from dataclasses import replace
from typing import Any

from rtscope.contract import Line
from rtscope.contract.commands import DeadlineParameters, TaskLine, TasksEnd
from rtscope.machine.tasks.listing import make_listing
from rtscope.machine.tasks.model import Listing, Surroundings

MS = 1_000_000

AROUND = Surroundings(
    isolated=frozenset(), irq_devices={}, sched_ext=None, hidepid=None
)

ORDINARY = TaskLine(
    pid=100,
    tid=100,
    name="app",
    name_hex=None,
    kind="user",
    state="S",
    policy="other",
    priority=0,
    reset_on_fork=False,
    deadline=None,
    slice_ns=2_800_000,
    util_clamp=None,
    nice=0,
    kernel_priority=20,
    last_cpu=1,
    cpus="0-3",
    voluntary_switches=5,
    involuntary_switches=2,
    minor_faults=70,
    major_faults=1,
    timer_slack_ns=50_000,
    user_ns=20 * MS,
    system_ns=10 * MS,
    cpu_time_ns=31 * MS,
    cpu_time_exact=True,
    window_ns=None,
    window_cpu_ns=None,
    unreadable={},
)

DEADLINE = DeadlineParameters(2 * MS, 9 * MS, 10 * MS, False, True)


def task(tid: int = 100, policy: str = "other", **given: Any) -> TaskLine:
    """Return a line; effective is what the policy gives, unless it is given."""
    priority = given.get("priority", 0)
    nice = given.get("nice", 0)
    effective = {"fifo": -1 - priority, "rr": -1 - priority, "deadline": -101}
    made = {
        "pid": tid,
        "kernel_priority": effective.get(policy, 20 + nice),
        "deadline": DEADLINE if policy == "deadline" else None,
        **given,
    }
    return replace(ORDINARY, tid=tid, policy=policy, **made)


def kernel(tid: int, name: str, priority: int = 50, **given: Any) -> TaskLine:
    """Return a FIFO thread of the kernel."""
    given = {"kind": "kernel", "priority": priority, "name": name, **given}
    return task(tid, "fifo", **given)


def ending(threads: int, **given: Any) -> TasksEnd:
    """Return the last line of a list."""
    made = TasksEnd(
        schema=2,
        processes=threads,
        threads=threads,
        vanished=0,
        not_read=0,
        window_ns=None,
        window_ended=None,
        tick_ns=10 * MS,
        uid=0,
    )
    return replace(made, **given)


def lines(*tasks: TaskLine, **end: Any) -> list[Line]:
    """Return a whole list as an agent writes it."""
    return [*tasks, ending(len(tasks), **end)]


def listing(*tasks: TaskLine, around: Surroundings = AROUND, **end: Any) -> Listing:
    """Return the threads of a machine with marks."""
    return make_listing(lines(*tasks, **end), around)


def machine() -> Listing:
    """Return a machine with something of everything, for a picture of it."""
    window: dict[str, Any] = {"window_ns": 1000 * MS}
    return listing(
        task(
            1,
            name="systemd",
            capabilities="000001ffffffffff",
            cgroup="/init.scope",
            window_cpu_ns=0,
            **window,
        ),
        kernel(18, "migration/0", 99, cpus="0", window_cpu_ns=0, **window),
        kernel(50, "irq/24-eth0-rx-q", 50, window_cpu_ns=3 * MS, **window),
        kernel(51, "irq/25-spi", 85, cpus="2", window_cpu_ns=0, **window),
        task(700, name="control", window_cpu_ns=MS, **window),
        task(
            701,
            "fifo",
            pid=700,
            priority=80,
            name="loop",
            cpus="2",
            state="R",
            capabilities="0000000000804000",
            cgroup="/system.slice/control.service",
            **window,
            window_cpu_ns=120 * MS,
        ),
        task(
            702,
            "fifo",
            pid=700,
            priority=80,
            name="log\n\x1b[31m",
            **window,
            window_cpu_ns=0,
        ),
        task(
            703,
            pid=700,
            name="helper",
            kernel_priority=-81,
            reset_on_fork=True,
            **window,
            window_cpu_ns=0,
        ),
        task(800, "deadline", name="camera", cpus="0-3", window_cpu_ns=0, **window),
        task(801, "rr", priority=99, name="[spin] x", window_cpu_ns=998 * MS, **window),
        task(
            802,
            "batch",
            nice=5,
            name="make",
            unreadable={"timer_slack_ns": "No"},
            timer_slack_ns=None,
            window_cpu_ns=0,
            **window,
        ),
        around=Surroundings(
            frozenset({2, 3}), {24: ("eth0-rx-queue-0",), 25: ("spi",)}, "rusty", None
        ),
        vanished=2,
        window_ns=1000 * MS,
        window_ended=1,
    )
