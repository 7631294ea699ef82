"""
Checks of threads: what a user's may do, and which real-time threads run now.

The latter are read from the stat file of every thread (proc_pid_stat(5)); a tool that
asks the first thread of each process alone sees none of a real-time program's workers.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rtscope.host.units import is_whole
from rtscope.machine.audit.context import (
    LOG,
    Answer,
    AuditContext,
    absent,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.kernelchecks import value
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.gather import enforces_rt_limit
from rtscope.machine.kernelidentity import CMDLINE, boot_values
from rtscope.machine.tasks.listing import irq_devices, irq_of
from rtscope.machine.tasks.model import Irq

LIMITS = "/proc/self/limits"
STATUS = "/proc/self/status"
OWN_CGROUP = "/proc/self/cgroup"

CAPABILITIES = {"CAP_IPC_LOCK": 14, "CAP_SYS_NICE": 23}
"""include/uapi/linux/capability.h"""

_LIMIT = re.compile(r"^Max (.+?) {2,}(\S+)", re.MULTILINE)
_EFFECTIVE = re.compile(r"^CapEff:\s*([0-9a-fA-F]{1,16})", re.MULTILINE)


def trial(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check how the kernel answered a child that requested SCHED_FIFO."""
    result = context.observed.trial
    if result is None:
        return unknown("not tried: only on a running machine, not on a capture")
    if result.error is None:
        return passed("granted", Sighting(result.asked, "granted"))
    name = errno.errorcode.get(result.error, str(result.error))
    evidence = Sighting(result.asked, f"{name}: {result.reason}")
    return failed(f"{name}: {_who_refused(context)}", evidence, *_limits(context))


def _who_refused(context: AuditContext) -> str:
    """Name the limit that refuses, as far as the files show it."""
    nice = has_capability(context, "CAP_SYS_NICE")
    limit = limit_of(context, "realtime priority")
    if nice is False and limit == "0":
        return "neither CAP_SYS_NICE nor a limit on real-time priorities above 0"
    if nice is False and limit is not None:
        return f"no CAP_SYS_NICE, and RLIMIT_RTPRIO is {limit}"
    if nice and has_rt_groups(context):
        return "the control group has no real-time budget (RT_GROUP_SCHED)"
    if nice:
        return "despite CAP_SYS_NICE: a control group, a seccomp filter or a container"
    return "reason unknown: the capabilities are not readable"


def has_rt_groups(context: AuditContext) -> bool:
    """Whether the kernel gives real-time budgets to control groups."""
    if context.config is None or not context.config.is_on("RT_GROUP_SCHED"):
        return False
    chosen = boot_values(context.words(CMDLINE), "rt_group_sched")
    if chosen:
        return chosen[-1] != "0"
    return not context.config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED")


_THROTTLED = re.compile(r".*sched: RT throttling activated.*")


def rt_throttling(kind: CheckKind, context: AuditContext) -> Answer:
    """Check the limit of real-time threads, where this kernel enforces it."""
    # What the kernel did decides over what its version and configuration say.
    if logged := _THROTTLED.search(context.observed.kernel_log or ""):
        answer = value(kind, context)
        return replace(answer, evidence=(*answer.evidence, Sighting(LOG, logged[0])))
    enforced, why = enforces_rt_limit(context.kernel)
    if enforced is None:
        return unknown(why)
    if not enforced:
        return not_applicable("since Linux 6.12 only RT_GROUP_SCHED throttles")
    return value(kind, context)


