"""What the checks of threads and their rights answer at their edges."""

import errno

import pytest

from fakes.audited import (
    FAIL,
    HEAD,
    KERNEL,
    KTHREADD,
    NO,
    NONE,
    PASS,
    REFUSED,
    SELF,
    UNKNOWN,
    Case,
    Shown,
    Wanted,
    answer,
    limits,
    thread,
    threads,
)
from rtscope.machine.audit.context import Observed, Trial
from rtscope.machine.audit.examine import catalogue

CMDLINE = "/proc/cmdline"
CONFIG = "/boot/config-6.12.1"


RT_GROUPS = "CONFIG_RT_GROUP_SCHED"


@pytest.mark.parametrize(
    ("error", "told"),
    [(errno.EPERM, "EPERM"), (errno.EIO, "EIO"), (9999, "9999")],
)
def test_a_refused_policy_shows_what_was_tried_and_the_limits(
    error: int, told: str
) -> None:
    seen = Observed(trial=Trial("FIFO", error, "why"))

    assert answer("realtime_policy", Case(limits(rtprio="7"), observed=seen)) == (
        FAIL,
        f"{told}: no CAP_SYS_NICE, and RLIMIT_RTPRIO is 7",
        [
            ("FIFO", f"{told}: why"),
            (f"{SELF}/limits", "realtime priority: 7"),
            (f"{SELF}/status", "CapEff:\t0000000000000000"),
        ],
    )
    assert answer("realtime_policy", Case(observed=seen)) == (
        FAIL,
        f"{told}: reason unknown: the capabilities are not readable",
        [("FIFO", f"{told}: why")],
    )


def test_a_policy_that_was_granted_and_one_that_was_not_tried() -> None:
    granted = Observed(trial=Trial("FIFO", None))

    assert answer("realtime_policy", Case(observed=granted)) == (
        *(PASS, "granted"),
        [("FIFO", "granted")],
    )
    assert answer("realtime_policy", Case()) == (
        UNKNOWN,
        "not tried: only on a running machine, not on a capture",
        [],
    )


def test_a_group_without_a_budget_refuses_even_root() -> None:
    files = {
        f"{SELF}/status": "CapEff:\t0000000000800000\n",
        CONFIG: f"{HEAD}{RT_GROUPS}=y\n",
    }
    seen = Observed(trial=Trial("FIFO", errno.EPERM, "why"))

    assert answer("realtime_policy", Case(files, observed=seen))[1] == (
        "EPERM: the control group has no real-time budget (RT_GROUP_SCHED)"
    )


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("rtprio_limit", {"rtprio": "99"}, (PASS, "99")),
        ("rtprio_limit", {"rtprio": "80"}, (PASS, "80")),
        ("rtprio_limit", {"rtprio": "79"}, (FAIL, "79")),
        ("rtprio_limit", {"rtprio": "unlimited"}, (PASS, "unlimited")),
        ("rtprio_limit", {"rtprio": "-1"}, (UNKNOWN, "'-1' is not a limit")),
        ("memlock_limit", {"memlock": "unlimited"}, (PASS, "unlimited")),
        ("memlock_limit", {"memlock": "999999999999"}, (FAIL, "999999999999")),
        ("rttime_limit", {"rttime": "unlimited"}, (PASS, "unlimited")),
        ("rttime_limit", {"rttime": "1"}, (FAIL, "1")),
    ],
)
def test_a_limit_is_judged_by_its_soft_value(
    name: str, given: dict[str, str], wanted: Wanted
) -> None:
    label = str(catalogue()[name].args["limit"])
    shown = [(f"{SELF}/limits", f"{label}: {next(iter(given.values()))}")]

    assert answer(name, Case(limits(**given))) == (*wanted, shown)


@pytest.mark.parametrize(
    ("capabilities", "name", "message"),
    [
        (1 << 23, "rtprio_limit", "0, but CAP_SYS_NICE overrides it"),
        (1 << 14, "rtprio_limit", "0"),
        (1 << 14, "memlock_limit", "0, but CAP_IPC_LOCK overrides it"),
        (1 << 23, "memlock_limit", "0"),
    ],
)
def test_a_capability_overrides_its_own_limit_alone(
    capabilities: int, name: str, message: str
) -> None:
    status = {f"{SELF}/status": f"CapEff:\t{capabilities:016x}\n"}
    files = {**limits(rtprio="0", memlock="0"), **status}

    assert answer(name, Case(files))[1] == message


def test_a_limit_that_is_not_listed_is_unknown() -> None:
    assert answer("rtprio_limit", Case()) == (
        UNKNOWN,
        f"{SELF}/limits does not list it",
        [],
    )
    assert answer("rtprio_limit", Case(also={f"{SELF}/limits": REFUSED})) == (
        UNKNOWN,
        f"{SELF}/limits does not list it",
        [(f"{SELF}/limits", NO)],
    )


CGROUP = f"{SELF}/cgroup"
CONTROLLERS = "/sys/fs/cgroup/user.slice/cgroup.controllers"
NO_BUDGET = "not the root group, and cgroup v2 cannot give it a budget"
LOOK = (
    "check that cpu.rt_runtime_us is above 0 in this group and in each group above it"
)


