"""
A report or comparison as JSON: figures in ns, stable keys, for programs.

Null stands for: `verdict` without a deadline; `pair` unless two sides are compared;
`summary` of a row without a sample; `percentiles` that the samples cannot resolve;
`bogo_ops_per_s` of a load that tells none; `over_seeds` with fewer than two seeds;
`kernel_digest` that was not recorded; `inputs_digest` and `seed` of a real machine; the
`value` of an unknown fact (`why` then says why). New keys may come within a schema;
none changes its meaning or goes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rtscope.report.model.build import Model
from rtscope.report.model.caveats import MergedCaveat
from rtscope.report.model.comparison import Comparison
from rtscope.report.model.explained import ExplainedBeside
from rtscope.report.model.machines import Machine
from rtscope.report.model.rows import Row
from rtscope.report.model.seedvariation import SeedRow
from rtscope.report.model.sidebyside import SideBySide
from rtscope.report.model.verdicts import Verdict
from rtscope.report.words import percentile_ns

SCHEMA = 1


def render_json(model: Model) -> str:
    """Return the report as one JSON object, keys in a fixed order."""
    return json.dumps(_report(model), indent=2, ensure_ascii=False) + "\n"


def render_comparison_json(comparison: Comparison) -> str:
    """Return a comparison as one JSON object, keys in a fixed order."""
    return json.dumps(_comparison(comparison), indent=2, ensure_ascii=False) + "\n"


def _comparison(comparison: Comparison) -> Mapping[str, Any]:
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
                        **row_object(side.row),
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
        "caveats": [caveat_object(caveat) for caveat in comparison.caveats],
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
                "max_ratio": row.ratio,
                "sentence": row.sentence,
                "rows": [row_object(side) for side in row.rows],
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
        "caveats": [caveat_object(caveat) for caveat in model.caveats],
        "rows": [
            {**row_object(row), "over_seeds": _over_seeds(row, model.seeds)}
            for row in model.rows
        ],
        "pair": model.pair and _pair(model.pair),
        "explained": [_explained(one) for one in model.explained],
        "machines": [_machine(machine) for machine in model.machines],
        "commands": list(model.commands),
        "runs": [
            {
                "id": p.run,
                "started": p.started,
                "rtscope": p.rtscope,
                "agent": p.agent,
                "result_digest": p.result_digest,
                "kernel_digest": p.kernel_digest or None,
                "inputs_digest": p.inputs_digest,
                "seed": p.seed,
            }
            for p in model.provenance
        ],
    }


def _verdict(verdict: Verdict) -> Mapping[str, Any]:
    return {
        "word": verdict.word,
        "exit_status": verdict.exit_status,
        "loads": [
            {"name": load.name, "word": load.word, "sentence": load.sentence}
            for load in verdict.loads
        ],
    }


def caveat_object(caveat: MergedCaveat) -> Mapping[str, Any]:
    """Return a caveat as every JSON output has it."""
    return {
        "id": caveat.id,
        "effect": caveat.effect.value,
        "says": caveat.says,
        "details": list(caveat.details),
        "remedy": caveat.remedy,
        "runs": list(caveat.runs),
    }


def row_object(row: Row) -> Mapping[str, Any]:
    """Return a row as every JSON output has it."""
    summary = row.summary
    return {
        "load": row.load,
        "target": row.target,
        "kernel": row.kernel,
        "settings": row.settings,
        "runs": row.runs,
        "repeats": row.repeats,
        "cpus": row.cpus,
        "observed_ns": row.observed_ns,
        "caveats": row.caveats,
        "summary": summary
        and {
            "max_ns": summary.max_ns,
            "samples": summary.samples,
            "skipped": summary.skipped,
            "late": summary.late,
            "early": summary.early,
            "beyond": summary.beyond,
            "min_ns": summary.min_ns,
            "mean_ns": summary.mean_ns,
            "mean_with_skipped_ns": summary.mean_with_skipped_ns,
            "stdev_ns": summary.stdev_ns,
            "percentiles": {
                f"p{p.pct:g}": percentile_ns(summary, p.pct)
                for p in summary.percentiles
            },
        },
        "bogo_ops_per_s": row.total_throughput,
        "throughput": dict(row.throughput),
    }


def _over_seeds(row: Row, lines: Sequence[SeedRow]) -> Mapping[str, Any] | None:
    over = next((line.over for line in lines if line.row is row), None)
    if over is None:
        return None
    return {
        "lowest_max_ns": over.lowest_ns,
        "median_max_ns": over.median_ns,
        "highest_max_ns": over.highest_ns,
        "observed_ns": over.observed_ns,
        "max_ns_of_seed": {str(seed): maximum for seed, maximum in over.maxima_ns},
    }


def _explained(one: ExplainedBeside) -> Mapping[str, Any]:
    return {
        "run": one.run,
        "load": one.load,
        "culprit": one.culprit,
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


def _machine(machine: Machine) -> Mapping[str, Any]:
    return {
        "name": machine.name,
        "target": machine.target,
        "kernel": machine.kernel,
        "preemption": machine.preemption,
        "facts": {
            fact.name: {
                "value": fact.raw,
                "source": fact.source,
                "why": fact.why,
            }
            for fact in machine.facts
        },
    }
