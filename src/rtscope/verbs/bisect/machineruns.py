"""
The runs of a machine that a step of a search compares: two ends and a new kernel. Pure.

They must differ in their kernel alone. What a user sets (the machine, its measuring
threads, the load) must be the same in all of them. What a kernel may set as well, such
as a governor, may differ between the ends; then a new kernel must have it as one of
them, and the ends' difference is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.host.errors import MeasurementError, UsageError, first_of
from rtscope.record.model import RunRecord
from rtscope.stats.conditions import KERNEL_CONDITIONS, Conditions, conditions_of
from rtscope.stats.determinism import caveats_among
from rtscope.stats.runcaveats import parted
from rtscope.stats.runsets import run_sets
from rtscope.verbs.bisect.criterion import check_load, value_of

ASKED_FOR = frozenset(
    {
        *("target", "machine", "host name", "CPU", "policy", "priority", "interval"),
        *("runtime", "CPUs", "threads", "idle states held", "tracing", "tuning"),
        *("load", "load command", "load version", "virtual machine", "hypervisor"),
        *("container", "kind of container"),
    }
)
"""Conditions that no kernel sets: they must be the same in all runs."""

_IDENTITY = ("kernel", "kernel build", "kernel configuration", "kernel image")
_NAMES_FOR_ITSELF = frozenset({"variant", "kernel asked for"})
_FROM_THE_BOOT_LOADER = ("BOOT_IMAGE=", "initrd=")
"""Words of the command line that name the kernel itself."""

_MOST_NAMED = 3
_LONG = 60


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs of one kernel."""

    label: str
    """As typed: --good DIR."""
    values: tuple[float, ...]
    """The figure of each valid run; latencies in ns."""
    left_out: tuple[str, ...]
    """Why a run has no valid measurement, for each of these."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What a step compares."""

    load: str
    good: Sample
    bad: Sample
    new: Sample
    notes: tuple[str, ...]
    """Doubts that a reader of the verdict has to know."""
    one_boot: bool
    """Whether all runs of some kernel are of one boot, as far as the records say."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The records of one kernel, those without a valid measurement left out."""

    label: str
    records: tuple[RunRecord, ...]
    left_out: tuple[str, ...]

    @property
    def conditions(self) -> Conditions:
        """The conditions of its runs, which are all the same."""
        return _conditions(self.records[0])


def samples_of(
    good: tuple[str, Sequence[RunRecord]],
    bad: tuple[str, Sequence[RunRecord]],
    new: tuple[str, Sequence[RunRecord]],
    *,
    load: str | None,
    figure: str,
) -> Samples:
    """
    Return the figures of runs that compare, given as records with their labels.

    Raises UsageError for runs that differ in more than their kernel, for runs of
    virtual boards and for a run that is given twice; MeasurementError for an end
    without a valid run. A new kernel without one has no values.
    """
    kernels = (good, bad, new)
    _refuse_virtual(kernels)
    load = load or _common_load(kernels)
    check_load(figure, load)
    groups = [_group(label, records, load) for label, records in kernels]
    for end in groups[:2]:
        if not end.records:
            raise MeasurementError(
                f"{end.label}: no valid run under {load}: {_reasons(end.left_out)}; "
                "measure it again"
            )
    measured = [group for group in groups if group.records]
    _refuse_copies(measured)
    for group in measured:
        _refuse_mixed(group)
    _refuse_other_settings(measured)
    one, two, three = (_sample(group, figure) for group in groups)
    notes = tuple(_notes(measured, groups[2]))
    one_boot = any(map(_is_one_boot, measured))
    return Samples(load, one, two, three, notes=notes, one_boot=one_boot)


def _refuse_virtual(kernels: Sequence[tuple[str, Sequence[RunRecord]]]) -> None:
    for label, records in kernels:
        for record in records:
            if record.virtual is not None:
                raise UsageError(
                    f"{label}: run {record.run.id} was measured on a virtual board, "
                    "and --measured compares runs of a machine: leave --measured out, "
                    "and rtscope bisect boots the kernels itself"
                )


def _common_load(kernels: Sequence[tuple[str, Sequence[RunRecord]]]) -> str:
    """Return the only load that all have; UsageError if it is not the only one."""
    loads = [{record.run.load for record in records} for _, records in kernels]
    common = sorted(set.intersection(*loads))
    if len(common) == 1:
        return common[0]
    if common:
        raise UsageError(
            f"the records have runs under {first_of(5, common)}: name the load that "
            f"shows the difference, e.g. --load {common[0]}"
        )
    have = "; ".join(
        f"{label} under {first_of(5, sorted(under))}"
        for (label, _), under in zip(kernels, loads, strict=True)
    )
    raise UsageError(f"the records have no load in common ({have}): measure one in all")


def _group(label: str, records: Sequence[RunRecord], load: str) -> _Group:
    under = [record for record in records if record.run.load == load]
    if not under:
        have = first_of(5, sorted({record.run.load for record in records}))
        raise UsageError(f"{label}: no run under {load}; it has runs under {have}")
    kept, left_out = parted(under, caveats_among(under))
    return _Group(label, kept, tuple(f"run {one.run}: {one.why}" for one in left_out))