@pytest.mark.parametrize(
    ("own", "controllers", "wanted", "shown"),
    [
        ("0::/", None, (PASS, "the root group"), [(CGROUP, "0::/")]),
        ("5:cpu:/", None, (PASS, "the root group"), [(CGROUP, "5:cpu:/")]),
        ("5:cpu,x:/a", None, (UNKNOWN, LOOK), [(CGROUP, "5:cpu,x:/a")]),
        (
            *("0::/user.slice/a", "cpu memory", (FAIL, NO_BUDGET)),
            [(CGROUP, "0::/user.slice/a"), (CONTROLLERS, "cpu memory")],
        ),
        (
            *("0::/user.slice/a", "cpuset memory"),
            (PASS, "the budget of the root group: the CPU controller is off"),
            [(CGROUP, "0::/user.slice/a"), (CONTROLLERS, "cpuset memory")],
        ),
        (
            *("0::/user.slice/a", None),
            (
                UNKNOWN,
                "not the root group; unknown whether it uses the CPU controller",
            ),
            [(CGROUP, "0::/user.slice/a")],
        ),
        (None, None, (UNKNOWN, f"no {CGROUP}"), []),
    ],
)
def test_a_group_has_a_budget_at_the_root_or_without_the_cpu_controller(
    own: str | None, controllers: str | None, wanted: Wanted, shown: Shown
) -> None:
    files = {CONFIG: f"{HEAD}{RT_GROUPS}=y\n"}
    files |= {} if own is None else {CGROUP: own}
    files |= {} if controllers is None else {CONTROLLERS: controllers}

    assert answer("group_budget", Case(files)) == (*wanted, shown)


def stat_of(number: int) -> str:
    return f"/proc/{number}/task/{number}/stat"


STATS = "/proc/[0-9]*/task/[0-9]*/stat"
CONTAINER = "only the threads of a container are visible"


@pytest.mark.parametrize(
    ("stats", "wanted", "shown"),
    [
        (
            [KTHREADD, thread("a", 1, 98), thread("b", 2, 5), thread("c")],
            (PASS, "2 threads of programs, of priority 98 at most"),
            [(stat_of(3), "a: FIFO 98"), (stat_of(4), "b: RR 5")],
        ),
        (
            [KTHREADD, thread("a", 6, 0)],
            (PASS, "1 thread of programs, of priority 0 at most"),
            [(stat_of(3), "a: DEADLINE")],
        ),
        (
            [KTHREADD, thread("a (b) c", 1, 99), thread("d", 2, 99)],
            (FAIL, "2 threads of priority 99: a (b) c"),
            [(stat_of(3), "a (b) c: FIFO 99"), (stat_of(4), "d: RR 99")],
        ),
        (
            [KTHREADD, thread("migration", 1, 99, KERNEL), thread("a", 0, 99)],
            (PASS, "no program has a real-time thread now"),
            [(STATS, "3 read")],
        ),
        ([thread("a", 1, 98)], (UNKNOWN, CONTAINER), []),
        ([], (UNKNOWN, "the threads are not visible"), []),
        (["9 (x) S 1 2"], (UNKNOWN, "the threads are not visible"), []),
    ],
)
def test_no_programs_thread_has_the_highest_priority(
    stats: list[str], wanted: Wanted, shown: Shown
) -> None:
    case = Case(threads(*stats))

    assert answer("real_time_threads", case) == (*wanted, shown)


def irq(name: str, priority: int, policy: int = 1) -> str:
    return thread(name, policy, priority, KERNEL)


@pytest.mark.parametrize(
    ("stats", "wanted", "shown"),
    [
        (
            [irq("irq/24-eth0", 50), thread("a", 1, 51), thread("b", 2, 80)],
            (PASS, "1 are below priority 51"),
            [(stat_of(3), "a: FIFO 51")],
        ),
        (
            [irq("irq/24-eth0", 50), irq("irq/9-acpi", 49), thread("a", 2, 50)],
            (FAIL, "1 of 2 are not below a (RR 50)"),
            [(stat_of(4), "a: RR 50"), (stat_of(2), "irq/24-eth0: FIFO 50")],
        ),
        (
            [irq("irq/24-eth0", 99, 0), thread("a", 1, 5)],
            (PASS, "1 are below priority 5"),
            [(stat_of(3), "a: FIFO 5")],
        ),
        (
            [irq("irq/24-eth0", 50), thread("a", 6, 0)],
            (NONE, "no program has a real-time thread with a priority now"),
            [],
        ),
        (
            [irq("irqx", 50), irq("irq/x", 50), thread("a", 1, 5)],
            (NONE, "interrupts have no threads on this kernel"),
            [],
        ),
        ([thread("irq/24-eth0", 1, 50)], (UNKNOWN, CONTAINER), []),
    ],
)
def test_interrupt_threads_run_below_those_of_programs(
    stats: list[str], wanted: Wanted, shown: Shown
) -> None:
    assert answer("interrupt_threads", Case(threads(*stats))) == (*wanted, shown)


def test_of_many_threads_sixteen_are_shown() -> None:
    many = [thread("a", 1, 99)] * 20

    assert len(answer("real_time_threads", Case(threads(KTHREADD, *many)))[2]) == 16
    assert answer("real_time_threads", Case(also={STATS: REFUSED})) == (
        *(UNKNOWN, "the threads are not visible"),
        [(STATS, NO)],
    )
