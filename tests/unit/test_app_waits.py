"""Findings about waits: how long, who ended them, who kept a lock's owner waiting."""

from dataclasses import replace
from typing import Any

import pytest

from fakes import watching
from rtscope.contract import (
    EventTimes,
    Inversion,
    Meanwhile,
    Party,
    Waker,
    WatchedThread,
)
from rtscope.programs.naming import Origin
from rtscope.verbs.app.locks import Lock
from rtscope.verbs.app.model import EventStack, Finding, Watch
from rtscope.verbs.app.waits import inversions, of_waits, unseen_waits, wakers, worst_of

POSTER = Party(tid=7, name="poster", priority=120)
OWNER = Party(tid=8, name="owner", priority=89)
BETWEEN = Party(tid=9, name="between", priority=79)


LOCKS = {"7f00": Lock("a mutex", "c")}


def watch(**stacks: tuple[EventStack, ...]) -> Watch:
    """Return what was seen, with stacks of thread 101 by kind."""
    of_thread = {(101, kind): some for kind, some in stacks.items()}
    threads = (watching.thread(101), watching.thread(OWNER.tid))
    return Watch(watching.begin(), threads, watching.end(), of_thread, {})


def found(seen: Watch, **given: Any) -> list[Finding]:
    return list(of_waits(seen, watched(**given)))


def watched(**given: Any) -> WatchedThread:
    return replace(watching.thread(101), **given)


def test_the_longest_is_told_from_the_begin_of_the_watching() -> None:
    begin_ns = watch().begin.from_ns
    times = EventTimes(3, 500, 300, begin_ns + 40, "write")

    worst = worst_of(watch(), times)

    assert worst is not None
    assert (worst.lasted_ns, worst.after_ns, worst.where) == (300, 40, "write")
    assert (worst.timed, worst.total_ns) == (3, 500)
    assert worst_of(watch(), None) is None


@pytest.mark.parametrize(
    ("name", "functions", "found_"),
    [
        ("epoll_wait", ("runtime.netpoll", "runtime.findRunnable"), False),
        ("epoll_wait", ("mio::poll::Poll::poll", "main"), False),
        ("epoll_wait", ("ask_sensor", "main"), True),
        ("nanosleep", ("runtime.usleep", "runtime.sysmon"), False),
        ("nanosleep", ("usleep", "main"), True),
        ("write", ("log", "uv__io_poll", "main"), True),
    ],
)
def test_the_wait_of_an_event_loop_is_no_finding_on_any_of_its_threads(
    name: str, functions: tuple[str, ...], found_: bool
) -> None:
    idle = name == "epoll_wait"
    rows = (
        watching.call(name, 3, idle=idle, key="4" if idle else "0"),
        watching.call("ppoll", 9, 10**9, idle=True, key="9", slept=watching.times(9)),
    )
    stack = replace(watching.stack(*functions), call=name, key=4 if idle else 0)

    some = found(watch(blocking_call=(stack,)), calls=rows)

    assert (name in str([one.detail for one in some])) == found_


def test_an_inversion_names_owner_and_the_one_between() -> None:
    times = EventTimes(5, 900, 400, 10**15 + 7, "between")
    one = Inversion(OWNER, BETWEEN, times, word="7f00")
    of_none = replace(one, word="9f00")
    thread = watched(words=(watching.word(2),), inversions=(one, of_none))

    (one_found,) = inversions(watch(), thread, LOCKS)

    assert (one_found.id, one_found.count, one_found.rate_per_s) == ("RA11", 5, 0.5)
    assert one_found.detail == (
        "owner (8, priority 10) had the lock, between (9, priority 20) had its CPU"
    )
    assert one_found.worst is not None
    assert one_found.worst.lasted_ns == 400