def rt_groups(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether control groups need a real-time budget on this kernel."""
    config = context.config
    if config is None:
        return unknown(f"no configuration: {context.kernel.config_source}")
    name = "CONFIG_RT_GROUP_SCHED"
    if name not in config.options and not config.whole:
        return unknown(f"{config.source} does not mention {name}")
    if not config.is_on("RT_GROUP_SCHED"):
        evidence = Sighting(config.source, f"{name} is not set")
        return passed("RT_GROUP_SCHED=n", evidence)
    evidence = Sighting(config.source, f"{name}=y")
    if not has_rt_groups(context):
        return passed("RT_GROUP_SCHED=y, and off since the boot", evidence)
    return failed("RT_GROUP_SCHED=y", evidence)


def has_capability(context: AuditContext, name: str) -> bool | None:
    """Whether the process that reads has a capability; None if unknown."""
    match = _EFFECTIVE.search(context.words(STATUS))
    return bool(int(match[1], 16) >> CAPABILITIES[name] & 1) if match else None


def limit_of(context: AuditContext, name: str) -> str | None:
    """Return a soft limit by its name in /proc/PID/limits; None if it is not there."""
    return dict(_LIMIT.findall(context.words(LIMITS))).get(name)


def limit(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check a resource limit of the process that reads.

    Keys: `limit` (its name in /proc/PID/limits), `least` (a number, or `unlimited`),
    `instead` (a capability that makes the limit mean nothing).
    """
    refused = context.refusals(LIMITS)
    text = limit_of(context, kind.args["limit"])
    if text is None:
        return unknown(f"{LIMITS} does not list it", *refused)
    evidence = Sighting(LIMITS, f"{kind.args['limit']}: {text}")
    capability = kind.args.get("instead")
    if capability and has_capability(context, capability):
        return passed(f"{text}, but {capability} overrides it", evidence)
    least = kind.args["least"]
    if text == "unlimited":
        return passed(text, evidence)
    if not is_whole(text):
        return unknown(f"{text!r} is not a limit", evidence)
    good = least != "unlimited" and int(text) >= int(least)
    return (passed if good else failed)(text, evidence)


def group_budget(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the control group, and those above it, have a real-time budget."""
    if context.config is None:
        return unknown(f"no configuration: {context.kernel.config_source}")
    if not has_rt_groups(context):
        return absent(kind, context)
    own = context.text(OWN_CGROUP)
    if own is None:
        return unknown(f"no {OWN_CGROUP}", *context.refusals(OWN_CGROUP))
    for line in own.splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        evidence = Sighting(OWN_CGROUP, line)
        if number == "0" and path == "/":
            return passed("the root group", evidence)
        if "cpu" in controllers.split(","):
            return _by_version_1(context, path, evidence)
    return _by_version_2(context, own)


def _by_version_2(context: AuditContext, own: str) -> Answer:
    """Version 2 has no budgets: a group that shares out CPU time has none at all."""
    evidence = Sighting(OWN_CGROUP, own[:200])
    top = own.strip().rpartition("::/")[2].partition("/")[0]
    path = f"/sys/fs/cgroup/{top}/cgroup.controllers"
    controllers = context.text(path)
    if not top or controllers is None:
        says = "not the root group; unknown whether it uses the CPU controller"
        return unknown(says, evidence, *context.refusals(path))
    setting = Sighting(path, controllers)
    if "cpu" in controllers.split():
        says = "not the root group, and cgroup v2 cannot give it a budget"
        return failed(says, evidence, setting)
    return passed(
        "the budget of the root group: the CPU controller is off", evidence, setting
    )


def _by_version_1(context: AuditContext, path: str, evidence: Sighting) -> Answer:
    if path == "/":
        return passed("the root group", evidence)
    return unknown(
        "check that cpu.rt_runtime_us is above 0 in this group and in each group "
        "above it",
        evidence,
    )


def _limits(context: AuditContext) -> list[Sighting]:
    rtprio = limit_of(context, "realtime priority")
    effective = _EFFECTIVE.search(context.words(STATUS))
    sightings = [Sighting(LIMITS, f"realtime priority: {rtprio}")] if rtprio else []
    return sightings + ([Sighting(STATUS, effective[0])] if effective else [])


STATS = "/proc/[0-9]*/task/[0-9]*/stat"

HIGHEST = 99
REAL_TIME = {1: "FIFO", 2: "RR", 6: "DEADLINE"}
"""include/uapi/linux/sched.h"""

# Fields of the stat file, counted from behind the name in brackets: 9, 40 and 41.
_FLAGS, _PRIORITY, _POLICY = 6, 37, 38
_PF_KTHREAD = 0x00200000
"""include/linux/sched.h; ps(1) goes by the same bit."""

_IRQ = re.compile(r"irq/\d+-")
_CALLBACKS = re.compile(r"(?:ksoftirqd|ktimers|irq_work|rcu[bc]|rcuo[a-z]+)/|rcu_")

CLOCK_PROGRAMS = ("ptp4l", "phc2sys", "ts2phc")
"""Of linuxptp."""

NO_IRQ_THREADS = "interrupts have no threads on this kernel"
_THREADED = "boot PREEMPT_RT, or with threadirqs"

MOST_NAMED = 40
"""Of devices, in a refusal."""

MEASURED = 80
"""The priority of a measurement by default (`measure.campaign.model`)."""


@dataclass(frozen=True, slots=True)
class _Thread:
    path: str
    name: str
    of_kernel: bool
    policy: int
    priority: int

    @property
    def sighting(self) -> Sighting:
        return Sighting(self.path, f"{self.name}: {self._policy}")

    @property
    def short(self) -> str:
        return f"{self.name} ({self._policy})"

    @property
    def _policy(self) -> str:
        policy = REAL_TIME.get(self.policy, "ordinary")
        return f"{policy} {self.priority or ''}".strip()


def real_time_threads(kind: CheckKind, context: AuditContext) -> Answer:
    """Check that no program's thread has the highest priority."""
    threads, why_not = _threads(context)
    if why_not is not None:
        return why_not
    ours = [t for t in threads if not t.of_kernel and t.policy in REAL_TIME]
    top = [t for t in ours if t.priority == HIGHEST]
    if top:
        says = f"{_count(len(top), 'thread')} of priority {HIGHEST}: {top[0].name}"
        return failed(says, *(t.sighting for t in top[:16]))
    if not any(t.of_kernel for t in threads):
        return unknown("only the threads of a container are visible")
    if refused := context.refusals(STATS):
        return unknown("only partly readable", *refused)
    seen = Sighting(STATS, f"{len(threads)} read")
    if not ours:
        return passed("no program has a real-time thread now", seen)
    highest = max(t.priority for t in ours)
    says = f"{_count(len(ours), 'thread')} of programs, of priority {highest} at most"
    return passed(says, *(t.sighting for t in ours[:16]))


def interrupt_threads(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check whether interrupt threads are below the real-time threads of programs.

    Keys, of --apply alone: `device` with `priority`, which its own are to have instead;
    `spared`, devices that do not count.
    """
    threads, why_not = _threads(context)
    if why_not is not None:
        return why_not
    if not any(t.of_kernel for t in threads):
        return unknown("only the threads of a container are visible")
    if "device" in kind.args:
        return _of_device(context, kind.args["device"], kind.args["priority"])
    spared = [t for name in kind.args.get("spared", ()) for t in _of(name, context)]
    irqs = [t for t in _of_interrupts(threads) if t not in spared]
    if not irqs:
        says = "no other interrupt has a thread" if spared else NO_IRQ_THREADS
        return not_applicable(says)
    lowest = _lowest(threads)
    if lowest is None:
        return not_applicable("no program has a real-time thread with a priority now")
    above = _not_below(irqs, lowest.priority)
    if above:
        says = f"{len(above)} of {len(irqs)} are not below {lowest.short}"
        return failed(says, lowest.sighting, *(t.sighting for t in above[:16]))
    return passed(f"{len(irqs)} are below priority {lowest.priority}", lowest.sighting)


def _of_device(context: AuditContext, device: str, priority: int) -> Answer:
    found = _of(device, context)
    if not found:
        return failed(f"{device} has no interrupt thread")
    others = [t for t in found if (t.policy, t.priority) != (1, priority)]
    if others:
        says = f"{len(others)} of {_count(len(found), 'thread')} not FIFO {priority}"
        return failed(says, *(t.sighting for t in others[:16]))
    says = f"{_count(len(found), 'thread')} of FIFO {priority}"
    return passed(says, *(t.sighting for t in found[:16]))


def why_no_thread(device: str, context: AuditContext) -> str:
    """Say why a device has no interrupt thread, and which have one."""
    irqs = _interrupts(context)
    if not irqs:
        return f"{NO_IRQ_THREADS}: {_THREADED}"
    devices = irq_devices(context.machine.files)
    if any(_is_named(device, n, name) for n in devices for name in devices[n]):
        forced = context.kernel.preemption_model == "PREEMPT_RT"
        why = "its driver forbids one" if forced else _THREADED
        return f"its interrupt has no thread on this kernel: {why}"
    names = sorted({irq.device for _, irq in irqs})
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    said = ", ".join(names[:MOST_NAMED])
    return f"no interrupt thread of that name or number; there are: {said}{more}"


def interrupt_threads_of(device: str, context: AuditContext) -> list[int]:
    """Return the ids of the interrupt threads of a device, by its name or number."""
    return [_tid(thread) for thread in _of(device, context)]


def _of(device: str, context: AuditContext) -> list[_Thread]:
    return [
        thread
        for thread, irq in _interrupts(context)
        if _is_named(device, irq.number, irq.device)
    ]


def _interrupts(context: AuditContext) -> list[tuple[_Thread, Irq]]:
    """Return each interrupt thread with its interrupt."""
    devices = irq_devices(context.machine.files)
    return [
        (thread, irq)
        for thread in _of_interrupts(_threads(context)[0])
        if (irq := irq_of(thread.name, devices))
    ]


def _is_named(device: str, number: int, name: str) -> bool:
    """Whether it is the name, its first part (eth0 of eth0-rx-1) or the number."""
    if device == str(number):
        return True
    rest = name.removeprefix(device)
    return name.startswith(device) and not re.match(r"\w", rest)


def _of_interrupts(threads: list[_Thread]) -> list[_Thread]:
    return [t for t in threads if t.of_kernel and _IRQ.match(t.name)]


def _not_below(threads: list[_Thread], priority: int) -> list[_Thread]:
    return [t for t in threads if t.policy in (1, 2) and t.priority >= priority]


def lowest_priority(context: AuditContext) -> int | None:
    """Return the lowest real-time priority of a program; None without one."""
    lowest = _lowest(_threads(context)[0])
    return lowest.priority if lowest else None


def interrupt_threads_above(context: AuditContext, priority: int) -> list[int]:
    """Return the ids of interrupt threads of this priority or a higher one."""
    above = _not_below(_of_interrupts(_threads(context)[0]), priority)
    return [_tid(thread) for thread in above]


def _tid(thread: _Thread) -> int:
    return int(thread.path.split("/")[-2])


def priority_of(stat: str) -> str:
    """Return policy and priority of a thread as the agent writes them: `fifo.50`."""
    for thread in _parsed({"": stat}):
        name = REAL_TIME.get(thread.policy, "other").lower()
        return f"{name}.{thread.priority}"
    return ""


def kernel_threads(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether threads that run callbacks are below real-time threads."""
    stats, parameter = kind.paths
    threads, _ = _threads(context)
    lowest = _lowest(threads)
    limit = lowest.priority if lowest else MEASURED
    than = lowest.short if lowest else f"{MEASURED}, the priority of a measurement"
    priority = context.words(parameter)
    if re.fullmatch(r"\d{1,9}", priority) and int(priority) >= limit:
        says = f"rcutree.kthread_prio={priority} is not below {than}"
        return failed(says, Sighting(parameter, priority))
    callbacks = [t for t in threads if t.of_kernel and _CALLBACKS.match(t.name)]
    above = [t for t in callbacks if t.policy in (1, 2) and t.priority >= limit]
    if above:
        says = f"{len(above)} of {len(callbacks)} are not below {than}"
        evidence = [lowest.sighting] if lowest else []
        return failed(says, *evidence, *(t.sighting for t in above[:16]))
    if not callbacks:
        return unknown(
            "the threads of the kernel are not visible",
            *context.refusals(stats, parameter),
        )
    highest = max((t.priority for t in callbacks if t.policy in (1, 2)), default=None)
    most = "none has a real-time policy" if highest is None else f"{highest} at most"
    says = f"{_count(len(callbacks), 'thread')}: {most}"
    return passed(says, Sighting(stats, f"{len(threads)} read"))


def ptp_threads(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the threads that steer the clock get the CPU in time."""
    threads, why_not = _threads(context)
    if why_not is not None:
        return why_not
    programs = [t for t in threads if not t.of_kernel and t.name in CLOCK_PROGRAMS]
    if not programs and not any(t.of_kernel for t in threads):
        return unknown("only the threads of a container are visible")
    if not programs:
        return not_applicable(f"none of {', '.join(CLOCK_PROGRAMS)} runs")
    slow = [t for t in programs if t.policy not in REAL_TIME]
    if slow:
        says = f"{slow[0].name} has no real-time policy"
        return failed(says, *(t.sighting for t in slow))
    lowest = _lowest(threads)
    above = [t for t in programs if lowest and t.priority >= lowest.priority]
    if lowest and above:
        says = f"{above[0].short} is not below {lowest.short}"
        return failed(says, lowest.sighting, *(t.sighting for t in above))
    return passed(", ".join(t.short for t in programs), *(t.sighting for t in programs))


def _lowest(threads: list[_Thread]) -> _Thread | None:
    """
    Return the program's thread of the lowest real-time priority.

    Those that steer the clock do not count: they wait for a network interrupt
    themselves. Nor do deadline threads, which run before all priorities.
    """
    ours = [
        thread
        for thread in threads
        if not thread.of_kernel
        and thread.policy in (1, 2)
        and thread.name not in CLOCK_PROGRAMS
    ]
    return min(ours, key=lambda thread: thread.priority, default=None)


def _threads(context: AuditContext) -> tuple[list[_Thread], Answer | None]:
    """Return the threads, or the answer if none is visible."""
    stats = context.matching(STATS)
    threads = list(_parsed(stats))
    if threads:
        return threads, None
    return [], unknown("the threads are not visible", *context.refusals(STATS))


def _parsed(stats: Mapping[str, str]) -> Iterator[_Thread]:
    for path, text in stats.items():
        # A name may hold brackets and blanks: the last bracket ends it.
        head, _, tail = text.rpartition(") ")
        fields = tail.split()
        if len(fields) <= _POLICY or not all(map(str.isdecimal, _used(fields))):
            continue
        yield _Thread(
            path,
            head.partition("(")[2],
            of_kernel=bool(int(fields[_FLAGS]) & _PF_KTHREAD),
            policy=int(fields[_POLICY]),
            priority=int(fields[_PRIORITY]),
        )


def _used(fields: list[str]) -> tuple[str, ...]:
    return fields[_FLAGS], fields[_PRIORITY], fields[_POLICY]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
