"""
Read the facts of a machine: in one round trip, with a parser for each form.

    facts = gather(target.reader)                       # before the run, and after it

A fact that cannot be read has no value but a reason: a missing file never becomes a
setting.
"""

import contextlib
import re
import shlex
from collections.abc import Callable, Mapping

from rtscope.host.units import is_whole
from rtscope.machine import guest, kernelidentity
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.facts import FactKind, FactValue, Value, catalogue
from rtscope.machine.kernelidentity import (
    CMDLINE,
    KernelIdentity,
    boot_values,
    is_release_since,
)
from rtscope.machine.reader import Reader
from rtscope.machine.snapshot import MachineSnapshot


def paths() -> list[str]:
    """Return what `gather` reads first, each once: for those who read it elsewhere."""
    wanted = [path for kind in catalogue().values() for path in kind.paths]
    return list(dict.fromkeys([*wanted, *kernelidentity.PATHS]))


def gather(reader: Reader, *, kernel_log: str = "") -> Mapping[str, FactValue]:
    """
    Read every fact of the catalogue, in one round trip.

    A second one follows only on a machine whose kernel does not carry its own
    configuration: where that lies depends on the release. `kernel_log` is the log since
    boot, where it can be had: it tells the preemption model of PREEMPT_DYNAMIC. Raises
    TargetError if the machine does not answer.
    """
    kinds = catalogue()
    files = reader.read_many(paths())
    kernel = kernelidentity.identify(reader, files=files, kernel_log=kernel_log)
    seen = MachineSnapshot(files, kernel)
    return {name: PARSERS[kind.parser](kind, seen) for name, kind in kinds.items()}


Parser = Callable[[FactKind, MachineSnapshot], FactValue]


def known(value: Value, source: str) -> FactValue:
    """Make a fact."""
    return FactValue(value=value, source=source)


def unknown(kind: FactKind, seen: MachineSnapshot, why: str = "") -> FactValue:
    """Make a fact without value; without `why`, the state of its files says why."""
    return FactValue(
        value=None, source=", ".join(kind.paths), reason=why or _why_not(kind, seen)
    )


def _why_not(kind: FactKind, seen: MachineSnapshot) -> str:
    refused = {p: why for path in kind.paths for p, why in seen.refusals(path).items()}
    if refused:
        return "; ".join([f"{path}: {why}" for path, why in refused.items()][:3])
    if any(seen.exists(path) or seen.matching(path) for path in kind.paths):
        return f"{', '.join(kind.paths)}: unexpected contents"
    return kind.absent or f"{', '.join(kind.paths)}: no such file"


_CPU_OF = re.compile(r"/cpu(\d+)/")

_MARKED = re.compile(r"\[([^\]]+)\]")

_NO_CPUS = {"", "(null)"}

_FLAGS = {"0": False, "1": True, "N": False, "Y": True}


def _text(convert: Callable[[str], Value | None]) -> Parser:
    """Take the first file whose text can be converted."""

    def parse(kind: FactKind, seen: MachineSnapshot) -> FactValue:
        for path in kind.paths:
            text = seen.text(path)
            value = None if text is None else convert(text)
            if value is not None:
                return known(value, path)
        return unknown(kind, seen)

    return parse


def _guest_sign(find: Callable[[MachineSnapshot], guest.Sign]) -> Parser:
    """Take a sign of a guest, from several files."""

    def parse(kind: FactKind, seen: MachineSnapshot) -> FactValue:
        sign = find(seen)
        if sign.value is None:
            return unknown(kind, seen, sign.what)
        return known(sign.value, sign.source)

    return parse


def _kernel(answer: Callable[[KernelIdentity], tuple[Value | None, str]]) -> Parser:
    """Take an answer on the kernel, with its evidence or why there is none."""

    def parse(kind: FactKind, seen: MachineSnapshot) -> FactValue:
        value, how = answer(seen.kernel)
        return unknown(kind, seen, how) if value is None else known(value, how)

    return parse


def _evidence(how: Callable[[KernelIdentity], str]) -> Parser:
    """Take the evidence for such an answer."""
    return lambda kind, seen: known(how(seen.kernel), ", ".join(kind.paths))


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def _marked(text: str) -> str | None:
    """Take the choice in brackets: `always [madvise] never`."""
    match = _MARKED.search(text)
    return match[1] if match else None


def _load_average(text: str) -> str | None:
    words = text.split()
    return " ".join(words[:3]) if len(words) >= 3 else None


