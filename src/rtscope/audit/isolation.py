"""Judges of CPUs that are set apart: is the work of others kept away from them?"""

import re

from rtscope.audit.cpus import (
    ISOLATED,
    NOT_SET_APART,
    ONLINE,
    PARTITIONS,
    Cpus,
    isolated,
    listed,
    masked,
    named,
    online,
    set_apart,
)
from rtscope.audit.judges import absent
from rtscope.audit.model import (
    Answer,
    CheckKind,
    Evidence,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.audit.scene import Scene
from rtscope.cpulist import format_cpulist
from rtscope.machine.kernelidentity import CMDLINE, boot_values

_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_FLAGS = re.compile(r"^(?:[a-z_]+,)+")


def cpus_within(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge whether the files of `paths` together name every CPU that is set apart.

    Key: `demanded_of`, the profiles in which no CPU set apart is itself the fault.
    """
    texts = {p: t for p in kind.paths if (t := scene.text(p)) is not None}
    refused = [e for path in kind.paths for e in scene.refusals(path)]
    wanted = set_apart(scene)
    if wanted is None and scene.profile in kind.args.get("demanded_of", ()) and texts:
        return failed("no CPU is set apart", *_seen(texts))
    if wanted is None:
        return not_applicable(NOT_SET_APART)
    if not texts:
        return unknown("it cannot be read", *refused) if refused else absent(kind)
    covered: Cpus = frozenset()
    for path, text in texts.items():
        cpus = listed(text)
        if cpus is None:
            return unknown(f"{path} is no CPU list", Evidence(path, text[:80]))
        covered |= cpus
    return _covers(wanted, covered, texts)


def cpus_outside(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether a file's mask of CPUs leaves out those that are set apart."""
    wanted = set_apart(scene)
    if wanted is None:
        return not_applicable(NOT_SET_APART)
    path = kind.paths[0]
    text = scene.text(path)
    if text is None:
        refused = scene.refusals(path)
        return unknown("it cannot be read", *refused) if refused else absent(kind)
    cpus = masked(text)
    if cpus is None:
        return unknown(f"{path} is no mask of CPUs", Evidence(path, text[:80]))
    inside = cpus & wanted
    evidence = Evidence(path, f"{text} (CPUs {format_cpulist(cpus) or 'none'})")
    if inside:
        return failed(f"CPU {format_cpulist(inside)} is among them", evidence)
    return passed(f"CPUs {format_cpulist(cpus) or 'none'}", evidence)


def boot_cpus(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the command line's `parameters` name the CPUs set apart."""
    wanted = set_apart(scene)
    if wanted is None:
        return not_applicable(NOT_SET_APART)
    cmdline = scene.text(CMDLINE)
    if cmdline is None:
        return unknown(f"no {CMDLINE}", *scene.refusals(CMDLINE))
    covered: Cpus = frozenset()
    texts: dict[str, str] = {}
    for name in kind.args["parameters"]:
        for value in boot_values(cmdline, name)[-1:]:
            cpus = wanted if value == "all" else listed(_FLAGS.sub("", value))
            if cpus is None:
                return unknown(f"{name}={value} is not understood")
            texts[CMDLINE] = f"{texts.get(CMDLINE, '')} {name}={value}".strip()
            covered |= cpus
    texts = texts or {CMDLINE: f"no {', no '.join(kind.args['parameters'])}"}
    return _covers(wanted, covered, texts)


def housekeeping(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether a CPU is left for everything else, the boot CPU among them."""
    everywhere = online(scene)
    if everywhere is None:
        return unknown("which CPUs are online is not known")
    if len(everywhere) == 1:
        return not_applicable("one CPU is online")
    apart = set_apart(scene)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    rest = everywhere - apart
    evidence = Evidence(
        f"{ISOLATED}, {PARTITIONS}", format_cpulist(isolated(scene)) or "none"
    )
    if not rest:
        return failed("every CPU is set apart", evidence)
    if min(everywhere) not in rest:
        says = f"the boot CPU, {min(everywhere)}, is set apart"
        return failed(says, evidence)
    return passed(f"CPU {format_cpulist(rest)} is left for the rest", evidence)


def cpus_online(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the CPUs that are set apart are there to be used."""
    present_at = kind.paths[0]
    present, there = listed(scene.text(present_at) or ""), online(scene)
    if not present or there is None:
        return unknown("which CPUs are online is not known", *scene.refusals(ONLINE))
    asleep = present - there
    told = (
        Evidence(present_at, format_cpulist(present)),
        Evidence(ONLINE, format_cpulist(there)),
    )
    if lost := asleep & named(scene):
        return failed(f"CPU {format_cpulist(lost)} is offline", *told)
    if asleep:
        says = f"CPU {format_cpulist(asleep)} is offline, and not set apart"
        return passed(says, *told)
    return passed("every CPU is online", *told)


def processes_outside(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge whether processes of user space may come to CPUs that are set apart.

    Those that may run nowhere else were put there, and are what they are for. Only the
    first thread of each is read: a machine may have tens of thousands of threads.
    """
    apart = set_apart(scene)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    pattern = kind.paths[0]
    statuses = scene.matching(pattern)
    if not statuses:
        return unknown("the processes cannot be seen", *scene.refusals(pattern))
    strays, there = [], 0
    for path, text in statuses.items():
        found = _ALLOWED.search(text)
        # Kernel threads have no memory of their own (proc_pid_status(5)).
        if found is None or "\nVmSize:" not in text:
            continue
        there += 1
        allowed = listed(found[1])
        if allowed and allowed & apart and not allowed <= apart:
            name = text.partition("\n")[0].removeprefix("Name:").strip()
            strays.append(Evidence(path, f"{name}: CPUs {found[1]}"))
    if strays:
        return failed(f"{len(strays)} of {there} processes may run there", *strays)
    if not there:
        return unknown("no process of user space is seen")
    return passed(f"none of {there}", Evidence(pattern, f"{there} read"))


def _covers(wanted: Cpus, covered: Cpus, texts: dict[str, str]) -> Answer:
    left = wanted - covered
    if left:
        return failed(f"not for CPU {format_cpulist(left)}", *_seen(texts))
    return passed(f"for CPU {format_cpulist(wanted)}", *_seen(texts))


def _seen(texts: dict[str, str]) -> list[Evidence]:
    return [Evidence(path, text[:200] or "empty") for path, text in texts.items()]


JUDGES = (
    *(cpus_within, cpus_outside, cpus_online, boot_cpus, housekeeping),
    processes_outside,
)
