"""What each check of a unit answers, and which lines of the unit it shows."""

import pytest

from fakes.unitcases import CASES, FIFO, NAME, ROBOT, RT_GROUPS, Case, judged
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.audit.unit import UnitThread
from rtscope.machine.audit.unitchecks import NOT_STARTED

FAIL, PASS, NONE = CheckOutcome.FAIL, CheckOutcome.PASS, CheckOutcome.NOT_APPLICABLE
RR = "CPUSchedulingPolicy=rr\nCPUSchedulingPriority="
NOT_NAMED = "the unit names no real-time policy"
NOT_REAL_TIME = "not a real-time unit"
FORBIDS = "a real-time unit that forbids its threads real-time policies"
INHERITS = "its new threads and processes inherit its policy"
MOST = "its threads may request priority {} at most; it uses {}"
NOT_BOTH = "the unit does not set both CPUAffinity= and AllowedCPUs="
DEFAULT = "no LimitMEMLOCK=, no CAP_IPC_LOCK: the default of 8 MiB or less applies"
IGNORED = "systemd ignores the line"
GROUPS = "this kernel has RT_GROUP_SCHED"
NOTED = (
    f"{GROUPS}: if the unit's control group {{}}, a program that sets a real-time "
    "policy itself gets EPERM, even as root"
)

