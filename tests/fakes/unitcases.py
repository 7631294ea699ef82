"""For every check of a unit of systemd: where it passes, fails, and cannot be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fakes.audited import in_words
from fakes.trees import CPU, Files, reader_of
from rtscope.machine.audit.examine import catalogue, examine, read_context
from rtscope.machine.audit.model import Check
from rtscope.machine.audit.unit import Unit, UnitThread, merge

NAME = "loop.service"
HEAD = "# Automatically generated file; DO NOT EDIT.\n"
RT_GROUPS = f"{HEAD}CONFIG_RT_GROUP_SCHED=y\n"
NO_RT_GROUPS = f"{HEAD}# CONFIG_RT_GROUP_SCHED is not set\nCONFIG_HZ=250\n"
FIFO = "CPUSchedulingPolicy=fifo\nCPUSchedulingPriority=80\n"
GIVEN_BY_PAM: Files = {
    "/etc/security/limits.conf": "@audio - rtprio 95\n",
    "/etc/pam.d/systemd-user": "session required pam_limits.so\n",
}
ROBOT = f"User=robot\n{FIFO}"


def unit(service: str) -> Unit:
    """Return a unit with these settings."""
    return merge(NAME, {NAME: f"[Service]\nExecStart=/bin/true\n{service}"})


@dataclass(frozen=True, slots=True)
class Case:
    """What a unit says, on which machine."""

    service: str
    config: str = NO_RT_GROUPS
    cpus: tuple[int, ...] | None = (1,)
    threads: tuple[UnitThread, ...] | None = None
    no_config: bool = False
    no_online: bool = False
    of_user: bool = False
    files: Files = field(default_factory=dict)


def judged(name: str, case: Case) -> Check:
    """Return what one check says of a unit."""
    kinds = [catalogue()[name]]
    files: Files = {
        "/proc/sys/kernel/osrelease": "6.12.1",
        **case.files,
        **({} if case.no_config else {"/boot/config-6.12.1": case.config}),
        **({} if case.no_online else {f"{CPU}/online": "0-3"}),
    }
    context = read_context(reader_of(files), kinds, cpus=case.cpus)
    given_unit = replace(unit(case.service), threads=case.threads, of_user=case.of_user)
    return in_words(examine(replace(context, unit=given_unit), kinds)[0])


def thread(policy: str, priority: int, *cpus: int) -> UnitThread:
    """Return a thread of a unit that runs."""
    return UnitThread(7, "loop", policy, priority, frozenset(cpus))


# Each check: a unit where it passes, one where it fails, one where it cannot be told.
CASES: Mapping[str, tuple[Case, Case, Case]] = {
    "unit_values": (
        Case(FIFO),
        Case("CPUSchedulingPolicy=deadline\n"),
        Case("User=%i\n"),
    ),
    "unit_priority": (
        Case(FIFO),
        Case("CPUSchedulingPolicy=fifo\n"),
        Case("CPUSchedulingPolicy=%i\n"),
    ),
    "unit_top_priority": (
        Case(FIFO),
        Case("CPUSchedulingPolicy=rr\nCPUSchedulingPriority=99\n"),
        Case("CPUSchedulingPolicy=%i\n"),
    ),
    "unit_restricts_realtime": (
        Case(FIFO + "RestrictRealtime=off\n"),
        Case(FIFO + "RestrictRealtime=yes\n"),
        Case("RestrictRealtime=%i\n"),
    ),
    "unit_rtprio": (
        Case(ROBOT + "LimitRTPRIO=80\n"),
        Case(ROBOT + "LimitRTPRIO=79\n"),
        Case(FIFO + "User=%i\n"),
    ),
    "unit_capabilities": (
        Case("AmbientCapabilities=CAP_SYS_NICE\nCapabilityBoundingSet=CAP_SYS_NICE\n"),
        Case("AmbientCapabilities=CAP_SYS_NICE\nCapabilityBoundingSet=~CAP_SYS_NICE\n"),
        Case(""),
    ),
    "unit_memlock": (
        Case(ROBOT + "LimitMEMLOCK=infinity\n"),
        Case(ROBOT + "LimitMEMLOCK=64M\n"),
        Case(FIFO + "User=%i\n"),
    ),
    "unit_rttime": (
        Case(FIFO),
        Case(FIFO + "LimitRTTIME=200ms\n"),
        Case("LimitRTTIME=%i\n"),
    ),
    "unit_nice": (Case(FIFO), Case(FIFO + "Nice=-5\n"), Case("CPUSchedulingPolicy=%i")),
    "unit_reset_on_fork": (
        Case(FIFO),
        Case(FIFO + "CPUSchedulingResetOnFork=1\n"),
        Case("CPUSchedulingResetOnFork=%i\n"),
    ),
    "unit_affinity": (
        Case(FIFO + "CPUAffinity=1\n"),
        Case(FIFO + "CPUAffinity=0-1\n"),
        Case(FIFO + "CPUAffinity=1\n", no_online=True),
    ),
    "unit_allowed_cpus": (
        Case("CPUAffinity=1\nAllowedCPUs=1 2\n"),
        Case("CPUAffinity=1-3\nAllowedCPUs=1 2\n"),
        Case("CPUAffinity=numa\nAllowedCPUs=1 2\n"),
    ),
    "unit_cpu_controller": (
        Case(FIFO + "CPUWeight=50\n"),
        Case(FIFO + "CPUQuota=50%\n", config=RT_GROUPS),
        Case(FIFO + "CPUQuota=50%\n", no_config=True),
    ),
    "unit_quota": (
        Case("CPUQuota=50%\n"),
        Case(FIFO + "CPUQuota=50%\n"),
        Case("CPUSchedulingPolicy=%i\n"),
    ),
    "unit_user_manager": (
        Case("CPUWeight=50\n", of_user=True),
        Case("User=robot\n", of_user=True),
        Case("LimitRTPRIO=5\n", of_user=True, files=GIVEN_BY_PAM),
    ),
    "unit_threads": (
        Case(FIFO + "CPUAffinity=1\n", threads=(thread("fifo", 80, 1),)),
        Case(FIFO, threads=(thread("fifo", 50, 1), thread("other", 0, 1))),
        Case(FIFO, threads=()),
    ),
}
