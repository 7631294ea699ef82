"""Reports and comparisons for programs: JSON, and the main table as CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rtscope.host.files.csvtext import csv_text
from rtscope.host.files.jsontext import json_text
from rtscope.present.document import Note
from rtscope.present.model.build import Model
from rtscope.present.model.comparison import ComparisonReport, LoadComparison
from rtscope.present.model.explained_records import ExplainedRecord
from rtscope.present.model.published_comparison import (
    PublishedComparison,
    PublishedRow,
)
from rtscope.present.model.rows import MeasuredMachine, Row
from rtscope.present.model.side_by_side import SideBySide
from rtscope.present.model.steadiness import Steadiness
from rtscope.present.model.verdicts import Soft, VerdictInWords
from rtscope.present.model.wakeparts import parts_row
from rtscope.record.samples import ThreadSamples
from rtscope.stats.determinism import OverSeeds
from rtscope.stats.figures import columns, figures, percentiles
from rtscope.stats.meters import meters_of

SCHEMA = 2


def csv_headings() -> list[str]:
    """Return the headings of the main table as CSV."""
    return [
        *("load", "target", "kernel", "settings"),
        *(figure.csv_heading for figure in columns("main")),
        *("runs", "cpus", "observed_s"),
    ]


def render_csv(model: Model) -> str:
    """
    The main table as CSV: one line for each row, in the units that the headings name.

    Numbers are plain (no thousands apart), a cell is empty where there is no number,
    and no cell is taken for a formula.
    """
    rows = (
        [
            *(row.load, row.target, row.kernel, row.settings),
            *(figure.csv(row) for figure in columns("main")),
            *(
                row.runs,
                row.cpus,
                "" if row.observed_ns is None else f"{row.observed_ns / 1e9:.3f}",
            ),
        ]
        for row in model.rows
    )
    return csv_text([csv_headings(), *rows])


def render_json(document: Model | ComparisonReport | PublishedComparison) -> str:
    """
    A report or comparison as JSON: times in ns, stable keys, for programs.

    Null stands for: `verdict` without a deadline; `pair` unless two sides are compared;
    `summary` of a row without a sample; `samples` of a tool that prints no count;
    `observed_ns` of an unknown length; `threshold_ns` unless a tool found nothing that
    reaches it; `percentiles` with too few samples;
    `bogo_ops_per_s` of a load without any; `over_seeds` with fewer than two seeds;
    `latest_over_time` with too few known times, `steady_distance` if none was found;
    `kernel_digest` that was not recorded; `samples_kept` without --keep-samples;
    the soft `value` of a row without a run that counts (`soft` itself is there with a
    soft deadline alone); `inputs_digest` and `seed` of a real machine;
    `wakeup_parts` is there only for a row of `--parts`, without parts if withdrawn;
    the `value` of an unknown fact (`why` then says why). New keys may come within a
    schema; none changes its meaning or goes.
    """
    match document:
        case Model():
            made = _report(document)
        case ComparisonReport():
            made = _comparison(document)
        case PublishedComparison():
            made = _published_comparison(document)
    made = {"schema": SCHEMA, **made}
    return json_text(made, ascii_only=False)


def _named(thing: object, *names: str) -> dict[str, Any]:
    """Return the values of these attributes by their names, which are the keys."""
    return {name: getattr(thing, name) for name in names}


def _comparison(comparison: ComparisonReport) -> Mapping[str, Any]:
    return {
        **_named(comparison, "made_by", "title", "summary", "deadline_ns"),
        "loads": [
            {
                "load": load.load,
                "sides": [
                    {**_named(side, "label", "median_max_ns"), **_row(side.row)}
                    for side in load.sides
                ],
                "outcomes": [
                    {
                        **_named(outcome, "word", "different"),
                        "sentence": f"{outcome.word}{outcome.rest}",
                        "remarks": outcome.remarks,
                    }
                    for outcome in load.outcomes
                ],
                **({"meters": _meters(load)} if load.meters else {}),
            }
            for load in comparison.loads
        ],
        "pair": comparison.pair and _pair(comparison.pair),
        "caveats": [_caveat(caveat) for caveat in comparison.caveats],
    }


def _meters(load: LoadComparison) -> list[Mapping[str, Any]]:
    return [
        {
            **_named(one, "key", "label", "word", "sentence"),
            "baseline_median": one.medians[0],
            "median": one.medians[1],
        }
        for one in load.meters
    ]


def _pair(pair: SideBySide) -> Mapping[str, Any]:
    return {
        "sides": [{"label": s.label, "model": s.model or None} for s in pair.sides],
        **_named(pair, "summary", "caution"),
        "virtual": bool(pair.virtual),
        "loads": [
            {
                "load": row.load,
                **{f"{key}_ratio": value for key, value in row.ratios.items()},
                "sentence": row.sentence,
                "rows": [_row(side) for side in row.rows],
            }
            for row in pair.rows
        ],
    }


def _soft(soft: Soft) -> Mapping[str, Any]:
    return {
        "curve": soft.curve,
        "rows": [
            {"name": row.name, "value": row.value and asdict(row.value)}
            for row in soft.rows
        ],
    }


def _report(model: Model) -> Mapping[str, Any]:
    return {
        **_named(model, "made_by", "title", "deadline_ns"),
        "verdict": model.verdict and _verdict(model.verdict),
        **({} if model.soft is None else {"soft": _soft(model.soft)}),
        "findings": model.findings,
        "caveats": [_caveat(caveat) for caveat in model.caveats],
        "rows": [
            {
                **_row(row),
                "over_seeds": row.seeds and _over_seeds(row.seeds),
                "latest_over_time": _late(model.late.get(row.anchor)),
                "meters": dict(meters_of(row.worst_run)),
            }
            for row in model.rows
        ],
        "pair": model.pair and _pair(model.pair),
        "explained": [_explained(one) for one in model.explained],
        "machines": [_machine(machine) for machine in model.machines],
        "commands": model.commands,
        "runs": [
            {
                **asdict(one),
                "samples_kept": _kept(model.samples.get(one.result_digest)),
            }
            for one in model.provenance
        ],
    }


def _kept(threads: Sequence[ThreadSamples] | None) -> int | None:
    return None if threads is None else sum(int(t.woken.sum()) for t in threads)


def _late(late: Steadiness | None) -> Mapping[str, Any] | None:
    if late is None:
        return None
    timing = late.timing
    return {
        "sentence": late.sentence,
        "periods_tried_ns": [timing.steady.shortest_ns, timing.steady.longest_ns],
        "time_step_ns": timing.step_ns,
        "steady_distance": timing.steady.found and asdict(timing.steady.found),
        "runs": [
            {
                "from_start": run.from_start,
                "events": [asdict(event) for event in run.events],
            }
            for run in timing.times
        ],
    }


def _verdict(verdict: VerdictInWords) -> Mapping[str, Any]:
    return {
        **_named(verdict, "word", "exit_status"),
        "loads": [_named(load, "name", "word", "sentence") for load in verdict.loads],
    }


def _caveat(caveat: Note) -> Mapping[str, Any]:
    return _named(caveat, "id", "effect", "says", "details", "remedy", "runs")


def _row(row: Row) -> Mapping[str, Any]:
    summary = row.summary
    own = {one.attribute: one.of(row) for one in figures() if one.of_row}
    return {
        **_named(row, "load", "target", "kernel", "settings"),
        **_named(row, "runs", "repeats", "cpus", "observed_ns", "threshold_ns"),
        "not_counted": [asdict(one) for one in row.left_out],
        "caveats": own.pop("caveats"),
        "summary": summary
        and {
            **{
                one.attribute: one.of(row)
                for one in figures()
                if one.attribute and not one.of_row
            },
            "percentiles": {one.heading: one.of(row) for one, _ in percentiles()},
        },
        **own,
        "throughput": dict(row.throughput),
        **parts_row(row),
    }


def _over_seeds(over: OverSeeds) -> Mapping[str, Any]:
    return {
        "lowest_max_ns": over.lowest_ns,
        "median_max_ns": over.median_ns,
        "highest_max_ns": over.highest_ns,
        "observed_ns": over.observed_ns,
        "max_ns_of_seed": {str(seed): maximum for seed, maximum in over.maxima_ns},
    }


def _explained(one: ExplainedRecord) -> Mapping[str, Any]:
    return {
        **_named(one, "run", "load", "dominant_cause", "sentence", "bound_ns"),
        "observed_max_ns": one.observed_ns,
        "missing": one.missing,
        "tail": one.tail
        and {
            **_named(one.tail, "from_ns", "wakeups"),
            "not_recorded": one.tail.unknown,
            "causes": [asdict(cause) for cause in one.tail.causes],
        },
    }


def _machine(machine: MeasuredMachine) -> Mapping[str, Any]:
    return {
        **_named(machine, "name", "target", "kernel", "preemption"),
        "facts": {
            fact.name: {"value": fact.raw, "source": fact.source, "reason": fact.why}
            for fact in machine.facts
        },
    }


def _published_comparison(comparison: PublishedComparison) -> Mapping[str, Any]:
    table = comparison.table
    return {
        **_named(comparison, "made_by", "title"),
        "virtual": bool(comparison.virtual),
        "published": {
            **_named(table, "name", "source", "machine", "cpus", "command"),
            **_named(table, "interval_ns", "duration_ns", "policy", "priority"),
            "kernels": {kind: k.release for kind, k in table.kernels.items()},
        },
        "ours": {"machine": comparison.machine, "kernels": dict(comparison.kernels)},
        "summary": comparison.summary,
        "loads": [_published_load(row) for row in comparison.rows],
        **_named(comparison, "not_measured", "not_published", "support", "differences"),
        "notes": [{"id": n.id, "message": n.says} for n in table.notes],
        "caveats": [_caveat(caveat) for caveat in comparison.caveats],
    }


def _published_load(row: PublishedRow) -> Mapping[str, Any]:
    published, measured = row.published, row.measured
    return {
        **_named(row, "load", "sentence"),
        "published": {
            "max_ratio": published.ratio,
            **{kind.value: asdict(f) for kind, f in published.figures.items()},
        },
        "ours": {
            "max_ratio": measured.ratio,
            **{kind.value: _row(mine) for kind, mine in measured.rows.items()},
        },
    }