# A check, the settings of a unit from line 3 on, the answer, and the lines it shows;
# no line is "does not set it".
Row = tuple[str, str, CheckOutcome, str, tuple[int, ...]]
NO_LINE = (0,)
ANSWERS: tuple[Row, ...] = (
    ("unit_priority", "", NONE, NOT_NAMED, ()),
    ("unit_priority", "CPUSchedulingPolicy=batch", NONE, NOT_NAMED, (3,)),
    (
        "unit_priority",
        f"{RR}0",
        FAIL,
        f"rr with priority 0, which is invalid: {NOT_STARTED}",
        (3, 4),
    ),
    ("unit_priority", f"{RR}1", PASS, "rr 1", (3, 4)),
    (
        *("unit_priority", "CPUSchedulingPriority=3"),
        *(FAIL, f"a priority, but the policy is other: {NOT_STARTED}", (3,)),
    ),
    ("unit_top_priority", "", NONE, NOT_NAMED, ()),
    ("unit_top_priority", f"{RR}98", PASS, "priority 98", (4,)),
    ("unit_top_priority", f"{RR}99", FAIL, "priority 99", (4,)),
    ("unit_restricts_realtime", "RestrictRealtime=yes", NONE, NOT_REAL_TIME, ()),
    (
        *("unit_restricts_realtime", "LimitRTPRIO=3\nRestrictRealtime=yes"),
        *(FAIL, FORBIDS, (4,)),
    ),
    (
        *("unit_restricts_realtime", f"{FIFO}RestrictRealtime=yes"),
        *(FAIL, FORBIDS, (5, 3)),
    ),
    ("unit_restricts_realtime", FIFO, PASS, "not forbidden", NO_LINE),
    ("unit_rtprio", "LimitRTPRIO=5", PASS, "up to 99", (3,)),
    ("unit_rtprio", "LimitRTPRIO=1\nUser=robot", PASS, "up to 1", (3, 4)),
    ("unit_rtprio", FIFO, PASS, "up to 99", NO_LINE),
    (
        *("unit_rtprio", "CPUSchedulingPriority=5\nUser=robot"),
        *(FAIL, f"{MOST.format(0, 1)}, not root", (4,)),
    ),
    (
        *("unit_rtprio", f"{FIFO}CapabilityBoundingSet=CAP_KILL"),
        *(FAIL, MOST.format(0, 80), (5,)),
    ),
    (
        *("unit_rtprio", f"{ROBOT}AmbientCapabilities=CAP_SYS_NICE"),
        *(PASS, "up to 99", (3, 6)),
    ),
    (
        "unit_capabilities",
        "AmbientCapabilities=CAP_SYS_NICE CAP_IPC_LOCK\nCapabilityBoundingSet=CAP_KILL",
        *(FAIL, "CAP_SYS_NICE, CAP_IPC_LOCK: given and taken away", (3, 4)),
    ),
    (
        "unit_capabilities",
        "AmbientCapabilities=CAP_IPC_LOCK\nCapabilityBoundingSet=~CAP_IPC_LOCK",
        *(FAIL, "CAP_IPC_LOCK: given and taken away", (3, 4)),
    ),
    (
        *("unit_capabilities", "CapabilityBoundingSet=CAP_KILL"),
        *(PASS, "the bounding set has all of them", (3,)),
    ),
    ("unit_memlock", FIFO, PASS, "CAP_IPC_LOCK overrides every limit", NO_LINE),
    ("unit_memlock", ROBOT, FAIL, DEFAULT, NO_LINE),
    ("unit_memlock", f"{ROBOT}LimitMEMLOCK=0", FAIL, "0 bytes", (6,)),
    ("unit_memlock", f"{ROBOT}LimitMEMLOCK=infinity", PASS, "no limit", (6,)),
    ("unit_memlock", f"{ROBOT}LimitMEMLOCK=infinity:1", FAIL, DEFAULT, NO_LINE),
    ("unit_memlock", "LimitMEMLOCK=0", NONE, NOT_REAL_TIME, ()),
    ("unit_rttime", FIFO, PASS, "no limit", NO_LINE),
    ("unit_rttime", f"{FIFO}LimitRTTIME=infinity", PASS, "no limit", (5,)),
    (
        *("unit_rttime", f"{FIFO}LimitRTTIME=5:infinity"),
        *(FAIL, "LimitRTTIME=5:infinity", (5,)),
    ),
    ("unit_nice", FIFO, NONE, "no nice value with a real-time policy", ()),
    (
        *("unit_nice", "Nice=5\nLimitRTPRIO=5"),
        *(NONE, "no nice value with a real-time policy", ()),
    ),
    ("unit_nice", f"Nice=5\n{FIFO}", FAIL, "fifo ignores nice values", (3, 4)),
    ("unit_reset_on_fork", FIFO, PASS, INHERITS, NO_LINE),
    ("unit_reset_on_fork", f"{FIFO}CPUSchedulingResetOnFork=no", PASS, INHERITS, (5,)),
    ("unit_affinity", "", NONE, "no CPUAffinity=, and no CPU is set apart", ()),
    ("unit_affinity", FIFO, FAIL, "no CPUAffinity=: it does not run on CPU 1", (0,)),
    ("unit_affinity", f"{FIFO}CPUAffinity=4 5", FAIL, "CPU 4-5 is not online", (5,)),
    (
        "unit_affinity",
        f"{FIFO}CPUAffinity=0-3",
        FAIL,
        "CPU 0,2-3 is not set apart",
        (5,),
    ),
    ("unit_affinity", f"{FIFO}CPUAffinity=1", PASS, "CPU 1", (5,)),
    ("unit_affinity", "CPUAffinity=0 1", PASS, "CPU 0-1", (3,)),
    ("unit_allowed_cpus", "CPUAffinity=0 1", NONE, NOT_BOTH, ()),
    ("unit_allowed_cpus", "AllowedCPUs=0 1", NONE, NOT_BOTH, ()),
    (
        *("unit_allowed_cpus", "CPUAffinity=0 1 5\nAllowedCPUs=0"),
        *(FAIL, "CPU 1,5 is not among AllowedCPUs=", (3, 4)),
    ),
    (
        *("unit_cpu_controller", FIFO),
        *(FAIL, NOTED.format("has no budget"), NO_LINE),
    ),
    (
        *("unit_cpu_controller", "CPUWeight=5"),
        *(FAIL, NOTED.format("uses the CPU controller (CPUWeight=)"), (3,)),
    ),
    ("unit_cpu_controller", f"{FIFO}CPUWeight=5", FAIL, GROUPS, (5,)),
    ("unit_cpu_controller", f"{FIFO}StartupCPUWeight=5", FAIL, GROUPS, (5,)),
    ("unit_cpu_controller", f"{FIFO}CPUQuota=5%\nCPUShares=5", FAIL, GROUPS, (5, 6)),
    ("unit_quota", FIFO, NONE, "no share of CPU time with a real-time policy", ()),
    (
        "unit_quota",
        "CPUWeight=5",
        NONE,
        "no share of CPU time with a real-time policy",
        (),
    ),
    (
        *("unit_quota", f"{FIFO}CPUWeight=5"),
        *(FAIL, "CPUWeight= does not limit fifo threads", (5, 3)),
    ),
    (
        *("unit_quota", f"{RR}1\nStartupCPUWeight=5\nCPUShares=5"),
        *(FAIL, "StartupCPUWeight= does not limit rr threads", (5, 6, 3)),
    ),
    ("unit_threads", FIFO, NONE, "not checked whether it runs", ()),
)


