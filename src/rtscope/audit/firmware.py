"""Judges of what happens below the kernel: management interrupts, heat."""

import re

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
from rtscope.audit.surroundings import of_guest

NS_PER_S = 1_000_000_000

_PROCESSOR = re.compile(r"cpu|x86_pkg_temp|soc|acpitz", re.IGNORECASE)
_LIMITS = ("passive", "hot", "critical")
"""Trips at which something is done about it (sysfs-api.rst); `active` is a fan."""


def smi_count(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the firmware took the CPUs away while they were watched."""
    words = (scene.text(kind.paths[0]) or "").split()
    if of_guest(scene):
        return not_applicable("a guest does not see those of the host")
    if words and "GenuineIntel" not in words:
        return not_applicable("only Intel's processors count them")
    seen = scene.observed
    if not seen.smi_after:
        return unknown(seen.why_no_smi)
    if not seen.window_ns:
        return unknown("nothing was watched (--observe 0)")
    came = {
        path: after - seen.smi_before[path]
        for path, after in seen.smi_after.items()
        if path in seen.smi_before
    }
    window = f"in {seen.window_ns / NS_PER_S:.1f} s"
    told = [
        Evidence(path, f"{count} {window}, {seen.smi_after[path]} since the reset")
        for path, count in list(came.items())[:16]
    ]
    if any(came.values()):
        # An SMI stops all CPUs together, and each of them counts it.
        return failed(f"{max(came.values())} {window}", *told)
    if not came:
        return unknown("no CPU's counter could be read twice")
    return passed(f"none {window}", *told)


def temperature(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge how far a processor is from the heat at which it is slowed down.

    Key: `margin_mc`, the distance that is still good, in thousandths of a degree.
    """
    zones = [
        path.removesuffix("/type")
        for path, text in scene.matching(kind.paths[0]).items()
        if _PROCESSOR.search(text)
    ]
    if not zones:
        return absent(kind)
    near, seen = [], []
    for zone in zones:
        limit, now = _limit_mc(scene, zone), _millidegrees(scene.text(f"{zone}/temp"))
        if limit is None or now is None:
            continue
        said = Evidence(f"{zone}/temp", f"{now / 1000:.0f} of {limit / 1000:.0f} C")
        seen.append(said)
        if limit - now < int(kind.args["margin_mc"]):
            near.append(said)
    if near:
        return failed(near[0].what, *near)
    if not seen:
        refused = [e for path in kind.paths for e in scene.refusals(path)]
        return unknown("no processor's zone tells temperature and limit", *refused)
    return passed(seen[0].what, *seen)


def _limit_mc(scene: Scene, zone: str) -> int | None:
    limits = [
        limit
        for path, kind_of_trip in scene.matching(f"{zone}/trip_point_*_type").items()
        if kind_of_trip in _LIMITS
        and (limit := _millidegrees(scene.text(path.replace("_type", "_temp"))))
        # Trips that nobody has set are 0 or below.
        and limit > 0
    ]
    return min(limits, default=None)


def _millidegrees(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text) else None


JUDGES = (smi_count, temperature)
