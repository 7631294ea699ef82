"""Judges of what a user may do: real-time policies, locked memory, control groups."""

import errno
import re

from rtscope.audit.judges import absent
from rtscope.audit.model import Answer, CheckKind, Evidence, failed, passed, unknown
from rtscope.audit.scene import Scene
from rtscope.machine.kernelidentity import CMDLINE, boot_values

LIMITS = "/proc/self/limits"
STATUS = "/proc/self/status"
OWN_CGROUP = "/proc/self/cgroup"

CAPABILITIES = {"CAP_IPC_LOCK": 14, "CAP_SYS_NICE": 23}
"""include/uapi/linux/capability.h"""

_LIMIT = re.compile(r"^Max (.+?) {2,}(\S+)", re.MULTILINE)
_EFFECTIVE = re.compile(r"^CapEff:\s*([0-9a-fA-F]{1,16})", re.MULTILINE)


def trial(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge by what the kernel said to a child that asked for SCHED_FIFO."""
    tried = scene.observed.trial
    if tried is None:
        return unknown("it was not tried: only on this machine, and not on a capture")
    if tried.error is None:
        return passed("granted", Evidence(tried.asked, "granted"))
    name = errno.errorcode.get(tried.error, str(tried.error))
    evidence = Evidence(tried.asked, f"{name}: {tried.reason}")
    return failed(f"{name}: {_who_refused(scene)}", evidence, *_told(scene))


def _who_refused(scene: Scene) -> str:
    """Name what refuses, as far as it can be told from beside."""
    nice = has_capability(scene, "CAP_SYS_NICE")
    limit = limit_of(scene, "realtime priority")
    if nice is False and limit == "0":
        return "neither CAP_SYS_NICE nor a limit on real-time priorities above 0"
    if nice is False and limit is not None:
        return f"no CAP_SYS_NICE, and RLIMIT_RTPRIO is {limit}"
    if nice and has_rt_groups(scene):
        return "the control group has no real-time budget (RT_GROUP_SCHED)"
    if nice:
        return "despite CAP_SYS_NICE: a control group, a seccomp filter or a container"
    return "why cannot be told: the capabilities are not known"


def has_rt_groups(scene: Scene) -> bool:
    """Whether the kernel gives real-time budgets to control groups."""
    if scene.config is None or not scene.config.is_on("RT_GROUP_SCHED"):
        return False
    chosen = boot_values(scene.text(CMDLINE) or "", "rt_group_sched")
    if chosen:
        return chosen[-1] != "0"
    return not scene.config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED")


def rt_groups(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether control groups need a real-time budget on this kernel."""
    found = scene.config
    if found is None:
        return unknown(f"no configuration: {scene.kernel.config_source}")
    name = "CONFIG_RT_GROUP_SCHED"
    if name not in found.options and not found.whole:
        return unknown(f"{found.source} does not mention {name}")
    if not found.is_on("RT_GROUP_SCHED"):
        evidence = Evidence(found.source, f"{name} is not set")
        return passed("RT_GROUP_SCHED=n", evidence)
    evidence = Evidence(found.source, f"{name}=y")
    if not has_rt_groups(scene):
        return passed("RT_GROUP_SCHED=y, and off since the boot", evidence)
    return failed("RT_GROUP_SCHED=y", evidence)


def has_capability(scene: Scene, name: str) -> bool | None:
    """Whether the process that reads has a capability; None if it cannot be told."""
    found = _EFFECTIVE.search(scene.text(STATUS) or "")
    return bool(int(found[1], 16) >> CAPABILITIES[name] & 1) if found else None


def limit_of(scene: Scene, name: str) -> str | None:
    """Return a soft limit by its name in /proc/PID/limits; None if it is not there."""
    return dict(_LIMIT.findall(scene.text(LIMITS) or "")).get(name)


def limit(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge a resource limit of the process that reads.

    Keys: `limit` (its name in /proc/PID/limits), `least` (a number, or `unlimited`),
    `instead` (a capability that makes the limit mean nothing).
    """
    refused = scene.refusals(LIMITS)
    text = limit_of(scene, kind.args["limit"])
    if text is None:
        return unknown(f"{LIMITS} does not tell it", *refused)
    evidence = Evidence(LIMITS, f"{kind.args['limit']}: {text}")
    capability = kind.args.get("instead")
    if capability and has_capability(scene, capability):
        return passed(f"{text}, and {capability} goes beyond it", evidence)
    least = kind.args["least"]
    if text == "unlimited":
        return passed(text, evidence)
    if not text.isdecimal():
        return unknown(f"{text!r} is no limit", evidence)
    good = least != "unlimited" and int(text) >= int(least)
    return (passed if good else failed)(text, evidence)


def group_budget(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the control group, and those above it, have a real-time budget."""
    if scene.config is None:
        return unknown(f"no configuration: {scene.kernel.config_source}")
    if not has_rt_groups(scene):
        return absent(kind)
    own = scene.text(OWN_CGROUP)
    if own is None:
        return unknown(f"no {OWN_CGROUP}", *scene.refusals(OWN_CGROUP))
    for line in own.splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        evidence = Evidence(OWN_CGROUP, line)
        if number == "0" and path == "/":
            return passed("the root group", evidence)
        if "cpu" in controllers.split(","):
            return _by_version_1(scene, path, evidence)
    return _by_version_2(scene, own)


def _by_version_2(scene: Scene, own: str) -> Answer:
    """Version 2 has no budgets: a group that shares out CPU time has none at all."""
    evidence = Evidence(OWN_CGROUP, own[:200])
    top = own.strip().rpartition("::/")[2].partition("/")[0]
    path = f"/sys/fs/cgroup/{top}/cgroup.controllers"
    controllers = scene.text(path)
    if not top or controllers is None:
        says = "not the root group; whether it shares out CPU time is not known"
        return unknown(says, evidence, *scene.refusals(path))
    told = Evidence(path, controllers)
    if "cpu" in controllers.split():
        says = "not the root group, and version 2 cannot give a group a budget"
        return failed(says, evidence, told)
    return passed("of the root group, as far as CPU time goes", evidence, told)


def _by_version_1(scene: Scene, path: str, evidence: Evidence) -> Answer:
    if path == "/":
        return passed("the root group", evidence)
    return unknown(
        "the group's cpu.rt_runtime_us, and that of each above it, must be above 0; "
        "where they are mounted differs",
        evidence,
    )


def _told(scene: Scene) -> list[Evidence]:
    rtprio = limit_of(scene, "realtime priority")
    effective = _EFFECTIVE.search(scene.text(STATUS) or "")
    told = [Evidence(LIMITS, f"realtime priority: {rtprio}")] if rtprio else []
    return told + ([Evidence(STATUS, effective[0])] if effective else [])


JUDGES = (trial, limit, group_budget, rt_groups)