def test_inversions_of_one_lock_are_one_finding() -> None:
    rows = tuple(
        Inversion(OWNER, replace(BETWEEN, tid=tid), watching.times(tid), word="7f00")
        for tid in range(20, 25)
    )
    thread = watched(words=(watching.word(2),), inversions=rows)

    (one,) = inversions(watch(), thread, LOCKS)

    assert one.count == 20 + 21 + 22 + 23 + 24
    assert one.detail.startswith("owner (8, priority 10) had the lock, between (24,")
    for tid in range(20, 25):
        assert f"between ({tid}, priority 20)" in one.detail


@pytest.mark.parametrize(
    ("priority", "words"),
    [(120, "not real-time"), (38, "priority 61"), (-1, "deadline")],
)
def test_wakers_have_the_priority_that_people_know(priority: int, words: str) -> None:
    one = Waker(replace(POSTER, priority=priority), softirq=False, count=3, word="0")

    (one_found,) = wakers(watched(wakers=(one,)), {})

    assert one_found.detail == f"by poster (7, {words}) 3"


def test_the_most_frequent_wakers_come_first_and_all_are_counted() -> None:
    some = tuple(
        Waker(replace(POSTER, tid=tid), softirq=tid == 5, count=tid, word="0")
        for tid in range(2, 6)
    )

    (one_found,) = wakers(watched(wakers=some, other_wakers=2), {})

    assert one_found.id == "RA12"
    assert one_found.count == 2 + 3 + 4 + 5 + 2
    assert one_found.detail.startswith("by a softirq in poster 5, by poster (4,")
    assert "by poster (2, not real-time) 2" in one_found.detail
    assert one_found.detail.endswith("2 by threads that there was no room to name")
    assert list(wakers(watched(), {})) == []


def test_what_found_no_room_is_not_seen_or_not_all_of_it_is() -> None:
    thread = watched(records_lost=3, other_calls=2, other_words=1)
    seen = replace(watch(), threads=(thread,))

    unseen = list(unseen_waits(seen, {"RA12"}))

    assert [(one.ids, one.what.partition(" ")[0]) for one in unseen] == [
        (("RA08", "RA09", "RA10", "RA11", "RA24", "RA25"), "3"),
        (("RA12",), "3"),
        (("RA08", "RA09", "RA24"), "2"),
        (("RA09", "RA10", "RA11", "RA25"), "1"),
    ]
    assert "not all" in unseen[1].cause
    assert list(unseen_waits(watch(), set())) == []


def test_calls_of_which_it_is_not_known_whether_they_may_block_are_no_finding() -> None:
    calls = (
        watching.call("readv", 0, undecided=3),
        watching.call("readv", 0, undecided=4, key="7"),
        watching.call("write", 0, harmless=5),
        watching.call("recvmsg", 0, undecided=9),
    )
    seen = replace(watch(), threads=(watched(calls=calls),))

    (unseen,) = unseen_waits(seen, {"RA09"})

    assert unseen.ids == ("RA09",)
    assert unseen.what.endswith(": recvmsg 9, readv 7")
    assert "closed" in unseen.cause
    assert found(watch(), calls=calls) == []


def test_who_lets_a_lock_go_is_no_waker_that_it_depends_on() -> None:
    of_lock = Waker(POSTER, softirq=False, count=3, word="7f00")
    other = replace(of_lock, count=4, word="0")

    (one,) = wakers(watched(wakers=(of_lock, other)), LOCKS)

    assert one.count == 4
    assert list(wakers(watched(wakers=(of_lock,)), LOCKS)) == []


def test_each_call_that_may_block_is_named_with_its_longest_the_worst_first() -> None:
    calls = (
        watching.call("rename", 154, 41_000),
        watching.call("membarrier", 154, 27_000_000),
        watching.call("mmap", 2, 5_000, memory=True),
        watching.call("", 3, 100, number=472),
    )

    memory, blocking = found(watch(), calls=calls)

    assert (memory.id, memory.detail) == ("RA08", "mmap 2 (at most 5 µs)")
    assert (blocking.id, blocking.count) == ("RA09", 311)
    assert blocking.detail == (
        "membarrier 154 (at most 27 ms), rename 154 (at most 41 µs), "
        "system call 472 3 (at most 100 ns)"
    )
    assert blocking.worst is not None
    assert (blocking.worst.lasted_ns, blocking.worst.where) == (
        27_000_000,
        "membarrier",
    )