def _reasons(left_out: Sequence[str]) -> str:
    return first_of(_MOST_NAMED, left_out, between="; ")


def _refuse_copies(groups: Sequence[_Group]) -> None:
    """Refuse one measurement twice, other lengths, intervals, tracing: `compare`'s."""
    sets = run_sets({group.label: group.records for group in groups})
    for group in sets.groups:
        if group.repeats:
            raise UsageError(
                f"{group.label}: {group.repeats} of its runs are copies of others, and "
                "a copy is no further run: give each record once"
            )


def _conditions(record: RunRecord) -> Conditions:
    conditions = dict(conditions_of(record))
    line = conditions.get("kernel command line")
    if isinstance(line, str):
        words = [w for w in line.split() if not w.startswith(_FROM_THE_BOOT_LOADER)]
        conditions["kernel command line"] = " ".join(words)
    return {
        label: value
        for label, value in conditions.items()
        if label not in _NAMES_FOR_ITSELF
    }


def _refuse_mixed(group: _Group) -> None:
    """Refuse runs of two kernels, or with two settings, as those of one kernel."""
    for record in group.records[1:]:
        other = _conditions(record)
        if said := _differing(other, [group.conditions], among=None):
            raise UsageError(
                f"{group.label}: its runs are not of one kernel with the same "
                f"settings: {said}; give only those that belong together"
            )


def _refuse_other_settings(groups: Sequence[_Group]) -> None:
    good, *others = groups
    for group in others:
        said = _differing(group.conditions, [good.conditions], among=ASKED_FOR)
        if said:
            raise UsageError(
                f"{group.label}: measured otherwise than {good.label}: {said}; only "
                "the kernel may differ: measure again with the same machine, options "
                "and load"
            )
    ends = [group.conditions for group in groups[:2]]
    for group in groups[2:]:
        if said := _differing(group.conditions, ends, among=_may_follow(ends)):
            raise UsageError(
                f"{group.label}: a setting is that of neither end: {said}; set it as "
                "there and measure again, or, if this kernel sets it by itself, skip "
                "the kernel: git bisect skip"
            )


def _may_follow(conditions: Sequence[Conditions]) -> frozenset[str]:
    """Return the settings that a kernel may have changed."""
    labels = {label for one in conditions for label in one}
    return frozenset(labels - ASKED_FOR - KERNEL_CONDITIONS)


def _differing(
    conditions: Conditions,
    admitted: Sequence[Conditions],
    *,
    among: frozenset[str] | None,
) -> str:
    """Name the conditions that no admitted run has; empty: there are none."""
    labels = [
        label
        for label in dict.fromkeys([*conditions, *admitted[0]])
        if (among is None or label in among)
        and conditions.get(label) not in [one.get(label) for one in admitted]
    ]
    return first_of(
        _MOST_NAMED,
        [
            f"{label} is {_words(conditions.get(label))} in place of "
            f"{' or '.join(dict.fromkeys(_words(one.get(label)) for one in admitted))}"
            for label in labels
        ],
        between="; ",
    )


def _words(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    words = value if isinstance(value, str) else repr(value)
    if isinstance(value, tuple):
        words = " ".join(map(str, value)) or "none"
    return words if len(words) <= _LONG else words[:_LONG] + "…"


def _notes(measured: Sequence[_Group], new: _Group) -> list[str]:
    good, bad = measured[0].conditions, measured[1].conditions
    notes = []
    if said := _differing(bad, [good], among=_may_follow([good, bad])):
        notes.append(
            f"the ends differ in a setting as well: {said}; if the kernels do not set "
            "it, set it alike and measure again"
        )
    for end in measured[:2]:
        if new.records and _is_same_kernel(new.conditions, end.conditions):
            notes.append(
                f"{new.label} and {end.label} ran the same kernel "
                f"({new.conditions.get('kernel')}): if another one should have booted, "
                "this verdict is about the wrong kernel"
            )
    notes += [
        f"{group.label}: left out {_reasons(group.left_out)}"
        for group in (*measured[:2], new)
        if group.left_out
    ]
    return notes


def _is_one_boot(group: _Group) -> bool:
    boots = [record.facts_before.get("boot_id") for record in group.records]
    return len(boots) > 1 and len({boot and boot.value for boot in boots}) == 1


def _is_same_kernel(one: Conditions, other: Conditions) -> bool:
    known = [one.get(label) for label in _IDENTITY]
    return any(known) and known == [other.get(label) for label in _IDENTITY]


def _sample(group: _Group, figure: str) -> Sample:
    values = []
    for record in group.records:
        value = value_of(record, figure)
        if value is None:
            raise UsageError(
                f"{group.label}: run {record.run.id} has no {figure}: measure longer, "
                "or choose another --figure"
            )
        values.append(value)
    return Sample(group.label, tuple(values), group.left_out)
