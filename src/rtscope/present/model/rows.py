"""
The rows of the main table; the caveats and the machines of all runs.

A row is a load on one machine, kernel and setting. It merges its repetitions and counts
them. An exact repetition of a virtual run is no further run: it counts once.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rtscope.contract import FIXED_PRIORITY, ThreadResult
from rtscope.host.units import plural
from rtscope.machine.facts import FactValue
from rtscope.present.document import Note
from rtscope.present.words import duration, micro, us, virtual_word
from rtscope.record.caveats.catalogue import CaveatKind, Effect, gravest_first, kind_of
from rtscope.record.model import HWLAT, POLL, TIMER, TIMERLAT, Run, RunRecord
from rtscope.stats.conditions import load_names
from rtscope.stats.determinism import (
    OverSeeds,
    caveats_among,
    contradictions,
    distinct,
    independent,
    over_seeds,
)
from rtscope.stats.runcaveats import LeftOut, left_out_words, parted
from rtscope.stats.summary import (
    Summary,
    observed_ns,
    summary_of,
    threshold_of,
)

STANDARD_LOADS = ("idle", "cpu", "os", "memory", "storage")
"""StarFive's five, in the order of their Table 5-1; others follow."""

_MACHINE_NAMES = ("machine_model", "hostname", "cpu_model")


@dataclass(frozen=True, slots=True)
class Measured:
    """What the latencies of a row are, in words."""

    heading: str
    word: str
    samples: str
    """What each of its samples is of."""
    whole: str
    """What a missed period means."""
    size: str = "latency"

    @property
    def under_load(self) -> str:
        """What a table of all loads has."""
        return f"{'Latency' if self.size == 'latency' else self.heading} under load"

    @property
    def short(self) -> str:
        """One of it, in a word."""
        return self.size if self.size == "latency" else self.word

    @property
    def share(self) -> str:
        """What a tail has shares of."""
        return f"{self.samples} with at least this {self.size}"


MEASURED = Measured(
    *("Wake-up latency", "wake-up latency", "wake-ups"),
    "a thread was a whole interval late",
)
MIXED = Measured("Latency", "latency", "samples", MEASURED.whole)
_EVENT = Measured("Event latency", "event latency", "events", MEASURED.whole)
_MEASURED_OF = {
    TIMER: MEASURED,
    POLL: Measured(
        *("Gaps in a busy loop", "gap", "intervals"),
        *("a gap lasted a whole interval", "length"),
    ),
    HWLAT: Measured(
        *("Holes with interrupts off", "hole", "reported holes"),
        *("a hole lasted a whole interval", "length"),
    ),
    TIMERLAT: Measured(
        *("Latency of timerlat", "latency of timerlat", "wake-ups"),
        "the kernel's thread was a whole interval late",
    ),
}
"""By the event; all others are sent to a thread."""


