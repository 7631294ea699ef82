"""Settings are asked for in order, answered one by one, and put back at the end."""

from collections.abc import Callable, Sequence

import pytest

from fakes.faketarget import FakeTarget
from rtscope.contract import AgentError, Applied, Line, Refused, Restored, Tuned
from rtscope.host.errors import TargetError
from rtscope.machine.settings import change as settings
from rtscope.machine.settings.remedies import SettingChange

CHANGES = (
    SettingChange("irq_affinity", "irq_affinity", 24, "/proc/irq/24/a", "0-1", "0"),
    SettingChange("irq_affinity", "irq_affinity", 25, "/proc/irq/25/a", "0-1", "0"),
    SettingChange("irq_affinity", "irq_affinity", 30, "/proc/irq/30/a", "0-1", "0"),
    SettingChange("watchdog", "watchdog", 0, "/proc/sys/kernel/watchdog", "1", "0"),
)
GRANTED: Sequence[Line] = [Applied(w.knob, w.index, w.old, w.value) for w in CHANGES]
BACK: Sequence[Line] = [Restored(w.knob, w.index, w.old) for w in reversed(CHANGES)]
ALL = Tuned(2, applied=4, already=0, refused=0)
DENIED = AgentError("no journal", cause="capability", remedy="run it as root")


def answering(verb: str, *lines: Line, at_end: Sequence[Line] = ()) -> FakeTarget:
    silence: list[list[Line]] = [[]] * 50
    return FakeTarget({verb: [list(lines), *silence]}, on_stop={verb: [list(at_end)]})


def ending(verb: str, *lines: Line) -> FakeTarget:
    return FakeTarget({verb: [list(lines)]})


def test_places_that_get_the_same_value_are_one_option() -> None:
    target = ending("apply", *GRANTED, ALL)
    settings.apply(target, CHANGES)

    assert target.log[0] == (
        "root apply --set irq_affinity:24-25,30=0 --set watchdog:0=0"
    )


def test_what_was_refused_is_told_beside_what_was_done() -> None:
    refused = Refused("watchdog", 0, "0", cause="read-only", reason="a container")
    found = settings.apply(ending("apply", *GRANTED[:3], refused, ALL), CHANGES)

    assert found.applied == CHANGES[:3]
    (not_done,) = found.refused
    assert (not_done.change, not_done.cause) == (CHANGES[3], "read-only")


def test_what_was_so_already_counts_as_done_and_unchanged() -> None:
    found = settings.apply(
        ending("apply", Applied("watchdog", 0, "0", "0")), CHANGES[3:]
    )

    assert [change.changed for change in found.applied] == [False]


def test_a_change_without_an_answer_is_not_taken_for_granted() -> None:
    found = settings.apply(ending("apply", *GRANTED[:3], ALL), CHANGES)

    assert [r.change for r in found.refused] == [CHANGES[3]]


def test_an_answer_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(TargetError, match="changed governor without a request"):
        settings.apply(ending("apply", Applied("governor", 0, "a", "b")), CHANGES)


def hold_and_end(target: FakeTarget) -> None:
    with settings.hold(target, CHANGES):
        pass


@pytest.mark.parametrize(
    ("verb", "ask"),
    [
        ("apply", lambda target: settings.apply(target, CHANGES)),
        ("hold", hold_and_end),
        ("restore", settings.restore),
    ],
)
def test_an_agent_that_gives_up_says_why(
    verb: str, ask: Callable[[FakeTarget], object]
) -> None:
    target = ending(verb, DENIED)

    with pytest.raises(TargetError, match=r"fake: no journal \(run it as root\)"):
        ask(target)


def test_what_a_killed_run_had_left_is_told() -> None:
    left = Restored("governor", 0, "powersave")
    found = settings.apply(ending("apply", left, *GRANTED, ALL), CHANGES)

    assert found.left_by_others == (left,)


def test_held_settings_are_put_back_at_the_end_of_the_block() -> None:
    target = answering("hold", *GRANTED, ALL, at_end=BACK)
    with settings.hold(target, CHANGES) as holding:
        holding.check()
        assert "stop hold" not in target.log

    assert target.log[1:] == ["stop hold", "kill hold"]


def test_an_error_in_the_block_ends_what_holds_them_all_the_same() -> None:
    target = answering("hold", *GRANTED, ALL, at_end=BACK)
    with pytest.raises(ZeroDivisionError), settings.hold(target, CHANGES):
        raise ZeroDivisionError

    # Closing its tether is what makes a real one put them back.
    assert target.log[-1] == "kill hold"


def test_settings_that_were_not_put_back_are_named_with_what_to_type() -> None:
    target = answering("hold", *GRANTED, ALL, at_end=BACK[1:])

    with (
        pytest.raises(TargetError, match=r"restored watchdog; .*audit --restore"),
        settings.hold(target, CHANGES),
    ):
        pass


def test_what_was_so_already_need_not_be_put_back() -> None:
    already = Applied("watchdog", 0, "0", "0")
    target = answering("hold", already, ALL)

    with settings.hold(target, CHANGES[3:]):
        pass


def test_a_holder_that_ended_early_is_noticed() -> None:
    target = ending("hold", *GRANTED, ALL)

    with (
        pytest.raises(TargetError, match="ended during the measurement"),
        settings.hold(target, CHANGES) as holding,
    ):
        holding.check()


def test_a_holder_that_says_nothing_is_an_error_and_no_hang() -> None:
    with (
        pytest.raises(TargetError, match="did not report the settings"),
        settings.hold(FakeTarget({"hold": [[], [], []]}), CHANGES),
    ):
        pytest.fail("nothing is held")


def test_restore_tells_what_is_back_and_what_is_not() -> None:
    refused = Refused("watchdog", 0, "1", cause="held", reason="another one")
    target = ending("restore", *BACK[:2], refused, DENIED)

    back, left = settings.restore(target)

    assert target.log[0] == "root restore --applied"
    assert list(back) == BACK[:2]
    assert left == (refused,)
