"""
Checks of a unit of systemd: does what it asks for fit together, and fit the machine?

A value that only systemd can expand (`%i`) is unknown; one that it would ignore is
answered by one check, `unit_values`, and makes the others unknown.
"""

from collections.abc import Callable, Iterator
from functools import wraps

from rtscope.machine.audit.answers import (
    Answer,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.context import AuditContext, CheckFunction, online, set_apart
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.audit.threadchecks import has_rt_groups
from rtscope.machine.audit.unit import (
    IPC_LOCK,
    SYS_NICE,
    Assignment,
    OddValueError,
    Unit,
    UnitThread,
    asks_for_realtime,
    boolean,
    contradicts_itself,
    cpus_of,
    has_capability,
    number,
    policy_of,
    rtprio_allowed,
    runs_as_root,
    soft_limit,
)
from rtscope.machine.cpulist import format_cpulist

NOT_REAL_TIME = "not a real-time unit"

OfUnit = Callable[[CheckKind, AuditContext, Unit], Answer]


def _of_unit(check: OfUnit) -> CheckFunction:
    @wraps(check)
    def checked(kind: CheckKind, context: AuditContext) -> Answer:
        if context.unit is None:
            return not_applicable("no unit was named")
        try:
            return check(kind, context, context.unit)
        except OddValueError as odd:
            return unknown(str(odd), _of_odd(odd))

    return checked


def _of_realtime_unit(check: OfUnit) -> CheckFunction:
    @wraps(check)
    def checked(kind: CheckKind, context: AuditContext, unit: Unit) -> Answer:
        if not asks_for_realtime(unit):
            return not_applicable(NOT_REAL_TIME)
        return check(kind, context, unit)

    return _of_unit(checked)


def _seen(*assignments: Assignment | None) -> tuple[Sighting, ...]:
    return tuple(Sighting(a.where, f"{a.key}={a.value}") for a in assignments if a)


@_of_unit
def unit_values(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether systemd accepts every line on scheduling."""
    odd = list(_odd_values(unit))
    wrong = [_of_odd(one) for one in odd if not one.expands]
    wrong += [Sighting(a.where, f"no assignment: {a.value[:80]}") for a in unit.ignored]
    if wrong:
        return failed(f"{wrong[0].path}: {wrong[0].value}", *wrong)
    if odd:
        return unknown("values that only systemd can expand", *map(_of_odd, odd))
    read = f"{len(unit.assignments)} settings in {len(unit.files)} files"
    return passed(read, *(Sighting(file, "read") for file in unit.files))


def _of_odd(odd: OddValueError) -> Sighting:
    return Sighting(odd.assignment.where, str(odd))


def _odd_values(unit: Unit) -> Iterator[OddValueError]:
    readers: list[Callable[[], object]] = [
        lambda: policy_of(unit),
        lambda: boolean(unit.last("RestrictRealtime")),
        lambda: boolean(unit.last("CPUSchedulingResetOnFork")),
        lambda: runs_as_root(unit),
        lambda: cpus_of(unit, "CPUAffinity"),
        lambda: cpus_of(unit, "AllowedCPUs"),
        *(
            lambda key=key: soft_limit(unit.last(key))
            for key in ("LimitRTPRIO", "LimitMEMLOCK")
        ),
    ]
    for read in readers:
        try:
            read()
        except OddValueError as odd:
            yield odd


@_of_unit
def unit_priority(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether policy and priority are both there, or neither."""
    policy = policy_of(unit)
    evidence = _seen(policy.named, policy.priority_named)
    if policy.real_time and policy.priority_named is None:
        return failed(f"{policy.name} without a priority: it gets 1", *evidence)
    if policy.real_time and number(policy.priority_named or _NONE) == 0:
        return failed(f"{policy.name} with priority 0, which is invalid", *evidence)
    if policy.priority_named and not policy.real_time:
        return failed(f"a priority, but the policy is {policy.name}", *evidence)
    if not policy.real_time:
        return not_applicable("the unit names no real-time policy", *evidence)
    return passed(f"{policy.name} {policy.priority}", *evidence)


_NONE = Assignment("", "CPUSchedulingPriority", "0", "")


@_of_unit
def unit_top_priority(kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether the priority leaves the `highest` to the kernel."""
    policy = policy_of(unit)
    if not policy.real_time:
        return not_applicable("the unit names no real-time policy")
    evidence = _seen(policy.priority_named)
    bad = policy.priority > int(kind.args["highest"])
    return (failed if bad else passed)(f"priority {policy.priority}", *evidence)


@_of_realtime_unit
def unit_restricts_realtime(
    _kind: CheckKind, _context: AuditContext, unit: Unit
) -> Answer:
    """Check whether a real-time unit forbids real-time policies to itself."""
    restricts = unit.last("RestrictRealtime")
    if boolean(restricts):
        says = "a real-time unit that forbids its threads real-time policies"
        return failed(says, *_seen(restricts, unit.last("CPUSchedulingPolicy")))
    return passed("not forbidden", *_files(unit))


@_of_realtime_unit
def unit_rtprio(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether its threads may ask for the priority that it starts with."""
    wanted = policy_of(unit).priority or 1
    allowed = rtprio_allowed(unit)
    evidence = (
        *_seen(unit.last("LimitRTPRIO"), unit.last("User")),
        *_seen(unit.last("AmbientCapabilities"), unit.last("CapabilityBoundingSet")),
    )
    if allowed >= wanted:
        return passed(f"up to {allowed}", *(evidence or _files(unit)))
    who = "" if runs_as_root(unit) else ", not root"
    says = f"its threads may request priority {allowed} at most; it uses {wanted}"
    return failed(f"{says}{who}", *(evidence or _files(unit)))


@_of_unit
def unit_capabilities(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether a capability is given and taken away at once."""
    both = [n for n in (SYS_NICE, IPC_LOCK) if contradicts_itself(unit, n)]
    evidence = _seen(*unit.all("AmbientCapabilities"))
    evidence += _seen(*unit.all("CapabilityBoundingSet"))
    if both:
        return failed(f"{', '.join(both)}: given and taken away", *evidence)
    if not evidence:
        return not_applicable("the unit sets no capabilities")
    return passed("the bounding set has all of them", *evidence)


@_of_realtime_unit
def unit_memlock(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether it may lock all of its memory."""
    if has_capability(unit, IPC_LOCK):
        return passed(f"{IPC_LOCK} overrides every limit", *_files(unit))
    named = unit.last("LimitMEMLOCK")
    limit = soft_limit(named)
    if limit == -1:
        return passed("no limit", *_seen(named))
    if limit is None:
        says = f"no LimitMEMLOCK=, no {IPC_LOCK}: the default of 8 MiB or less applies"
        return failed(says, *_files(unit))
    return failed(f"{limit} bytes", *_seen(named))


@_of_realtime_unit
def unit_rttime(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether a thread that runs for long is killed."""
    named = unit.last("LimitRTTIME")
    if named is None or named.value.partition(":")[0] == "infinity":
        return passed("no limit", *(_seen(named) or _files(unit)))
    if "%" in named.value:
        raise OddValueError(named, "only systemd can expand it")
    return failed(f"LimitRTTIME={named.value}", *_seen(named))


@_of_realtime_unit
def unit_nice(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether a nice value is given where it means nothing."""
    policy, nice = policy_of(unit), unit.last("Nice")
    if nice is None or not policy.real_time:
        return not_applicable("no nice value with a real-time policy")
    says = f"{policy.name} ignores nice values"
    return failed(says, *_seen(nice, policy.named))


@_of_realtime_unit
def unit_reset_on_fork(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether the threads that it makes inherit its policy."""
    named = unit.last("CPUSchedulingResetOnFork")
    if boolean(named):
        says = "its new threads and processes start as ordinary ones"
        return failed(says, *_seen(named))
    return passed(
        "its new threads and processes inherit its policy",
        *(_seen(named) or _files(unit)),
    )


@_of_unit
def unit_affinity(_kind: CheckKind, context: AuditContext, unit: Unit) -> Answer:
    """Check its CPUs against those that there are and those that are set apart."""
    wanted = cpus_of(unit, "CPUAffinity")
    evidence = _seen(*unit.all("CPUAffinity"))
    there, apart = online(context), set_apart(context)
    # The first thread alone has this: one that is ordinary belongs on no such CPU,
    # and the real-time threads that it makes choose theirs.
    real_time = policy_of(unit).real_time
    if wanted is None and (apart is None or not real_time):
        if apart is not None and asks_for_realtime(unit):
            return not_applicable("its first thread is no real-time thread")
        return not_applicable("no CPUAffinity=, and no CPU is set apart")
    if wanted is None:
        says = f"no CPUAffinity=: it does not run on CPU {format_cpulist(apart or ())}"
        return failed(says, *_files(unit))
    if there is not None and wanted - there:
        return failed(f"CPU {format_cpulist(wanted - there)} is not online", *evidence)
    if there is None:
        return unknown("unknown which CPUs are online", *evidence)
    if apart is not None and real_time and wanted - apart:
        says = f"CPU {format_cpulist(wanted - apart)} is not set apart"
        return failed(says, *evidence)
    return passed(f"CPU {format_cpulist(wanted)}", *evidence)


@_of_unit
def unit_allowed_cpus(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether its affinity lies within what its control group allows."""
    wanted, allowed = cpus_of(unit, "CPUAffinity"), cpus_of(unit, "AllowedCPUs")
    if wanted is None or allowed is None:
        return not_applicable(
            "the unit does not set both CPUAffinity= and AllowedCPUs="
        )
    evidence = _seen(*unit.all("CPUAffinity"), *unit.all("AllowedCPUs"))
    if wanted - allowed:
        says = f"CPU {format_cpulist(wanted - allowed)} is not among AllowedCPUs="
        return failed(says, *evidence)
    return passed(f"CPU {format_cpulist(wanted)}", *evidence)


_CPU_CONTROLLER = ("CPUWeight", "StartupCPUWeight", "CPUQuota", "CPUShares")


@_of_realtime_unit
def unit_cpu_controller(_kind: CheckKind, context: AuditContext, unit: Unit) -> Answer:
    """Check whether its control group can have real-time threads on this kernel."""
    used = [a for key in _CPU_CONTROLLER if (a := unit.last(key))]
    if not used:
        return not_applicable("the unit does not use the CPU controller")
    if context.config is None:
        return unknown(
            f"no configuration: {context.kernel.config_source}", *_seen(*used)
        )
    if has_rt_groups(context):
        return failed("this kernel has RT_GROUP_SCHED", *_seen(*used))
    return passed("this kernel has no RT_GROUP_SCHED, or it is off", *_seen(*used))


@_of_unit
def unit_quota(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether a share of CPU time is given where it means nothing."""
    policy = policy_of(unit)
    used = [a for key in _CPU_CONTROLLER if (a := unit.last(key))]
    if not policy.real_time or not used:
        return not_applicable("no share of CPU time with a real-time policy")
    says = f"{used[0].key}= does not limit {policy.name} threads"
    return failed(says, *_seen(*used, policy.named))


@_of_unit
def unit_threads(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check its running threads against its settings."""
    if unit.threads is None:
        return not_applicable(unit.why_no_threads)
    if not unit.threads:
        return unknown(f"no thread is visible: systemctl start {unit.name}")
    policy, cpus = policy_of(unit), cpus_of(unit, "CPUAffinity")
    wrong = [
        _sighting(thread) for thread in unit.threads if cpus and not thread.cpus <= cpus
    ]
    if policy.real_time and not any(
        (t.policy, t.priority) == (policy.name, policy.priority) for t in unit.threads
    ):
        says = f"no thread has {policy.name} {policy.priority}"
        return failed(says, *map(_sighting, unit.threads[:8]))
    if wrong:
        says = f"{len(wrong)} of {len(unit.threads)} threads may run on other CPUs"
        return failed(says, *wrong[:8])
    return passed(f"{len(unit.threads)} threads", *map(_sighting, unit.threads[:8]))


def _sighting(thread: UnitThread) -> Sighting:
    what = f"{thread.name}: {thread.policy} {thread.priority}, CPUs "
    return Sighting(f"thread {thread.tid}", what + (format_cpulist(thread.cpus) or "?"))


def _files(unit: Unit) -> tuple[Sighting, ...]:
    return tuple(Sighting(file, "does not set it") for file in unit.files[:1])
