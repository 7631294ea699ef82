"""
One function per form that a fact has in the files of a machine.

Each takes the row of the fact and what was read, and gives a value only for what the
file says: a file that is missing, refused or not understood gives None and the reason.
"""

import re
import shlex
from collections.abc import Mapping

from rtscope.cpulist import format_cpulist, parse_cpulist
from rtscope.errors import UsageError
from rtscope.machine.catalogue import FactKind, FactValue, Seen, known, unknown

_CPU_OF = re.compile(r"/cpu(\d+)/")
_MARKED = re.compile(r"\[([^\]]+)\]")
_NO_CPUS = {"", "(null)"}
_FLAGS = {"0": False, "1": True, "N": False, "Y": True}


def text(kind: FactKind, seen: Seen) -> FactValue:
    """Take the first file's whole text."""
    for path in kind.paths:
        found = seen.text(path)
        if found:
            return known(found, path)
    return unknown(kind, seen)


def words(kind: FactKind, seen: Seen) -> FactValue:
    """Take the words of a line."""
    found = seen.text(kind.paths[0])
    return known(tuple(found.split()), kind.paths[0]) if found else unknown(kind, seen)


def integer(kind: FactKind, seen: Seen) -> FactValue:
    """Take a whole number."""
    found = seen.text(kind.paths[0])
    try:
        return known(int(found or ""), kind.paths[0])
    except ValueError:
        return unknown(kind, seen)


def number(kind: FactKind, seen: Seen) -> FactValue:
    """Take the first of the numbers of a line."""
    found = seen.text(kind.paths[0])
    try:
        return known(float((found or "").split()[0]), kind.paths[0])
    except (ValueError, IndexError):
        return unknown(kind, seen)


def flag(kind: FactKind, seen: Seen) -> FactValue:
    """Take a switch: 0 or 1, N or Y."""
    found = _FLAGS.get(seen.text(kind.paths[0]) or "")
    return unknown(kind, seen) if found is None else known(found, kind.paths[0])


def boost(kind: FactKind, seen: Seen) -> FactValue:
    """Take Intel's switch, which says what is off, or the common one."""
    no_turbo, common = kind.paths
    off = _FLAGS.get(seen.text(no_turbo) or "")
    if off is not None:
        return known(not off, no_turbo)
    on = _FLAGS.get(seen.text(common) or "")
    return unknown(kind, seen) if on is None else known(on, common)


def marked(kind: FactKind, seen: Seen) -> FactValue:
    """Take the choice in brackets: `always [madvise] never`."""
    found = _MARKED.search(seen.text(kind.paths[0]) or "")
    return known(found[1], kind.paths[0]) if found else unknown(kind, seen)


def cpu_set(kind: FactKind, seen: Seen) -> FactValue:
    """Take a list of CPUs; an empty one is a value, it means none."""
    found = seen.text(kind.paths[0])
    if found is None:
        return unknown(kind, seen)
    return known("" if found in _NO_CPUS else found, kind.paths[0])


def meminfo(kind: FactKind, seen: Seen) -> FactValue:
    """Take a line of /proc/meminfo, in kB."""
    found = _meminfo_kb(seen, kind.key)
    return unknown(kind, seen) if found is None else known(found, kind.paths[0])


def swap_used(kind: FactKind, seen: Seen) -> FactValue:
    """Take total less free swap, in kB."""
    total, free = _meminfo_kb(seen, "SwapTotal"), _meminfo_kb(seen, "SwapFree")
    if total is None or free is None:
        return unknown(kind, seen)
    return known(total - free, kind.paths[0])


def load_average(kind: FactKind, seen: Seen) -> FactValue:
    """Take the three averages."""
    found = (seen.text(kind.paths[0]) or "").split()
    if len(found) < 3:
        return unknown(kind, seen)
    return known(" ".join(found[:3]), kind.paths[0])


def os_release(kind: FactKind, seen: Seen) -> FactValue:
    """Take a variable of os-release(5), which is quoted as for a shell."""
    for path in kind.paths:
        for line in (seen.text(path) or "").splitlines():
            name, _, quoted = line.partition("=")
            if name == kind.key and (value := _unquote(quoted)):
                return known(value, path)
    return unknown(kind, seen)


def device_tree_number(kind: FactKind, seen: Seen) -> FactValue:
    """Take a cell of the device tree: a big-endian number of 4 or 8 bytes."""
    for path in kind.paths:
        cell = seen.raw(path)
        if cell is not None and len(cell) in {4, 8}:
            return known(int.from_bytes(cell, "big"), path)
    return unknown(kind, seen)


def per_cpu(kind: FactKind, seen: Seen) -> FactValue:
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
        return known(int(value) if value.isdecimal() else value, pattern)
    groups = sorted(f"{cpus}={value}" for value, cpus in listed.items())
    return known(tuple(groups), pattern)


def value_of_cpus(fact: FactValue, cpus: tuple[int, ...]) -> Mapping[int, str]:
    """Undo `per_cpu`: return the value of each of these CPUs that is known."""
    if fact.value is None:
        return {}
    if not isinstance(fact.value, tuple):
        return {cpu: str(fact.value) for cpu in cpus}
    values: dict[int, str] = {}
    for group in fact.value:
        listed, _, value = group.partition("=")
        values |= {cpu: value for cpu in cpus_in(listed) or () if cpu in cpus}
    return values


def cpus_in(listed: object) -> frozenset[int] | None:
    """Return the CPUs of a list, None if it is none."""
    if not isinstance(listed, str):
        return None
    try:
        return frozenset(parse_cpulist(listed))
    except UsageError:
        return None


def thermal_zones(kind: FactKind, seen: Seen) -> FactValue:
    """Take each zone's name and temperature, in °C."""
    _, temperatures = kind.paths
    zones = []
    for path, millidegrees in seen.matching(temperatures).items():
        name = seen.text(path.removesuffix("temp") + "type") or path.split("/")[-2]
        if re.fullmatch(r"-?\d{1,9}", millidegrees):
            zones.append(f"{name} {int(millidegrees) / 1000:.1f} °C")
    return known(tuple(zones), temperatures) if zones else unknown(kind, seen)


def mitigations(kind: FactKind, seen: Seen) -> FactValue:
    """Take what is said of each flaw that affects this CPU."""
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


def cpu_model(kind: FactKind, seen: Seen) -> FactValue:
    """Take the CPUs' names, or on ARM and RISC-V what stands for one."""
    (path,) = kind.paths
    names = [_cpu_name(block) for block in (seen.text(path) or "").split("\n\n")]
    different = tuple(dict.fromkeys(name for name in names if name))
    if not different:
        return unknown(kind, seen)
    return known(different[0] if len(different) == 1 else different, path)


def machine_model(kind: FactKind, seen: Seen) -> FactValue:
    """Take the device tree's model, else vendor and product from DMI."""
    device_tree, vendor, product = kind.paths
    model = seen.text(device_tree)
    if model:
        return known(model, device_tree)
    named = " ".join(filter(None, (seen.text(vendor), seen.text(product))))
    return known(named, f"{vendor}, {product}") if named else unknown(kind, seen)


def _meminfo_kb(seen: Seen, key: str) -> int | None:
    line = re.search(rf"^{key}:\s+(\d+) kB$", seen.text("/proc/meminfo") or "", re.M)
    return int(line[1]) if line else None


def _unquote(quoted: str) -> str:
    try:
        return "".join(shlex.split(quoted))
    except ValueError:
        return ""


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
