"""Which remedies are tried against which cause, and beside what."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import SECOND_NS, on_board, record, thread
from rtscope.explain.model import Cause
from rtscope.machine.audit.examine import catalogue
from rtscope.machine.settings.remedies import tunable
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.settings import checks_for
from rtscope.record.explanation import (
    SCHEMA,
    BrokenInvariant,
    Explained,
    Segment,
    Wakeup,
)
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.design import Cell, cells_of
from rtscope.verbs.sweep.file import Sweep, document_of, load_shipped, sweep_of
from rtscope.verbs.sweep.remedies import (
    NO_CAUSE,
    NO_REMEDY,
    NOT_RECORDED,
    WITHDRAWN,
    causes_without,
    known_remedies,
    worst_wakeups,
)
from rtscope.verbs.sweep.remedydesign import HAS_IT, Original, sweep_of_remedies
from rtscope.verbs.sweep.remedytext import WORST, effects_on
from rtscope.verbs.sweep.result import result_of

RT, ORDINARY = "debian-6.12-rt", "debian-6.12"
KERNELS = (RT, ORDINARY)


def segment(cause: Cause, name: str, *functions: str) -> Segment:
    return Segment(
        begin_ns=0,
        end_ns=9_000,
        cause=str(cause),
        name=name,
        functions=tuple((one, 100) for one in functions),
    )


def run(
    load: str, worst_ns: int, *, kernel: str, seed: int = 1, **asked: Any
) -> RunRecord:
    facts = {"preempt_rt": kernel.endswith("-rt")}
    times = {"duration_ns": SECOND_NS, "interval_ns": 1_000_000}
    values = {"policy": "fifo", "priority": 99, "cpus": None, **times, **asked}
    of_thread = {name: values[name] for name in ("policy", "priority", "interval_ns")}
    made = on_board(record([thread([5_000, worst_ns], **of_thread)], facts=facts))
    name = f"{load}-{kernel}-{seed}-{worst_ns}"
    one = replace(made.run, id=name, load=load, kernel=kernel, seed=seed, **values)
    return replace(made, run=one, result_digest=name)


BROKEN = (BrokenInvariant(invariant="x", begin_ns=0, end_ns=1),)


def explained(
    one: RunRecord, *segments: Segment, broken: tuple[BrokenInvariant, ...] = ()
) -> Explained:
    wakeup = Wakeup(
        cpu=0,
        latency_ns=one.max_ns or 0,
        attributed_share=1.0,
        sentence="",
        dominant_segment=0 if segments else None,
        segments=segments,
        notes=(),
        broken_invariants=broken,
    )
    return Explained(schema=SCHEMA, result_digest=one.result_digest, wakeups=(wakeup,))


def sweep(
    records: Sequence[RunRecord],
    *causes: Explained,
    kernels: Sequence[str] = (ORDINARY,),
    cpus: str | None = None,
    append: str = "",
    arch: str = "x86_64",
    runs: Sequence[dict[str, Any]] = (),
    **campaign: Any,
) -> Sweep:
    loads = list(dict.fromkeys(one.run.load for one in records))
    table = {"load": loads, "duration": "1s", "interval": "1ms"}
    document = {
        "target": {"address": "virtual:pc"},
        "kernel": {"names": list(kernels), **({"append": append} if append else {})},
        "run": list(runs) or [{**table, **({"cpus": cpus} if cpus else {})}],
        **campaign,
    }
    made = from_dict(document, source="x")
    wakeups = worst_wakeups(records, {one.result_digest: one for one in causes})
    original = Original(
        campaign=made,
        base=to_dict(made),
        source="out",
        kernels=KERNELS,
        cpus=2,
        arch=arch,
        append=made.append,
        tuned=frozenset(made.tuned),
    )
    return sweep_of_remedies(original, wakeups)


def campaigns(found: Sweep) -> dict[str, Campaign]:
    """Return the campaign of each cell by its level; that of the base is under base."""
    cells: tuple[Cell, ...] = cells_of(found)
    return {one.name.removeprefix("remedy: "): one.campaign for one in cells}


def tried(found: Sweep) -> list[str]:
    return [level.name for axis in found.axes for level in axis.level]


def test_each_remedy_is_one_that_the_audit_or_the_price_list_knows() -> None:
    priced = {
        level.kernel.get("append")
        for axis in load_shipped("price").axes
        for level in axis.level
    }
    settings = {kind.id for kind in tunable()}
    for one in known_remedies():
        append = str(one.kernel.get("append", "")).format(apart="1")
        if one.source == "price list" and one.undoes:
            assert any(str(it).startswith(one.undoes) for it in priced), one.name
        elif one.source == "price list":
            assert append in priced, one.name
        elif one.source.startswith("audit: "):
            assert one.source.removeprefix("audit: ") in catalogue(), one.name
        if "tuned" in one.target:
            assert one.target["tuned"] in settings
            assert checks_for(
                Campaign(target="virtual:pc", tuned=(one.target["tuned"],))
            )
    assert len({one.name for one in known_remedies()}) == len(known_remedies())


def test_each_cause_has_a_remedy_or_a_reason_why_none_is_known() -> None:
    treated = set()
    for one in known_remedies():
        for row in one.against:
            re.compile(row.functions)
            treated |= {*row.causes}
    reasons = causes_without()

    assert treated.isdisjoint(reasons)
    assert treated | reasons.keys() == {str(cause) for cause in Cause}
    assert all(reasons.values())


def test_a_remedy_is_tried_for_the_loads_whose_cause_it_may_help_against() -> None:
    os, idle = run("os", 90_000, kernel=ORDINARY), run("idle", 9_000, kernel=ORDINARY)
    found = sweep(
        [idle, os],
        explained(os, segment(Cause.PREEMPTION_OFF, "rcu_do_batch")),
        explained(idle, segment(Cause.RETURN, "irqentry_exit")),
    )

    assert [one.load for one in found.diagnoses] == ["os", "idle"]
    assert found.diagnoses[0].cause == "preemption off in rcu_do_batch"
    assert found.diagnoses[0].remedies == ("PREEMPT_RT", "rcu_nocbs=all", "isolcpus=1")
    by_name = campaigns(found)
    assert by_name["base"].loads == ("idle", "os")
    assert by_name["PREEMPT_RT"].kernels == (RT,)
    assert by_name["PREEMPT_RT"].loads == ("os",)
    assert by_name["mitigations=off"].loads == ("idle",)
    assert by_name["rcu_nocbs=all"].append == ("rcu_nocbs=all",)
    # An isolated CPU is measured too, or the original has another one.
    assert by_name["isolcpus=1"].runs[0].cpus == (0, 1)
    assert sweep_of(document_of(found), source="out") == found


def test_a_real_time_kernel_gets_no_remedy_of_an_ordinary_one() -> None:
    one = run("os", 90_000, kernel=RT)
    cause = explained(one, segment(Cause.OTHER_INTERRUPT, "ata_interrupt"))

    none = sweep([one], cause, kernels=(RT,))
    assert tried(none) == []
    assert (
        none.diagnoses[0]
        .not_tried["irq_affinity"]
        .startswith("not possible here: every CPU is measured")
    )
    # With a CPU to spare, its interrupts can go there.
    spare = run("os", 90_000, kernel=RT, cpus=(1,))
    cause = explained(spare, segment(Cause.OTHER_INTERRUPT, "ata_interrupt"))
    assert tried(sweep([spare], cause, kernels=(RT,), cpus="1")) == ["irq_affinity"]


def test_a_cause_counts_by_all_functions_that_ran_in_it() -> None:
    one = run("os", 90_000, kernel=RT)
    interrupt = segment(Cause.TIMER_INTERRUPT, "", "tick_nohz_handler")

    assert tried(sweep([one], explained(one, interrupt), kernels=(RT,))) == [
        "nohz_full=1",
        "skew_tick=1",
    ]


def test_timers_that_wait_for_the_tick_get_high_resolution_again() -> None:
    one = run("idle", 3_900_000, kernel=RT)
    tick = explained(one, segment(Cause.TICK, "hrtimer_run_queues"))

    found = sweep([one], tick, kernels=(RT,), append="highres=off")

    assert tried(found) == ["highres=on"]
    # The kernel takes the last of them.
    _, cell = cells_of(found)
    assert cell.campaign.append == ("highres=off", "highres=on")


@pytest.mark.parametrize(
    ("causes", "why"),
    [
        ([], NOT_RECORDED),
        ([()], NO_CAUSE),
        ([(segment(Cause.LOCK, "key_alloc"),)], NO_REMEDY),
        ([(segment(Cause.OWN_CODE, "main"),)], causes_without()[str(Cause.OWN_CODE)]),
    ],
)
def test_without_a_remedy_the_reason_is_named(
    causes: list[tuple[Segment, ...]], why: str
) -> None:
    one = run("os", 90_000, kernel=RT)
    found = sweep([one], *(explained(one, *cause) for cause in causes), kernels=(RT,))

    assert found.axes == ()
    assert [x.why for x in found.diagnoses] == [why]


def test_nothing_is_tried_against_a_withdrawn_cause() -> None:
    one = run("os", 90_000, kernel=ORDINARY)

    found = sweep([one], explained(one, broken=BROKEN))

    assert tried(found) == []
    assert found.diagnoses[0].why == WITHDRAWN


def test_a_cause_that_a_broken_invariant_does_not_touch_is_a_cause() -> None:
    one = run("os", 90_000, kernel=ORDINARY)
    cause = segment(Cause.PREEMPTION_OFF, "rcu_do_batch")

    found = sweep([one], explained(one, cause, broken=BROKEN))

    assert found.diagnoses[0].why == ""


def test_of_two_kernels_a_remedy_is_tried_on_the_one_that_is_late() -> None:
    late, early = run("os", 90_000, kernel=ORDINARY), run("os", 9_000, kernel=RT)
    found = sweep(
        [late, early],
        explained(late, segment(Cause.OTHER_TASK, "kworker")),
        explained(early, segment(Cause.OWN_CODE, "main")),
        kernels=(ORDINARY, RT),
    )

    assert tried(found) == ["isolcpus=1"]
    assert {one.kernels for one in campaigns(found).values()} == {(ORDINARY,)}


def test_with_two_kernels_and_tables_each_remedy_has_its_own_loads_and_kernels() -> (
    None
):
    """RCU delays os with RT, and idle without; the scheduler delays cpu with both."""
    slow: dict[str, Any] = {"interval_ns": 10_000_000}
    rcu = segment(Cause.SOFTIRQ, "rcu_core")
    scheduler = segment(Cause.SCHEDULER, "__schedule")
    of_rcu = [
        run("os", 90_000, kernel=RT),
        run("idle", 80_000, kernel=ORDINARY, **slow),
    ]
    of_it = [run("cpu", 9_000, kernel=one) for one in (RT, ORDINARY)]
    none = [run("idle", 5_000, kernel=RT, **slow), run("os", 6_000, kernel=ORDINARY)]
    fast = {"duration": "1s", "interval": "1ms"}
    tables: list[dict[str, Any]] = [
        {"load": ["idle"], "duration": "1s", "interval": "10ms"},
        {**fast, "load": ["os", "cpu", "memory"], "repetitions": 2},
    ]

    found = sweep(
        [*of_rcu, *of_it, *none],
        *(explained(one, rcu) for one in of_rcu),
        *(explained(one, scheduler) for one in of_it),
        kernels=(ORDINARY, RT),
        runs=tables,
    )

    made = {
        name: (one.kernels, [(run.loads, run.intervals_ns) for run in one.runs])
        for name, one in campaigns(found).items()
    }
    idle, os = (("idle",), (10_000_000,)), (("os",), (1_000_000,))
    both = (ORDINARY, RT)
    assert made["base"] == (both, [idle, (("os", "cpu"), (1_000_000,))])
    assert made[f"rcu_nocbs=all on {RT}"] == ((RT,), [os])
    assert made[f"rcu_nocbs=all on {ORDINARY}"] == ((ORDINARY,), [idle])
    assert made["mitigations=off"] == (both, [(("cpu",), (1_000_000,))])
    assert made["threadirqs"] == ((ORDINARY,), [idle])
    by_wakeup = {(one.load, one.kernel): one for one in found.diagnoses}
    assert by_wakeup["os", RT].remedies == (f"rcu_nocbs=all on {RT}",)
    assert by_wakeup["idle", RT].remedies == ()
    # The other kernel of the record has PREEMPT_RT.
    assert by_wakeup["idle", ORDINARY].not_tried == {"PREEMPT_RT": HAS_IT}


def test_a_remedy_is_judged_by_the_runs_with_the_setting_of_the_worst_one() -> None:
    """Under os, RT is latest at 10 ms and the ordinary kernel at 1 ms."""
    slow: dict[str, Any] = {"interval_ns": 10_000_000}
    worst = [run("os", 90_000, kernel=RT, **slow), run("os", 80_000, kernel=ORDINARY)]
    tables = [
        {"load": "os", "duration": "1s", "interval": interval}
        for interval in ("1ms", "10ms")
    ]
    scheduler = segment(Cause.SCHEDULER, "__schedule")
    causes = [explained(one, scheduler) for one in worst]

    found = sweep(worst, *causes, kernels=KERNELS, runs=tables)

    cells = cells_of(found)[:2]
    before = [
        run("os", worst_ns, kernel=kernel, interval_ns=ms * 1_000_000)
        for worst_ns, kernel, ms in [
            (90_000, RT, 10),
            (20_000, RT, 1),
            (20_000, ORDINARY, 10),
            (80_000, ORDINARY, 1),
        ]
    ]
    result = result_of(
        "x",
        cells,
        records={cells[0].number: before, cells[1].number: before},
        planned={0: 4, 1: 4},
        failures={},
    )
    shown = [[e.base for e in effects_on(result, d, WORST)] for d in found.diagnoses]
    assert shown == [[90_000], [80_000]]


def test_a_policy_is_changed_where_the_worst_run_has_another() -> None:
    """The campaign has both policies under os, and other alone under idle."""
    other: dict[str, Any] = {"policy": "other", "priority": 0}
    os, idle = (run(load, 90_000, kernel=RT, **other) for load in ("os", "idle"))
    late = segment(Cause.NOT_REALTIME, "kworker")
    table = {"duration": "1s", "interval": "1ms"}

    found = sweep(
        [run("os", 5_000, kernel=RT), os, idle],
        explained(os, late),
        explained(idle, late),
        kernels=(RT,),
        runs=[
            {**table, "load": "os", "policy": ["fifo", "other"], "priority": 80},
            {**table, "load": "idle", "policy": "other"},
        ],
    )

    by_load = {one.load: one for one in found.diagnoses}
    assert by_load["os"].not_tried == {"policy fifo": HAS_IT}
    assert by_load["idle"].remedies == ("policy fifo",)
    made = campaigns(found)
    assert made["base"].runs[0].policies == (("other", 0),)
    assert made["policy fifo"].runs[0].policies == (("fifo", 99),)
    assert [one.loads for one in made.values()] == [("idle",), ("idle",)]


@pytest.mark.parametrize(
    ("cause", "name", "original", "remedy"),
    [
        (Cause.LATE_TIMER, "", {}, "policy fifo"),
        (Cause.FAIR_SERVER, "", {"target": {"tuned": "fair_server"}}, "fair_server"),
        (
            Cause.THROTTLED,
            "",
            {"target": {"rt_throttling": "off"}},
            "rt_throttling off",
        ),
        (Cause.SOFTIRQ, "rcu_core", {"append": "rcu_nocbs=all"}, "rcu_nocbs=all"),
    ],
)
def test_a_remedy_that_the_original_has_is_not_tried_and_said_so(
    cause: Cause, name: str, original: dict[str, Any], remedy: str
) -> None:
    one = run("os", 90_000, kernel=RT)
    target = {"address": "virtual:pc", **original.get("target", {})}

    found = sweep(
        [one],
        explained(one, segment(cause, name)),
        kernels=(RT,),
        append=original.get("append", ""),
        target=target,
    )

    assert remedy not in tried(found)
    assert found.diagnoses[0].not_tried[remedy] == HAS_IT
    assert found.diagnoses[0].why == ""


@pytest.mark.parametrize(
    ("cause", "arguments", "remedy", "why"),
    [
        (Cause.OTHER_TASK, {"cpus": "0"}, "isolcpus=LIST", "CPU 0 alone is measured"),
        (
            Cause.OTHER_TASK,
            {"append": "isolcpus=0"},
            "isolcpus=1",
            "the original has isolcpus=0, and the kernel takes one of them",
        ),
        (Cause.TICK, {}, "highres=on", "the original has no parameter highres"),
    ],
)
def test_a_remedy_that_cannot_work_on_the_board_is_not_tried_and_said_so(
    cause: Cause, arguments: dict[str, Any], remedy: str, why: str
) -> None:
    cpus = (0,) if "cpus" in arguments else None
    one = run("os", 90_000, kernel=RT, cpus=cpus)

    found = sweep(
        [one], explained(one, segment(cause, "x")), kernels=(RT,), **arguments
    )

    assert remedy not in tried(found)
    assert found.diagnoses[0].not_tried[remedy].startswith(f"not possible here: {why}")


@pytest.mark.parametrize(
    ("cause", "functions", "kernel", "remedies"),
    [
        (Cause.FAIR_SERVER, (), RT, ["isolcpus=1", "fair_server"]),
        (Cause.IDLE_EXIT, (), RT, ["idle=poll"]),
        (Cause.THROTTLED, (), RT, ["rt_throttling off"]),
        (Cause.GRACE_PERIOD, (), ORDINARY, ["rcu_expedited=1"]),
        (Cause.GRACE_PERIOD, (), RT, []),
        (
            Cause.OTHER_INTERRUPT,
            ("rcu_exp_handler",),
            ORDINARY,
            ["PREEMPT_RT", "threadirqs", "rcu_normal=1"],
        ),
        (
            Cause.NOT_PREEMPTED,
            ("decay_pcp_high",),
            ORDINARY,
            ["PREEMPT_RT", "preemption_model", "stat_interval=120", "isolcpus=1"],
        ),
        (Cause.TIMER_ELSEWHERE, (), RT, ["timer_migration=0"]),
    ],
)
def test_causes_get_the_remedies_that_are_known_for_them(
    cause: Cause, functions: tuple[str, ...], kernel: str, remedies: list[str]
) -> None:
    one = run("os", 90_000, kernel=kernel)
    found = sweep(
        [one], explained(one, segment(cause, "x", *functions)), kernels=(kernel,)
    )

    assert tried(found) == remedies


@pytest.mark.parametrize(
    ("arch", "remedies"), [("x86_64", ["idle=poll"]), ("riscv64", ["nohlt"])]
)
def test_idle_cpus_poll_by_the_parameter_of_their_architecture(
    arch: str, remedies: list[str]
) -> None:
    one = run("idle", 9_000, kernel=RT)
    cause = explained(one, segment(Cause.IDLE_EXIT, "default_idle"))

    found = sweep([one], cause, kernels=(RT,), arch=arch)

    assert tried(found) == remedies
    assert found.diagnoses[0].not_tried == {}


def test_the_fair_server_is_off_on_the_cpus_that_are_measured() -> None:
    one = run("os", 90_000, kernel=RT)
    found = sweep([one], explained(one, segment(Cause.FAIR_SERVER, "")), kernels=(RT,))

    off = campaigns(found)["fair_server"]
    assert off.tuned == ("fair_server",)
    assert off.runs[0].cpus == (0, 1)


def test_a_debugging_parameter_of_the_original_is_undone() -> None:
    one = run("os", 90_000, kernel=RT)
    cause = explained(one, segment(Cause.INTERRUPTS_OFF, "___slab_alloc"))

    found = sweep([one], cause, kernels=(RT,), append="slab_debug=FZ")

    # The kernel takes the last of them.
    assert campaigns(found)["slab_debug=-"].append == ("slab_debug=FZ", "slab_debug=-")


def test_a_kernel_is_real_time_if_it_says_so_and_not_by_its_name() -> None:
    one = replace(run("os", 90_000, kernel=RT), run=run("os", 1, kernel="bzImage").run)
    cause = explained(one, segment(Cause.OTHER_INTERRUPT, "ata_interrupt"))

    assert tried(sweep([one], cause, kernels=("/tmp/bzImage",), cpus=None)) == []


def test_more_seeds_than_a_sweep_has_are_cut_down_to_some_with_the_worst() -> None:
    one = run("os", 90_000, kernel=RT, seed=25)
    cause = explained(one, segment(Cause.SCHEDULER, "__schedule"))

    found = sweep([one], cause, kernels=(RT,), campaign={"seeds": 30})

    assert campaigns(found)["base"].seeds == (*range(1, 20), 25)


def test_a_command_of_a_load_that_no_remedy_is_for_is_left_out() -> None:
    mine, os = run("custom", 5_000, kernel=RT), run("os", 90_000, kernel=RT)
    cause = explained(os, segment(Cause.SCHEDULER, "__schedule"))

    found = sweep([mine, os], cause, kernels=(RT,), campaign={"command": ["true"]})

    assert campaigns(found)["mitigations=off"].command == ()


def test_a_run_that_the_campaign_does_not_have_is_no_patient() -> None:
    one = run("os", 90_000, kernel=RT, interval_ns=7_000_000)

    found = sweep([one], explained(one, segment(Cause.SCHEDULER, "x")), kernels=(RT,))

    assert found.diagnoses[0].why == "its run is none of the campaign's"
    assert found.axes == ()


def test_the_original_is_the_campaign_without_its_gate() -> None:
    one = run("idle", 9_000, kernel=RT)
    gate = {"require_identical": True, "seed": 5}
    table = {"load": "idle", "duration": "1s", "interval": "1ms", "repetitions": 2}

    found = sweep([one], kernels=(RT,), campaign=gate, runs=[table])

    assert found.base["campaign"]["seed"] == 5
    assert "require_identical" not in found.base["campaign"]
