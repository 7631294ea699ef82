"""Facts about the kernel and its scheduler that need more than one file."""

from rtscope.machine.catalogue import FactKind, FactValue, Seen, known, unknown
from rtscope.machine.kernelidentity import CMDLINE, boot_values, is_release_since

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"

FAIR_SERVER = (
    "since Linux 6.12 FIFO and RR threads are not throttled: the fair server gives "
    "starving ordinary threads a share of the CPU instead (50 ms of each second by "
    "default); sched_rt_runtime_us now limits what SCHED_DEADLINE may reserve"
)
"""Commit 5f6bd380c7bd, 'sched/rt: Remove default bandwidth control'."""

GROUPS_THROTTLE = (
    "since Linux 6.12 only a kernel with RT_GROUP_SCHED throttles, and this is one: "
    "each group of RT threads, the root group included"
)
"""In update_curr_rt() of 6.12 to 6.18, the walk up the groups ends at the root's."""

BEFORE_6_12 = "before Linux 6.12 FIFO and RR threads are throttled"


def config_digest(kind: FactKind, seen: Seen) -> FactValue:
    """Take the digest of the kernel's configuration, wherever it was found."""
    config = seen.kernel.config
    if config is None:
        return unknown(kind, seen, seen.kernel.config_source)
    return known(config.digest, config.source)


def preempt_rt(kind: FactKind, seen: Seen) -> FactValue:
    """Take the answer of `kernel.identity`."""
    answer = seen.kernel.preempt_rt
    if answer is None:
        return unknown(kind, seen, seen.kernel.how)
    return known(answer, seen.kernel.how)


def preempt_rt_how(kind: FactKind, seen: Seen) -> FactValue:
    """Take the evidence for it."""
    return known(seen.kernel.how, ", ".join(kind.paths))


def preemption_model(kind: FactKind, seen: Seen) -> FactValue:
    """Take the answer of `kernel.identity`."""
    answer = seen.kernel.preemption_model
    if answer is None:
        return unknown(kind, seen, seen.kernel.model_how)
    return known(answer, seen.kernel.model_how)


def preemption_model_how(kind: FactKind, seen: Seen) -> FactValue:
    """Take the evidence for it."""
    return known(seen.kernel.model_how, ", ".join(kind.paths))


def rt_group_sched(kind: FactKind, seen: Seen) -> FactValue:
    """Take the build's setting and, where it is only a default, the boot's."""
    config = seen.kernel.config
    if config is None:
        return unknown(kind, seen, seen.kernel.config_source)
    if not config.is_on("RT_GROUP_SCHED"):
        return known(False, config.source)
    for value in reversed(boot_values(seen.text(CMDLINE) or "", "rt_group_sched")):
        if value in {"0", "1"}:
            return known(value == "1", f"rt_group_sched={value} in {CMDLINE}")
    default = not config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED")
    return known(default, config.source)


def rt_throttling(kind: FactKind, seen: Seen) -> FactValue:
    """Say whether RT threads can be throttled; it changed its meaning with 6.12."""
    runtime = seen.text(RUNTIME)
    if runtime is None:
        return unknown(kind, seen)
    if runtime == "-1":
        return known(False, f"{RUNTIME} is -1")
    fair_server = is_release_since(seen.kernel.release, (6, 12))
    if fair_server is None:
        return unknown(kind, seen, "depends on the kernel's release, which is unknown")
    if not fair_server:
        return known(True, f"{RUNTIME}: {BEFORE_6_12}")
    config = seen.kernel.config
    if config is None:
        why = f"depends on RT_GROUP_SCHED; {seen.kernel.config_source}"
        return unknown(kind, seen, why)
    if config.is_on("RT_GROUP_SCHED"):
        return known(True, f"{config.source}: {GROUPS_THROTTLE}")
    return known(False, f"{config.source}: {FAIR_SERVER}")
