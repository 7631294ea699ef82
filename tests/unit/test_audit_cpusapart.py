"""What the checks answer of CPUs that are set apart: who is kept away from them."""

from dataclasses import replace

import pytest

from fakes.audited import (
    FAIL,
    NONE,
    NOT_APART,
    PASS,
    UNKNOWN,
    Case,
    Wanted,
    status,
)
from fakes.audited import answer_by_path as answer
from fakes.trees import CPU
from rtscope.machine.audit.model import Profile

ISOLATED, PARTITIONS = f"{CPU}/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"

Shown = dict[str, str]


@pytest.mark.parametrize(
    ("files", "cpus", "wanted"),
    [
        ({ISOLATED: "1"}, (1,), (PASS, "CPU 1 is covered")),
        ({ISOLATED: ""}, (1,), (FAIL, "CPU 1 is missing")),
        ({ISOLATED: "1-2"}, (1, 3, 4), (FAIL, "CPU 3-4 is missing")),
        ({ISOLATED: "1", PARTITIONS: "2-3"}, (1, 3), (PASS, "CPU 1,3 is covered")),
        ({PARTITIONS: "2-3"}, (3,), (PASS, "CPU 3 is covered")),
        ({ISOLATED: "x"}, (1,), (UNKNOWN, f"{ISOLATED} is not a CPU list")),
        ({ISOLATED: ""}, None, (NONE, NOT_APART)),
        ({}, (1,), (UNKNOWN, f"no such file: {ISOLATED}, {PARTITIONS}")),
    ],
)
def test_isolation_covers_the_cpus_set_apart_or_one_is_missing(
    files: dict[str, str], cpus: tuple[int, ...] | None, wanted: Wanted
) -> None:
    shown = {p: t or "empty" for p, t in files.items()} if wanted[0] != NONE else {}

    assert answer("isolated_cpus", Case(files, cpus=cpus)) == (*wanted, shown)


def test_a_profile_that_demands_cpus_of_its_own_fails_without_any() -> None:
    polling = Case({ISOLATED: ""}, cpus=None, profile=Profile.POLLING)

    assert answer("isolated_cpus", polling) == (
        *(FAIL, "no CPU is set apart"),
        {ISOLATED: "empty"},
    )
    assert answer("isolated_cpus", replace(polling, files={}))[:2] == (NONE, NOT_APART)


MASK = "/proc/irq/default_smp_affinity"


@pytest.mark.parametrize(
    ("mask", "cpus", "wanted", "told"),
    [
        ("0", (1,), (PASS, "CPUs none"), "0 (CPUs none)"),
        ("d", (1,), (PASS, "CPUs 0,2-3"), "d (CPUs 0,2-3)"),
        ("d", (1, 2), (FAIL, "CPU 2 is in the mask"), "d (CPUs 0,2-3)"),
        (
            *("1,00000000", (32, 33)),
            *((FAIL, "CPU 32 is in the mask"), "1,00000000 (CPUs 32)"),
        ),
        ("x", (1,), (UNKNOWN, f"{MASK} is not a CPU mask"), "x"),
    ],
)
def test_a_mask_must_leave_out_the_cpus_set_apart(
    mask: str, cpus: tuple[int, ...], wanted: Wanted, told: str
) -> None:
    case = Case({MASK: mask}, cpus=cpus)

    assert answer("default_irq_affinity", case) == (*wanted, {MASK: told})
    apart = replace(case, cpus=None)
    assert answer("default_irq_affinity", apart) == (NONE, NOT_APART, {})


@pytest.mark.parametrize(
    ("cmdline", "wanted", "told"),
    [
        ("rcu_nocbs=all", (PASS, "CPU 1-2 is covered"), "rcu_nocbs=all"),
        ("rcu_nocbs=1", (FAIL, "CPU 2 is missing"), "rcu_nocbs=1"),
        ("rcu_nocbs=1 rcu_nocbs=2", (FAIL, "CPU 1 is missing"), "rcu_nocbs=2"),
        ("rcu_nocbs=2 rcu_nocbs=1-2", (PASS, "CPU 1-2 is covered"), "rcu_nocbs=1-2"),
        (
            *("nohz_full=1 rcu_nocbs=2", (PASS, "CPU 1-2 is covered")),
            "rcu_nocbs=2 nohz_full=1",
        ),
        (
            *("rcu_nocbs=domain,managed_irq,1-2", (PASS, "CPU 1-2 is covered")),
            "rcu_nocbs=domain,managed_irq,1-2",
        ),
        ("quiet", (FAIL, "CPU 1-2 is missing"), "no rcu_nocbs, no nohz_full"),
        ("rcu_nocbs=x", (UNKNOWN, "rcu_nocbs=x is not a CPU list"), None),
        (None, (UNKNOWN, "no /proc/cmdline"), None),
    ],
)
def test_of_a_parameter_the_last_counts_and_all_together_cover(
    cmdline: str | None, wanted: Wanted, told: str | None
) -> None:
    files = {} if cmdline is None else {"/proc/cmdline": cmdline}
    case = Case(files, cpus=(1, 2), profile=Profile.POLLING)
    shown = {} if told is None else {"/proc/cmdline": told}

    assert answer("rcu_callbacks", case) == (*wanted, shown)
    apart = replace(case, cpus=None)
    assert answer("rcu_callbacks", apart) == (NONE, NOT_APART, {})


