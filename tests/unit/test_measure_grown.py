"""A result that never came is made of what was told second by second."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.measurements import SECOND_NS, record, thread
from fakes.story import StoryOf, detail, ids
from fakes.targets import target
from fakes.telling import growth, started, telling
from rtscope.contract import (
    LOST,
    AgentResult,
    Growth,
    ThreadResult,
    Wakeup,
    WorstSoFar,
    bucket_low_ns,
)
from rtscope.host.errors import ContractError, RecordError, TargetError
from rtscope.measure.growth import GrowthSum
from rtscope.record.directory.records import ResultDir
from rtscope.stats.integrity import check_thread
from rtscope.stats.runcaveats import was_traced
from rtscope.stats.summary import summarize

MS = 1_000_000
LATENCIES = st.integers(-3, 2**34 + 9) | st.integers(0, 5_000)


def told(*moments: ThreadResult) -> GrowthSum:
    """Return what a host knows that was told of these moments of one thread."""
    grown = GrowthSum()
    grown.take(started(moments[-1:]))
    for before, now in zip((None, *moments), moments, strict=False):
        grown.take(Growth((growth(now, before),)))
    return grown


def rebuilt(grown: GrowthSum) -> AgentResult:
    result = grown.result()
    assert result is not None
    return result


@given(st.lists(LATENCIES, min_size=1, max_size=40), st.integers(0, 40))
def test_counts_and_maximum_are_those_of_the_agent(
    latencies_ns: list[int], before: int
) -> None:
    whole = thread(latencies_ns, interval_ns=10 * MS)
    part = thread(latencies_ns[:before], interval_ns=10 * MS)

    (made,) = rebuilt(told(part, whole)).threads

    assert made.histogram == whole.histogram
    assert (made.samples, made.missed_periods) == (whole.samples, whole.missed_periods)
    assert (made.early, made.overflow) == (whole.early, whole.overflow)
    assert made.max_ns == whole.max_ns
    assert list(check_thread(made)) == []


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60))
def test_percentiles_are_those_of_the_agent(latencies_ns: list[int]) -> None:
    whole = thread(latencies_ns * 20, interval_ns=2 * 10**9)

    made = rebuilt(told(whole))
    had, has = summarize([whole]), summarize(made.threads)

    # The lowest percentile alone is bounded by the minimum, here to its bucket.
    assert had.ranks == has.ranks
    assert has.min_ns == bucket_low_ns(had.min_ns) or len(set(latencies_ns)) == 1
    assert has.mean_ns == pytest.approx(had.mean_ns, rel=1e-3, abs=1)


def test_what_an_agent_knows_only_at_its_end_is_unknown() -> None:
    result = rebuilt(told(thread([5_000])))

    (made,) = result.threads
    assert result.stopped == LOST
    assert (result.machine, result.kernel_log_lost) == (None, None)
    assert (made.minor_faults, made.involuntary_switches) == (None, None)
    assert made.clock_after is None


def test_nothing_is_made_of_a_run_that_told_nothing_yet() -> None:
    grown = GrowthSum()
    assert grown.result() is None
    grown.take(started([thread([5_000])]))
    assert grown.result() is None


def test_the_latest_wakeup_is_listed_if_it_was_told() -> None:
    whole = thread([5_000, 9_000])
    grown = told(whole)
    grown.take(WorstSoFar(Wakeup(0, 1, 10, 5_010)))
    grown.take(WorstSoFar(whole.worst[0]))

    assert rebuilt(grown).threads[0].worst == whole.worst[:1]


def test_an_older_maximum_is_not_taken_for_the_latest_wakeup() -> None:
    grown = told(thread([5_000, 9_000]))
    grown.take(WorstSoFar(Wakeup(0, 1, 10, 5_010)))

    assert rebuilt(grown).threads[0].worst == ()


@pytest.mark.parametrize("max_ns", [9_000, 2**34 + 1])
def test_a_maximum_that_was_read_before_its_bucket_is_a_sample(max_ns: int) -> None:
    whole = thread([5_000], interval_ns=60 * SECOND_NS)
    grown = told(whole)
    grown.totals = (replace(grown.totals[0], max_ns=max_ns),)

    (made,) = rebuilt(grown).threads

    assert (made.samples, made.max_ns) == (2, max_ns)
    assert list(check_thread(made)) == []


def test_lines_of_other_threads_than_those_let_go_are_refused() -> None:
    whole = growth(thread([5_000]))
    grown = told(thread([5_000]))

    with pytest.raises(ContractError, match="2 histograms, and of 1 threads"):
        grown.take(Growth((whole, whole)))


# --- the result that came, beside what was told -----------------------------------


def test_a_result_is_the_sum_of_what_was_told() -> None:
    whole = thread([5_000, 7_000, 5_000])

    assert told(thread([5_000]), whole).contradiction(record([whole]).result) == ""


@pytest.mark.parametrize("told_ns", [[5_000], [5_000, 5_000, 7_000], [5_000, 9_000]])
def test_another_sum_is_a_contradiction(told_ns: list[int]) -> None:
    whole = record([thread([5_000, 7_000])]).result

    assert "told second by second" in told(thread(told_ns)).contradiction(whole)


def test_ticks_that_were_lost_explain_what_is_missing_and_not_what_is_too_much() -> (
    None
):
    whole = replace(record([thread([5_000, 7_000])]).result, ticks_lost=1)

    assert told(thread([5_000])).contradiction(whole) == ""
    assert told(thread([5_000, 9_000])).contradiction(whole) != ""


def test_an_agent_that_tells_nothing_contradicts_nothing() -> None:
    assert GrowthSum().contradiction(record([thread([5_000])]).result) == ""


# --- a campaign whose machine dies ------------------------------------------------

LATENCIES_NS = [5_000, 7_000, 6_000, 8_000, 5_500, 6_500] * 10


def test_a_run_whose_machine_dies_is_kept_to_its_last_second(story: StoryOf) -> None:
    told = story("idle", on=target({"measure": telling(LATENCIES_NS, seconds=6)}))
    runs = told.run()

    kept = next(runs)
    with pytest.raises(
        TargetError,
        match=r"without a result; its first 6 s \(maximum 8\.00 us\) are in "
        r".*interrupted\.json",
    ):
        next(runs)

    (made,) = kept.result.threads
    assert Counter(dict(made.histogram)) == Counter(
        bucket_low_ns(x) for x in LATENCIES_NS
    )
    assert made.max_ns == 8_000
    assert {"result_rebuilt", "stopped_early"} <= ids(kept)
    assert "without a result" in detail(kept, "result_rebuilt")
    assert not {"sums_inconsistent", "identity_broken"} & ids(kept)
    assert told.store.records() == [kept]
    assert told.store.done_ids() == frozenset()
    assert "--growth" in next(
        w for w in told.target.log if w.startswith("root measure")
    )
    assert told.target.log.count("facts") == 1


def test_a_run_that_nobody_can_save_says_so_after_its_first_cause(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise RecordError("no space left")

    told = story("idle", on=target({"measure": telling(LATENCIES_NS, seconds=6)}))
    monkeypatch.setattr(ResultDir, "save", full)

    with pytest.raises(
        TargetError, match=r"without a result; its first 6 s .* are lost: no space left"
    ):
        list(told.run())


def test_a_lost_run_was_traced_if_that_was_asked_for(story: StoryOf) -> None:
    told = story("idle", on=target({"measure": telling(LATENCIES_NS, seconds=6)}))
    kept = next(told.run())
    asked = replace(kept, hello=replace(kept.hello, options={"trace": True}))

    assert not was_traced(kept)
    assert was_traced(asked)


def test_a_result_that_contradicts_what_was_told_is_invalid(story: StoryOf) -> None:
    other = record([thread([5_000] * 60, interval_ns=100 * MS)]).result
    script = [*telling(LATENCIES_NS, seconds=6), [other]]
    (kept,) = story("idle", on=target({"measure": script})).run()

    assert "growth_differs" in ids(kept)
