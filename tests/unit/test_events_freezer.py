"""From events of cgroups: who froze the thread, and who freed it."""

from dataclasses import replace

import pytest

from fakes.events import DUE, LOAD, OTHER, THREAD, asleep, event, explained, ran
from rtscope.explain.model import Cause, Confidence, Part
from rtscope.record.events.events import Event, Flag


def waking(at_ns: int) -> Event:
    """Bash wakes the thread, in no interrupt."""
    fields: dict[str, int | str] = {"pid": THREAD, "prio": 0, "target_cpu": 0}
    return Event(DUE + at_ns, 0, "sched_waking", OTHER, "bash", Flag(0), 1, fields)


def cgroup(at_ns: int, name: str, group: str, *, pid: int = OTHER) -> Event:
    one = event(at_ns, name, pid=pid, comm="bash")
    return replace(one, fields={"root": 1, "path": group})


@pytest.mark.parametrize(
    ("shown", "evidence"),
    [
        (
            [cgroup(-80_000, "cgroup_freeze", "/lab")],
            ["bash-{pid} froze /lab at -80.000 us"],
        ),
        ([cgroup(-80_000, "cgroup_freeze", "/other")], []),
        ([], []),
    ],
)
def test_a_frozen_thread_is_told_with_its_group_and_who_froze_and_freed_it(
    shown: list[Event], evidence: list[str]
) -> None:
    freed = cgroup(300_000, "cgroup_unfreeze", "/lab")
    events = [*shown, *asleep(), freed, waking(301_000), ran(303_000)]
    found = explained(events, late_ns=304_000)

    frozen = found.segments[0]
    assert (frozen.cause, frozen.name) == (Cause.FROZEN, "/lab")
    assert (frozen.part, frozen.confidence) == (Part.A, Confidence.INFERRED)
    ended = "bash-{pid} unfroze /lab at +300.000 us, and woke the thread"
    assert list(frozen.evidence) == [
        line.format(pid=OTHER) for line in [*evidence, ended]
    ]
    assert found.broken == ()


@pytest.mark.parametrize(
    "freed",
    [
        cgroup(300_000, "cgroup_unfreeze", "/lab", pid=LOAD),
        cgroup(302_000, "cgroup_unfreeze", "/lab"),
        cgroup(-500_000, "cgroup_unfreeze", "/lab"),
        cgroup(300_000, "cgroup_freeze", "/lab"),
    ],
    ids=["another task's", "behind the wake-up", "before the sleep", "of no freed one"],
)
def test_a_thread_is_frozen_only_if_who_freed_a_group_woke_it(freed: Event) -> None:
    steps = [*asleep(), freed, waking(301_000), ran(303_000)]
    events = sorted(steps, key=lambda one: one.at_ns)

    found = explained(events, late_ns=304_000)

    assert found.segments[0].cause is not Cause.FROZEN
