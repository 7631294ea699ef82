"""One run has one value of a percentile, whichever command shows it."""

import json

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.present.formats.data import render_csv, render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.record.model import RunRecord
from rtscope.stats.figures import percentiles
from rtscope.stats.summary import summarize
from rtscope.verbs.bisect.criterion import value_of
from rtscope.verbs.sweep.effects import figures_of
from rtscope.verbs.sweep.ranking import ranking_of

EXACT = [7_795 + 3 * n for n in range(5_000)]
SPIKED = [*[5_000] * 4_990, *[70_000 + n for n in range(10)]]
EQUAL = [14_599] * 5_000
SMALL = [n % 60 for n in range(5_000)]
TWO_STEPS = [*[1_023] * 2_500, *[1_025] * 2_500]


def board(latencies_ns: list[int]) -> RunRecord:
    return on_board(record([thread(latencies_ns)]))


@pytest.mark.parametrize("latencies_ns", [EXACT, SPIKED, EQUAL, SMALL, TWO_STEPS])
def test_every_command_has_the_same_percentile(latencies_ns: list[int]) -> None:
    one = board(latencies_ns)
    model = build_model([one])
    (row,) = json.loads(render_json(model))["rows"]
    p999_ns = row["summary"]["percentiles"]["p99.9"]

    (load,) = json.loads(render_json(build_comparison({"a": [one], "b": [one]})))[
        "loads"
    ]
    ranked = ranking_of([one], explained={}, failures={}).loads[0]
    (standing,) = ranked.standings.values()
    heading, cells = (line.split(",") for line in render_csv(model).splitlines())
    assert {
        load["sides"][0]["summary"]["percentiles"]["p99.9"],
        value_of(one, "p99.9"),
        standing.p999_ns,
        int(1000 * float(cells[heading.index("p99.9_us")]) + 0.5),
        figures_of(one).get("p99.9", 0),
    } == {p999_ns}


@pytest.mark.parametrize("latencies_ns", [EXACT, SPIKED, EQUAL, SMALL, TWO_STEPS])
def test_at_most_so_late_are_all_but_one_in_a_thousand(latencies_ns: list[int]) -> None:
    found = summarize(board(latencies_ns).result.threads)
    for figure, pct in percentiles():
        if (at_most_ns := figure.of_summary(found)) is None:
            continue
        within = sum(ns <= at_most_ns for ns in latencies_ns)
        assert within >= len(latencies_ns) * pct / 100
        assert at_most_ns <= found.max_ns
