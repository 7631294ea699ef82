"""
A run of the index: what is kept of a record, and how two runs compare.

`settings` are all that must be equal in two runs that are compared: the machine, the
board's model, the agent, and how was measured under which load. `state` is all else
that may be why a machine got worse: its kernel, and the settings of the machine.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rtscope.host.errors import MeasurementError, UsageError
from rtscope.machine.facts import catalogue
from rtscope.record.directory.records import read_record
from rtscope.record.explanation import EXPLAINED, worst_cause
from rtscope.record.model import TIMER, RunRecord
from rtscope.stats.conditions import (
    KERNEL_CONDITIONS,
    MACHINE_FACTS,
    conditions_of,
    volatile_facts,
)
from rtscope.stats.episodes import misses_of
from rtscope.stats.figures import Figure, figures
from rtscope.stats.runcaveats import all_caveats, why_left_out
from rtscope.stats.summary import Summary, observed_ns, summary_of
from rtscope.verbs.history.histograms import packed

Values = Mapping[str, object]


@cache
def indexed_figures() -> Mapping[str, Figure]:
    """Return the figures that the index has, by the name of their column."""
    return {
        f"{one.key}_ns" if one.is_time else one.key: one
        for one in figures()
        if one.percentile is not None or one.attribute or one.record
        if one.key != "caveats"
    }


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index keeps of one run."""

    path: Path
    """Its record."""
    columns: Values
    """Values by the names of columns."""
    settings: str
    state: str
    caveats: tuple[str, ...]
    """Their ids."""


def fingerprint(path: Path) -> str:
    """
    Return what tells a changed record, without reading it.

    Raises OSError where no record is. An explanation beside it belongs to it.
    """
    about = path.stat(follow_symlinks=False)
    words = [f"{about.st_size}:{about.st_mtime_ns}"]
    try:
        beside = path.with_name(EXPLAINED).stat(follow_symlinks=False)
        words.append(f"{beside.st_size}:{beside.st_mtime_ns}")
    except FileNotFoundError:
        pass
    return " ".join(words)


def read_entry(path: Path, *, mark: str, part_of: str) -> Entry:
    """
    Return what the index keeps of the run of a record.

    `mark` is its fingerprint, `part_of` the sweep or search that it is of. Raises
    RecordError for a damaged record.
    """
    record = read_record(path)
    raised = all_caveats(record)
    why = why_left_out(record, raised)
    settings, state = _conditions(record)
    return Entry(
        path=path,
        columns={
            "path": str(path),
            "directory": str(path.parent.parent.parent),
            "part_of": part_of,
            "mark": mark,
            "counts": not why,
            "why": why,
            "cause": _cause(path, record),
            **_identity(record),
            **_measured(record),
        },
        settings=settings,
        state=state,
        caveats=tuple(dict.fromkeys(one.id for one in raised)),
    )


def _identity(record: RunRecord) -> Values:
    run, board = record.run, record.virtual
    machine = _machine(record)
    kernel = run.kernel or run.kernel_release
    event = "" if run.event == TIMER else run.event
    words = (machine, run.load, run.variant, kernel, event)
    return {
        "run": run.id,
        "series": " ".join(word for word in words if word),
        "started": record.started_at,
        "machine": machine,
        "board_revision": board.board_revision if board else None,
        "kernel": record.kernel_name,
        "kernel_release": record.release,
        "load": run.load,
        "variant": run.variant or "",
        "event": run.event,
        "policy": run.policy,
        "priority": run.priority,
        "interval_ns": run.interval_ns,
        "seed": run.seed,
        "virtual": board is not None,
        "agent": record.hello.agent,
        "rtscope": record.rtscope,
        "digest": record.result_digest,
    }


def _machine(record: RunRecord) -> str:
    """Name the machine: by the target, or this one by its host name or model."""
    if record.run.target != "local":
        return record.run.target
    facts = (record.facts_before.get(name) for name in ("hostname", "machine_model"))
    known = [str(fact.value) for fact in facts if fact and fact.value]
    return known[0] if known else "local"


