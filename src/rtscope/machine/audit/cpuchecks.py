"""
Checks of CPUs: frequency, idle states, shared cores and caches, and whether the work
of others is kept away from those that are set apart.
"""

import re
from collections.abc import Mapping

from rtscope.host.units import is_whole
from rtscope.machine.audit.context import (
    DMA_LATENCY,
    ISOLATED,
    NOT_SET_APART,
    ONLINE,
    PARTITIONS,
    Answer,
    AuditContext,
    Cpus,
    absent,
    cpu_of,
    failed,
    is_requested,
    isolated,
    listed,
    masked,
    named,
    not_applicable,
    not_read,
    online,
    passed,
    set_apart,
    unknown,
)
from rtscope.machine.audit.kernelchecks import value
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.guest import guest
from rtscope.machine.kernelidentity import CMDLINE, boot_values

IDLE = "/sys/devices/system/cpu/cpu*/cpuidle/state*"
RESUME_LATENCY = "power/pm_qos_resume_latency_us"


def fixed_frequency(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether each policy has one frequency; an observed change fails."""
    lowest = context.matching(kind.paths[0])
    if not lowest:
        return not_read(kind, context, kind.paths[0])
    moved = _moved(context)
    if moved:
        return failed(f"changed within the window: {moved[0].value}", *moved)
    ranges, unpaired = {}, []
    for path, low in lowest.items():
        high = context.text(path.replace("scaling_min", "scaling_max"))
        if high is None:
            unpaired.append(path)
        elif high != low:
            ranges[path] = f"{low} to {high} kHz"
    if ranges:
        says = f"{len(ranges)} of {len(lowest)} vary: {next(iter(ranges.values()))}"
        return failed(says, *_evidence(ranges))
    if unpaired:
        return unknown(
            "no highest frequency", Sighting(unpaired[0], "without scaling_max_freq")
        )
    return passed(f"{next(iter(lowest.values()))} kHz", *_evidence(lowest))


def _moved(context: AuditContext) -> list[Sighting]:
    before, after = context.observed.before, context.observed.after
    return [
        Sighting(path, f"{text.strip()} kHz, then {after[path].strip()}")
        for path, text in before.items()
        if path.endswith("/scaling_cur_freq")
        and path in after
        and after[path].strip() != text.strip()
    ]


def turbo(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether frequencies beyond the nominal one are off."""
    no_turbo, boost = kind.paths
    for path, off in ((no_turbo, "1"), (boost, "0")):
        text = context.text(path)
        if text is not None:
            evidence = Sighting(path, text)
            return (passed if text == off else failed)(
                "off" if text == off else "on", evidence
            )
    return not_read(kind, context, *kind.paths)


def idle_states(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check whether a CPU may fall asleep so deep that waking takes long.

    Key: `latency_us`, the exit latency that is still good.
    """
    limit = int(kind.args["latency_us"])
    latencies = context.matching(f"{IDLE}/latency")
    if not latencies:
        return not_read(kind, context, f"{IDLE}/latency")
    wanted = set_apart(context)
    deep, odd = {}, []
    for path, text in latencies.items():
        if wanted is not None and cpu_of(path) not in wanted:
            continue
        state = path.removesuffix("/latency")
        if not is_whole(text):
            odd.append(Sighting(path, text[:80]))
        elif int(text) > limit and _may_be_chosen(context, state, limit):
            name = context.text(f"{state}/name") or "?"
            deep[state] = f"{name}, {text} us to wake"
    latency_us = context.observed.dma_latency_us
    if deep and latency_us is not None and latency_us <= limit:
        evidence = Sighting(DMA_LATENCY, f"{latency_us} us{_by_whom(context)}")
        return passed(
            f"none above {latency_us} us while a program requests that", evidence
        )
    if deep:
        says = f"{len(deep)} enabled, such as {next(iter(deep.values()))}"
        return failed(says, *_evidence(deep))
    if odd:
        return unknown("a latency is not a number", *odd)
    return passed(f"none above {limit} us is enabled", *_evidence(latencies))


def _may_be_chosen(context: AuditContext, state: str, limit: int) -> bool:
    if context.text(f"{state}/disable") == "1":
        return False
    # Of this CPU alone: 0 asks for nothing, n/a for no delay at all (sysfs-power).
    value = context.text(f"{state.partition('/cpuidle/')[0]}/{RESUME_LATENCY}") or "0"
    return value != "n/a" and (not is_whole(value) or not 0 < int(value) <= limit)


def _by_whom(context: AuditContext) -> str:
    names = sorted(set(context.observed.dma_holders.values()))
    return f", requested by {', '.join(names[:4])}" if names else ""


def latency_request(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether some program keeps idle states short for all while it runs."""
    latency_us = context.observed.dma_latency_us
    if latency_us is None and context.config and not context.config.is_on("CPU_IDLE"):
        return not_applicable("CPU_IDLE is not set: there are no idle states")
    if latency_us is None:
        return unknown(context.observed.why_no_dma_latency)
    evidence = Sighting(DMA_LATENCY, f"{latency_us} us{_by_whom(context)}")
    if is_requested(latency_us):
        return failed(
            evidence.value, evidence, *_evidence(context.observed.dma_holders)
        )
    return passed("no program limits them", evidence)


def cooling(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether a processor is being slowed down because of heat."""
    types = {
        path: text
        for path, text in context.matching(kind.paths[0]).items()
        if text == "Processor" or "cpufreq" in text
    }
    if not types:
        return absent(kind, context)
    states = {
        path: state
        for path in types
        if (state := context.text(path.replace("/type", "/cur_state"))) is not None
    }
    hot = {path: state for path, state in states.items() if state != "0"}
    if hot:
        return failed(
            f"{len(hot)} of {len(types)} cooling devices active", *_evidence(hot)
        )
    if len(states) < len(types):
        return unknown("not every state is readable")
    return passed("no cooling device active", *_evidence(states))


def throttled_by_heat(kind: CheckKind, context: AuditContext) -> Answer:
    """Check how often heat slowed an Intel processor down; others do not count it."""
    pattern, cpuinfo = kind.paths
    if context.matching(pattern) or context.refusals(pattern):
        return value(kind, context)
    words = context.words(cpuinfo).split()
    if guest(context.machine).value:
        return not_applicable("a guest does not see the heat of its host")
    if words and "GenuineIntel" not in words:
        return not_applicable("only Intel processors count it")
    return absent(kind, context)


def smt(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether two CPUs share a core; a guest cannot see it."""
    active = kind.paths[0]
    text = context.text(active)
    if text is None:
        return not_read(kind, context, active)
    evidence = Sighting(active, text)
    if text == "1":
        return failed("two CPUs share a core", evidence)
    if text != "0":
        return unknown("neither 0 nor 1", evidence)
    if guest(context.machine).value:
        says = "a guest does not see which of the host's CPUs share a core"
        return not_applicable(says, evidence)
    return passed("no two CPUs share a core", evidence)


def private_cache(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether CPUs set apart share their second-level cache with others."""
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    levels = context.matching("/sys/devices/system/cpu/cpu*/cache/index*/level")
    seen, shared = {}, {}
    for path, level in levels.items():
        others = path.replace("/level", "/shared_cpu_list")
        text = context.text(others)
        if level != "2" or cpu_of(path) not in apart or text is None:
            continue
        seen[others] = text
        cpus = listed(text)
        if cpus is None:
            return unknown("not a CPU list", Sighting(others, text[:80]))
        if cpus - apart:
            shared[others] = f"shared with CPU {format_cpulist(cpus - apart)}"
    if shared:
        return failed(next(iter(shared.values())), *_evidence(shared))
    if not seen:
        return unknown(
            "the kernel does not describe the second-level cache of these CPUs"
        )
    return passed("not shared with other CPUs", *_evidence(seen))


def _evidence(texts: Mapping[str, str]) -> list[Sighting]:
    return [Sighting(path, text[:200]) for path, text in list(texts.items())[:16]]


_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_FLAGS = re.compile(r"^(?:[a-z_]+,)+")


def cpus_within(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check whether the files of `paths` together name every CPU that is set apart.

    Key: `demanded_of`, the profiles in which no CPU set apart is itself the fault.
    """
    texts = {p: t for p in kind.paths if (t := context.text(p)) is not None}
    wanted = set_apart(context)
    if wanted is None and context.profile in kind.args.get("demanded_of", ()) and texts:
        return failed("no CPU is set apart", *_seen(texts))
    if wanted is None:
        return not_applicable(NOT_SET_APART)
    if not texts:
        return not_read(kind, context, *kind.paths)
    covered: Cpus = frozenset()
    for path, text in texts.items():
        cpus = listed(text)
        if cpus is None:
            return unknown(f"{path} is not a CPU list", Sighting(path, text[:80]))
        covered |= cpus
    return _covers(wanted, covered, texts)


def cpus_outside(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether a file's mask of CPUs leaves out those that are set apart."""
    wanted = set_apart(context)
    if wanted is None:
        return not_applicable(NOT_SET_APART)
    path = kind.paths[0]
    text = context.text(path)
    if text is None:
        return not_read(kind, context, path)
    cpus = masked(text)
    if cpus is None:
        return unknown(f"{path} is not a CPU mask", Sighting(path, text[:80]))
    inside = cpus & wanted
    evidence = Sighting(path, f"{text} (CPUs {format_cpulist(cpus) or 'none'})")
    if inside:
        return failed(f"CPU {format_cpulist(inside)} is in the mask", evidence)
    return passed(f"CPUs {format_cpulist(cpus) or 'none'}", evidence)


def cpu_partitions(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the kernel took each group of CPUs that asked to be a partition."""
    controllers, *patterns = kind.paths
    refused = context.refusals(*patterns)
    states = {p: t for one in patterns for p, t in context.matching(one).items()}
    partitions = {p: t for p, t in states.items() if t != "member"}
    invalid = {path: text for path, text in partitions.items() if "invalid" in text}
    if invalid:
        path, text = next(iter(invalid.items()))
        says = f"{path.split('/')[-2]}: {text[:120]}"
        return failed(says, *_evidence(invalid))
    if refused:
        return unknown("only partly readable", *refused)
    odd = {p: t for p, t in partitions.items() if t not in ("root", "isolated")}
    if odd:
        return unknown("not the state of a partition", *_evidence(odd))
    if partitions:
        return passed(f"{len(partitions)} valid", *_evidence(partitions))
    if states or context.text(controllers) is not None:
        return not_applicable("no group is a partition")
    return unknown(f"no {controllers}: cgroup v2 is not mounted there")


def boot_cpus(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the command line's `parameters` name the CPUs set apart."""
    wanted = set_apart(context)
    if wanted is None:
        return not_applicable(NOT_SET_APART)
    cmdline = context.text(CMDLINE)
    if cmdline is None:
        return unknown(f"no {CMDLINE}", *context.refusals(CMDLINE))
    covered: Cpus = frozenset()
    texts: dict[str, str] = {}
    for name in kind.args["parameters"]:
        for last in boot_values(cmdline, name)[-1:]:
            cpus = wanted if last == "all" else listed(_FLAGS.sub("", last))
            if cpus is None:
                return unknown(f"{name}={last} is not a CPU list")
            texts[CMDLINE] = f"{texts.get(CMDLINE, '')} {name}={last}".strip()
            covered |= cpus
    texts = texts or {CMDLINE: f"no {', no '.join(kind.args['parameters'])}"}
    return _covers(wanted, covered, texts)


def housekeeping(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether a CPU is left for everything else, the boot CPU among them."""
    everywhere = online(context)
    if everywhere is None:
        return unknown("unknown which CPUs are online")
    if len(everywhere) == 1:
        return not_applicable("one CPU is online")
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    rest = everywhere - apart
    evidence = Sighting(
        f"{ISOLATED}, {PARTITIONS}", format_cpulist(isolated(context)) or "none"
    )
    if not rest:
        return failed("every CPU is set apart", evidence)
    if min(everywhere) not in rest:
        says = f"the boot CPU, {min(everywhere)}, is set apart"
        return failed(says, evidence)
    return passed(f"CPU {format_cpulist(rest)} is left for the rest", evidence)


def cpus_online(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the CPUs that are set apart are there to be used."""
    present_at = kind.paths[0]
    present, there = listed(context.words(present_at)), online(context)
    if not present or there is None:
        return unknown("unknown which CPUs are online", *context.refusals(ONLINE))
    asleep = present - there
    evidence = (
        Sighting(present_at, format_cpulist(present)),
        Sighting(ONLINE, format_cpulist(there)),
    )
    if lost := asleep & named(context):
        return failed(f"CPU {format_cpulist(lost)} is offline", *evidence)
    if asleep:
        says = f"CPU {format_cpulist(asleep)} is offline, but not set apart"
        return passed(says, *evidence)
    return passed("every CPU is online", *evidence)


def processes_outside(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check whether processes of user space may come to CPUs that are set apart.

    Those that may run nowhere else were put there, and are what they are for. Only the
    first thread of each is read: a machine may have tens of thousands of threads.
    """
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    pattern = kind.paths[0]
    statuses = context.matching(pattern)
    if not statuses:
        return unknown("the processes are not visible", *context.refusals(pattern))
    strays, there = [], 0
    for path, text in statuses.items():
        match = _ALLOWED.search(text)
        # Kernel threads have no memory of their own (proc_pid_status(5)).
        if match is None or "\nVmSize:" not in text:
            continue
        there += 1
        allowed = listed(match[1])
        if allowed and allowed & apart and not allowed <= apart:
            name = text.partition("\n")[0].removeprefix("Name:").strip()
            strays.append(Sighting(path, f"{name}: CPUs {match[1]}"))
    if strays:
        return failed(f"{len(strays)} of {there} processes may run there", *strays)
    if not there:
        return unknown("no user-space process is visible")
    return passed(f"none of {there} processes", Sighting(pattern, f"{there} read"))


def _covers(wanted: Cpus, covered: Cpus, texts: dict[str, str]) -> Answer:
    left = wanted - covered
    if left:
        return failed(f"CPU {format_cpulist(left)} is missing", *_seen(texts))
    return passed(f"CPU {format_cpulist(wanted)} is covered", *_seen(texts))


def _seen(texts: dict[str, str]) -> list[Sighting]:
    return [Sighting(path, text[:200] or "empty") for path, text in texts.items()]
