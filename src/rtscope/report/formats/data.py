"""Reports and comparisons for programs: JSON, and the main table as CSV."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rtscope.report.escape import for_csv
from rtscope.report.model.build import Model
from rtscope.report.model.comparison import ComparisonReport, SideBySide
from rtscope.report.model.findings import ExplainedRecord, VerdictInWords
from rtscope.report.model.published_comparison import (
    PublishedComparison,
    PublishedRow,
)
from rtscope.report.model.rows import MeasuredMachine, MergedCaveat, Row
from rtscope.report.tables import columns, figures, percentile_ns
from rtscope.stats.seeds import OverSeeds

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
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(csv_headings())
    for row in model.rows:
        cells = [
            *(row.load, row.target, row.kernel, row.settings),
            *(figure.csv(row) for figure in columns("main")),
            *(str(row.runs), str(row.cpus), f"{row.observed_ns / 1e9:.3f}"),
        ]
        writer.writerow(map(for_csv, cells))
    return out.getvalue()


def render_json(told: Model | ComparisonReport | PublishedComparison) -> str:
    """
    A report or comparison as JSON: times in ns, stable keys, for programs.

    Null stands for: `verdict` without a deadline; `pair` unless two sides are compared;
    `summary` of a row without a sample; `percentiles` with too few samples;
    `bogo_ops_per_s` of a load without any; `over_seeds` with fewer than two seeds;
    `kernel_digest` that was not recorded; `inputs_digest` and `seed` of a real machine;
    the `value` of an unknown fact (`why` then says why). New keys may come within a
    schema; none changes its meaning or goes.
    """
    match told:
        case Model():
            made = _report(told)
        case ComparisonReport():
            made = _comparison(told)
        case PublishedComparison():
            made = _published_comparison(told)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _comparison(comparison: ComparisonReport) -> Mapping[str, Any]:
    return {
        "schema": SCHEMA,
        "made_by": comparison.made_by,
        "title": comparison.title,
        "summary": comparison.summary,
        "deadline_ns": comparison.deadline_ns,
        "loads": [
            {
                "load": load.load,
                "sides": [
                    {
                        "label": side.label,
                        "median_max_ns": side.median_max_ns,
                        **_row(side.row),
                    }
                    for side in load.sides
                ],
                "outcomes": [
                    {
                        "word": outcome.word,
                        "different": outcome.different,
                        "sentence": f"{outcome.word}{outcome.rest}",
                        "remarks": list(outcome.remarks),
                    }
                    for outcome in load.outcomes
                ],
            }
            for load in comparison.loads
        ],
        "pair": comparison.pair and _pair(comparison.pair),
        "caveats": [_caveat(caveat) for caveat in comparison.caveats],
    }


def _pair(pair: SideBySide) -> Mapping[str, Any]:
    return {
        "sides": [{"label": s.label, "model": s.model or None} for s in pair.sides],
        "summary": pair.summary,
        "caution": pair.caution,
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


def _report(model: Model) -> Mapping[str, Any]:
    return {
        "schema": SCHEMA,
        "made_by": model.made_by,
        "title": model.title,
        "deadline_ns": model.deadline_ns,
        "verdict": model.verdict and _verdict(model.verdict),
        "findings": list(model.findings),
        "caveats": [_caveat(caveat) for caveat in model.caveats],
        "rows": [
            {**_row(row), "over_seeds": row.seeds and _over_seeds(row.seeds)}
            for row in model.rows
        ],
        "pair": model.pair and _pair(model.pair),
        "explained": [_explained(one) for one in model.explained],
        "machines": [_machine(machine) for machine in model.machines],
        "commands": list(model.commands),
        "runs": [asdict(one) for one in model.provenance],
    }


def _verdict(verdict: VerdictInWords) -> Mapping[str, Any]:
    return {
        "word": verdict.word,
        "exit_status": verdict.exit_status,
        "loads": [
            {"name": load.name, "word": load.word, "sentence": load.sentence}
            for load in verdict.loads
        ],
    }


def _caveat(caveat: MergedCaveat) -> Mapping[str, Any]:
    left_out = ("label", "everywhere")
    return {k: v for k, v in asdict(caveat).items() if k not in left_out}


def _row(row: Row) -> Mapping[str, Any]:
    summary = row.summary
    own = {one.attribute: one.of(row) for one in figures() if one.of_row}
    return {
        "load": row.load,
        "target": row.target,
        "kernel": row.kernel,
        "settings": row.settings,
        "runs": row.runs,
        "repeats": row.repeats,
        "cpus": row.cpus,
        "observed_ns": row.observed_ns,
        "caveats": own.pop("caveats"),
        "summary": summary
        and {
            **{
                one.attribute: one.of(row)
                for one in figures()
                if one.attribute and not one.of_row
            },
            "percentiles": {
                f"p{p.pct:g}": percentile_ns(summary, p.pct)
                for p in summary.percentiles
            },
        },
        **own,
        "throughput": dict(row.throughput),
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
        "run": one.run,
        "load": one.load,
        "dominant_cause": one.dominant_cause,
        "sentence": one.sentence,
        "bound_ns": one.bound_ns,
        "observed_max_ns": one.observed_ns,
        "missing": list(one.missing),
        "tail": one.tail
        and {
            "from_ns": one.tail.from_ns,
            "wakeups": one.tail.wakeups,
            "not_recorded": one.tail.unknown,
            "causes": [asdict(cause) for cause in one.tail.causes],
        },
    }


def _machine(machine: MeasuredMachine) -> Mapping[str, Any]:
    return {
        "name": machine.name,
        "target": machine.target,
        "kernel": machine.kernel,
        "preemption": machine.preemption,
        "facts": {
            fact.name: {
                "value": fact.raw,
                "source": fact.source,
                "reason": fact.why,
            }
            for fact in machine.facts
        },
    }


def _published_comparison(comparison: PublishedComparison) -> Mapping[str, Any]:
    table = comparison.table
    return {
        "schema": SCHEMA,
        "made_by": comparison.made_by,
        "title": comparison.title,
        "virtual": bool(comparison.virtual),
        "published": {
            "name": table.name,
            "source": table.source,
            "machine": table.machine,
            "cpus": table.cpus,
            "command": table.command,
            "interval_ns": table.interval_ns,
            "duration_ns": table.duration_ns,
            "policy": table.policy,
            "priority": table.priority,
            "kernels": {kind: k.release for kind, k in table.kernels.items()},
        },
        "ours": {"machine": comparison.machine, "kernels": dict(comparison.kernels)},
        "summary": comparison.summary,
        "loads": [_published_load(row) for row in comparison.rows],
        "not_measured": list(comparison.not_measured),
        "not_published": list(comparison.not_published),
        "support": list(comparison.support),
        "differences": list(comparison.differences),
        "notes": [{"id": n.id, "message": n.says} for n in table.notes],
        "caveats": [_caveat(caveat) for caveat in comparison.caveats],
    }


def _published_load(row: PublishedRow) -> Mapping[str, Any]:
    return {
        "load": row.load,
        "sentence": row.sentence,
        "published": {
            "max_ratio": row.published.ratio,
            **{
                kind.value: {
                    "min_ns": f.min_ns,
                    "avg_ns": f.avg_ns,
                    "stdev_ns": f.stdev_ns,
                    "max_ns": f.max_ns,
                }
                for kind, f in row.published.figures.items()
            },
        },
        "ours": {
            "max_ratio": row.measured.ratio,
            **{kind.value: _row(mine) for kind, mine in row.measured.rows.items()},
        },
    }