@pytest.mark.parametrize(
    ("online", "isolated", "cpus", "wanted"),
    [
        ("0", "", (0,), (NONE, "one CPU is online")),
        ("0-3", "", None, (NONE, NOT_APART)),
        ("0-3", "2-3", None, (PASS, "CPU 0-1 is left for the rest")),
        ("0-3", "2", (3,), (PASS, "CPU 0-2 is left for the rest")),
        ("0-1", "1", None, (PASS, "CPU 0 is left for the rest")),
        ("0-3", "0-3", None, (FAIL, "every CPU is set apart")),
        ("0-3", "0-1", None, (FAIL, "the boot CPU, 0, is set apart")),
        ("1-3", "1", None, (FAIL, "the boot CPU, 1, is set apart")),
        ("1-3", "", (2,), (PASS, "CPU 1,3 is left for the rest")),
        ("", "2", (3,), (UNKNOWN, "unknown which CPUs are online")),
    ],
)
def test_one_cpu_at_least_is_left_for_the_rest_and_the_boot_cpu_is_among_them(
    online: str, isolated: str, cpus: tuple[int, ...] | None, wanted: Wanted
) -> None:
    files = {f"{CPU}/online": online, ISOLATED: isolated}
    judged_by = wanted[0] in (PASS, FAIL)
    shown = {f"{ISOLATED}, {PARTITIONS}": isolated or "none"} if judged_by else {}

    assert answer("housekeeping", Case(files, cpus=cpus)) == (*wanted, shown)


@pytest.mark.parametrize(
    ("present", "online", "cpus", "wanted"),
    [
        ("0-3", "0-3", (1,), (PASS, "every CPU is online")),
        ("0-3", "0-1", (1,), (PASS, "CPU 2-3 is offline, but not set apart")),
        ("0-3", "0,2-3", (1,), (FAIL, "CPU 1 is offline")),
        ("0-3", "0", (1, 2), (FAIL, "CPU 1-2 is offline")),
        ("", "0", (1,), (UNKNOWN, "unknown which CPUs are online")),
        ("0-3", "", (1,), (UNKNOWN, "unknown which CPUs are online")),
    ],
)
def test_a_cpu_set_apart_must_be_online(
    present: str, online: str, cpus: tuple[int, ...], wanted: Wanted
) -> None:
    files = {f"{CPU}/present": present, f"{CPU}/online": online}
    shown = files if wanted[0] is not UNKNOWN else {}

    assert answer("offline_cpus", Case(files, cpus=cpus)) == (*wanted, shown)


@pytest.mark.parametrize(
    ("processes", "cpus", "wanted", "shown"),
    [
        (
            [status("a", "0-1"), status("b", "1"), status("c", "0")],
            *((1,), (FAIL, "1 of 3 processes may run there")),
            {"/proc/5/status": "a: CPUs 0-1"},
        ),
        (
            [status("a", "1-2"), status("b", "2-3"), status("c", "0-3")],
            *((1, 2), (FAIL, "2 of 3 processes may run there")),
            {"/proc/6/status": "b: CPUs 2-3", "/proc/7/status": "c: CPUs 0-3"},
        ),
        (
            [status("a", "1"), status("k", "0-3", memory=False)],
            *((1,), (PASS, "none of 1 processes")),
            {"/proc/[0-9]*/status": "1 read"},
        ),
        (
            [status("k", "0-3", memory=False)],
            *((1,), (UNKNOWN, "no user-space process is visible"), {}),
        ),
        ([], (1,), (UNKNOWN, "the processes are not visible"), {}),
        ([status("a", "0-1")], None, (NONE, NOT_APART), {}),
    ],
)
def test_a_process_that_may_run_there_and_elsewhere_is_a_stray(
    processes: list[str], cpus: tuple[int, ...] | None, wanted: Wanted, shown: Shown
) -> None:
    files = {f"/proc/{n}/status": text for n, text in enumerate(processes, 5)}

    assert answer("stray_processes", Case(files, cpus=cpus)) == (*wanted, shown)
