"""The verdict ladder: which word, which exit status, which sentence."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import GOOD_CLOCK, SECOND_NS, on_board, record, thread
from rtscope.host.errors import MeasurementError
from rtscope.machine.facts import FactValue, catalogue
from rtscope.present.model.verdicts import verdict_of
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import RunRecord
from rtscope.stats.conditions import conditions_of, volatile_facts
from rtscope.stats.verdict import Claim, Finding, Judgement, Verdict, judge

US = 1_000
MINUTE = 60 * SECOND_NS
HOUR = 60 * MINUTE
DEADLINE = 200 * US
ONE_PER_HOUR = Claim(1, HOUR)


def run_of(
    minutes: int,
    load: str = "memory",
    *,
    boot_id: str = "boot-1",
    worst_ns: int = 95 * US,
    caveats: tuple[Caveat, ...] = (),
    kernel: str | None = None,
    priority: int = 99,
    start_h: int = 1,
) -> RunRecord:
    """Two CPUs, an activation every 500 ms."""
    start_ns = start_h * HOUR
    latencies = [20 * US] * (minutes * 120 - 1)
    interval_ns = SECOND_NS // 2
    threads = [
        thread(
            [*latencies, worst],
            cpu=cpu,
            interval_ns=interval_ns,
            start_ns=start_ns,
            priority=priority,
        )
        for cpu, worst in enumerate((worst_ns, 30 * US))
    ]
    return record(threads, load=load, boot_id=boot_id, caveats=caveats, kernel=kernel)


def judged(*records: RunRecord, claim: Claim | None = None) -> Judgement:
    return judge(records, deadline_ns=DEADLINE, claim=claim)


def only(judgement: Judgement) -> Finding:
    [finding] = judgement.findings
    return finding


def test_no_runs_are_no_verdict() -> None:
    with pytest.raises(MeasurementError, match="no runs"):
        judged()


def test_ten_minutes_without_a_miss_do_not_show_one_per_hour() -> None:
    judgement = judged(run_of(10), claim=ONE_PER_HOUR)
    finding = only(judgement)
    assert (judgement.verdict, judgement.exit_status) == (Verdict.NOT_SHOWN, 4)
    assert finding.sentence == (
        "no miss of 200 us in 10 min under memory: supports fewer than one miss per "
        "3.3 min (95 %); for one per 1 h run another 3 h 55 min in 5 runs"
    )
    assert finding.run_next == (
        "rtscope run --load memory --duration 47m --repetitions 5"
    )
    assert finding.evidence.worst_ns == 95 * US


def test_two_cpus_for_ten_minutes_are_ten_minutes_and_not_twenty() -> None:
    assert only(judged(run_of(10))).evidence.observed_ns == 10 * MINUTE


def test_the_cpu_that_was_watched_least_must_support_the_claim_by_itself() -> None:
    long = run_of(240)
    first, second = long.result.threads
    second = replace(
        thread([20 * US] * 1200, cpu=1, interval_ns=SECOND_NS // 2, start_ns=HOUR),
    )
    r = record([first, second], load="memory")
    judgement = judged(r, claim=ONE_PER_HOUR)
    finding = only(judgement)
    assert (judgement.verdict, judgement.exit_status) == (Verdict.NOT_SHOWN, 4)
    assert finding.evidence.observed_ns == 10 * MINUTE
    assert finding.sentence.startswith(
        "no miss of 200 us in 10 min (one CPU, others up to 4 h) under memory: "
    )
    assert "--repetitions 5" in finding.run_next


def test_the_times_of_a_cpu_add_up_over_runs_before_the_least_is_taken() -> None:
    runs = []
    for start_h, minutes in ((1, (200, 20)), (9, (20, 200))):
        threads = [
            thread(
                [20 * US] * 120 * m,
                cpu=cpu,
                interval_ns=SECOND_NS // 2,
                start_ns=start_h * HOUR,
            )
            for cpu, m in enumerate(minutes)
        ]
        runs.append(record(threads))
    assert only(judged(*runs)).evidence.observed_ns == 220 * MINUTE


def test_one_sample_in_1_ms_holds_nothing() -> None:
    judgement = judged(record([thread([20 * US])]), claim=Claim(1, 1))
    finding = only(judgement)
    assert (judgement.verdict, judgement.exit_status) == (Verdict.NOT_SHOWN, 4)
    assert finding.sentence.endswith(
        "; only 1 wake-up of a CPU, of at least 1,000 that a verdict needs"
    )
    assert finding.run_next == "rtscope run --load idle --duration 2s"


@pytest.mark.parametrize(
    ("wakeups", "verdict"), [(999, Verdict.NOT_SHOWN), (1_000, Verdict.HELD_IN_TEST)]
)
def test_each_cpu_needs_a_thousand_wakeups(wakeups: int, verdict: Verdict) -> None:
    threads = [thread([20 * US] * n, cpu=cpu) for cpu, n in enumerate((2_000, wakeups))]
    judgement = judged(record(threads))
    assert judgement.verdict is verdict
    assert judgement.exit_status == (4 if verdict is Verdict.NOT_SHOWN else 0)
    assert only(judgement).sentence.endswith(
        "; only 999 wake-ups of a CPU, of at least 1,000 that a verdict needs"
    ) is (wakeups == 999)


def test_a_guest_with_just_enough_wakeups_fails_nothing() -> None:
    r = record([thread([20 * US] * 1_000)], caveats=(make("guest"),))
    assert (judged(r).verdict, judged(r).exit_status) == (Verdict.NOT_SHOWN, 0)


def runs_of(number: int, minutes: int, **others: Any) -> list[RunRecord]:
    return [run_of(minutes, start_h=10 * (n + 1), **others) for n in range(number)]


@pytest.mark.parametrize(
    ("runs", "minutes", "verdict", "status"),
    [
        # 5 (20^(1/5) - 1) = 4.10 hours over five runs, 19 over one
        (5, 49, Verdict.NOT_SHOWN, 4),
        (5, 50, Verdict.HELD_IN_TEST, 0),
        (1, 180, Verdict.NOT_SHOWN, 4),
        (1, 19 * 60, Verdict.HELD_IN_TEST, 0),
    ],
)
def test_a_claim_must_survive_a_rate_that_varies_from_run_to_run(
    runs: int, minutes: int, verdict: Verdict, status: int
) -> None:
    judgement = judged(*runs_of(runs, minutes), claim=ONE_PER_HOUR)
    assert (judgement.verdict, judgement.exit_status) == (verdict, status)


def test_one_run_that_would_be_enough_at_a_constant_rate_is_said_to_be_one() -> None:
    assert only(judged(run_of(200), claim=ONE_PER_HOUR)).sentence.endswith(
        "supports fewer than one miss per 1 h 7 min (95 %); 1 run says little of how "
        "the rate varies from run to run; for one per 1 h run another 2 h 20 min in 5 "
        "runs"
    )


def test_where_one_more_run_is_enough_no_number_of_runs_is_advised() -> None:
    finding = only(judged(*runs_of(5, 45), claim=ONE_PER_HOUR))
    assert finding.sentence.endswith(
        "supports fewer than one miss per 1 h 15 min (95 %); 5 runs say little of how "
        "the rate varies from run to run; for one per 1 h run another 14 min"
    )
    assert finding.run_next == "rtscope run --load memory --duration 14m"


@pytest.mark.parametrize(
    ("runs", "minutes", "advice"),
    [
        (3, 75, "--duration 47m"),  # 5 of 9 min: 47 <= 1.1 * 45
        (4, 50, "--duration 8m --repetitions 5"),  # 47 > 1.1 * 40
    ],
)
def test_five_runs_are_advised_if_one_takes_over_a_tenth_longer(
    runs: int, minutes: int, advice: str
) -> None:
    finding = only(judged(*runs_of(runs, minutes), claim=ONE_PER_HOUR))
    assert finding.run_next == f"rtscope run --load memory {advice}"


@pytest.mark.parametrize("minutes", [10, 200])
def test_following_the_advice_is_enough(minutes: int) -> None:
    first = run_of(minutes)
    advice = only(judged(first, claim=ONE_PER_HOUR)).run_next.split()
    length, runs = (
        int(advice[advice.index(option) + 1].rstrip("m"))
        for option in ("--duration", "--repetitions")
    )
    enough, less = (
        judged(first, *runs_of(runs, m), claim=ONE_PER_HOUR)
        for m in (length, length - 1)
    )
    assert enough.verdict is Verdict.HELD_IN_TEST
    assert less.verdict is Verdict.NOT_SHOWN


def test_a_claim_of_several_misses_needs_less_time() -> None:
    judgement = judged(*runs_of(5, 25), claim=Claim(2, HOUR))
    assert judgement.verdict is Verdict.HELD_IN_TEST
    assert only(judgement).sentence.endswith(
        "(95 %), which supports the claim of fewer than 2 per 1 h"
    )


def test_repetitions_of_a_load_add_up() -> None:
    finding = only(judged(run_of(210), run_of(210, start_h=5), claim=ONE_PER_HOUR))
    assert (len(finding.evidence.misses), finding.verdict) == (2, Verdict.HELD_IN_TEST)


def with_misses(minutes: int, *at: int, start_h: int = 1) -> RunRecord:
    """One CPU that is 250 us late at these activations, of one every 500 ms."""
    latencies = [20 * US] * (minutes * 120)
    for place in at:
        latencies[place] = 250 * US
    t = thread(latencies, interval_ns=SECOND_NS // 2, start_ns=start_h * HOUR)
    return record([t], load="memory")


@pytest.mark.parametrize(
    ("claim", "verdict", "status"),
    [
        (None, Verdict.NO, 1),
        (Claim(1, HOUR), Verdict.NOT_SHOWN, 4),
        (Claim(10, HOUR), Verdict.HELD_IN_TEST, 0),
        (Claim(1, 100 * HOUR), Verdict.NO, 1),
    ],
)
def test_a_claim_allows_misses_as_far_as_it_says(
    claim: Claim | None, verdict: Verdict, status: int
) -> None:
    # four misses in 250 min, one in each of four of five runs
    runs = [
        with_misses(50, *((1_000 * h,) if h < 5 else ()), start_h=h)
        for h in range(1, 6)
    ]
    judgement = judged(*runs, claim=claim)
    assert (judgement.verdict, judgement.exit_status) == (verdict, status)
    assert only(judgement).sentence.startswith("4 misses of 200 us in 4 h 10 min")
    said = verdict_of(runs, deadline_ns=DEADLINE, claim=claim, min_boots=1)
    assert "no miss" not in said.meaning


def test_episodes_that_cluster_widen_the_limits_and_may_undo_a_claim() -> None:
    apart = [with_misses(120, 3_000 * h, start_h=10 * h) for h in range(1, 5)]
    together = [
        with_misses(120, *(range(0, 800, 200) if h == 1 else ()), start_h=10 * h)
        for h in range(1, 5)
    ]
    claim = Claim(3, HOUR)
    spread, clustered = (only(judged(*runs, claim=claim)) for runs in (apart, together))
    assert spread.evidence.episodes == clustered.evidence.episodes == 4
    assert spread.verdict is Verdict.HELD_IN_TEST
    assert clustered.verdict is Verdict.NOT_SHOWN
    assert "cluster" not in spread.sentence
    assert "the episodes cluster, 4.00 times as much as by chance" in clustered.sentence
    for one, other in zip(
        spread.evidence.rate_per_hour, clustered.evidence.rate_per_hour, strict=True
    ):
        assert one is not None
        assert other is not None
    assert clustered.evidence.rate_per_hour[0] < spread.evidence.rate_per_hour[0]


def test_loads_are_never_pooled() -> None:
    runs = run_of(100, "idle"), run_of(100, "memory")
    judgement = judged(*runs, claim=ONE_PER_HOUR)
    assert [f.load for f in judgement.findings] == ["idle", "memory"]
    assert judgement.verdict is Verdict.NOT_SHOWN


def test_kernels_are_never_pooled() -> None:
    runs = run_of(100, kernel="debian-6.12"), run_of(100, kernel="debian-6.12-rt")
    judgement = judged(*runs, claim=ONE_PER_HOUR)
    assert [f.kernel for f in judgement.findings] == ["debian-6.12", "debian-6.12-rt"]
    assert judgement.exit_status == 4


def test_priorities_are_never_pooled() -> None:
    runs = run_of(100, priority=99), run_of(100, priority=1)
    judgement = judged(*runs, claim=ONE_PER_HOUR)
    assert [len(f.evidence.misses) for f in judgement.findings] == [1, 1]
    assert judgement.verdict is Verdict.NOT_SHOWN


STRESS = ("stress-ng", "--vm", "2", "--taskset", "0-1")


def with_load(record: RunRecord, *argv: str, version: str = "0.15.06") -> RunRecord:
    load = replace(record.load, argv=argv, version=version)
    return replace(record, load=load)


def with_fact(record: RunRecord, name: str, value: str | bool | None) -> RunRecord:
    facts = {**record.facts_before, name: FactValue(value, "a test")}
    return replace(record, facts_before=facts)


def changed(number: int) -> tuple[str, RunRecord]:
    """Return the same run with one condition changed, and its words."""
    run = run_of(100, start_h=9)
    held = replace(run.result, dma_latency_us=0, dma_latency_held=True)
    tuning = {"changed": [{"check": "c", "path": "/sys/a", "value": "1"}]}
    return [
        ("host name other", with_fact(run, "hostname", "other")),
        ("machine Other Board", with_fact(run, "machine_model", "Other Board")),
        ("kernel configuration ab", with_fact(run, "kernel_config_digest", "ab")),
        ("kernel command line quiet", with_fact(run, "kernel_cmdline", "quiet")),
        ("frequency governor powersave", with_fact(run, "governor", "powersave")),
        ("SMT on", with_fact(run, "smt_active", value=True)),
        ("CPUs isolated 1", with_fact(run, "cpus_isolated", "1")),
        ("from_the_future x", with_fact(run, "from_the_future", "x")),
        ("idle states held 0", replace(run, result=held)),
        ("tuning /sys/a=1", replace(run, tuning=tuning)),
        ("load command sleep 9", with_load(run, "sleep", "9")),
        ("load version 0.15.06", with_load(run)),
    ][number]


@pytest.mark.parametrize("number", range(12))
def test_other_conditions_are_never_pooled_and_are_named(number: int) -> None:
    words, other = changed(number)
    judgement = judged(run_of(100), other, claim=ONE_PER_HOUR)
    assert [len(f.evidence.misses) for f in judgement.findings] == [1, 1]
    assert judgement.verdict is Verdict.NOT_SHOWN
    assert words in judgement.findings[1].differences
    names = [
        load.name
        for load in verdict_of(
            [run_of(100), other], deadline_ns=DEADLINE, claim=None, min_boots=1
        ).loads
    ]
    assert f" · {words}" in names[1]


def test_of_long_command_lines_only_the_words_that_differ_are_named() -> None:
    runs = [
        with_fact(run_of(1), "kernel_cmdline", f"root=/dev/sda quiet{words}")
        for words in (" isolcpus=1 nohz=off", "", " isolcpus=1")
    ]
    found = [f.differences for f in judged(*runs).findings]
    assert found == [
        ("kernel command line isolcpus=1 nohz=off",),
        ("kernel command line without the others' words",),
        ("kernel command line isolcpus=1",),
    ]


def test_a_name_has_three_differences_and_how_many_more() -> None:
    other = run_of(1)
    for name in ("hostname", "governor", "cpu_model", "clocksource", "distribution"):
        other = with_fact(other, name, "other")
    loads = verdict_of(
        [run_of(1), other], deadline_ns=DEADLINE, claim=None, min_boots=1
    ).loads
    assert (
        "memory · host name other · CPU other · clock source other · 2 more differences"
    ) in [load.name for load in loads]


def test_readings_and_what_belongs_to_one_run_are_no_conditions() -> None:
    run = with_load(run_of(100), *STRESS, "--timeout", "60s", "--temp-path", "/a")
    other = with_load(
        run_of(90, start_h=9), *STRESS, "--timeout", "90s", "--yaml", "/b"
    )
    for name in volatile_facts() - {"boot_id"}:
        other = with_fact(other, name, "other")
    assert len(only(judged(run, other)).evidence.misses) == 2


def test_a_load_that_was_fitted_differs_from_one_that_was_not_by_no_number() -> None:
    whole, *fitted = (
        with_load(run_of(1, start_h=h), *STRESS, *reduced)
        for h, reduced in enumerate(
            [(), ("--vm-bytes", "100m"), ("--vm-bytes", "101m")]
        )
    )
    judgement = judged(whole, *fitted)
    assert [len(f.evidence.misses) for f in judgement.findings] == [1, 2]


def test_every_fact_of_the_catalogue_is_a_condition_or_known_to_be_a_reading() -> None:
    titles = {catalogue()[name].title for name in catalogue().keys() - volatile_facts()}
    assert titles <= conditions_of(run_of(1)).keys()
    assert "boot_id" in volatile_facts()


def test_seeds_of_a_virtual_board_are_pooled_and_other_boards_are_not() -> None:
    one, two = (
        on_board(run_of(100, start_h=s), seed=s, initrd_digest=f"{s}" * 64)
        for s in (1, 2)
    )
    assert len(only(judged(one, two)).evidence.misses) == 2
    other = on_board(run_of(100, start_h=3), seed=3, mips=250.0)
    assert [len(f.evidence.misses) for f in judged(one, two, other).findings] == [2, 1]


def test_three_boards_are_not_three_boots_of_one() -> None:
    boards = [
        with_fact(run_of(100, start_h=h, boot_id=f"{h}"), "hostname", f"board-{h}")
        for h in range(3)
    ]
    judgement = judge(boards, deadline_ns=DEADLINE, min_boots=3)
    assert judgement.verdict is Verdict.NOT_SHOWN
    assert [f.evidence.boots for f in judgement.findings] == [1, 1, 1]


def test_a_kernel_without_a_name_goes_by_its_release() -> None:
    assert only(judged(run_of(1))).kernel == "6.12.43+deb13-rt-amd64"
    nameless = replace(run_of(1), facts_before={})
    assert only(judged(nameless)).kernel == "unknown kernel"


def test_without_a_claim_no_miss_is_held_in_test() -> None:
    judgement = judged(run_of(10))
    assert (judgement.verdict, judgement.exit_status) == (Verdict.HELD_IN_TEST, 0)
    assert only(judgement).evidence.more_ns == 0
    assert "--claim" in only(judgement).run_next


def test_a_miss_is_no() -> None:
    judgement = judged(run_of(10, worst_ns=250 * US))
    finding = only(judgement)
    assert (judgement.verdict, judgement.exit_status) == (Verdict.NO, 1)
    assert finding.sentence == (
        "1 miss of 200 us in 10 min under memory (1 episode, worst 250 us): "
        "at least 0.308 and at most 28.5 episodes per hour (each limit 95 %)"
    )
    assert finding.evidence.rate_per_hour == pytest.approx((0.308, 28.46), rel=0.01)
    assert (finding.evidence.total, finding.evidence.episodes) == (1, 1)


def test_one_miss_in_any_load_is_no() -> None:
    runs = run_of(200, "idle"), run_of(200, worst_ns=250 * US)
    assert judged(*runs).exit_status == 1


def test_episodes_that_are_not_all_counted_have_no_upper_limit() -> None:
    r = run_of(10, worst_ns=250 * US)
    threads = tuple(replace(t, worst=()) for t in r.result.threads)
    r = replace(r, result=replace(r.result, threads=threads))
    finding = only(judged(r))
    assert finding.sentence.endswith(
        "(at least 1 episode, worst 250 us): at least 0.308 episodes per hour (95 %), "
        "and no upper limit, because not every late wake-up has its time in the record"
    )
    assert finding.evidence.rate_per_hour[1] is None
    assert finding.evidence.supported_interval_ns == 0
    many = only(judged(r, claim=Claim(1_000_000, HOUR)))
    assert many.verdict is Verdict.NOT_SHOWN
    assert "--worst" in many.run_next
    assert not finding.evidence.exact


def test_invalid_goes_before_no() -> None:
    r = run_of(10, worst_ns=250 * US, caveats=(make("rt_throttled"),))
    judgement = judged(r, run_of(10, "idle", worst_ns=250 * US))
    assert (judgement.verdict, judgement.exit_status) == (Verdict.INVALID, 3)
    assert [f.verdict for f in judgement.findings] == [Verdict.INVALID, Verdict.NO]
    finding = judgement.findings[0]
    assert finding.sentence == (
        "no valid measurement under memory: "
        "the kernel throttled real-time threads during the run"
    )
    assert finding.evidence.invalid == (make("rt_throttled"),)
    assert "ps -eLo" in finding.run_next


def test_the_gravest_doubt_of_several_is_told_with_its_figures() -> None:
    caveats = make("rt_throttled"), make("early", "CPU 0: 3 wake-ups")
    assert only(judged(run_of(10, caveats=caveats))).sentence.endswith(
        "across CPUs (CPU 0: 3 wake-ups); and 1 more"
    )


def test_doubts_that_lint_finds_count() -> None:
    r = run_of(10)
    first, *others = r.result.threads
    broken = replace(first, end_ns=first.end_ns + MINUTE)
    r = replace(r, result=replace(r.result, threads=(broken, *others)))
    assert judged(r).verdict is Verdict.INVALID


def test_a_clock_too_coarse_for_the_deadline_is_invalid() -> None:
    r = run_of(10)
    coarse = replace(GOOD_CLOCK, granularity_ns=11 * US)
    threads = tuple(replace(t, clock_before=coarse) for t in r.result.threads)
    r = replace(r, result=replace(r.result, threads=threads))
    assert judged(r).verdict is Verdict.INVALID
    assert judge([r], deadline_ns=220 * US).verdict is Verdict.HELD_IN_TEST


def test_a_run_without_samples_is_invalid() -> None:
    judgement = judged(record([thread([])]))
    assert (judgement.verdict, judgement.exit_status) == (Verdict.INVALID, 3)
    assert only(judgement).sentence == (
        "no valid measurement under idle: a run has no samples"
    )


def test_a_guest_is_never_better_than_not_shown() -> None:
    r = run_of(200, caveats=(make("guest"),))
    judgement = judged(r, claim=ONE_PER_HOUR)
    assert (judgement.verdict, judgement.exit_status) == (Verdict.NOT_SHOWN, 4)
    assert "no more can be shown: this machine is virtual" in (only(judgement).sentence)


def test_a_guest_that_missed_is_still_no() -> None:
    r = run_of(10, worst_ns=250 * US, caveats=(make("guest"),))
    assert judged(r).verdict is Verdict.NO


def test_a_guest_without_a_miss_or_a_claim_fails_nothing() -> None:
    judgement = judged(run_of(10, caveats=(make("guest"),)))
    assert (judgement.verdict, judgement.exit_status) == (Verdict.NOT_SHOWN, 0)


def test_a_caveat_of_a_newer_version_caps() -> None:
    r = run_of(200, caveats=(Caveat("from_the_future"),))
    assert judged(r, claim=ONE_PER_HOUR).verdict is Verdict.NOT_SHOWN


@pytest.mark.parametrize(
    ("boots", "verdict", "status"),
    [
        (("a", "a"), Verdict.NOT_SHOWN, 4),
        (("a", "b"), Verdict.HELD_IN_TEST, 0),
    ],
)
def test_min_boots_counts_different_boots(
    boots: tuple[str, str], verdict: Verdict, status: int
) -> None:
    runs = [run_of(100, boot_id=boot, start_h=h) for h, boot in enumerate(boots)]
    judgement = judge(runs, deadline_ns=DEADLINE, min_boots=2)
    assert (judgement.verdict, judgement.exit_status) == (verdict, status)
    if verdict is Verdict.NOT_SHOWN:
        assert "1 of the 2 requested boots" in only(judgement).sentence
        assert only(judgement).run_next == "reboot and run again"


def test_runs_without_a_boot_id_may_be_of_one_boot() -> None:
    runs = [replace(run_of(10), facts_before={}) for _ in range(3)]
    assert only(judge(runs, deadline_ns=DEADLINE)).evidence.boots == 1


def test_an_unknown_boot_id_is_no_boot_of_its_own() -> None:
    run = run_of(10)
    unread = {**run.facts_before, "boot_id": FactValue(None, "a test", reason="denied")}
    judgement = judge(
        [run, replace(run, facts_before=unread)], deadline_ns=DEADLINE, min_boots=2
    )
    assert only(judgement).evidence.boots == 1
    assert judgement.verdict is Verdict.NOT_SHOWN


@pytest.mark.parametrize(
    ("bound_ns", "verdict"),
    [
        (150 * US, Verdict.HELD_AND_EXPLAINED),
        (200 * US, Verdict.HELD_AND_EXPLAINED),
        (201 * US, Verdict.HELD_IN_TEST),
    ],
)
def test_a_bound_within_the_deadline_explains(bound_ns: int, verdict: Verdict) -> None:
    run = run_of(180)
    judgement = judge(
        [run],
        deadline_ns=DEADLINE,
        claim=Claim(7, HOUR),
        bounds_ns={run.result_digest: bound_ns},
    )
    assert judgement.verdict is verdict
    assert judgement.exit_status == 0
    explained = "bound from observed critical sections" in only(judgement).sentence
    assert explained is (verdict is Verdict.HELD_AND_EXPLAINED)


def test_all_loads_must_be_explained_for_the_whole_to_be() -> None:
    idle, memory = run_of(10, "idle"), run_of(11)
    judgement = judge(
        [idle, memory],
        deadline_ns=DEADLINE,
        bounds_ns={memory.result_digest: 1 * US},
    )
    assert judgement.verdict is Verdict.HELD_IN_TEST


def test_all_runs_of_a_load_must_be_explained_and_the_highest_bound_counts() -> None:
    runs = [run_of(10), run_of(11)]
    first, second = (run.result_digest for run in runs)
    of_one, of_both, beyond = (
        judge(runs, deadline_ns=DEADLINE, bounds_ns=bounds).verdict
        for bounds in (
            {first: 1 * US},
            {first: 1 * US, second: DEADLINE},
            {first: 1 * US, second: DEADLINE + 1},
        )
    )
    assert of_one is beyond is Verdict.HELD_IN_TEST
    assert of_both is Verdict.HELD_AND_EXPLAINED


def test_a_finding_names_what_was_measured_and_how() -> None:
    finding = only(judged(run_of(10, kernel="debian-6.12")))
    assert (finding.load, finding.target, finding.kernel) == (
        *("memory", "local", "debian-6.12"),
    )
    assert (finding.policy, finding.interval_ns) == ("fifo", SECOND_NS // 2)
