"""
Checks of the last-level cache: whether CPUs set apart have a part of their own.

The resctrl file system gives groups of CPUs and tasks a mask of a cache's ways; for who
uses which mask see Documentation/arch/x86/resctrl.rst (Resource allocation rules).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.machine.audit.context import (
    NOT_SET_APART,
    Answer,
    AuditContext,
    Cpus,
    cpu_of,
    failed,
    listed,
    not_applicable,
    online,
    passed,
    set_apart,
    unknown,
)
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.guest import CPUINFO

RESCTRL = "/sys/fs/resctrl"
CAN_PARTITION = "cat_l3"
"""The flag of x86 processors (arch/x86/kernel/cpu/scattered.c)."""

_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)
_LINE = re.compile(r"^\s*L3(?:CODE|DATA)?:(.+)$", re.MULTILINE)
_MASK = re.compile(r"\s*(\d{1,9})\s*=\s*([0-9a-fA-F]{1,16})\s*")

Masks = Mapping[int, int]
"""Ways of a cache as bits, by the cache's id."""


@dataclass(frozen=True, slots=True)
class _Group:
    path: str
    cpus: Cpus
    masks: Masks


def cache_partition(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether CPUs set apart have ways of the last-level cache of their own."""
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    caches = _caches(context)
    known = apart <= caches.keys()
    if known and all(cpus <= apart for cpus in _sharing(caches, apart)):
        return not_applicable("no other CPU shares their last-level cache")
    top = context.text(f"{RESCTRL}/schemata")
    if top is None:
        return _without_resctrl(context)
    groups = _groups(context)
    if isinstance(groups, Sighting):
        return unknown(f"{groups.path} is not readable as masks", groups)
    if not any(group.masks for group in groups):
        return not_applicable("resctrl has no masks of a last-level cache here")
    if not known:
        return unknown("the kernel does not tell the last-level caches of these CPUs")
    return _judge(groups, apart, caches)


def _judge(groups: list[_Group], apart: Cpus, caches: Mapping[int, int]) -> Answer:
    sightings = [Sighting(group.path, _describe(group)) for group in groups[:16]]
    for cpu in sorted(apart):
        own = next((g for g in groups if cpu in g.cpus), None)
        if own is None:
            return unknown(f"CPU {cpu} is in no group", *sightings)
        cache = caches[cpu]
        if cache not in own.masks:
            return unknown(f"{own.path} has no mask of cache {cache}", *sightings)
        # A group of tasks alone has no CPUs, and its tasks may run on any.
        others = [
            g for g in groups if g is not own and not (g.cpus and g.cpus <= apart)
        ]
        if not own.cpus <= apart:
            return failed(f"CPU {cpu} shares the ways of {own.path}", *sightings)
        for other in others:
            if own.masks[cache] & other.masks.get(cache, 0):
                return failed(f"CPU {cpu} shares ways with {other.path}", *sightings)
    return passed(f"CPU {format_cpulist(apart)} has ways of its own", *sightings)


def _without_resctrl(context: AuditContext) -> Answer:
    refused = context.refusals(f"{RESCTRL}/schemata")
    if refused:
        return unknown("not readable", *refused)
    flags = _FLAGS.search(context.words(CPUINFO))
    if flags is None:
        return unknown(f"no {RESCTRL}; unknown whether the processor can do it")
    if CAN_PARTITION not in flags[1].split():
        flag = Sighting(CPUINFO, f"no flag {CAN_PARTITION}")
        return not_applicable("this processor cannot partition its cache", flag)
    flag = Sighting(CPUINFO, f"the flag {CAN_PARTITION}")
    config = context.config
    if config is not None and config.lacks("X86_CPU_RESCTRL"):
        unset = Sighting(config.source, "CONFIG_X86_CPU_RESCTRL is not set")
        return failed("the processor can, and the kernel cannot", flag, unset)
    return unknown(
        f"{RESCTRL} is not mounted: mount -t resctrl resctrl {RESCTRL}", flag
    )


def _groups(context: AuditContext) -> list[_Group] | Sighting:
    """Return the groups, the default one last; or what cannot be read of them."""
    files = {
        **context.matching(f"{RESCTRL}/*/schemata"),
        f"{RESCTRL}/schemata": context.words(f"{RESCTRL}/schemata"),
    }
    groups = []
    for path, text in files.items():
        list_path = path.replace("/schemata", "/cpus_list")
        cpus = listed(context.words(list_path))
        masks = _masks(text)
        if cpus is None or masks is None:
            return Sighting(path, text[:200])
        if context.text(list_path) is None:
            return Sighting(list_path, "not readable")
        groups.append(_Group(path, cpus, masks))
    return groups


def _masks(text: str) -> Masks | None:
    """Return the masks of the L3 lines; with code and data apart, both together."""
    masks: dict[int, int] = {}
    for line in _LINE.findall(text):
        for part in line.split(";"):
            match = _MASK.fullmatch(part)
            if match is None:
                return None
            cache, mask = int(match[1]), int(match[2], 16)
            masks[cache] = masks.get(cache, 0) | mask
    return masks


def _caches(context: AuditContext) -> Mapping[int, int]:
    """Return the id of each CPU's last-level cache."""
    ids = {}
    levels = "/sys/devices/system/cpu/cpu*/cache/index*/level"
    for path, level in context.matching(levels).items():
        cpu, number = cpu_of(path), context.words(path.replace("/level", "/id"))
        if level == "3" and cpu is not None and re.fullmatch(r"\d{1,9}", number):
            ids[cpu] = int(number)
    there = online(context)
    return ids if there is None else {c: i for c, i in ids.items() if c in there}


def _sharing(caches: Mapping[int, int], apart: Cpus) -> list[Cpus]:
    """Return the CPUs of each cache that these CPUs use."""
    ids = {caches[cpu] for cpu in apart}
    return [frozenset(c for c, own in caches.items() if own == i) for i in ids]


def _describe(group: _Group) -> str:
    masks = "; ".join(f"{cache}={mask:x}" for cache, mask in group.masks.items())
    return f"CPU {format_cpulist(group.cpus) or 'none'}, L3 {masks or 'none'}"
