"""A wait until a time of CLOCK_REALTIME is a finding; as a guard it weighs little."""

from dataclasses import replace

from fakes import watching
from rtscope.contract import Settable, WatchedThread
from rtscope.verbs.app.model import Finding
from rtscope.verbs.app.rules import examine
from unit.test_app_rules import seen

WORD = 0x7F00


def waits(number: int, expired: int) -> WatchedThread:
    """Return a thread that waited so often for a condition."""
    word = watching.word(0, number, settable=Settable(number, expired))
    return replace(watching.thread(101), words=(word,))


def found(watched: WatchedThread) -> list[Finding]:
    stack = watching.stack("futex_wait", "pthread_cond_timedwait", "loop", key=WORD)
    call = watching.stack("mq_timedreceive", "loop", call="mq_timedreceive", key=5)
    stacks = {(101, "lock_wait"): (stack,), (101, "blocking_call"): (call,)}
    findings = examine(seen(watched=[watched], stacks=stacks)).findings
    return [one for one in findings if one.id == "RA09"]


def test_a_wait_that_its_time_ends_is_a_finding() -> None:
    (one,) = found(waits(500, 499))

    assert (one.variant, one.weight.value, one.count) == ("settable", "medium", 500)
    assert one.detail == "until a time of CLOCK_REALTIME: futex 500 (it ended 499)"
    assert "pthread_cond_clockwait" in one.remedy
    assert [frame.function for frame in one.stacks[0].stack.frames][-1] == "loop"


def test_a_deadline_that_seldom_ends_the_wait_weighs_little() -> None:
    (one,) = found(waits(500, 2))

    assert (one.variant, one.weight.value) == ("guard", "low")
    assert one.detail == "until a time of CLOCK_REALTIME: futex 500 (it ended 2)"


def test_of_both_kinds_there_are_two_findings() -> None:
    queue = watching.call(
        "mq_timedreceive", 9, idle=True, key="5", settable=Settable(9, 9)
    )
    thread = replace(waits(500, 2), calls=(queue,))

    paced = [one for one in found(thread) if one.variant == "settable"]
    guard = [one for one in found(thread) if one.variant == "guard"]

    assert [one.count for one in (*paced, *guard)] == [9, 500]
    assert [len(one.stacks) for one in (*paced, *guard)] == [1, 1]


def test_waits_without_such_a_time_and_of_an_older_agent_are_none() -> None:
    assert found(waits(0, 0)) == []
    assert found(replace(waits(0, 0), words=(watching.word(0, 500),))) == []
