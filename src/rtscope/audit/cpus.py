"""Which CPUs a check is about, and the sets of CPUs that files name."""

from rtscope.audit.scene import Scene
from rtscope.cpulist import format_cpulist, parse_cpulist
from rtscope.errors import UsageError

ONLINE = "/sys/devices/system/cpu/online"
ISOLATED = "/sys/devices/system/cpu/isolated"
PARTITIONS = "/sys/fs/cgroup/cpuset.cpus.isolated"
"""CPUs of isolated cpuset partitions (cgroup-v2.rst)."""

CPU_SETS = (ONLINE, ISOLATED, PARTITIONS)
"""What says which CPUs there are and which are set apart."""

NOT_SET_APART = "no CPU that is online is set apart; name them with --cpus"

Cpus = frozenset[int]


def listed(text: str) -> Cpus | None:
    """Return the CPUs of the kernel's list; None if it is malformed."""
    # sysfs prints "(null)" for a mask that was never allocated.
    if text.strip() in ("", "(null)"):
        return frozenset()
    try:
        return frozenset(parse_cpulist(text))
    except UsageError:
        return None


def masked(text: str) -> Cpus | None:
    """Return the CPUs of the kernel's mask, `ff,ffffffff`; None if it is malformed."""
    try:
        bits = int(text.strip().replace(",", ""), 16)
    except ValueError:
        return None
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def online(scene: Scene) -> Cpus | None:
    """Return the CPUs that the kernel schedules on; None if it cannot be told."""
    text = scene.text(ONLINE)
    return (listed(text) or None) if text is not None else None


def isolated(scene: Scene) -> Cpus:
    """Return the CPUs that the load balancing leaves alone, as far as it is seen."""
    texts = (scene.text(path) for path in (ISOLATED, PARTITIONS))
    return frozenset().union(*(listed(text) or () for text in texts if text))


def named(scene: Scene) -> Cpus:
    """Return the CPUs that are meant for real-time threads, also those offline."""
    return frozenset(scene.cpus) if scene.cpus is not None else isolated(scene)


def set_apart(scene: Scene) -> Cpus | None:
    """Return the CPUs for real-time threads: --cpus, else those that are isolated."""
    there = online(scene)
    # On a CPU that is offline nothing runs; a check of its own tells of it.
    cpus = named(scene) if there is None else named(scene) & there
    return cpus or None


def cpu_of(path: str) -> int | None:
    """Return the number of the directory `cpuN` in a path."""
    for part in path.split("/"):
        if part.startswith("cpu") and part[3:].isdecimal():
            return int(part[3:])
    return None


def refuse_absent(scene: Scene) -> None:
    """Raise UsageError if --cpus names one that is not online."""
    there = online(scene)
    if scene.cpus is None or there is None:
        return
    absent = set(scene.cpus) - there
    if absent:
        raise UsageError(
            f"--cpus: CPU {format_cpulist(absent)} is not online; this machine has "
            f"{format_cpulist(there)}"
        )