@pytest.mark.parametrize(("check", "service", "outcome", "message", "shown"), ANSWERS)
def test_a_check_answers_and_shows_the_lines_it_judged_by(
    check: str,
    service: str,
    outcome: CheckOutcome,
    message: str,
    shown: tuple[int, ...],
) -> None:
    found = judged(check, Case(f"{service}\n", config=RT_GROUPS))
    lines = service.splitlines()
    wanted = [
        (f"{NAME}:{n}", lines[n - 3]) if n else (NAME, "does not set it") for n in shown
    ]

    assert (found.outcome, found.message) == (outcome, message)
    assert [(seen.path, seen.value) for seen in found.evidence] == wanted


@pytest.mark.parametrize(
    ("cpus", "service", "outcome", "message"),
    [
        (None, "", NONE, "no CPUAffinity=, and no CPU is set apart"),
        (None, "CPUAffinity=0", PASS, "CPU 0"),
        ((2, 3), "", FAIL, "no CPUAffinity=: it does not run on CPU 2-3"),
        ((2, 3), "CPUAffinity=3", PASS, "CPU 3"),
        ((2, 3), "CPUAffinity=1-3", FAIL, "CPU 1 is not set apart"),
    ],
)
def test_an_affinity_has_to_lie_within_the_cpus_set_apart(
    cpus: tuple[int, ...] | None, service: str, outcome: CheckOutcome, message: str
) -> None:
    found = judged("unit_affinity", Case(f"{FIFO}{service}\n", cpus=cpus))

    assert (found.outcome, found.message) == (outcome, message)


@pytest.mark.parametrize(
    ("service", "outcome", "message"),
    [
        ("", NONE, "its first thread is no real-time thread"),
        ("CPUAffinity=0-1", PASS, "CPU 0-1"),
        ("CPUAffinity=5", FAIL, "CPU 5 is not online"),
    ],
)
def test_a_first_thread_that_is_ordinary_needs_no_cpu_set_apart(
    service: str, outcome: CheckOutcome, message: str
) -> None:
    limits = "LimitRTPRIO=80\nLimitMEMLOCK=infinity\n"
    found = judged("unit_affinity", Case(f"{limits}{service}\n", cpus=(2, 3)))

    assert (found.outcome, found.message) == (outcome, message)


def test_every_line_that_systemd_would_ignore_is_shown_and_told() -> None:
    lines = (
        *("CPUSchedulingPolicy=x", "RestrictRealtime=2", "CPUSchedulingResetOnFork=3"),
        *("CPUAffinity=a", "AllowedCPUs=b", "LimitRTPRIO=c", "LimitMEMLOCK=d"),
    )
    found = judged("unit_values", Case("\n".join((*lines, "DynamicUser=e", "odd\n"))))

    assert found.outcome is FAIL
    shown = {seen.path: seen.value.partition(": ")[0] for seen in found.evidence}
    assert shown == {
        **{f"{NAME}:{n}": line for n, line in enumerate(lines, 3)},
        f"{NAME}:10": "DynamicUser=e",
        f"{NAME}:11": "odd",
    }
    for number, line in enumerate(lines, 3):
        assert f"{NAME}:{number}: {line}: " in found.message
    assert found.message.endswith("; and 1 more")


