"""
What the machine runs in, and beside: virtual machine, container, irqbalance.

Signs are weighed, not counted. One that would be there in any case (DMI of a cloud's
bare-metal computers names the cloud, too) or that can be left over (/.dockerenv of an
image that was booted) decides nothing alone.
"""

import re

from rtscope.machine.catalogue import FactKind, FactValue, Seen, known, unknown

CPUINFO = "/proc/cpuinfo"
XEN = "/sys/hypervisor/type"
CLOCKSOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
DMI = "/sys/class/dmi/id"
DEVICE_TREE = "/proc/device-tree"
DMI_FIELDS = ("sys_vendor", "product_name", "bios_vendor")

# As systemd's src/basic/virt.c reads them.
_DMI_NAMES = {
    "KVM": "KVM",
    "OpenStack": "KVM",
    "KubeVirt": "KVM",
    "Amazon EC2": "Amazon EC2",
    "Google Compute Engine": "Google Compute Engine",
    "QEMU": "QEMU",
    "VMware": "VMware",
    "VMW": "VMware",
    "innotek GmbH": "VirtualBox",
    "VirtualBox": "VirtualBox",
    "Xen": "Xen",
    "Bochs": "Bochs",
    "Parallels": "Parallels",
    "BHYVE": "bhyve",
    "Hyper-V": "Hyper-V",
    "Virtual Machine": "Hyper-V",
    "Apple Virtualization": "Apple Virtualization",
}
_CLOCK_NAMES = {"kvm-clock": "KVM", "hyperv_clocksource": "Hyper-V", "xen": "Xen"}
_TREE_MODELS = ("linux,dummy-virt", "qemu")
_X86_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)

_CGROUP_NAMES = re.compile(r"[:/.-](docker|lxc|libpod|kubepods|machine-nspawn)\b")
_MARKS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
KERNEL_THREADS = "/proc/2/comm"


def guest(kind: FactKind, seen: Seen) -> FactValue:
    """Say whether a hypervisor runs this machine; None if no sign can be read."""
    if seen.text(XEN):
        return known(True, f"{XEN} says {seen.text(XEN)}")
    flags = _X86_FLAGS.search(seen.text(CPUINFO) or "")
    if flags:
        # On x86 the CPU itself tells; DMI of a bare-metal cloud computer misleads.
        there = "hypervisor" in flags[1].split()
        says = "has" if there else "lacks"
        return known(there, f"{CPUINFO} {says} the flag 'hypervisor'")
    tree = _tree_sign(seen)
    if tree:
        return known(True, tree)
    named = _dmi_name(seen)
    if named:
        return known(not _is_bare_metal(seen), f"{DMI} names {named}")
    model = seen.text(f"{DEVICE_TREE}/model") or _dmi_text(seen)
    if model:
        return known(False, f"the firmware calls the machine '{model}', no hypervisor")
    return unknown(kind, seen, "no CPU flag, DMI or device tree tells")


def hypervisor(kind: FactKind, seen: Seen) -> FactValue:
    """Name the hypervisor: `none` if there is none, None if it does not tell."""
    running = guest(kind, seen)
    if running.value is None:
        return unknown(kind, seen, running.why)
    if running.value is False:
        return known("none", running.source)
    if seen.text(XEN):
        return known(seen.text(XEN) or "", XEN)
    named = _dmi_name(seen)
    if named:
        return known(named, DMI)
    if _tree_sign(seen):
        return known(_tree_name(seen), DEVICE_TREE)
    clocks = seen.text(CLOCKSOURCES) or ""
    for clock, name in _CLOCK_NAMES.items():
        if clock in clocks:
            return known(name, f"{CLOCKSOURCES} lists {clock}")
    return unknown(kind, seen, "the hypervisor does not give its name")


