"""What --tuned changes holds while a campaign measures, and is put back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from fakes.faketarget import FakeTarget
from fakes.story import TWO_CPUS, StoryOf, brief, detail, interrupt_after
from fakes.targets import target
from rtscope.contract import Applied, Line, Refused, Restored, Tuned
from rtscope.host.errors import TargetError, UsageError
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.settings import checks_for

LOCKED = "/proc/sys/vm/compact_unevictable_allowed"
HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
UNTUNED = {LOCKED: "1\n", HUGE: "[always] madvise never\n"}
GRANTED: list[Line] = [
    Applied("transparent_hugepage", 0, "always", "madvise"),
    Applied("compact_unevictable_allowed", 0, "1", "0"),
    Tuned(2, applied=2, already=0, refused=0),
]
BACK: list[Line] = [
    Restored("compact_unevictable_allowed", 0, "1"),
    Restored("transparent_hugepage", 0, "always"),
]


def holding(*lines: Line, back: Sequence[Line] = BACK) -> FakeTarget:
    return target(
        {"hold": [list(lines), *([[]] * 50)]},
        on_stop={"hold": [list(back)]},
        files=UNTUNED,
    )


def test_settings_hold_from_before_the_first_run_until_after_the_last(
    story: StoryOf,
) -> None:
    told = story("idle", on=holding(*GRANTED), tuned=("safe",))
    told = replace(told, campaign=replace(told.campaign, runs=(TWICE,)))
    first, _ = told.run()

    log = [line for line in brief(told.target.log) if "measure" not in line]
    assert log[:4] == ["audit", "root hold", "tuned", "begin 001-idle-r1"]
    assert log[-3:] == ["saved record.json", "stop hold", "kill hold"]
    assert (first.tuning or {})["changed"] == [
        {
            "check": "transparent_hugepages",
            "path": HUGE,
            "before": "always",
            "value": "madvise",
        },
        {"check": "locked_memory_moves", "path": LOCKED, "before": "1", "value": "0"},
    ]
    assert detail(first, "knobs_changed") == (
        "transparent_hugepage=madvise, compact_unevictable_allowed=0"
    )


TWICE = RunTable(
    loads=("idle",),
    durations_ns=(6_000_000_000,),
    intervals_ns=(100_000_000,),
    repetitions=2,
)


def test_a_named_check_that_is_refused_ends_it_before_anything_is_measured(
    story: StoryOf,
) -> None:
    refused = Refused(
        "compact_unevictable_allowed", 0, "0", cause="read-only", reason="a container"
    )
    on = holding(GRANTED[0], refused, GRANTED[2])
    told = story("idle", on=on, tuned=("safe", "locked_memory_moves"))

    with pytest.raises(TargetError, match="locked_memory_moves: a container; nothing"):
        list(told.run())

    assert "root measure" not in brief(told.target.log)
    assert told.target.log[-1] == "kill hold"


def test_of_safe_what_is_refused_is_in_the_record(story: StoryOf) -> None:
    refused = Refused(
        "compact_unevictable_allowed", 0, "0", cause="read-only", reason="a container"
    )
    on = holding(GRANTED[0], refused, GRANTED[2], back=BACK[1:])
    (kept,) = story("idle", on=on, tuned=("safe",)).run()

    assert (kept.tuning or {})["refused"] == [
        {"check": "locked_memory_moves", "path": LOCKED, "reason": "a container"}
    ]
    assert detail(kept, "knobs_changed") == "transparent_hugepage=madvise"


def test_a_service_that_would_undo_it_is_in_the_record(story: StoryOf) -> None:
    irq = Applied("irq_affinity", 24, "0-1", "0")
    files = {
        "/sys/devices/system/cpu/online": "0-1\n",
        "/proc/self/status": TWO_CPUS,
        "/proc/interrupts": "  CPU0 CPU1\n 24: 1 1 PCI eth0\n",
        "/proc/irq/24/smp_affinity_list": "0-1\n",
        "/proc/7/comm": "irqbalance\n",
    }
    back = [Restored("irq_affinity", 24, "0-1")]
    on = target(
        {"hold": [[irq, GRANTED[2]], *([[]] * 50)]},
        on_stop={"hold": [back]},
        files=files,
    )
    (kept,) = story("idle", on=on, cpus=(1,), tuned=("irq_affinity",)).run()

    assert (kept.tuning or {})["undone_by"] == "irqbalance"


def test_settings_that_are_lost_while_measuring_end_the_campaign(
    story: StoryOf,
) -> None:
    on = target({"hold": [GRANTED]}, files=UNTUNED)
    told = story("idle", on=on, tuned=("safe",))

    with pytest.raises(TargetError, match="ended during the measurement"):
        list(told.run())

    assert told.store.done_ids() == frozenset()


def test_an_interrupt_puts_held_settings_back(story: StoryOf) -> None:
    told = story("idle", on=holding(*GRANTED), tuned=("safe",), hear=interrupt_after(3))

    with pytest.raises(KeyboardInterrupt):
        list(told.run())

    assert told.target.log[-1] == "kill hold"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"tuned": ("nonsense",)}, "is no check"),
        ({"tuned": ("swap",)}, "no setting that can be put back"),
        ({"tuned": ("rt_throttling",)}, "--profile polling --apply rt_throttling"),
        (
            {"tuned": ("scaling_governor",), "governor": "powersave"},
            "--tuned scaling_governor and --governor change the same setting",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused_by_name(
    story: StoryOf, settings: Mapping[str, object], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        list(story("idle", **settings).run())


def test_of_safe_what_an_option_sets_is_left_to_the_option() -> None:
    names = {
        kind.id for kind in checks_for(Campaign(tuned=("safe",), governor="powersave"))
    }

    assert "transparent_hugepages" in names
    assert "scaling_governor" not in names
