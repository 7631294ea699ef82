"""
What a machine is and how it is set up, read through any `machine.reader.Reader`.

    facts = gather(target)                              # before the run, and after it

`facts.toml` says where each fact is read and what it means. A fact that cannot be
read has no value but a reason: a missing file never becomes a setting.
"""

from collections.abc import Callable, Mapping

from rtscope.machine import kernelidentity, parsers, scheduling, surroundings
from rtscope.machine.catalogue import FactKind, FactValue, Seen, catalogue
from rtscope.machine.reader import Reader

__all__ = [
    "FactKind",
    "catalogue",
    "gather",
    "memory_available_bytes",
    "paths",
]

PARSERS: Mapping[str, Callable[[FactKind, Seen], FactValue]] = {
    parser.__name__: parser
    for parser in (
        parsers.boost,
        parsers.cpu_model,
        parsers.cpu_set,
        parsers.device_tree_number,
        parsers.flag,
        parsers.integer,
        parsers.load_average,
        parsers.machine_model,
        parsers.marked,
        parsers.meminfo,
        parsers.mitigations,
        parsers.number,
        parsers.os_release,
        parsers.per_cpu,
        parsers.swap_used,
        parsers.text,
        parsers.thermal_zones,
        parsers.words,
        scheduling.config_digest,
        scheduling.preempt_rt,
        scheduling.preempt_rt_how,
        scheduling.preemption_model,
        scheduling.preemption_model_how,
        scheduling.rt_group_sched,
        scheduling.rt_throttling,
        surroundings.container,
        surroundings.container_kind,
        surroundings.guest,
        surroundings.hypervisor,
        surroundings.irqbalance,
    )
}


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
    seen = Seen(files, kernel)
    return {name: PARSERS[kind.parser](kind, seen) for name, kind in kinds.items()}


def memory_available_bytes(facts: Mapping[str, FactValue]) -> int | None:
    """Return how much memory a load may take before the machine swaps, in bytes."""
    available = facts.get("memory_available_kb")
    known = available.value if available else None
    return known * 1024 if isinstance(known, int) else None
