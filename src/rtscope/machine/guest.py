"""
What the machine runs in: a virtual machine, a container, or nothing but itself.

Signs are weighed, not counted. One that would be there in any case (DMI of a cloud's
bare-metal computers names the cloud, too) or that can be left over (/.dockerenv of an
image that was booted) decides nothing alone.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import cast

from rtscope.machine.snapshot import MachineSnapshot

CPUINFO = "/proc/cpuinfo"
XEN = "/sys/hypervisor/type"
CLOCKSOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
DMI = "/sys/class/dmi/id"
DEVICE_TREE = "/proc/device-tree"
DMI_FIELDS = ("sys_vendor", "product_name", "bios_vendor")

_TREE_MODELS = ("linux,dummy-virt", "qemu", "riscv-virtio")
_X86_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)

_CGROUP_NAMES = re.compile(r"[:/.-](docker|lxc|libpod|kubepods|machine-nspawn)\b")
_MARKS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
KERNEL_THREADS = "/proc/2/comm"


@dataclass(frozen=True, slots=True)
class Sign:
    """An answer, where its sign was seen, and what was seen there."""

    value: bool | str | None
    """None: unknown, and `what` is the reason."""
    what: str
    where: str = ""

    @property
    def source(self) -> str:
        """The sign in one phrase."""
        return f"{self.where} {self.what}".strip()


@cache
def _names(place: str) -> Mapping[str, str]:
    """Return the names of hypervisors by the words that a source has for them."""
    folder = resources.files("rtscope.machine")
    names = tomllib.loads(folder.joinpath("hypervisors.toml").read_text("utf-8"))
    return cast("Mapping[str, str]", names[place])


def guest(machine: MachineSnapshot) -> Sign:
    """Say whether a hypervisor runs this machine; None if no sign can be read."""
    if xen := machine.text(XEN):
        return Sign(True, f"says {xen}", XEN)
    flags = _X86_FLAGS.search(machine.text(CPUINFO) or "")
    if flags:
        # On x86 the CPU itself tells; DMI of a bare-metal cloud computer misleads.
        there = "hypervisor" in flags[1].split()
        says = "has" if there else "lacks"
        return Sign(there, f"{says} the flag 'hypervisor'", CPUINFO)
    if sign := _tree_sign(machine):
        return sign
    if named := _dmi_name(machine):
        return Sign(not _is_bare_metal(machine), f"names {named}", DMI)
    model = machine.text(f"{DEVICE_TREE}/model") or _dmi_text(machine)
    if model:
        says = f"calls the machine '{model}', no hypervisor"
        return Sign(False, says, "the firmware")
    return Sign(None, "no CPU flag, DMI or device tree shows it")


def hypervisor(machine: MachineSnapshot) -> Sign:
    """Name the hypervisor: `none` if there is none, None if unknown."""
    running = guest(machine)
    if not running.value:
        none = None if running.value is None else "none"
        return Sign(none, running.what, running.where)
    if xen := machine.text(XEN):
        return Sign(xen, "", XEN)
    if named := _dmi_name(machine):
        return Sign(named, "", DMI)
    if sign := _tree_sign(machine):
        return Sign(_tree_name(sign), "", DEVICE_TREE)
    clocks = machine.text(CLOCKSOURCES) or ""
    for clock, name in _names("clock").items():
        if clock in clocks:
            return Sign(name, f"lists {clock}", CLOCKSOURCES)
    return Sign(None, "the hypervisor does not give its name")


def container(machine: MachineSnapshot) -> Sign:
    """Say whether the files were read from inside a container."""
    kind = container_kind(machine)
    inside = None if kind.value is None else kind.value != "none"
    return Sign(inside, kind.what, kind.where)


def container_kind(machine: MachineSnapshot) -> Sign:
    """Name the kind of container: `none` if it is none, None if unknown."""
    if said := _container_says(machine):
        return said
    marks = {path: kind for path, kind in _MARKS.items() if machine.exists(path)}
    # The kernel's own threads are seen from the first process namespace only.
    host = machine.text(KERNEL_THREADS) == "kthreadd"
    if host and marks:
        return Sign(
            None,
            f"contradictory: {', '.join(marks)} is there, yet so are the kernel's "
            "threads: an image booted as a machine, or a container that shares the "
            "host's processes",
        )
    if marks:
        return Sign(list(marks.values())[-1], "", ", ".join(marks))
    if host:
        says = f"{KERNEL_THREADS} is kthreadd: the host's own processes"
        return Sign("none", says)
    return Sign(
        None, "no sign of a container, but the kernel's threads are not visible"
    )


def _dmi_text(machine: MachineSnapshot) -> str:
    return " ".join(
        machine.text(f"{DMI}/{field}") or "" for field in DMI_FIELDS
    ).strip()


def _dmi_name(machine: MachineSnapshot) -> str:
    text = _dmi_text(machine)
    return next((name for sign, name in _names("dmi").items() if sign in text), "")


def _is_bare_metal(machine: MachineSnapshot) -> bool:
    # Amazon's instance types of whole computers: c7g.metal, c7g.metal-48xl
    return ".metal" in (machine.text(f"{DMI}/product_name") or "")


def _tree_sign(machine: MachineSnapshot) -> Sign | None:
    """Return which node of the device tree only a hypervisor makes."""
    if node := machine.text(f"{DEVICE_TREE}/hypervisor/compatible"):
        return Sign(True, f"says {_words(node)}", f"{DEVICE_TREE}/hypervisor")
    for path in (f"{DEVICE_TREE}/model", f"{DEVICE_TREE}/compatible"):
        says = machine.text(path) or ""
        if any(model in says for model in _TREE_MODELS):
            return Sign(True, f"says {_words(says)}", path)
    if machine.matching(f"{DEVICE_TREE}/fw-cfg*/compatible"):
        return Sign(True, "is there: QEMU", f"{DEVICE_TREE}/fw-cfg")
    return None


def _tree_name(sign: Sign) -> str:
    says, names = sign.source.lower(), _names("tree").items()
    return next((name for word, name in names if word in says), "unnamed")


def _words(strings: str) -> str:
    """Write a device tree's list of strings, which NUL separates, on one line."""
    return ", ".join(filter(None, strings.split("\0")))


def _container_says(machine: MachineSnapshot) -> Sign | None:
    """Return the kind where the container's own manager names itself."""
    path = "/run/systemd/container"
    if named := machine.text(path):
        return Sign(named, "", path)
    for variable in (machine.text("/proc/1/environ") or "").split("\0"):
        if variable.startswith("container=") and variable != "container=":
            return Sign(variable.partition("=")[2], "", "/proc/1/environ")
    group = _CGROUP_NAMES.search(machine.text("/proc/1/cgroup") or "")
    return Sign(group[1], "", "/proc/1/cgroup") if group else None
