"""Checks of network interfaces: when a packet interrupts, and which CPUs."""

from collections.abc import Mapping

from rtscope.machine.audit.answers import (
    Answer,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.context import (
    NOT_SET_APART,
    AuditContext,
    absent,
    masked,
    set_apart,
)
from rtscope.machine.audit.model import CheckKind, Sighting


def interrupt_coalescing(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether a network interface delays the interrupt for a packet."""
    every, hardware = kind.paths
    seen = context.observed
    if seen.coalescing is None:
        there = context.matching(every)
        if there and not context.matching(hardware) and not context.refusals(hardware):
            read = Sighting(every, f"{len(there)} read")
            return not_applicable("no network interface of hardware", read)
        return unknown(seen.why_no_coalescing)
    if not seen.coalescing:
        return not_applicable("no network interface of hardware is up")
    sightings = {
        name: Sighting(name, _describe(v)) for name, v in seen.coalescing.items()
    }
    late = [name for name, v in seen.coalescing.items() if _delays(v)]
    if late:
        says = f"{late[0]}: {sightings[late[0]].value}"
        return failed(says, *(sightings[name] for name in late[:16]))
    silent = [name for name, values in seen.coalescing.items() if not values]
    if silent:
        says = f"the driver of {silent[0]} does not tell"
        return unknown(says, *(sightings[name] for name in silent[:16]))
    return passed("none delays interrupts of packets", *list(sightings.values())[:16])


def packet_steering(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether packets are steered to CPUs that are set apart."""
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    pattern = kind.paths[0]
    masks = context.matching(pattern)
    cpus = {path: masked(text) for path, text in masks.items()}
    wrong = [path for path, mask in cpus.items() if mask and mask & apart]
    if wrong:
        says = f"{len(wrong)} of {len(masks)} queues, such as {wrong[0]}"
        return failed(says, *(Sighting(path, masks[path]) for path in wrong[:16]))
    odd = [path for path, mask in cpus.items() if mask is None]
    if odd:
        return unknown("not a CPU mask", Sighting(odd[0], masks[odd[0]][:80]))
    refused = context.refusals(pattern)
    if refused:
        return unknown("only partly readable", *refused)
    if not masks:
        return absent(kind, context)
    seen = [Sighting(path, text) for path, text in masks.items()]
    return passed(f"none of {len(masks)} queues", *seen[:16])


def _delays(values: Mapping[str, int]) -> bool:
    # Whichever comes first: so many microseconds, or so many packets (0: any number).
    packets = values.get("rx-frames", 0)
    waits = packets != 1 and values.get("rx-usecs", 0) > 0
    return waits or packets > 1 or values.get("adaptive-rx", 0) > 0


def _describe(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "no answer"
