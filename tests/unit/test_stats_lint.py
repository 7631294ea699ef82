"""Doubts that follow from a record itself: each is raised when due, and only then."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.measurements import GOOD_CLOCK, SECOND_NS, record, thread, ticks_of
from rtscope.contract import (
    CpuTime,
    KernelThread,
    ThreadResult,
    Wakeup,
    require,
)
from rtscope.machine.facts import FactValue
from rtscope.record.caveats.catalogue import make
from rtscope.record.model import RunRecord
from rtscope.stats.runcaveats import all_caveats, clock_coarse, lint

US = 1_000


def good_thread(cpu: int = 0) -> ThreadResult:
    return thread([5 * US, 7 * US, 6 * US] * 20, cpu=cpu, interval_ns=SECOND_NS)


def good_record() -> RunRecord:
    return record([good_thread(0), good_thread(1)])


def changed(**changes: object) -> RunRecord:
    """The good record with the first thread changed."""
    r = good_record()
    first = replace(r.result.threads[0], **changes)  # type: ignore[arg-type]
    threads = (first, r.result.threads[1])
    return replace(r, result=replace(r.result, threads=threads))


def with_result(**changes: object) -> RunRecord:
    r = good_record()
    return replace(r, result=replace(r.result, **changes))  # type: ignore[arg-type]


def with_machine(**changes: object) -> RunRecord:
    r = good_record()
    assert r.result.machine is not None
    machine = replace(r.result.machine, **changes)  # type: ignore[arg-type]
    return replace(r, result=replace(r.result, machine=machine))


def with_facts(**facts: str | bool | None) -> RunRecord:
    return record([good_thread()], facts=facts)


def raised(r: RunRecord) -> dict[str, str]:
    return {caveat.id: caveat.detail for caveat in lint(r)}


def every(r: RunRecord) -> dict[str, str]:
    return {caveat.id: caveat.detail for caveat in all_caveats(r)}


def test_a_good_run_raises_nothing() -> None:
    assert lint(good_record()) == ()


@pytest.mark.parametrize(
    "latencies",
    [
        [0],
        [5],
        [4, 4, 6, 6],
        [10, 1_500_000, 20],
        [1_000_000, 5],
        [-4, 1_000_000, 2_000_000],
        [2**34, 2**35, 100],
        [2**20 + k for k in range(0, 3000, 7)],
        [-3, 10, -3],
        [-3],
        [],
        [0] * 50 + [999_999],
    ],
)
@pytest.mark.parametrize("worst_kept", [0, 3, 1000])
def test_no_honest_list_of_latencies_is_called_inconsistent(
    latencies: list[int], worst_kept: int
) -> None:
    found = raised(record([thread(latencies, worst_kept=worst_kept)]))
    assert not found.keys() & {"identity_broken", "sums_inconsistent"}


@pytest.mark.parametrize("skipped", [0, 1, 2])
def test_the_identity_may_be_off_by_one(skipped: int) -> None:
    t = thread([5 * US, 1_500_000], activations=3)
    found = raised(record([replace(t, missed_periods=skipped)]))
    assert "identity_broken" not in found


def test_a_broken_identity_shows_its_figures() -> None:
    t = good_thread()
    found = raised(changed(end_ns=t.end_ns + 2 * SECOND_NS))
    assert found["identity_broken"] == (
        "CPU 0: 60 samples + 0 missed periods, but 62 periods elapsed"
    )


def test_a_run_without_a_grid_breaks_the_identity() -> None:
    assert "no periods" in raised(changed(end_ns=0))["identity_broken"]


GOOD = good_thread()
BAD_WAKEUP = Wakeup(0, 1, 0, 9 * US)
UNORDERED = "the buckets are not in ascending order"
NO_BUCKET = "a bucket that does not exist, or an empty one"
ODD_WORST = "more worst wake-ups than samples, or one below the minimum"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"histogram": tuple(reversed(GOOD.histogram))}, UNORDERED),
        ({"histogram": (GOOD.histogram[0], *GOOD.histogram)}, UNORDERED),
        ({"histogram": ((5001, 60),)}, NO_BUCKET),
        ({"histogram": (*GOOD.histogram, (2**20, 0))}, NO_BUCKET),
        ({"histogram": GOOD.histogram[:1]}, "60 samples, but 20 in the histogram"),
        ({"min_ns": None}, "samples, but no minimum or maximum"),
        ({"min_ns": 4_000}, "the minimum, 4.00 us, lies outside its bucket"),
        (
            {"max_ns": 9_000, "worst": ()},
            "the maximum, 9.00 us, lies outside its bucket",
        ),
        (
            {"sum_ns": require(GOOD.sum_ns) + 500},
            "the sum must lie between 360000 and 360120, but is 360500",
        ),
        (
            {"sum_sq_ns2": require(GOOD.sum_sq_ns2) * 2},
            "the squares must lie between 2200000000 and 2201320360, but is 4400000000",
        ),
        ({"overruns": 61}, "61 overruns, but only 60 in all"),
        ({"overruns": 2}, "2 overruns, but the maximum is below the interval"),
        ({"missed_periods": 1}, "1 missed periods, but no overrun"),
        (
            {"missed_periods_sum_ns": 1},
            "the missed periods were later than the maximum",
        ),
        (
            {"worst": tuple(reversed(GOOD.worst))},
            "the worst wake-ups are not in order",
        ),
        (
            {"worst": (BAD_WAKEUP,)},
            "the worst wake-up has 9.00 us, the maximum is 7.00 us",
        ),
        ({"worst": (GOOD.worst[0], Wakeup(0, 1, 0, 1))}, ODD_WORST),
        ({"worst": (GOOD.worst[0],) * 61}, ODD_WORST),
    ],
)
def test_figures_that_do_not_fit_each_other_are_found(
    changes: Mapping[str, object], says: str
) -> None:
    assert raised(changed(**changes))["sums_inconsistent"] == f"CPU 0: {says}"


def test_early_wakeups_are_none_of_the_worst() -> None:
    t = thread([-5, 10, 20])
    more = replace(t, worst=(t.worst[0], *t.worst))
    found = raised(record([more]))
    assert found["sums_inconsistent"] == f"CPU 0: {ODD_WORST}"


def test_early_wakeups_are_no_overruns() -> None:
    more = replace(thread([-5, 10, 20]), overruns=3)
    found = raised(record([more]))
    assert found["sums_inconsistent"] == "CPU 0: 3 overruns, but only 2 in all"


def test_a_minimum_above_the_maximum_in_one_bucket_is_found() -> None:
    t = thread([200_000, 200_050], interval_ns=SECOND_NS)
    swapped = replace(t, min_ns=t.max_ns, max_ns=t.min_ns, worst=())
    found = raised(record([swapped]))
    assert "minimum exceeds the maximum" in found["sums_inconsistent"]


def test_figures_without_a_sample_are_found() -> None:
    found = raised(record([replace(thread([]), sum_ns=1)]))
    assert "without a sample" in found["sums_inconsistent"]


WIDE = thread([2**30, 2**30 + 500, 2**30 + 1000] * 20, interval_ns=2 * SECOND_NS)
MEAN = 2**30 + 500


@pytest.mark.parametrize(
    ("sum_sq_ns2", "says"),
    [
        (60 * MEAN**2 - 1, "too small for the sum"),
        (60 * (MEAN**2 + 500**2) + 60, "too large for minimum and maximum"),
        (60 * MEAN**2 + 500**2 - 60, "too small for minimum and maximum"),
    ],
)
def test_a_deviation_that_no_samples_can_have_is_found(
    sum_sq_ns2: int, says: str
) -> None:
    # All three lie in one bucket of 2^20 ns, so that only the extremes bound the sums.
    found = raised(record([replace(WIDE, sum_sq_ns2=sum_sq_ns2)]))
    assert says in found["sums_inconsistent"]


@pytest.mark.parametrize("offset", [-31_000, 31_000])
def test_a_sum_that_only_the_extremes_exclude_is_found(offset: int) -> None:
    # 60 samples from 2^30 + 500 to 2^30 + 1500, in a bucket of 2^20 ns
    low = 2**30 + 500
    t = thread([low, low + 500, low + 1000] * 20, interval_ns=2 * SECOND_NS)
    found = raised(record([replace(t, sum_ns=require(t.sum_ns) + offset)]))
    assert "the sum must lie between" in found["sums_inconsistent"]


def test_skips_come_with_both_averages() -> None:
    found = raised(record([thread([500_000, 2_500_000])]))
    assert found["missed_periods"] == (
        "2 missed by 1 overruns; average 1,500 us, with missed periods 1,250 us"
    )


def test_skips_without_a_sample_have_no_average() -> None:
    t = replace(thread([]), missed_periods=1)
    assert "missed_periods" not in raised(record([t]))


@pytest.mark.parametrize(
    ("changes", "caveat", "detail"),
    [
        ({"migrations": 2}, "migrated", "CPU 0: 2 migrations"),
        ({"minor_faults": 3}, "page_faults", "CPU 0: 3 minor, 0 major"),
        ({"major_faults": 1}, "page_faults", "CPU 0: 0 minor, 1 major"),
        ({"policy": "other"}, "settings_differ", "policy fifo requested, other actual"),
        ({"priority": 1}, "settings_differ", "priority 99 requested, 1 actual"),
        ({"affinity": "0-3"}, "settings_differ", "affinity 0 requested, 0-3 actual"),
        ({"affinity": "?"}, "settings_differ", "affinity 0 requested, ? actual"),
        ({"cpu": 5}, "settings_differ", "CPUs 0-1 requested, 1,5 measured"),
    ],
)
def test_what_a_thread_did_or_got_is_doubted(
    changes: Mapping[str, object], caveat: str, detail: str
) -> None:
    found = [c.detail for c in lint(changed(**changes)) if c.id == caveat]
    assert any(detail in text for text in found)


def test_unpinned_threads_may_migrate_and_run_anywhere() -> None:
    t = replace(good_thread(), cpu=None, affinity="0-3", migrations=7)
    assert raised(record([t])) == {}


def test_an_unpinned_thread_is_named_by_its_id() -> None:
    t = replace(good_thread(), cpu=None, affinity="0-3", major_faults=1)
    assert raised(record([t]))["page_faults"].startswith("thread 1000:")


def test_an_ordinary_policy_has_no_priority_to_differ() -> None:
    r = record([replace(good_thread(), policy="other", priority=0)])
    r = replace(r, run=replace(r.run, priority=99))
    assert raised(r) == {}


def test_early_wakeups_are_doubted() -> None:
    found = raised(record([thread([-5, 10, -5])]))
    assert found["early"] == "CPU 0: 2 early wake-ups"


def test_latencies_beyond_17_s_are_mentioned() -> None:
    found = raised(record([thread([10, 2**34], interval_ns=2**40)]))
    assert found["overflow"] == "CPU 0: 1, worst 17,179,869 us"


@pytest.mark.parametrize(
    ("p999_ns", "max_ns", "slow"),
    [(1_000, 10_000, False), (1_001, 5_000, True), (50, 10_001, True)],
)
def test_slow_clock_reads_are_mentioned(p999_ns: int, max_ns: int, slow: bool) -> None:
    cost = replace(GOOD_CLOCK, p999_ns=p999_ns, max_ns=max_ns)
    assert ("clock_slow" in raised(changed(clock_after=cost))) is slow


@pytest.mark.parametrize(("step_ns", "coarse"), [(250, False), (251, True)])
def test_a_clock_step_may_be_a_twentieth_of_the_deadline(
    step_ns: int, coarse: bool
) -> None:
    r = changed(clock_before=replace(GOOD_CLOCK, granularity_ns=step_ns))
    assert bool(clock_coarse(r, 5_000)) is coarse


def test_without_threads_no_clock_is_coarse() -> None:
    r = good_record()
    assert clock_coarse(replace(r, result=replace(r.result, threads=())), 1) == ()


def test_a_coarse_clock_is_named_with_its_figures() -> None:
    r = changed(clock_before=replace(GOOD_CLOCK, granularity_ns=1_000))
    [caveat] = clock_coarse(r, 5_000)
    assert caveat.detail == (
        "CPU 0: the clock moves in steps of 1 us, the deadline is 5 us"
    )


@pytest.mark.parametrize(
    ("changes", "caveat", "detail"),
    [
        ({"stopped": "signal"}, "stopped_early", "signal, after 60 s"),
        ({"locked_kb": 0}, "memory_not_locked", ""),
        ({"dma_latency_held": True}, "cpu_held_awake", ""),
        ({"housekeeping_cpu": None}, "no_housekeeping_cpu", ""),
        ({"housekeeping_cpu": 1}, "no_housekeeping_cpu", ""),
        ({"kernel_log": "denied"}, "kernel_log_unwatched", "denied"),
        ({"kernel_log_lost": 4}, "kernel_log_lost", "4 messages"),
        ({"ticks_lost": 4}, "ticks_lost", "4 ticks"),
    ],
)
def test_what_the_agent_says_of_itself_is_doubted(
    changes: Mapping[str, object], caveat: str, detail: str
) -> None:
    found = raised(with_result(**changes))
    assert found[caveat].replace("1 min", "60 s") == detail


@pytest.mark.parametrize("housekeeping", [None, 1])
def test_ordinary_threads_are_delayed_by_the_agent_itself(
    housekeeping: int | None,
) -> None:
    ordinary = changed(policy="other", priority=0)
    result = replace(ordinary.result, housekeeping_cpu=housekeeping)

    found = raised(replace(ordinary, result=result))

    assert "agent_competes" in found
    assert "no_housekeeping_cpu" not in found


def test_ordinary_threads_beside_a_free_cpu_are_not_doubted() -> None:
    assert "agent_competes" not in raised(changed(policy="other", priority=0))


def test_a_run_of_less_than_a_minute_is_short() -> None:
    assert raised(record([thread([1] * 59, interval_ns=SECOND_NS)])) == {
        "short_run": "59 s"
    }


def cpu_time(cpu: int, steal_ns: int) -> CpuTime:
    return CpuTime(cpu, steal_ns, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "caveat", "detail"),
    [
        ({"realtime_step_ns": 1_500_000}, "clock_stepped", "by 1.5 ms"),
        ({"suspended_ns": 3 * SECOND_NS}, "suspended", "for 3 s"),
        (
            {"cpu_times": (cpu_time(0, 2_000_000), cpu_time(1, 3_000_000))},
            "steal",
            "5 ms in all, most of it on CPU 1: 3 ms",
        ),
        ({"throttle_counts": {0: 0, 2: 3}}, "cpu_throttled", "3 times, CPUs 2"),
        ({"smi_count": 2}, "smi", "2 times"),
    ],
)
def test_what_the_machine_did_is_doubted(
    changes: Mapping[str, object], caveat: str, detail: str
) -> None:
    assert raised(with_machine(**changes)) == {caveat: detail}


@pytest.mark.parametrize(
    "changes",
    [
        {"realtime_step_ns": 1_000_000},
        {"throttle_counts": None},
        {"smi_count": None},
    ],
)
def test_a_counter_that_is_not_there_or_did_not_move_is_no_doubt(
    changes: Mapping[str, object],
) -> None:
    assert raised(with_machine(**changes)) == {}


def kernel_thread(share: float, *, name: str, kind: str) -> KernelThread:
    return KernelThread(77, name, kind, 0, int(share * 60 * SECOND_NS))


def test_an_interrupt_thread_that_hogs_a_cpu_is_named_with_its_share() -> None:
    # the Raspberry Pi's USB controller, which kept one CPU a fifth busy
    hog = kernel_thread(0.21, name="irq/56-dwc_otg", kind="irq")
    quiet = kernel_thread(0.10, name="irq/57-mmc", kind="irq")
    worker = kernel_thread(0.90, name="kswapd0", kind="kernel")
    assert raised(with_machine(kernel_threads=(quiet, hog, worker))) == {
        "interrupt_thread_hog": "irq/56-dwc_otg used 21% of a CPU, last on CPU 0"
    }


@pytest.mark.parametrize(
    ("high_khz", "varied"), [(1_500_000, False), (1_020_000, False), (1_021_000, True)]
)
def test_a_frequency_that_varies_by_more_than_2_percent_is_mentioned(
    high_khz: int, varied: bool
) -> None:
    low_khz = 1_500_000 if high_khz == 1_500_000 else 1_000_000
    t = good_thread()
    first, *others = ticks_of([t], freq_khz={0: low_khz, 7: 5})
    ticks = [first, *(replace(x, freq_khz={0: high_khz, 7: 9}) for x in others)]
    found = raised(record([t], ticks=ticks))
    expected = {"frequency_varied": "CPUs 0: 1000 to 1021 MHz"} if varied else {}
    assert found == expected


def test_the_widest_range_of_frequencies_of_all_measured_cpus_is_told() -> None:
    threads = [good_thread(0), good_thread(1)]
    first, *others = ticks_of(threads, freq_khz={0: 600_000, 1: 900_000})
    ticks = [first, *(replace(x, freq_khz={0: 700_000, 1: 1_500_000}) for x in others)]
    assert raised(record(threads, ticks=ticks)) == {
        "frequency_varied": "CPUs 0-1: 600 to 1500 MHz"
    }


def test_the_slowest_clock_read_of_all_is_told() -> None:
    r = changed(
        clock_before=replace(GOOD_CLOCK, max_ns=11_000),
        clock_after=replace(GOOD_CLOCK, max_ns=12_000),
    )
    assert raised(r)["clock_slow"] == (
        "CPU 0, after the run: 99.9 % of the reads within 0.040 us, the slowest 12.0 us"
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"guest": True}, {"guest": "unnamed hypervisor: a test"}),
        ({"guest": None}, {}),
        ({"preempt_rt": None}, {"kernel_unknown": "not readable"}),
        (
            {"preempt_rt": False, "preemption_model": "full"},
            {"not_realtime_kernel": "a test; preemption model: full"},
        ),
        ({"governor": "schedutil"}, {"governor": "CPU 0: schedutil"}),
        ({"governor": None}, {}),
    ],
)
def test_facts_about_the_machine_raise_doubts(
    facts: Mapping[str, str | bool | None], expected: Mapping[str, str]
) -> None:
    assert every(with_facts(**facts)) == expected


def test_governors_count_for_the_measured_cpus_only() -> None:
    governors = FactValue(("0-1=performance", "2-3=powersave"), "a test")
    r = good_record()
    facts = {**r.facts_before, "governor": governors}

    assert every(replace(r, facts_before=facts, facts_after=facts)) == {}


def test_a_record_without_facts_raises_no_doubt_about_them() -> None:
    assert every(replace(good_record(), facts_before={}, facts_after={})) == {}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("clocksource", "hpet", {"clocksource_changed": "from tsc to hpet"}),
        ("clocksource", None, {}),
        (
            "cpus_online",
            "0,2-3",
            {"cpus_changed": "online: 0-3, then 0,2-3", "cpu_offline": "CPU 1"},
        ),
        ("cpus_online", "nonsense", {}),
    ],
)
def test_a_machine_that_changed_during_the_run_is_doubted(
    name: str, value: str | None, expected: Mapping[str, str]
) -> None:
    r = good_record()
    after = {**r.facts_after, name: FactValue(value, "a test")}
    assert every(replace(r, facts_after=after)) == expected


def test_all_caveats_are_the_hosts_and_ours_gravest_first() -> None:
    host = make("container")
    r = replace(changed(early=0, migrations=1, minor_faults=1), caveats=(host,))
    assert [c.id for c in all_caveats(r)] == ["migrated", "page_faults", "container"]


def test_where_both_raise_the_same_caveat_the_hosts_stands() -> None:
    host = make("guest", "KVM, from /sys/hypervisor")
    assert all_caveats(replace(with_facts(guest=True), caveats=(host,))) == (host,)


def test_a_board_that_gets_heartbeats_is_driven_over_a_network() -> None:
    r = good_record()
    driven = replace(r, hello=replace(r.hello, options={"heartbeat": True}))

    assert raised(driven) == {"remote_link": ""}


def test_without_a_maximum_no_missed_period_was_late() -> None:
    found = raised(record([replace(thread([]), missed_periods_sum_ns=1)]))
    assert found["sums_inconsistent"] == (
        "CPU 0: the missed periods were later than the maximum"
    )


def test_most_of_the_stolen_time_is_of_the_cpu_that_lost_most() -> None:
    stolen = (cpu_time(0, 3_000_000), cpu_time(1, 2_000_000), cpu_time(2, 0))

    assert raised(with_machine(cpu_times=stolen))["steal"] == (
        "5 ms in all, most of it on CPU 0: 3 ms"
    )
