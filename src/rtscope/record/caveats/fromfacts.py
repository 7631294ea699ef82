"""Which caveats the facts about a machine raise for a run on it."""

from collections.abc import Iterator, Mapping

from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.facts import FactValue, cpus_in, value_of_cpus
from rtscope.record.caveats.catalogue import Caveat, make

Facts = Mapping[str, FactValue]

_NOT_READ = FactValue(value=None, source="", reason="not read")


def caveats_from(
    before: Facts, after: Facts, *, cpus: tuple[int, ...], virtual: bool = False
) -> tuple[Caveat, ...]:
    """
    Return the caveats that follow from the facts around a run on these CPUs.

    Of unknown facts only the one about the kernel raises a caveat; the facts themselves
    show the others.
    """
    return (
        *_surroundings(before, virtual=virtual),
        *_kernel(before),
        *_settings(before, after, cpus=cpus),
        *_changes(before, after, cpus=cpus),
    )


def _surroundings(facts: Facts, *, virtual: bool) -> Iterator[Caveat]:
    guest = _fact(facts, "guest")
    # A virtual board is a guest whose time the host cannot touch: `virtual_board`.
    if guest.value is True and not virtual:
        name = _fact(facts, "hypervisor").value or "unnamed hypervisor"
        yield make("guest", f"{name}: {guest.source}")
    container = _fact(facts, "container")
    if container.value is True:
        kind = _fact(facts, "container_kind").value or "unknown kind"
        yield make("container", f"{kind}: {container.source}")


def _kernel(facts: Facts) -> Iterator[Caveat]:
    realtime = facts.get("preempt_rt")
    if realtime is None:
        return
    if realtime.value is None:
        yield make("kernel_unknown", realtime.reason)
    elif realtime.value is False:
        model = _fact(facts, "preemption_model").value or "unknown"
        yield make(
            "not_realtime_kernel", f"{realtime.source}; preemption model: {model}"
        )


def _settings(
    before: Facts, after: Facts, *, cpus: tuple[int, ...]
) -> Iterator[Caveat]:
    cpus_with: dict[str, set[int]] = {}
    for facts in (before, after):
        for cpu, governor in value_of_cpus(_fact(facts, "governor"), cpus).items():
            cpus_with.setdefault(governor, set()).add(cpu)
    cpus_with.pop("performance", None)
    if cpus_with:
        detail = "; ".join(
            f"CPU {format_cpulist(where)}: {governor}"
            for governor, where in sorted(cpus_with.items())
        )
        yield make("governor", detail)

    throttling = _fact(before, "rt_throttling")
    if throttling.value is True:
        runtime = _fact(before, "rt_runtime_us").value
        period = _fact(before, "rt_period_us").value
        share = f"{runtime} us of each {period} us"
        yield make("rt_throttling", f"{share}; {throttling.source}")

    used = [_fact(facts, "swap_used_kb").value for facts in (before, after)]
    if any(isinstance(kb, int) and kb > 0 for kb in used):
        yield make("swap_active", f"{used[0]} kB used before, {used[1]} kB after")


def _changes(before: Facts, after: Facts, *, cpus: tuple[int, ...]) -> Iterator[Caveat]:
    first, last = _fact(before, "clocksource").value, _fact(after, "clocksource").value
    if first is not None and last is not None and first != last:
        yield make("clocksource_changed", f"from {first} to {last}")

    former = cpus_in(_fact(before, "cpus_online").value)
    online = cpus_in(_fact(after, "cpus_online").value)
    if former and online and former != online:
        were, are = format_cpulist(former), format_cpulist(online)
        yield make("cpus_changed", f"online: {were}, then {are}")
    gone = set(cpus) - online if online else set()
    if gone:
        yield make("cpu_offline", f"CPU {format_cpulist(gone)}")


def _fact(facts: Facts, name: str) -> FactValue:
    return facts.get(name, _NOT_READ)
