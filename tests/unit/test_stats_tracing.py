"""What a trace cost and lost is told with its numbers, and nothing is made up."""

from dataclasses import replace

from fakes import traces
from fakes.measurements import record, thread
from rtscope.contract import Tracing
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import lint, trace_cost


def traced(tracing: Tracing, *, untraced: bool = True) -> RunRecord:
    made = record([thread([3_000] * 999 + [9_000] * 9)])
    plain = record([thread([2_000] * 500)]).result
    runs = (plain.threads, plain.threads) if untraced else ()
    result = replace(made.result, tracing=tracing)
    return replace(made, result=result, untraced_runs=runs)


def told(kept: RunRecord) -> dict[str, str]:
    return {caveat.id: caveat.detail for caveat in lint(kept)}


def test_the_cost_is_the_same_number_with_and_without_tracing() -> None:
    cost = trace_cost(traced(traces.tracing()))

    assert cost is not None
    assert (cost.untraced.samples, cost.traced.samples) == (1_000, 1_008)
    # 1000 samples say nothing about p99.9 (0.999^1000 > 5 %): it is not made up.
    for one, median_ns in ((cost.untraced, 2_000), (cost.traced, 3_001)):
        assert one.ranks.percentile_ns(50) == median_ns
        assert one.ranks.percentile_ns(99.9) is None


def test_a_traced_run_says_so_with_the_cost() -> None:
    detail = told(traced(traces.tracing()))["traced"]

    assert detail == (
        "median 2.00 us untraced, 3.00 us traced, "
        "p99.9: too few samples; "
        "untraced for 500 ms and 500 ms before and after, under the same load, "
        "1000 against 1008 samples"
    )


def test_a_cost_that_was_not_measured_is_said_to_be_so() -> None:
    kept = traced(traces.tracing(), untraced=False)

    assert trace_cost(kept) is None
    assert told(kept)["traced"] == "its cost was not measured"


def test_a_run_that_was_interrupted_was_measured_without_only_before() -> None:
    kept = traced(traces.tracing())
    half = replace(kept, untraced_runs=kept.untraced_runs[:1])

    assert "untraced for 500 ms before, under the same load" in told(half)["traced"]


def test_runs_without_tracing_that_were_too_short_for_a_sample_tell_no_cost() -> None:
    kept = traced(traces.tracing())
    empty = record([thread([])]).result
    short = replace(kept, untraced_runs=(empty.threads, empty.threads))

    assert trace_cost(short) is None
    assert told(short)["traced"] == "its cost was not measured"


def test_a_trace_without_a_loss_raises_no_doubt() -> None:
    assert "trace_incomplete" not in told(traced(traces.tracing()))


def test_what_is_missing_from_a_trace_is_counted() -> None:
    lost = replace(traces.tracing(overrun=9, missed=True), candidates_lost=3)

    assert told(traced(lost))["trace_incomplete"] == (
        "the kernel overwrote 9 events before they were read; "
        "3 late wake-ups came too fast to keep; 1 of 1 kept wake-ups have a gap"
    )


def test_events_that_had_no_room_are_counted() -> None:
    made = traces.tracing(overrun=9)
    full = replace(made, cpus=(replace(made.cpus[0], dropped=4),))

    assert told(traced(full))["trace_incomplete"] == (
        "the kernel overwrote 9 events before they were read; "
        "its buffer had no space for 4 more"
    )


def test_wakeups_that_came_too_fast_are_counted_without_a_trace_too() -> None:
    refused = replace(traces.tracing(cause="permission"), candidates_lost=3)

    detail = told(traced(refused))["trace_refused"]
    assert detail.endswith("; 3 late wake-ups came too fast to keep")


def test_a_refused_trace_says_why_and_what_to_do() -> None:
    doubts = told(traced(traces.tracing(cause="permission")))

    assert doubts["trace_refused"] == (
        "tracing is for root alone; run as root or with sudo"
    )
    assert "traced" not in doubts


def test_a_run_that_was_not_traced_says_nothing_of_it() -> None:
    assert not {"traced", "trace_refused"} & told(record([thread([5_000])])).keys()
