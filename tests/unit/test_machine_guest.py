"""Guests and containers are known by what only they show."""

import pytest

from fakes.audited import Case, judged
from fakes.gathered import fact, values
from fakes.trees import CONTAINER, DEBIAN_RT, GUEST, VISIONFIVE, Files, reader_of
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.facts import FactValue
from rtscope.machine.gather import gather


def test_a_container() -> None:
    facts = gather(reader_of(CONTAINER))

    assert facts["container"] == FactValue(True, "/.dockerenv")
    assert facts["container_kind"].value == "docker"
    assert facts["irqbalance"].reason == "the host's processes are not visible"
    assert facts["guest"].reason == "no CPU flag, DMI or device tree shows it"
    assert facts["preempt_rt"].value is False


@pytest.mark.parametrize(
    ("files", "container", "kind"),
    [
        ({"/run/systemd/container": "lxc\n"}, True, "lxc"),
        ({"/proc/1/environ": b"A=b\0container=oci\0"}, True, "oci"),
        ({"/proc/1/cgroup": "4:cpu:/docker/0a1b\n"}, True, "docker"),
        ({"/proc/1/cgroup": "0::/kubepods.slice/pod1\n"}, True, "kubepods"),
        ({"/run/.containerenv": b""}, True, "podman"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, None, None),
        ({"/proc/2/comm": "kthreadd\n", "/proc/1/cgroup": "0::/\n"}, False, "none"),
        ({"/proc/2/comm": "kthreadd\n", "/.dockerenv": b""}, None, None),
        ({}, None, None),
    ],
)
def test_containers_are_known_by_what_their_managers_leave(
    files: Files, container: bool | None, kind: str | None
) -> None:
    assert values(files, "container", "container_kind") == [container, kind]


def test_a_mark_beside_the_hosts_own_threads_is_contradictory() -> None:
    assert fact(GUEST, "container").reason == (
        "contradictory: /.dockerenv is there, yet so are the kernel's threads: an "
        "image booted as a machine, or a container that shares the host's processes"
    )


X86 = "flags\t\t: fpu tsc\n"
X86_GUEST = "flags\t\t: fpu hypervisor\n"
TREE = "/proc/device-tree"
DMI = "/sys/class/dmi/id"


def dmi(vendor: str, product: str) -> Files:
    return {f"{DMI}/sys_vendor": vendor, f"{DMI}/product_name": product}


MACHINES: list[tuple[Files, bool | None, str | None]] = [
    # DMI of a whole computer in a cloud names the cloud: the CPU knows better.
    ({"/proc/cpuinfo": X86, f"{DMI}/sys_vendor": "Amazon EC2"}, False, "none"),
    (
        {"/proc/cpuinfo": X86_GUEST, f"{DMI}/sys_vendor": "Amazon EC2"},
        True,
        "Amazon EC2",
    ),
    ({"/proc/cpuinfo": X86_GUEST, f"{DMI}/sys_vendor": "QEMU"}, True, "QEMU"),
    ({"/proc/cpuinfo": X86_GUEST}, True, None),
    ({"/proc/cpuinfo": X86, "/sys/hypervisor/type": "xen\n"}, True, "xen"),
    ({f"{TREE}/model": b"linux,dummy-virt\0"}, True, "unnamed"),
    ({f"{TREE}/compatible": b"riscv-virtio,qemu\0"}, True, "QEMU"),
    ({f"{TREE}/hypervisor/compatible": b"linux,kvm\0"}, True, "KVM"),
    ({f"{TREE}/hypervisor/compatible": b"xen,xen-4.1\0xen,xen\0"}, True, "Xen"),
    ({f"{TREE}/fw-cfg@9020000/compatible": b"qemu,fw-cfg-mmio\0"}, True, "QEMU"),
    ({f"{TREE}/model": b"Raspberry Pi 4 Model B\0"}, False, "none"),
    (
        {
            f"{DMI}/sys_vendor": "Amazon EC2",
            f"{DMI}/product_name": "c7g.metal",
        },
        False,
        "none",
    ),
    ({f"{DMI}/sys_vendor": "Ampere"}, False, "none"),
    # Without a flag of the CPU: arm64 in clouds and on a Mac, Xen.
    (dmi("Amazon EC2", "c7g.large"), True, "Amazon EC2"),
    (dmi("Google", "Google Compute Engine"), True, "Google Compute Engine"),
    (
        dmi("Apple Inc.", "Apple Virtualization Generic Platform"),
        True,
        "Apple Virtualization",
    ),
    (
        {
            "/proc/cpuinfo": X86,
            "/sys/hypervisor/type": "xen",
            **dmi("Dell Inc.", "PowerEdge"),
        },
        True,
        "xen",
    ),
    (
        {
            f"{TREE}/compatible": b"arm,foundation\0",
            f"{TREE}/hypervisor/compatible": b"xen,xen\0",
        },
        True,
        "Xen",
    ),
    ({f"{TREE}/compatible": b"riscv-virtio\0"}, True, "unnamed"),
    (VISIONFIVE, False, "none"),
    (DEBIAN_RT, False, "none"),
    (GUEST, True, "KVM"),
    (CONTAINER, None, None),
    ({}, None, None),
]


@pytest.mark.parametrize(("files", "guest", "hypervisor"), MACHINES)
def test_guests_are_known_by_what_only_a_hypervisor_shows(
    files: Files, guest: bool | None, hypervisor: str | None
) -> None:
    assert values(files, "guest", "hypervisor") == [guest, hypervisor]


OUTCOMES = {
    "True": CheckOutcome.FAIL,
    "False": CheckOutcome.PASS,
    "None": CheckOutcome.UNKNOWN,
}


@pytest.mark.parametrize("files", [machine[0] for machine in MACHINES])
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_the_audit_and_the_facts_agree_on_guests(files: Files, arch: str) -> None:
    guest = fact(files, "guest")
    check = judged("bare_metal", Case(files, arch=arch))

    assert check.outcome is OUTCOMES[str(guest.value)]
    told = [f"{sign.path} {sign.value}" for sign in check.evidence]
    assert told == ([guest.source] if guest.value is not None else [])