def _boost(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take Intel's switch, which says what is off, or the common one."""
    no_turbo, common = kind.paths
    off = _FLAGS.get(seen.text(no_turbo) or "")
    if off is not None:
        return known(not off, no_turbo)
    on = _FLAGS.get(seen.text(common) or "")
    return unknown(kind, seen) if on is None else known(on, common)


def _meminfo(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take a line of /proc/meminfo, in kB."""
    size_kb = _meminfo_kb(seen, kind.key)
    return unknown(kind, seen) if size_kb is None else known(size_kb, kind.paths[0])


def _swap_used(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take total less free swap, in kB."""
    total, free = _meminfo_kb(seen, "SwapTotal"), _meminfo_kb(seen, "SwapFree")
    if total is None or free is None:
        return unknown(kind, seen)
    return known(total - free, kind.paths[0])


def _os_release(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take a variable of os-release(5), which is quoted as for a shell."""
    for path in kind.paths:
        if value := os_release(seen.text(path) or "").get(kind.key):
            return known(value, path)
    return unknown(kind, seen)


def _device_tree_number(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take a cell of the device tree: a big-endian number of 4 or 8 bytes."""
    for path in kind.paths:
        cell = seen.raw(path)
        if cell is not None and len(cell) in {4, 8}:
            return known(int.from_bytes(cell, "big"), path)
    return unknown(kind, seen)


def _per_cpu(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """
    Take what each CPU's file says: one value if all online CPUs agree.

    Otherwise, and if it is not known which are online, `0-1=performance` for each
    group: a value read from CPU 0 must not pass for that of the others.
    """
    (pattern,) = kind.paths
    cpus_with: dict[str, list[int]] = {}
    for path, value in seen.matching(pattern).items():
        cpu = _CPU_OF.search(path)
        if cpu and value:
            cpus_with.setdefault(value, []).append(int(cpu[1]))
    if not cpus_with:
        return unknown(kind, seen)
    online = seen.text("/sys/devices/system/cpu/online")
    listed = {value: format_cpulist(cpus) for value, cpus in cpus_with.items()}
    if len(listed) == 1 and online in listed.values():
        (value,) = listed
        return known(int(value) if is_whole(value) else value, pattern)
    groups = sorted(f"{cpus}={value}" for value, cpus in listed.items())
    return known(tuple(groups), pattern)


def _thermal_zones(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take each zone's name and temperature, in °C."""
    _, temperatures = kind.paths
    zones = []
    for path, millidegrees in seen.matching(temperatures).items():
        name = seen.text(path.removesuffix("temp") + "type") or path.split("/")[-2]
        if re.fullmatch(r"-?\d{1,9}", millidegrees):
            zones.append(f"{name} {int(millidegrees) / 1000:.1f} °C")
    return known(tuple(zones), temperatures) if zones else unknown(kind, seen)


def _of_firmware(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take nothing: only a run asks the firmware, see `firmware`."""
    model = "".join(seen.text(path) or "" for path in kind.paths)
    asked = "only a run asks its firmware" if "Raspberry Pi" in model else kind.absent
    return unknown(kind, seen, asked)


def _mitigations(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Return the state of each flaw that affects this CPU."""
    (pattern,) = kind.paths
    said = seen.matching(pattern)
    if not said:
        return unknown(kind, seen)
    affected = [
        f"{path.rpartition('/')[2]}: {state}"
        for path, state in said.items()
        if state != "Not affected"
    ]
    return known(tuple(affected), pattern)


def _cpu_model(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take the CPUs' names, or on ARM and RISC-V what stands for one."""
    (path,) = kind.paths
    names = [_cpu_name(block) for block in (seen.text(path) or "").split("\n\n")]
    different = tuple(dict.fromkeys(name for name in names if name))
    if not different:
        return unknown(kind, seen)
    return known(different[0] if len(different) == 1 else different, path)


def _machine_model(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Take the device tree's model, else vendor and product from DMI."""
    device_tree, vendor, product = kind.paths
    model = seen.text(device_tree)
    if model:
        return known(model, device_tree)
    named = " ".join(filter(None, (seen.text(vendor), seen.text(product))))
    return known(named, f"{vendor}, {product}") if named else unknown(kind, seen)


def _meminfo_kb(seen: MachineSnapshot, key: str) -> int | None:
    line = re.search(rf"^{key}:\s+(\d+) kB$", seen.text("/proc/meminfo") or "", re.M)
    return int(line[1]) if line else None


def os_release(text: str) -> Mapping[str, str]:
    """Return the variables of os-release(5) that are quoted as it wants it."""
    values = {}
    for line in text.splitlines():
        name, _, quoted = line.partition("=")
        with contextlib.suppress(ValueError):
            values[name.strip()] = "".join(shlex.split(quoted))
    return values


def _cpu_name(block: str) -> str:
    fields = {
        name.strip(): value.strip()
        for name, _, value in (line.partition(":") for line in block.splitlines())
    }
    if "CPU implementer" in fields and "CPU part" in fields:
        # arm64 writes numbers: Documentation/arch/arm64/cpu-feature-registers.rst
        return f"ARM implementer {fields['CPU implementer']} part {fields['CPU part']}"
    riscv = " ".join(filter(None, (fields.get("uarch"), fields.get("isa"))))
    return fields.get("model name") or riscv or fields.get("cpu", "")


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


def _rt_group_sched(kind: FactKind, seen: MachineSnapshot) -> FactValue:
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


def _rt_throttling(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Say whether RT threads can be throttled; it changed its meaning with 6.12."""
    runtime = seen.text(RUNTIME)
    if runtime is None:
        return unknown(kind, seen)
    if runtime == "-1":
        return known(False, f"{RUNTIME} is -1")
    enforced, why = enforces_rt_limit(seen.kernel)
    return unknown(kind, seen, why) if enforced is None else known(enforced, why)


def enforces_rt_limit(kernel: KernelIdentity) -> tuple[bool | None, str]:
    """Return whether a kernel stops FIFO and RR threads at a limit, and how we know."""
    since_6_12 = is_release_since(kernel.release, (6, 12))
    if since_6_12 is None:
        return None, "depends on the release of the kernel, which is unknown"
    if not since_6_12:
        return True, f"{RUNTIME}: {BEFORE_6_12}"
    config = kernel.config
    if config is None:
        return None, f"depends on RT_GROUP_SCHED; {kernel.config_source}"
    if config.is_on("RT_GROUP_SCHED"):
        return True, f"{config.source}: {GROUPS_THROTTLE}"
    if not config.lacks("RT_GROUP_SCHED"):
        return None, f"{config.source} does not mention CONFIG_RT_GROUP_SCHED"
    return False, f"{config.source}: {FAIR_SERVER}"


def _irqbalance(kind: FactKind, seen: MachineSnapshot) -> FactValue:
    """Say whether irqbalance runs; False only if all processes can be seen."""
    (pattern,) = kind.paths
    for path, name in seen.matching(pattern).items():
        if name == "irqbalance":
            return known(True, path)
    if seen.text(guest.KERNEL_THREADS) == "kthreadd":
        return known(False, pattern)
    return unknown(kind, seen, "the host's processes are not visible")


PARSERS: Mapping[str, Parser] = {
    "boost": _boost,
    "config_digest": _kernel(
        lambda k: (k.config.digest if k.config else None, k.config_source)
    ),
    "container": _guest_sign(guest.container),
    "container_kind": _guest_sign(guest.container_kind),
    "cpu_model": _cpu_model,
    "cpu_set": _text(lambda text: "" if text in _NO_CPUS else text),
    "device_tree_number": _device_tree_number,
    "flag": _text(_FLAGS.get),
    "guest": _guest_sign(guest.guest),
    "hypervisor": _guest_sign(guest.hypervisor),
    "integer": _text(_integer),
    "irqbalance": _irqbalance,
    "load_average": _text(_load_average),
    "machine_model": _machine_model,
    "marked": _text(_marked),
    "meminfo": _meminfo,
    "mitigations": _mitigations,
    "number": _text(_number),
    "os_release": _os_release,
    "per_cpu": _per_cpu,
    "preempt_rt": _kernel(lambda k: (k.preempt_rt, k.how)),
    "preempt_rt_how": _evidence(lambda k: k.how),
    "preemption_model": _kernel(lambda k: (k.preemption_model, k.model_how)),
    "preemption_model_how": _evidence(lambda k: k.model_how),
    "rt_group_sched": _rt_group_sched,
    "rt_throttling": _rt_throttling,
    "swap_used": _swap_used,
    "text": _text(lambda text: text or None),
    "of_firmware": _of_firmware,
    "thermal_zones": _thermal_zones,
    "words": _text(lambda text: tuple(text.split()) or None),
}
"""How the files of a fact are read, by the form that its row in `facts.toml` names."""
