"""
The conditions of a run: runs are pooled only if all of them are the same.

The machine, its kernel and settings, the measuring threads and the load. A reading
that changes by itself, such as the temperature, is no condition; every other fact is,
so that a setting nobody thought of separates runs and never mixes them. An unknown
value is a condition too: it may be any.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from rtscope.contract import ThreadResult
from rtscope.machine.facts import catalogue
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import was_traced

MACHINE_FACTS = ("machine_model", "hostname", "cpu_model")

_OF_ONE_RUN = frozenset({"--timeout", "--temp-path", "--yaml", "--seed"})
"""Options of stress-ng whose value follows from length, place or seed of a run."""

_FITTED = frozenset({"--vm-bytes", "--dir-dirs"})
"""Options of stress-ng for a load that was reduced to what was free just then."""

Conditions = Mapping[str, object]
"""Value of each condition by its label, in the order in which to name them."""


def conditions_of(record: RunRecord) -> Conditions:
    """Return what must be equal in two runs for them to be pooled."""
    run, threads = record.run, record.result.threads
    return {
        "target": run.target,
        **_facts(record, MACHINE_FACTS),
        "kernel asked for": run.kernel,
        "kernel image": record.kernel_digest,
        "policy": run.policy,
        "priority": run.priority,
        "interval": run.interval_ns,
        "event": run.event,
        "stimuli": tuple(_stimulus(t) for t in threads),
        "runtime": run.deadline_runtime_ns,
        "CPUs": tuple(t.cpu for t in threads),
        "threads": _deviations(record),
        "idle states held": _idle_states(record),
        # A lost run was asked for a trace, and has no word of it.
        "tracing": record.result.tracing is not None or was_traced(record),
        "tuning": _tuning(record),
        "variant": run.variant,
        "load": record.load.name,
        "file": _file_of_unknown_load(record),
        "load command": load_command(record),
        "load version": record.load.version,
        **_facts(
            record,
            [
                name
                for name in (*catalogue(), *sorted(record.facts_before))
                if name not in volatile_facts()
            ],
        ),
        **_board(record),
    }


def load_names(records: Sequence[RunRecord]) -> list[str]:
    """
    Return the load of each run, with its file where several have an unknown one.

    Nobody said that two unknown loads are the same: they are two.
    """
    files = {
        r.imported.sha256: r.imported.file
        for r in records
        if r.imported is not None and r.load_unknown
    }
    shared = Counter(files.values())

    def name(record: RunRecord) -> str:
        imported = record.imported
        if len(files) < 2 or imported is None or not record.load_unknown:
            return record.run.load
        several = shared[imported.file] > 1
        mark = f", {imported.sha256[:8]}" if several else ""
        return f"{record.run.load} ({imported.file}{mark})"

    return [name(record) for record in records]


def unknown_loads(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """Return the files of the runs whose load is unknown."""
    files = (r.imported for r in records if r.load_unknown)
    return tuple(dict.fromkeys(one.file for one in files if one))


@cache
def volatile_facts() -> frozenset[str]:
    """Return the readings; all other facts are settings, or identify the machine."""
    return frozenset(name for name, kind in catalogue().items() if kind.volatile)


def load_command(record: RunRecord) -> tuple[str, ...]:
    """Return the command of the load without what belongs to one run only."""
    argv = record.load.argv
    return tuple(_kept(argv)) if argv[:1] == ("stress-ng",) else argv


def _kept(argv: Sequence[str]) -> Iterator[str]:
    options = iter(argv)
    for word in options:
        if word in _OF_ONE_RUN:
            next(options, None)
            continue
        yield word
        if word in _FITTED:
            next(options, None)


def _file_of_unknown_load(record: RunRecord) -> tuple[str, str] | None:
    if record.imported is None or not record.load_unknown:
        return None
    return record.imported.file, record.imported.sha256[:8]


def _facts(record: RunRecord, names: Sequence[str]) -> Conditions:
    facts, kinds = record.facts_before, catalogue()
    return {
        kinds[name].title if name in kinds else name: (
            facts[name].value if name in facts else None
        )
        for name in names
    }


def _deviations(record: RunRecord) -> tuple[tuple[str, int, int], ...]:
    request = record.run.policy, record.run.priority, record.run.interval_ns
    got = ((t.policy, t.priority, t.interval_ns) for t in record.result.threads)
    return tuple(thread for thread in got if thread != request)


def _stimulus(thread: ThreadResult) -> tuple[int, str, int] | None:
    """Return the CPU, policy and priority of the thread that wakes a thread."""
    if thread.event is None:
        return None
    event = thread.event
    return event.stimulus_cpu, event.stimulus_policy, event.stimulus_priority


def _idle_states(record: RunRecord) -> int | None:
    """Return the wake-up latency (us) that idle states were held to; None if free."""
    result = record.result
    return result.dma_latency_us if result.dma_latency_held else None


def _tuning(record: RunRecord) -> tuple[tuple[str, str], ...] | None:
    """Return the settings that were changed for the campaign, by path."""
    if record.tuning is None:
        return None
    changed = record.tuning.get("changed")
    return tuple(
        sorted(
            (str(change.get("path")), str(change.get("value")))
            for change in (changed if isinstance(changed, list) else ())
            if isinstance(change, dict)
        )
    )


def _board(record: RunRecord) -> Conditions:
    """Return the inputs of a virtual board that do not follow from the seed."""
    virtual = record.virtual
    if virtual is None:
        return {}
    of_the_seed = ("seed", "initrd", "campaign", "kernel")
    return {
        f"board's {label}": value
        for label, value in virtual.inputs_by_label.items()
        if label not in of_the_seed
    } | {"board's kernel": virtual.kernel_digest}


def differences(conditions: Sequence[Conditions]) -> tuple[tuple[str, ...], ...]:
    """
    Return for each, in words, the conditions in which they are not all equal.

    But for target, kernel, policy and interval, which name a finding anyway, and for
    what follows from another kernel.
    """
    labels = dict.fromkeys(label for one in conditions for label in one)
    differing = [
        label for label in labels if len({one.get(label) for one in conditions}) > 1
    ]
    left_out = {"target", "policy", "interval"}
    if left_out_kernel := _KERNEL.intersection(differing):
        left_out |= left_out_kernel | _OF_THE_KERNEL
    return tuple(
        tuple(
            _in_words(label, one.get(label), [c.get(label) for c in conditions])
            for label in differing
            if label not in left_out
        )
        for one in conditions
    )


_KERNEL = frozenset({"kernel asked for", "kernel"})

_OF_THE_KERNEL = frozenset(
    {
        *("kernel image", "kernel build", "kernel configuration", "board's kernel"),
        *("PREEMPT_RT", "preemption model"),
    }
)

KERNEL_CONDITIONS = _KERNEL | _OF_THE_KERNEL
"""What differs between runs of two kernels, if nothing else does."""


def _in_words(label: str, value: object, all_values: Sequence[object]) -> str:
    """Name a value; of lists of words only those that not all have."""
    if value is None:
        return f"{label} none" if label in _NONE_IS_KNOWN else f"{label} unknown"
    if isinstance(value, bool):
        return f"{label} {'on' if value else 'off'}"
    words = _words(value)
    if isinstance(value, tuple) or label in _LISTS:
        others = [set(_words(other)) for other in all_values]
        words = [w for w in words if not all(w in other for other in others)]
    said = " ".join(words) or "without the others' words"
    return f"{label} {said if len(said) <= _LONG else said[:_LONG] + '…'}"


_NONE_IS_KNOWN = frozenset(
    {
        *("idle states held", "tuning", "runtime", "load version", "variant"),
        "file",
    }
)
"""Conditions whose absence is a value: nothing was held, changed or given."""

_LISTS = frozenset({"kernel command line", "load command"})

_LONG = 48
"""Characters of a value that are shown; the first ones identify a digest."""


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list | tuple):
        return [
            "=".join(map(str, item)) if isinstance(item, tuple) else str(item)
            for item in value
        ]
    return [str(value)]