def _measured(record: RunRecord) -> Values:
    threads = record.result.threads
    summary = summary_of(threads)
    deadline_ns = _deadline_ns(record)
    misses = None if deadline_ns is None else misses_of(record, deadline_ns).total
    hottest = max(
        (milli for tick in record.ticks for milli in tick.temp_mc.values()),
        default=None,
    )
    return {
        "observed_ns": observed_ns(threads),
        "deadline_ns": deadline_ns,
        "misses": misses,
        "celsius": None if hottest is None else hottest / 1000,
        "mean_with_missed_ns": summary and _mean_ns(summary),
        "histogram": _histogram(summary) if summary else None,
        **{
            name: _value(figure, record, summary)
            for name, figure in indexed_figures().items()
        },
    }


def _value(figure: Figure, record: RunRecord, summary: Summary | None) -> float | None:
    if figure.record:
        try:
            return figure.of_record(record)
        except MeasurementError:
            return None
    return None if summary is None else figure.of_summary(summary)


def _mean_ns(summary: Summary) -> float | None:
    with_missed_ns = summary.mean_with_missed_periods_ns
    return summary.mean_ns if with_missed_ns is None else with_missed_ns


def _histogram(summary: Summary) -> bytes:
    """Pack all samples by their latency, those of an unknown one at the maximum."""
    ranks = summary.ranks
    latencies_ns = [at_ns for at_ns in ranks.at_most_ns if at_ns is not None]
    numbers = ranks.numbers
    if len(latencies_ns) < len(numbers):
        known = [number for _, number in ranks.counts()]
        if unknown := sum(numbers) - sum(known):
            latencies_ns, known = [*latencies_ns, summary.max_ns], [*known, unknown]
        numbers = known
    return packed(latencies_ns, numbers)


def _deadline_ns(record: RunRecord) -> int | None:
    """Return the deadline that the campaign asked for; None: none, or a damaged one."""
    asked = record.campaign.get("campaign")
    if not isinstance(asked, Mapping) or asked.get("deadline") is None:
        return None
    from rtscope.cli.results import question_of  # with all that prints reports

    try:
        return question_of([record]).deadline_ns
    except UsageError:
        return None


def _cause(path: Path, record: RunRecord) -> str:
    """Return the dominant cause of the worst wake-up; empty: none, or not known."""
    beside = path.with_name(EXPLAINED)
    return worst_cause(beside, record.result_digest) if beside.exists() else ""


@cache
def _of_state() -> frozenset[str]:
    """Return the conditions that may be why a machine got worse."""
    kinds = catalogue()
    known = {kinds[name].title for name in kinds if name not in MACHINE_FACTS}
    boards = {"board's qemu", "board's plugin", "board's kernel"}
    other = KERNEL_CONDITIONS - {"kernel asked for"}
    return frozenset(known | boards | other) - {kinds["preempt_rt"].title}


def _conditions(record: RunRecord) -> tuple[str, str]:
    """Return settings and state, as text: equal if and only if all in them is."""
    settings: dict[str, object] = {"agent": record.hello.agent}
    state: dict[str, object] = {}
    unknown = set(record.facts_before) - set(catalogue())
    of_state = _of_state() | (unknown - volatile_facts())
    for label, value in conditions_of(record).items():
        (state if label in of_state else settings)[label] = value
    if board := record.virtual:
        # The digest of its definition changes with the kernel's parameters, too.
        known = board.input_digests
        settings["board's board"] = board.board, board.cpus, board.mips
        settings["board's quantum"] = board.quantum_instructions
        state[DEFINITION] = known and known.board
    return _text(settings), _text(state)


DEFINITION = "board's definition"


def _text(values: Values) -> str:
    return json.dumps(values, sort_keys=True, default=str, ensure_ascii=False)