def container(kind: FactKind, seen: Seen) -> FactValue:
    """Say whether the files were read from inside a container."""
    said = _container_says(seen)
    if said is not None:
        return known(True, said[1])
    marks = _left_marks(seen)
    # The kernel's own threads are seen from the first process namespace only.
    host = seen.text(KERNEL_THREADS) == "kthreadd"
    if host and marks:
        why = (
            f"contradictory: {', '.join(marks)} is there, yet so are the kernel's "
            "threads: an image booted as a machine, or a container that shares the "
            "host's processes"
        )
        return unknown(kind, seen, why)
    if marks:
        return known(True, ", ".join(marks))
    if host:
        return known(False, f"{KERNEL_THREADS} is kthreadd: the host's own processes")
    return unknown(
        kind, seen, "no sign of a container, but the kernel's threads are not visible"
    )


def container_kind(kind: FactKind, seen: Seen) -> FactValue:
    """Name the kind of container: `none` if it is none."""
    inside = container(kind, seen)
    if inside.value is None:
        return unknown(kind, seen, inside.why)
    if inside.value is False:
        return known("none", inside.source)
    said = _container_says(seen)
    return known(said[0] if said else _left_marks(seen).popitem()[1], inside.source)


def irqbalance(kind: FactKind, seen: Seen) -> FactValue:
    """Say whether irqbalance runs; False only if all processes can be seen."""
    (pattern,) = kind.paths
    names = seen.matching(pattern)
    running = [path for path, name in names.items() if name == "irqbalance"]
    if running:
        return known(True, running[0])
    if seen.text(KERNEL_THREADS) == "kthreadd":
        return known(False, pattern)
    return unknown(kind, seen, "the host's processes are not visible")


def _dmi_text(seen: Seen) -> str:
    return " ".join(seen.text(f"{DMI}/{field}") or "" for field in DMI_FIELDS).strip()


def _dmi_name(seen: Seen) -> str:
    text = _dmi_text(seen)
    return next((name for sign, name in _DMI_NAMES.items() if sign in text), "")


def _is_bare_metal(seen: Seen) -> bool:
    # Amazon's instance types of whole computers: c7g.metal, c7g.metal-48xl
    return ".metal" in (seen.text(f"{DMI}/product_name") or "")


def _tree_sign(seen: Seen) -> str:
    """Return which node of the device tree only a hypervisor makes; empty if none."""
    node = seen.text(f"{DEVICE_TREE}/hypervisor/compatible")
    if node:
        return f"{DEVICE_TREE}/hypervisor says {_words(node)}"
    for name in ("model", "compatible"):
        says = seen.text(f"{DEVICE_TREE}/{name}") or ""
        if any(model in says for model in _TREE_MODELS):
            return f"{DEVICE_TREE}/{name} says {_words(says)}"
    if seen.matching(f"{DEVICE_TREE}/fw-cfg*/compatible"):
        return f"{DEVICE_TREE}/fw-cfg is there: QEMU"
    return ""


def _tree_name(seen: Seen) -> str:
    sign = _tree_sign(seen).lower()
    names = {"kvm": "KVM", "xen": "Xen", "vmware": "VMware", "qemu": "QEMU"}
    return next((name for word, name in names.items() if word in sign), "unnamed")


def _words(strings: str) -> str:
    """Write a device tree's list of strings, which NUL separates, on one line."""
    return ", ".join(filter(None, strings.split("\0")))


def _container_says(seen: Seen) -> tuple[str, str] | None:
    """Return kind and source where the container's own manager names itself."""
    path = "/run/systemd/container"
    named = seen.text(path)
    if named:
        return named, path
    for variable in (seen.text("/proc/1/environ") or "").split("\0"):
        if variable.startswith("container=") and variable != "container=":
            return variable.partition("=")[2], "/proc/1/environ"
    group = _CGROUP_NAMES.search(seen.text("/proc/1/cgroup") or "")
    return (group[1], "/proc/1/cgroup") if group else None


def _left_marks(seen: Seen) -> dict[str, str]:
    return {path: kind for path, kind in _MARKS.items() if seen.is_there(path)}