def measured_by(records: Sequence[RunRecord]) -> Measured:
    """Return what runs measured; of different events, what holds for all."""
    kinds = {
        _MEASURED_OF.get(record.run.event.partition(":")[0], _EVENT)
        for record in records
    }
    return kinds.pop() if len(kinds) == 1 else MIXED


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the main table, and the runs that it is about."""

    anchor: str
    load: str
    target: str
    kernel: str
    settings: str
    variant: str
    name: str
    """The load, and the variant if a load has several."""
    records: tuple[RunRecord, ...]
    """All runs, exact repetitions of a virtual run with them."""
    counted: tuple[RunRecord, ...]
    """The runs without exact repetitions: only these are in a number."""
    threads: tuple[ThreadResult, ...]
    """The measuring threads of the runs that count."""
    worst_run: RunRecord
    """The run that holds the maximum."""
    runs: int
    """Runs merged, exact repetitions of a virtual run left out."""
    repeats: int
    """Exact repetitions that were left out."""
    left_out: tuple[LeftOut, ...]
    """Runs that count in no comparison and no rate, with the reasons."""
    counts: bool
    """Whether a run of it counts there."""
    cpus: int
    observed_ns: int | None
    """
    Time watched, all runs added up; of seeds that are alike, the longest run's.

    None if the length of a run is unknown.
    """
    summary: Summary | None
    """None if no thread woke up: nothing was measured."""
    threshold_ns: int | None
    """A tool found no latency from here on: a result, and no lack of one."""
    maximum: str
    """In words, with its unit."""
    caveats: int
    gravest: Effect | None
    """The effect of the gravest caveat."""
    contradicted: bool
    """Whether equal inputs of a virtual board gave different results."""
    throughput: Mapping[str, float]
    """Mean over the runs, by stressor."""
    bogo_ops_per_s: float | None
    """Operations per second of all stressors; None if the load reports none."""
    seeds: OverSeeds | None
    """How the maximum varies over the seeds of a virtual board, if it has several."""
    virtual: str
    """`virtual ` if its times are a virtual board's, to stand before units."""
    measured: Measured
    """What its latencies are."""

    @property
    def not_counted(self) -> str:
        """How many of its runs do not count, and why; empty if all do."""
        return left_out_words(self.left_out, of=len(self.records), whose=self.name)


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact: its value before the first run, and whether it stayed."""

    name: str
    value: str
    """Empty if unknown; `why` then says why. A known empty one reads `none`."""
    raw: str | int | float | bool | tuple[str, ...] | None
    """The value itself, for programs."""
    source: str
    why: str
    others: tuple[str, ...]
    """Other values that it had before or after some run."""


@dataclass(frozen=True, slots=True)
class MeasuredMachine:
    """One target with one kernel."""

    name: str
    target: str
    kernel: str
    preemption: str
    parts: tuple[str, ...]
    """Processor and architecture, as far as the name has not said it."""
    cpus: int
    """CPUs measured; 0 if no thread was pinned."""
    facts: tuple[FactRow, ...]

    @property
    def hardware(self) -> str:
        """The parts, and how many CPUs were measured."""
        measured = [f"{plural(self.cpus, 'CPU')} measured"] if self.cpus else []
        return ", ".join([*self.parts, *measured])


@dataclass(frozen=True, slots=True)
class Provenance:
    """One record: equal result digests mean the same measurement."""

    id: str
    started: str
    rtscope: str
    agent: str
    result_digest: str
    kernel_digest: str | None
    """None if it was not recorded."""
    inputs_digest: str | None
    """Of all that the result of a virtual board depends on; None on a machine."""
    seed: int | None


def rows_of(records: Sequence[RunRecord]) -> tuple[Row, ...]:
    """Merge runs into rows: loads in the order of Table 5-1, variants as they come."""
    keys = [_key_of(record) for record in records]
    if any(record.imported for record in records):
        named = zip(load_names(records), keys, strict=True)
        keys = [(load, *key[1:]) for load, key in named]
    varying = [i for i in (1, 2, 3) if len({key[i] for key in keys}) > 1]
    if any(key[4] for key in keys):  # all but timers are named
        varying.append(4)
    grouped: dict[tuple[str, str, str, str, str], list[RunRecord]] = {}
    for key, record in zip(keys, records, strict=True):
        grouped.setdefault(key, []).append(record)
    loads = in_order(key[0] for key in keys)
    variants = list(dict.fromkeys(key[1:] for key in keys))
    return tuple(
        merged_row(runs, load=key[0], variant=_variant(key, varying))
        for key, runs in sorted(
            grouped.items(),
            key=lambda item: (loads.index(item[0][0]), variants.index(item[0][1:])),
        )
    )


def _key_of(record: RunRecord) -> tuple[str, str, str, str, str]:
    """Return load, target, kernel, settings and event: equal for runs of one row."""
    run, settings = record.run, settings_of(record.run)
    return run.load, run.target, record.kernel_name, settings, run.event_words


def _variant(key: Sequence[str], varying: Sequence[int]) -> str:
    return " · ".join(key[i] for i in varying if key[i])


def in_order(loads: Iterable[str]) -> list[str]:
    """Return each load once: those of Table 5-1 in its order, then others as given."""
    each = dict.fromkeys(loads)
    standard = [load for load in STANDARD_LOADS if load in each]
    return standard + [load for load in each if load not in standard]


def variant_kind(rows: Sequence[Row]) -> str:
    """Name the property in which rows of one load differ; empty if in none."""
    kinds = {
        "target": {row.target for row in rows},
        "kernel": {row.kernel for row in rows},
        "setting": {row.settings for row in rows},
        "event": {row.records[0].run.event for row in rows},
    }
    return ", ".join(kind for kind, values in kinds.items() if len(values) > 1)


def merged_row(
    records: Sequence[RunRecord],
    *,
    variant: str,
    load: str = "",
    comparing: bool = False,
) -> Row:
    """
    Merge runs of one load into a row; names are those of the first, but for the load.

    `comparing`: of its runs that count, unless none does.
    """
    named, target, kernel, settings, _ = _key_of(records[0])
    load = load or named
    counted, contradicted = distinct(records), bool(contradictions(records))
    among = caveats_among(records)
    counting, left_out = parted(records, among)
    shown = tuple(records)
    if comparing and counting and left_out:
        shown, counted = counting, distinct(counting)
    raised = gravest_first(c for one in among for c in one)
    gravest = kind_of(raised[0]).effect if raised else None
    seeds = over_seeds(shown)
    worst_run = max(counted, key=lambda r: r.max_ns or 0)
    lengths_ns = [observed_ns(r.result.threads) for r in independent(counted)]
    watched_ns = None if None in lengths_ns else sum(filter(None, lengths_ns))
    threads = tuple(t for r in counted for t in r.result.threads)
    summary = summary_of(threads)
    virtual = "virtual " if any(r.virtual for r in records) else ""
    maximum = us(summary.max_ns if summary else None, virtual)
    rates: dict[str, list[float]] = {}
    for record in counted:
        for name, rate in record.load.throughput.items():
            rates.setdefault(name, []).append(rate)
    throughput = {name: sum(v) / len(v) for name, v in rates.items()}
    return Row(
        anchor=anchor_of(load, variant),
        load=load,
        target=target,
        kernel=kernel,
        settings=settings,
        variant=variant,
        name=f"{load} · {variant}" if variant else load,
        records=tuple(records),
        counted=counted,
        threads=threads,
        worst_run=worst_run,
        runs=len(counted),
        repeats=len(shown) - len(counted),
        left_out=left_out,
        counts=bool(counting),
        cpus=len({t.cpu for t in threads} - {None})
        or max(len(r.result.threads) for r in counted),
        observed_ns=watched_ns,
        summary=summary,
        threshold_ns=None if summary else threshold_of(threads),
        maximum=maximum,
        caveats=len({c.id for c in raised}),
        gravest=gravest,
        contradicted=contradicted,
        throughput=throughput,
        bogo_ops_per_s=sum(throughput.values()) if throughput else None,
        seeds=seeds,
        virtual=virtual,
        measured=measured_by(records),
    )


def comparing_row(row: Row) -> Row:
    """Return the row of its runs that count, if one does."""
    return merged_row(row.records, variant=row.variant, load=row.load, comparing=True)


def anchor_of(*names: str) -> str:
    """Make a fragment identifier that HTML, CSS and file names all accept."""
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")
    return f"load-{slug[:80]}"


def settings_of(run: Run) -> str:
    """Name the variant, policy, priority and interval."""
    variant = f"{run.variant}: " if run.variant else ""
    priority = f" {run.priority}" if run.policy in FIXED_PRIORITY else ""
    if not run.interval_ns:
        policy = "" if run.policy == "unknown" else f"{run.policy}{priority}, "
        return f"{variant}{policy}unknown interval"
    return f"{variant}{run.policy}{priority} every {duration(run.interval_ns)}"


def merged_caveats(records: Sequence[RunRecord]) -> tuple[Note, ...]:
    """Merge the caveats of records: their own, of their figures, of them together."""
    among = caveats_among(records)
    kinds: dict[str, CaveatKind] = {}
    for caveat in gravest_first(c for one in among for c in one):
        kinds.setdefault(caveat.id, kind_of(caveat))
    raised = {
        caveat_id: [
            (number, record, c.detail)
            for number, (record, one) in enumerate(zip(records, among, strict=True))
            for c in one
            if c.id == caveat_id
        ]
        for caveat_id in kinds
    }
    return tuple(
        Note(
            id=caveat_id,
            effect=kind.effect,
            label=kind.effect.label,
            says=kind.message,
            details=tuple(
                micro(text, virtual)
                for text, virtual in sorted(
                    {(text, virtual_word([r])) for _, r, text in raised[caveat_id]}
                )
                if text
            ),
            remedy=kind.remedy,
            runs=tuple(dict.fromkeys(r.run.id for _, r, _ in raised[caveat_id])),
            everywhere=len({n for n, *_ in raised[caveat_id]}) == len(records),
        )
        for caveat_id, kind in kinds.items()
    )


def machines_of(records: Sequence[RunRecord]) -> tuple[MeasuredMachine, ...]:
    """Return each combination of target and kernel once, in the order of the runs."""
    grouped: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        _, target, kernel, *_ = _key_of(record)
        grouped.setdefault((target, kernel), []).append(record)
    return tuple(_machine(*key, runs) for key, runs in grouped.items())


def subtitle_of(
    records: Sequence[RunRecord], machines: Sequence[MeasuredMachine]
) -> str:
    """Name kernels and days."""
    dates = {r.started_at[:10] for r in records} - {""}
    date = " to ".join(dict.fromkeys([min(dates), max(dates)])) if dates else ""
    kernels = dict.fromkeys(f"Linux {m.kernel} ({m.preemption})" for m in machines)
    return " · ".join(filter(None, [*kernels, date]))


def _machine(target: str, kernel: str, records: Sequence[RunRecord]) -> MeasuredMachine:
    facts = records[0].facts_before
    known = {name: _written(fact) for name, fact in facts.items() if fact.value}
    if target.startswith("virtual:"):
        named = [f"virtual board {target.removeprefix('virtual:')}"]
    else:
        named = [known[name] for name in _MACHINE_NAMES if known.get(name)]
    fallback = "this machine" if target == "local" else target
    parts = (known.get("cpu_model"), records[0].hello.arch)
    return MeasuredMachine(
        name=named[0] if named else fallback,
        target=target,
        kernel=kernel,
        preemption=_preemption(facts, known.get("preemption_model", "")),
        parts=tuple(text for text in parts if text and text not in named[:1]),
        cpus=len({t.cpu for r in records for t in r.result.threads} - {None}),
        facts=tuple(_fact_rows(records)),
    )


def _preemption(facts: Mapping[str, FactValue], model: str) -> str:
    fact = facts.get("preempt_rt")
    if fact is None or fact.value is None:
        return "preemption model unknown"
    if fact.value:
        return "PREEMPT_RT"
    return f"not PREEMPT_RT: {model}" if model else "not PREEMPT_RT"


def _fact_rows(records: Sequence[RunRecord]) -> list[FactRow]:
    rows = []
    for name in dict.fromkeys(name for r in records for name in r.facts_before):
        seen = [
            facts[name]
            for r in records
            for facts in (r.facts_before, r.facts_after)
            if name in facts
        ]
        values = list(dict.fromkeys(_written(fact) for fact in seen))
        rows.append(
            FactRow(
                name=name,
                value=values[0],
                raw=seen[0].value,
                source=seen[0].source,
                why=seen[0].reason,
                others=tuple(value or "unknown" for value in values[1:]),
            )
        )
    return rows


def _written(fact: FactValue) -> str:
    if fact.value is None:
        return ""
    if fact.value in ("", ()):
        return "none"
    if isinstance(fact.value, bool):
        return "yes" if fact.value else "no"
    if isinstance(fact.value, tuple):
        return ", ".join(fact.value)
    return str(fact.value)


def provenance_of(record: RunRecord) -> Provenance:
    """Name a record and what made it."""
    virtual = record.virtual
    return Provenance(
        id=record.run.id,
        started=record.started_at,
        rtscope=record.rtscope,
        agent=record.hello.agent,
        result_digest=record.result_digest,
        kernel_digest=record.kernel_digest or None,
        inputs_digest=(virtual and virtual.inputs_digest) or None,
        seed=record.run.seed,
    )
