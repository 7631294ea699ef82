"""
What a machine is and how it is set up, read through any `reading.Reader`.

    facts = gather(target)                              # before the run, and after it
    doubts = caveats_from(before, after, cpus=(2, 3))

`facts.toml` says where each fact is read and what it means. A fact that cannot be
read has no value but a reason: a missing file never becomes a setting.
"""

from collections.abc import Callable, Mapping

from rtscope.facts import parsers, scheduling, surroundings
from rtscope.facts.doubts import caveats_from, memory_available_bytes
from rtscope.facts.table import FactKind, Seen, catalogue
from rtscope.kernel import identity
from rtscope.reading import Reader
from rtscope.record import FactValue

__all__ = [
    "FactKind",
    "catalogue",
    "caveats_from",
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
    return list(dict.fromkeys([*wanted, *identity.PATHS]))


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
    kernel = identity.identify(reader, files=files, kernel_log=kernel_log)
    seen = Seen(files, kernel)
    return {name: PARSERS[kind.parser](kind, seen) for name, kind in kinds.items()}