def test_the_first_stack_is_one_of_the_longest_call() -> None:
    calls = (watching.call("rename", 1, 5), watching.call("fsync", 1, 9))
    stacks = tuple(watching.stack("x", call=name) for name in ("rename", "fsync"))

    (one,) = found(watch(blocking_call=stacks), calls=calls)

    assert [stack.call for stack in one.stacks] == ["fsync", "rename"]


def test_calls_that_cannot_block_are_no_finding() -> None:
    assert found(watch(), calls=(watching.call("sendmsg", 0, harmless=50),)) == []


POLL = watching.call(
    "poll", 9, 900, idle=True, key="7f10", slept=watching.times(9, 800)
)


def test_the_wait_for_the_next_cycle_is_no_finding_but_another_one_is() -> None:
    within = replace(POLL, key="7f20", slept=watching.times(9, 10))
    stacks = tuple(
        watching.stack("x", call="poll", key=key) for key in (0x7F10, 0x7F20)
    )

    (one,) = found(watch(blocking_call=stacks), calls=(POLL, within))

    assert (one.id, one.count, one.detail) == ("RA09", 9, "poll 9 (at most 900 ns)")
    assert one.stacks == stacks[1:]
    assert found(watch(), calls=(POLL,)) == []


@pytest.mark.parametrize(
    "other",
    [
        {"slept_elsewhere_ns": 10_000},
        {"words": (watching.word(0, 10),)},
        {"calls": (POLL, watching.call("nanosleep", slept=watching.times(10)))},
        {"calls": (POLL, watching.call("membarrier", slept=watching.times(10)))},
    ],
    ids=["a timer", "a word", "a sleep", "the kernel"],
)
def test_a_wait_for_events_within_a_cycle_is_found(other: dict[str, Any]) -> None:
    (one,) = found(watch(), **{"calls": (POLL,), **other})

    assert "poll 9" in one.detail


def test_a_wait_inside_the_kernel_is_found_with_its_reason_and_who_ended_it() -> None:
    held = watching.times(2, 27_000_000, "rcu_preempt")
    calls = (watching.call("membarrier", 154, 27_100_000, slept=held, held=held),)

    _, one = found(watch(), calls=calls)

    assert (one.id, one.count) == ("RA24", 2)
    assert one.worst is not None
    assert (one.worst.lasted_ns, one.worst.where) == (27_000_000, "rcu_preempt")
    assert one.detail.startswith(
        "membarrier 2 (at most 27 ms, ended by rcu_preempt): it"
    )
    assert "RCU" in one.detail


@pytest.mark.parametrize(
    ("lasted_ns", "weight"), [(27_000_000, "high"), (999_999, "medium")]
)
def test_a_short_wait_inside_the_kernel_weighs_less(
    lasted_ns: int, weight: str
) -> None:
    held = watching.times(2, lasted_ns)
    call = watching.call("membarrier", 2, lasted_ns, slept=held, held=held)

    one = found(watch(), calls=(call,))[-1]

    assert (one.id, one.weight) == ("RA24", weight)