def test_an_invalid_policy_hides_no_priority_and_no_other_check() -> None:
    two = Case("CPUSchedulingPolicy=FIFO\nCPUSchedulingPriority=120\nUser=robot\n")
    values = judged("unit_values", two)

    assert [seen.path for seen in values.evidence] == [f"{NAME}:3", f"{NAME}:4"]
    assert f"120: priorities are 1 to 99; {IGNORED}" in values.message
    assert judged("unit_priority", two).outcome is NONE
    assert judged("unit_rtprio", two).message == NOT_REAL_TIME


def test_a_policy_by_its_number_is_judged_as_by_its_name() -> None:
    lines = "CPUSchedulingPriority=50\nLimitRTPRIO=60\nLimitMEMLOCK=infinity\n"
    by_number = f"User=motor\nCPUSchedulingPolicy=1\n{lines}"

    for name in CASES:
        numbered = judged(name, Case(by_number))
        named = judged(name, Case(by_number.replace("=1\n", "=fifo\n")))
        assert (numbered.outcome, numbered.message) == (named.outcome, named.message)


def test_of_a_line_that_is_no_assignment_80_characters_are_shown() -> None:
    found = judged("unit_values", Case("CPUSchedulingPolicy=fifo\n" + "x" * 81 + "\n"))

    assert found.evidence[-1].value == "x" * 80 + f": no assignment; {IGNORED}"


def test_what_only_systemd_can_expand_hides_nothing_that_is_wrong() -> None:
    both = judged("unit_values", Case("User=%i\nAllowedCPUs=y\n"))
    one = judged("unit_values", Case("User=%i\nAllowedCPUs=1\n"))

    assert both.message == f"{NAME}:4: AllowedCPUs=y: not a CPU list; {IGNORED}"
    assert [seen.path for seen in both.evidence] == [f"{NAME}:4"]
    assert one.outcome is CheckOutcome.UNKNOWN
    assert [seen.path for seen in one.evidence] == [f"{NAME}:3"]


def running(
    tid: int, *cpus: int, policy: str = "other", priority: int = 0
) -> UnitThread:
    return UnitThread(tid, "loop", policy, priority, frozenset(cpus))


def test_threads_that_may_run_elsewhere_are_shown_and_no_others() -> None:
    threads = (
        running(7, 1, policy="fifo", priority=80),
        running(8, 0, 1),
        running(9),
    )
    found = judged("unit_threads", Case(f"{FIFO}CPUAffinity=1\n", threads=threads))

    assert found.outcome is FAIL
    assert found.message == "1 of 3 threads may run on other CPUs"
    assert [(seen.path, seen.value) for seen in found.evidence] == [
        ("thread 8", "loop: other 0, CPUs 0-1")
    ]


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("", "10 threads"),
        ("CPUAffinity=2\n", "10 of 10 threads may run on other CPUs"),
        ("CPUAffinity=1\n", "10 threads"),
        (FIFO, "no thread has fifo 80"),
        (FIFO.replace("80", "5").replace("fifo", "rr"), "no thread has rr 5"),
    ],
)
def test_of_many_threads_eight_are_shown(service: str, message: str) -> None:
    threads = tuple(running(n, 1, policy="rr", priority=80) for n in range(10))
    found = judged("unit_threads", Case(service, threads=threads))

    assert found.message == message
    assert [seen.path for seen in found.evidence] == [f"thread {n}" for n in range(8)]


def test_a_thread_whose_cpus_are_unknown_has_a_question_mark() -> None:
    found = judged("unit_threads", Case("", threads=(running(9),)))

    assert found.outcome is PASS
    assert [seen.value for seen in found.evidence] == ["loop: other 0, CPUs ?"]
