"""
Checks of a unit of systemd: does what it asks for fit together, and fit the machine?

A value that only systemd can expand (`%i`) is unknown. A line that systemd refuses is
answered by one check, `unit_values`; the others judge what systemd runs without it.
"""

from collections.abc import Callable
from functools import wraps

from rtscope.host.errors import first_of
from rtscope.machine.audit.context import (
    Answer,
    AuditContext,
    CheckFunction,
    failed,
    not_applicable,
    noted,
    online,
    passed,
    set_apart,
    unknown,
)
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.audit.threadchecks import has_rt_groups
from rtscope.machine.audit.unit import Assignment, Mistake, Unit, UnitThread
from rtscope.machine.audit.unitmeaning import (
    IPC_LOCK,
    SYS_NICE,
    OddValueError,
    asks_for_realtime,
    boolean,
    contradicts_itself,
    cpus_of,
    has_capability,
    policy_of,
    rtprio_allowed,
    runs_as_root,
    soft_limit,
)
from rtscope.machine.audit.unitvalues import INFINITY
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
    """Check whether systemd takes every line, and say what it does with the others."""
    if unit.mistakes:
        told = [f"{one.line.where}: {one}" for one in unit.mistakes]
        words = first_of(MAX_TOLD, told, between="; ", last="; and ")
        return failed(words, *map(_of_mistake, unit.mistakes))
    odd = [line for line in unit.own() if line.expands and line.key != "ExecStart"]
    if odd:
        return unknown("values that only systemd can expand", *_seen(*odd))
    read = f"{len(unit.assignments)} settings in {len(unit.files)} files"
    if unit.unknown_keys:
        names = dict.fromkeys(line.key for line in unit.unknown_keys)
        read += f"; not known to rtscope: {', '.join(names)}"
    evidence = (*_seen(*unit.unknown_keys), *(Sighting(f, "read") for f in unit.files))
    return passed(read, *evidence)


MAX_TOLD = 8


def _of_mistake(one: Mistake) -> Sighting:
    return Sighting(one.line.where, str(one))


def _of_odd(odd: OddValueError) -> Sighting:
    return Sighting(odd.assignment.where, str(odd))


@_of_unit
def unit_priority(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether the kernel takes policy and priority together."""
    policy = policy_of(unit)
    evidence = _seen(policy.named, policy.priority_named)
    if policy.real_time and not policy.starts:
        says = f"{policy.name} with priority 0, which is invalid: {NOT_STARTED}"
        return failed(says, *evidence)
    if not policy.starts and policy.requested:
        says = f"a priority, but the policy is {policy.name}: {NOT_STARTED}"
        return failed(says, *evidence)
    if not policy.starts:
        says = f"{policy.name}, which these settings cannot give: {NOT_STARTED}"
        return failed(says, *evidence)
    if policy.real_time and policy.priority_named is None:
        return failed(f"{policy.name} without a priority: it gets 1", *evidence)
    if not policy.real_time:
        return not_applicable("the unit names no real-time policy", *evidence)
    return passed(f"{policy.name} {policy.priority}", *evidence)


NOT_STARTED = "the kernel refuses that, and the unit does not start (214/SETSCHEDULER)"


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
    if limit == INFINITY:
        return passed("no limit", *_seen(named))
    if limit is None:
        says = f"no LimitMEMLOCK=, no {IPC_LOCK}: the default of 8 MiB or less applies"
        return failed(says, *_files(unit))
    return failed(f"{limit} bytes", *_seen(named))


@_of_realtime_unit
def unit_rttime(_kind: CheckKind, _context: AuditContext, unit: Unit) -> Answer:
    """Check whether a thread that runs for long is killed."""
    named = unit.last("LimitRTTIME")
    if named is None or soft_limit(named) == INFINITY:
        return passed("no limit", *(_seen(named) or _files(unit)))
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


@_of_unit
def unit_cpu_controller(_kind: CheckKind, context: AuditContext, unit: Unit) -> Answer:
    """
    Check whether its control group can have real-time threads on this kernel.

    A unit that names no policy may run a program that sets one itself.
    """
    used = [a for key in _CPU_CONTROLLER if (a := unit.last(key))]
    real_time = asks_for_realtime(unit)
    if context.config is None:
        if not used:
            return not_applicable("the unit does not use the CPU controller")
        why = context.kernel.config_source
        return unknown(f"no configuration: {why}", *_seen(*used))
    if not has_rt_groups(context):
        return passed("this kernel has no RT_GROUP_SCHED, or it is off", *_seen(*used))
    if used and real_time:
        return failed("this kernel has RT_GROUP_SCHED", *_seen(*used))
    group = f"uses the CPU controller ({used[0].key}=)" if used else "has no budget"
    says = (
        f"this kernel has RT_GROUP_SCHED: if the unit's control group {group}, a "
        "program that sets a real-time policy itself gets EPERM, even as root"
    )
    return noted(says, *(_seen(*used) or _files(unit)))


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
