"""The ranking of a survey: the worst first, and nothing said of what did not run."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.contract import LoadWindow, ProcessInWindow
from rtscope.host.units import NS_PER_S
from rtscope.machine.facts import FactValue
from rtscope.record.caveats.catalogue import make
from rtscope.record.explanation import (
    SCHEMA,
    BrokenInvariant,
    Explained,
    Segment,
    Wakeup,
)
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.ranking import Cause, Ranking, ranking_of
from rtscope.verbs.sweep.surveytext import survey_answer, survey_page

RT, ORDINARY = "debian-6.12-rt", "debian-6.12"


def run(
    load: str, worst_ns: int, *, kernel: str = RT, seed: int = 1, log: str = ""
) -> RunRecord:
    made = on_board(record([thread([5_000, 7_000, worst_ns])]))
    name = f"{load}-{kernel}-{seed}"
    return replace(
        made,
        run=replace(made.run, id=name, load=load, kernel=kernel, seed=seed),
        load=replace(made.load, log_tail=log),
        result_digest=name,
    )


def explained(one: RunRecord, cause: str, name: str, length_ns: int) -> Explained:
    segment = Segment(begin_ns=0, end_ns=length_ns, cause=cause, name=name)
    wakeup = Wakeup(
        cpu=0,
        latency_ns=one.max_ns or 0,
        attributed_share=1.0,
        sentence="",
        dominant_segment=0,
        segments=(segment,),
        notes=(),
    )
    return Explained(
        schema=SCHEMA,
        run=one.run.id,
        load=one.run.load,
        kernel=one.run.kernel or "",
        board="pc",
        result_digest=one.result_digest,
        wakeups=(wakeup,),
    )


def ranking(
    records: Sequence[RunRecord],
    *causes: Explained,
    failures: dict[tuple[str, str], str] | None = None,
) -> Ranking:
    return ranking_of(
        records,
        explained={one.result_digest: one for one in causes},
        failures=failures or {},
    )


def test_an_invalid_run_is_not_ranked_and_a_limited_one_is_named() -> None:
    invalid = replace(
        run("stress-ng:set", 50_000), caveats=(make("clocksource_changed"),)
    )
    limited = replace(run("stress-ng:fork", 9_000), caveats=(make("stopped_early"),))

    found = ranking([invalid, limited])

    assert [load.label for load in found.ranked(RT)] == ["fork"]
    assert found.failed[0].failures[RT].startswith("the kernel changed its clock")
    assert [(one.weight, one.where) for one in found.doubts] == [
        ("limit", ("stress-ng:fork",))
    ]


def test_loads_are_ranked_by_the_worst_of_all_their_seeds() -> None:
    found = ranking(
        [
            run("idle", 9_000),
            run("stress-ng:fork", 10_000, seed=1),
            run("stress-ng:fork", 90_000, seed=2),
            run("stress-ng:set", 50_000),
            run("stress-ng:set", 99_000, kernel=ORDINARY),
        ]
    )

    assert found.kernels == (RT, ORDINARY)
    assert [load.label for load in found.ranked(RT)] == ["fork", "set", "idle"]
    assert [load.label for load in found.ranked(ORDINARY)] == ["set"]
    fork = found.ranked(RT)[0].standings[RT]
    assert (fork.worst_ns, fork.run) == (90_000, f"stress-ng:fork-{RT}-2")
    assert [load.label for load in found.worse_than_usual(RT)] == ["fork", "set"]


def test_without_a_usual_load_nothing_is_above_it() -> None:
    fork = run("stress-ng:fork", 90_000)
    found = ranking([fork], explained(fork, "interrupts off", "copy", 70_000))

    assert found.worse_than_usual(RT) == ()
    assert found.fewest(RT) == ()
    assert "none of the usual loads has a rank" in survey_answer(found)


def test_what_a_usual_load_of_unknown_cause_misses_is_not_told() -> None:
    idle, fork = run("idle", 9_000), run("stress-ng:fork", 90_000)
    found = ranking([idle, fork], explained(fork, "interrupts off", "copy", 70_000))

    assert [load.label for load in found.worse_than_usual(RT)] == ["fork"]
    assert found.fewest(RT) == ()
    page = survey_page(found, name="x", target="pc", missing=0)
    assert (
        "Causes that the usual loads miss are not listed: no cause is known of idle."
        in page
    )
    assert "are not listed" not in survey_page(
        ranking([idle, fork]), name="x", target="pc", missing=0
    )


def test_a_load_with_a_rank_is_not_among_those_that_did_not_run() -> None:
    found = ranking(
        [run("idle", 9_000), run("stress-ng:fork", 20_000, seed=1)],
        failures={("stress-ng:fork", RT): "the board ended"},
    )

    assert found.failed == ()
    assert [load.label for load in found.ranked(RT)] == ["fork", "idle"]


def test_the_release_of_each_kernel_is_told() -> None:
    newer = FactValue("6.12.117+deb13-rt-amd64", "", "")
    one, other = run("idle", 9_000), run("os", 9_000)
    later = replace(other, facts_before={**other.facts_before, "kernel_release": newer})

    assert ranking([one]).releases == {RT: one.release}
    found = ranking([one, later])
    assert found.releases == {RT: f"{one.release}, {newer.value}"}
    page = survey_page(found, name="x", target="pc", missing=0)
    assert f"Linux {one.release}, {newer.value}." in page


def test_the_fewest_stressors_show_each_cause_that_the_usual_loads_miss() -> None:
    usual, timer = run("os", 40_000), run("stress-ng:timer", 50_000)
    fork, clone = run("stress-ng:fork", 90_000), run("stress-ng:clone", 80_000)
    quiet = run("stress-ng:mutex", 6_000)
    found = ranking(
        [usual, timer, fork, clone, quiet],
        explained(usual, "interrupts off", "lock", 30_000),
        explained(timer, "interrupts off", "lock", 30_000),
        explained(fork, "interrupts off", "copy_page_range", 70_000),
        explained(clone, "interrupts off", "copy_page_range", 60_000),
        explained(quiet, "another task", "swapper", 1_000),
    )

    assert [load.label for load in found.fewest(RT)] == ["fork"]
    new = found.new_causes(RT)
    assert [x.label for x in new["interrupts off in copy_page_range"]] == [
        "fork",
        "clone",
    ]
    assert found.ranked(RT)[0].standings[RT].cause == Cause(
        "interrupts off in copy_page_range", 70_000
    )


def died(load: str, worst_ns: int, *, operations: int, watched: bool) -> RunRecord:
    """Return a run whose load lost a worker."""
    process = ProcessInWindow(
        pid=7,
        parent=1,
        started_ns=0,
        name="stress-ng-daemo",
        state="R",
        cpu_ns=1,
        voluntary_switches=0,
        involuntary_switches=0,
    )
    made = run(load, worst_ns)
    windows = (LoadWindow(0, NS_PER_S, (process,) if watched else (), 0),)
    return replace(
        made,
        load=replace(made.load, windows=windows, operations={"daemon": operations}),
        caveats=(make("worker_died", "pid 7 died"),),
    )


def test_a_load_that_worked_for_a_time_has_no_rank_but_its_worst_is_told() -> None:
    worse = died("stress-ng:daemon", 99_000, operations=5, watched=True)
    found = ranking([run("idle", 9_000), worse], explained(worse, "x", "y", 70_000))

    assert [load.label for load in found.ranked(RT)] == ["idle"]
    assert found.failed == ()
    (load,) = found.ran_in_part(RT)
    assert (load.label, load.failures[RT]) == ("daemon", "pid 7 died")
    assert load.in_part[RT].worst_ns == 99_000
    assert load.in_part[RT].cause == Cause("x in y", 70_000)
    answer = survey_answer(found)
    assert "daemon, not shown to have run throughout, reached 99.0 virtual µs" in answer


@pytest.mark.parametrize(("operations", "watched"), [(0, True), (5, False)])
def test_of_a_load_that_did_nothing_in_the_measurement_nothing_is_told(
    operations: int, watched: bool
) -> None:
    gone = died("stress-ng:daemon", 99_000, operations=operations, watched=watched)
    found = ranking([run("idle", 9_000), gone])

    assert found.ran_in_part(RT) == ()
    assert [load.label for load in found.failed] == ["daemon"]


def test_an_invalid_run_of_a_load_that_worked_for_a_time_is_not_told() -> None:
    part = died("stress-ng:daemon", 99_000, operations=5, watched=True)
    found = ranking(
        [replace(part, caveats=(*part.caveats, make("clocksource_changed")))]
    )

    assert found.ran_in_part(RT) == ()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "stress-ng: info:  [178] rdrand stressor will be skipped, CPU does not "
            "support the rdrand instruction",
            "rdrand stressor will be skipped, CPU does not support the rdrand "
            "instruction",
        ),
        (
            "stress-ng: info:  [179] stressor terminated with unexpected signal 11",
            "stressor terminated with unexpected signal 11",
        ),
        (
            "stress-ng: warn:  [179] netdev: WARNING: finished prematurely after just "
            "0.50 sec",
            "netdev: WARNING: finished prematurely after just 0.50 sec",
        ),
    ],
)
def test_what_stress_ng_says_of_its_end_is_the_reason(line: str, why: str) -> None:
    log = f"stress-ng: info:  [1] dispatching hogs\n{line}\n"
    ended = run("stress-ng:netdev", 9_000, log=log)
    ended = replace(ended, caveats=(make("load_died", "exit status 0"),))

    (load,) = ranking([ended]).failed
    assert load.failures[RT] == f"exit status 0: {why}"


def test_a_load_that_is_not_shown_to_have_run_has_no_rank_but_a_reason() -> None:
    died = run(
        "stress-ng:af-alg",
        900_000,
        log="stress-ng: info:  [1] dispatching hogs\n"
        "stress-ng: info:  [1] disabled 'af-alg' as it may hang the machine\n"
        "stress-ng: info:  [1] failed: 0\n",
    )
    died = replace(died, caveats=(make("load_died", "exit status 4"),))
    found = ranking(
        [run("idle", 9_000), died],
        failures={
            ("stress-ng:reboot", RT): "000-base/007-stress-ng-reboot: pc: the board "
            "ended; the end of its console:\n  [    1.0] reboot: Restarting"
        },
    )

    assert [load.label for load in found.ranked(RT)] == ["idle"]
    assert {load.label: dict(load.failures) for load in found.failed} == {
        "af-alg": {RT: "exit status 4: disabled 'af-alg' as it may hang the machine"},
        "reboot": {RT: "pc: the board ended"},
    }


def test_without_a_run_nothing_is_ranked() -> None:
    assert ranking([]).kernels == ()
    assert ranking([]).loads == ()


def test_a_seed_without_a_sample_leaves_the_others_their_rank() -> None:
    silent = run("idle", 9_000, seed=2)
    nothing = replace(silent, result=replace(silent.result, threads=(thread([]),)))

    found = ranking([run("idle", 8_000), nothing])

    assert found.ranked(RT)[0].standings[RT].worst_ns == 8_000


def test_a_cause_that_a_broken_invariant_does_not_touch_is_ranked() -> None:
    one = run("stress-ng:schedmix", 90_000)
    known = explained(one, "another task", "hog", 80_000)
    broken = BrokenInvariant(invariant="runnable", begin_ns=10, end_ns=300)
    wakeups = [replace(w, broken_invariants=(broken,)) for w in known.wakeups]

    found = ranking([one], replace(known, wakeups=tuple(wakeups)))

    (load,) = found.loads
    cause = load.standings[RT].cause
    assert cause is not None
    assert cause.length_ns == 80_000
