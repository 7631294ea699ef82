"""Which remedies are tried against which cause, and beside what."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.audit.catalogue import catalogue
from rtscope.campaign.file import from_dict, to_dict
from rtscope.campaign.model import Campaign
from rtscope.explain.model import Cause
from rtscope.record.explanation import (
    SCHEMA,
    BrokenInvariant,
    Explained,
    Segment,
    Wakeup,
)
from rtscope.record.model import RunRecord
from rtscope.sweep.design import cells_of
from rtscope.sweep.file import Sweep, document_of, load_shipped, sweep_of
from rtscope.sweep.remedies import (
    NO_CAUSE,
    NO_REMEDY,
    NOT_RECORDED,
    WITHDRAWN,
    known_remedies,
    patients_of,
    sweep_of_remedies,
)
from rtscope.tuning.remedies import tunable

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


def run(load: str, worst_ns: int, *, kernel: str, seed: int = 1) -> RunRecord:
    made = on_board(record([thread([5_000, worst_ns])]))
    name = f"{load}-{kernel}-{seed}"
    one = replace(made.run, id=name, load=load, kernel=kernel, seed=seed)
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
) -> Sweep:
    loads = list(dict.fromkeys(one.run.load for one in records))
    table = {"load": loads, "duration": "1s", "interval": "1ms"}
    campaign = from_dict(
        {
            "target": {"address": "virtual:pc"},
            "kernel": {
                "names": list(kernels),
                **({"append": append} if append else {}),
            },
            "run": [{**table, **({"cpus": cpus} if cpus else {})}],
        },
        source="x",
    )
    patients = patients_of(records, {one.result_digest: one for one in causes})
    return sweep_of_remedies(
        campaign, to_dict(campaign), patients, source="out", kernels=KERNELS, cpus=2
    )


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
        assert set(one.causes) <= {str(cause) for cause in Cause}, one.name
        re.compile(one.functions)
        if one.source == "price list":
            assert one.kernel["append"] in priced, one.name
        else:
            assert one.source.removeprefix("audit: ") in catalogue(), one.name
        if "tuned" in one.target:
            assert one.target["tuned"] in settings


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
    base, *cells = cells_of(found)
    assert base.campaign.loads == ("idle", "os")
    by_name = {cell.levels[0][1]: cell.campaign for cell in cells}
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

    assert tried(sweep([one], cause, kernels=(RT,))) == []
    # With a CPU to spare, its interrupts can go there.
    assert tried(sweep([one], cause, kernels=(RT,), cpus="1")) == ["irq_affinity"]


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
        ([(segment(Cause.OWN_CODE, "main"),)], NO_REMEDY),
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

    (level,) = found.axes[0].level
    assert level.name == "isolcpus=1"
    assert level.kernel["names"] == [ORDINARY]
    assert len(cells_of(found)) == 2


def test_the_original_is_the_campaign_without_its_gate() -> None:
    one = run("idle", 9_000, kernel=RT)
    campaign = Campaign(target="virtual:pc", require_identical=False)
    base = {**to_dict(campaign), "campaign": {"require_identical": True, "seed": 5}}

    found = sweep_of_remedies(
        campaign, base, patients_of([one], {}), source="out", kernels=(), cpus=2
    )

    assert found.base["campaign"] == {"seed": 5}