def test_a_lock_has_its_holder_the_place_and_what_that_did_meanwhile() -> None:
    did = Meanwhile(ran_ns=2_000, aside_ns=300, slept_ns=40, slept_in="fsync")
    word = watching.word(2, 7, waker=OWNER, meanwhile=did)
    seen = watch(lock_wait=(watching.stack("step", call="futex", key=0x7F00),))
    libc, own = watching.stack("unlock", "slow").stack.frames
    frames = (
        replace(libc, file="./nptl/unlock.c", line=3),
        replace(own, file="/src/a.c", line=17, origin=Origin.PROGRAM),
    )
    at = watching.stack(key=0x7F00)
    at = replace(at, stack=replace(at.stack, frames=frames))
    seen = replace(seen, stacks={**seen.stacks, (OWNER.tid, "lock_wake"): (at,)})

    (one,) = found(seen, words=(word,))

    assert (one.id, one.count, len(one.stacks)) == ("RA10", 7, 1)
    assert one.detail == (
        "a mutex; owner (8, priority 10) let it go in slow a.c:17 after 1 µs, "
        "which ran 2 µs, lacked a CPU for 300 ns, slept 40 ns (fsync)"
    )
    assert "PTHREAD_PRIO_INHERIT" in one.remedy


def test_a_thread_that_ended_before_its_name_was_read_is_called_so() -> None:
    gone = Party(tid=9, name="", priority=-(2**31))
    words = (watching.word(2, 7, waker=gone),)
    wake = Waker(gone, softirq=False, count=3, word="0")

    lock, woken = found(watch(), words=words, wakers=(wake,))

    assert lock.detail == "a mutex; a thread that has ended (9) let it go after 1 µs"
    assert woken.detail == "by a thread that has ended (9) 3"


def test_a_lock_without_a_stack_has_the_remedy_of_the_language_elsewhere() -> None:
    elsewhere = watching.stack("std::sys::sync::mutex::lock", call="futex", key=0x7E00)
    seen = watch()
    seen = replace(seen, stacks={(OWNER.tid, "lock_wait"): (elsewhere,)})

    (one,) = found(seen, words=(watching.word(2, 7),))

    assert "Mutex and RwLock of std" in one.remedy
    assert "pthread" not in one.remedy


@pytest.mark.parametrize("command", [6, 13])
def test_a_wait_for_a_lock_that_inherits_has_advice_of_its_own(command: int) -> None:
    held = Meanwhile(1000, 0, 0, "")
    word = watching.word(0, 4, command=command, waker=OWNER, meanwhile=held)
    stack = watching.stack("pthread_mutex_lock", "step", key=0x7F00)
    wake = Waker(replace(OWNER, priority=120), softirq=False, count=3, word="7f00")

    (one,) = found(watch(lock_wait=(stack,)), words=(word,), wakers=(wake,))

    assert (one.id, one.count, len(one.stacks)) == ("RA25", 4, 1)
    assert one.detail == (
        # without a priority: it had that of who waited
        "a mutex; owner (8) let it go after 1 µs, which ran 1 µs"
    )
    assert "critical section" in one.remedy
    assert "PTHREAD_PRIO_INHERIT" not in one.remedy


def test_both_kinds_of_lock_are_findings_of_their_own() -> None:
    words = (watching.word(2, 3), watching.word(0, 4, command=6, word="7f80"))

    some = found(watch(), words=words)

    assert [(one.id, one.count) for one in some] == [("RA10", 3), ("RA25", 4)]


def test_who_gets_the_cpu_of_an_owner_that_inherits_is_no_inversion() -> None:
    times = EventTimes(5, 900, 400, 10**15 + 7, "between")
    row = Inversion(OWNER, BETWEEN, times, word="7f00")
    word = watching.word(0, 4, command=6)

    some = found(watch(), words=(word,), inversions=(row,))

    assert [one.id for one in some] == ["RA25"]


def test_all_words_of_the_interpreter_lock_are_one_finding() -> None:
    words = tuple(watching.word(v, 2, word=f"7f{4 * v:02x}") for v in range(3))
    stacks = tuple(
        watching.stack("pthread_cond_timedwait", "take_gil", key=0x7F00 + 4 * v)
        for v in range(3)
    )

    (one,) = found(watch(lock_wait=stacks), words=words)

    assert (one.id, one.count, one.detail) == ("RA10", 6, "the GIL")
    assert "another process" in one.remedy
