"""Every thread is what the kernel says it is; each mark has its evidence."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.printed import printed
from fakes.threads import AROUND, kernel, lines, listing, task
from fakes.trees import reader_of
from rtscope.contract import AgentError, dump_line, parse_line
from rtscope.contract.commands import TaskLine
from rtscope.host.errors import ContractError, TargetError
from rtscope.machine.tasks.listing import (
    irq_of,
    make_listing,
    notes_of,
    read_surroundings,
)
from rtscope.machine.tasks.model import (
    Choice,
    Irq,
    Listing,
    Order,
    ThreadKind,
    choose,
    effective_words,
)
from rtscope.present.document import Lines
from rtscope.verbs.tasks.text import summary, task_row, tasks_blocks

ISOLATED = replace(AROUND, isolated=frozenset({2, 3}))


def marks(found: Listing) -> dict[int, list[tuple[str, str]]]:
    return {
        t.line.tid: [(m.id, m.detail) for m in t.marks]
        for t in found.threads
        if t.marks
    }


def tids(found: Listing, choice: Choice) -> list[int]:
    return [t.line.tid for t in choose(found.threads, choice)]


# --- the list --------------------------------------------------------------------


@given(
    name=st.binary(max_size=15),
    policy=st.sampled_from(["other", "fifo", "rr", "batch", "idle", "ext", "policy-9"]),
    priority=st.integers(0, 99),
    nice=st.integers(-20, 19),
    kernel_priority=st.none() | st.integers(-101, 39),
    time_ns=st.integers(0, 2**63 - 1),
)
def test_a_line_comes_back_as_it_went(
    name: bytes,
    policy: str,
    priority: int,
    nice: int,
    kernel_priority: int | None,
    time_ns: int,
) -> None:
    made = replace(
        task(7, policy, priority=priority, nice=nice, cpu_time_ns=time_ns),
        name=name.decode("utf-8", "replace").replace("\ufffd", "?"),
        name_hex=name.hex(),
        kernel_priority=kernel_priority,
    )

    assert parse_line(dump_line(made)) == made
    assert listing(made).threads[0].name == name.decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("key", "value"),
    [("nice", 20), ("priority", -1), ("policy", None), ("kind", "ghost"), ("tid", "7")],
)
def test_a_line_out_of_range_is_refused(key: str, value: object) -> None:
    import json

    document = json.loads(dump_line(task(7)))

    with pytest.raises(ContractError, match=key):
        parse_line(json.dumps({**document, key: value}).encode())


def test_threads_stand_below_the_first_of_their_process() -> None:
    found = listing(task(9, pid=9), task(3, pid=9), task(5), task(4, pid=5))

    assert [t.line.tid for t in found.threads] == [5, 4, 9, 3]


def test_a_thread_with_the_name_of_its_process_has_it_once() -> None:
    first, second, other = task(5), task(6, pid=5), replace(task(7, pid=5), name="io")
    found = listing(first, second, other)

    blocks = tasks_blocks(found, found.threads[1:], order=Order.PRIORITY, width=80)
    rows = repr([block.lines for block in blocks if isinstance(block, Lines)])
    assert f"io [{first.name}]" in rows
    assert f"{first.name} [{first.name}]" not in rows


@pytest.mark.parametrize("kept", [slice(0, -1), slice(1, None)])
def test_a_list_that_breaks_off_is_no_list(kept: slice) -> None:
    with pytest.raises(ContractError, match="not complete"):
        make_listing(lines(task(1), task(2))[kept], AROUND)


def test_what_the_agent_could_not_do_is_told_with_its_remedy() -> None:
    error = AgentError(message="no /proc", cause="missing", remedy="mount it")

    with pytest.raises(TargetError, match=r"no /proc \(mount it\)"):
        make_listing([error], AROUND)


# --- kinds -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "devices", "irq"),
    [
        ("irq/24-eth0", (), Irq(24, "eth0")),
        ("irq/24-eth0-rx-q", ("eth0-rx-queue-0",), Irq(24, "eth0-rx-queue-0")),
        ("irq/24-eth0", ("eth0", "eth0-rx"), Irq(24, "eth0")),
        ("irq/24-usb", ("usb1", "usb2"), Irq(24, "usb")),
        ("irq/24-s-eth0", ("eth0",), Irq(24, "eth0")),
        ("irq/24-two\nlines", (), Irq(24, "two\nlines")),
        ("irq/x-eth0", (), None),
        ("irqbalance", (), None),
    ],
)
def test_an_interrupt_thread_has_its_number_and_its_device(
    name: str, devices: tuple[str, ...], irq: Irq | None
) -> None:
    assert irq_of(name, {24: devices} if devices else {}) == irq


def test_a_users_thread_is_no_interrupt_thread_whatever_its_name() -> None:
    false, true = listing(task(8, name="irq/9-acpi"), kernel(9, "irq/9-acpi")).threads

    assert (false.kind, false.irq) == (ThreadKind.USER, None)
    assert (true.kind, true.irq) == (ThreadKind.IRQ, Irq(9, "acpi"))


# --- marks -----------------------------------------------------------------------


def test_priority_99_of_a_user_is_marked_and_that_of_the_kernel_is_not() -> None:
    found = listing(task(7, "rr", priority=99), kernel(18, "migration/0", 99))

    assert marks(found) == {7: [("priority_99", "rr 99")]}


def test_real_time_threads_outside_isolated_cpus_are_marked() -> None:
    threads = (
        task(1, "fifo", priority=10, cpus="0-3"),
        task(2, "fifo", priority=11, cpus="2-3"),
        task(3, cpus="0-3"),
        kernel(4, "watchdogd"),
        task(5, "deadline", cpus="0"),
    )

    assert {
        tid: found[0][1]
        for tid, found in marks(listing(*threads, around=ISOLATED)).items()
        if found[0][0] == "housekeeping"
    } == {
        1: "allowed on CPU 0-1; isolated: CPU 2-3",
        5: "allowed on CPU 0; isolated: CPU 2-3",
    }
    assert set(marks(listing(*threads))) == {5}


def test_equal_fifo_threads_that_can_meet_on_a_cpu_are_peers() -> None:
    found = listing(
        task(1, "fifo", priority=50, name="a", cpus="0-1"),
        task(2, "fifo", priority=50, name="b", cpus="1-2"),
        task(3, "fifo", priority=50, name="c", cpus="3"),
        task(4, "rr", priority=50, cpus="0-3"),
        task(5, "fifo", priority=51, cpus="0-3"),
        kernel(6, "irq/9-x", cpus="2"),
        task(7, "fifo", priority=99, cpus="0"),
        kernel(8, "migration/0", 99, cpus="0"),
    )

    assert {t: m for t, m in marks(found).items() if t != 7} == {
        1: [("fifo_peers", "1 more of priority 50: 2 b")],
        2: [("fifo_peers", "2 more of priority 50: 1 a, 6 irq/9-x")],
    }
    assert [kind for kind, _ in marks(found)[7]] == ["priority_99"]


def test_many_peers_are_counted_and_a_few_named() -> None:
    found = listing(*(task(i, "fifo", priority=5) for i in range(1, 2001)))

    assert marks(found)[1] == [
        ("fifo_peers", "1999 more of priority 5: 2 app, 3 app, 4 app and 1996 more")
    ]
    assert marks(found)[2000][0][1].startswith("1999 more of priority 5: 1 app, 2")


def test_everything_has_each_thread_that_is_marked() -> None:
    some = [task(tid, "fifo", priority=99, cpus=str(tid)) for tid in range(1, 21)]
    found = listing(*some)
    show = partial(tasks_blocks, found, found.threads, order=Order.PROCESS, width=80)

    brief = printed(show())
    whole = printed(show(whole=True))

    assert "and 12 more: see -v" in brief
    assert whole.count(": fifo 99") == 20


def test_a_thread_below_an_interrupt_thread_of_its_cpus_is_marked() -> None:
    found = listing(
        kernel(1, "irq/9-x", 50, cpus="0"),
        kernel(2, "ktimers/0", 60, cpus="0"),
        task(3, "fifo", priority=49, cpus="0-1"),
        task(4, "rr", priority=50, cpus="0"),
        task(5, "fifo", priority=48, cpus="1"),
        task(6, cpus="0"),
    )

    assert marks(found) == {3: [("irq_above", "fifo 49 below 1 irq/9-x (50)")]}


@pytest.mark.parametrize(
    ("given", "effective", "words"),
    [
        (task(1), -81, "real-time 80"),
        (task(1, nice=5), 20, "nice 0"),
        (task(1, "fifo", priority=10), -81, "real-time 80"),
        (task(1, "fifo", priority=99), -101, "deadline"),
        (task(1), 20, None),
        (task(1, "fifo", priority=10), -11, None),
        (task(1, "deadline"), -101, None),
        (task(1), None, None),
        (task(1, "policy-9"), -81, None),
    ],
)
def test_a_boost_is_a_priority_above_ones_own(
    given: TaskLine, effective: int | None, words: str | None
) -> None:
    (thread,) = listing(replace(given, kernel_priority=effective)).threads

    said = [m.detail for m in thread.marks if m.id == "boosted"]
    assert said == ([f"runs as {words}"] if words else [])


def test_a_thread_of_sched_ext_is_shown_with_its_class() -> None:
    ext = task(7, "ext", nice=3)
    (thread,) = listing(ext).threads
    (boosted,) = listing(replace(ext, kernel_priority=-11)).threads

    assert (thread.line.policy, thread.real_time, thread.boosted) == (
        "ext",
        False,
        False,
    )
    assert boosted.boosted
    assert summary(listing(ext), [thread]).startswith("1 thread: 1 ext; 1 user")
    assert task_row(thread)["policy"] == "ext"


def test_a_hog_used_nine_tenths_of_a_cpu_in_the_window() -> None:
    found = listing(
        task(1, window_ns=1000, window_cpu_ns=899),
        task(2, window_ns=1000, window_cpu_ns=900),
        task(3, "fifo", priority=1, cpu_time_ns=10**18),
    )

    assert marks(found) == {2: [("hog", "90 % of a CPU")]}
    assert [t.share for t in found.threads] == [0.899, 0.9, None]


def test_a_deadline_thread_says_what_is_reserved_for_it() -> None:
    assert marks(listing(task(1, "deadline", reset_on_fork=True))) == {
        1: [
            ("deadline", "20 % of a CPU reserved"),
            ("reset_on_fork", "new threads are ordinary"),
        ]
    }


@pytest.mark.parametrize(
    ("effective", "words"),
    [(-101, "deadline"), (-100, "real-time 99"), (-2, "real-time 1"), (0, "nice -20")],
)
def test_the_kernels_priority_is_written_as_the_policy_it_stands_for(
    effective: int, words: str
) -> None:
    assert effective_words(effective) == words


# --- choice ----------------------------------------------------------------------

SOME = listing(
    task(1, name="z", cpus="0", cpu_time_ns=3, involuntary_switches=None),
    task(2, "fifo", pid=1, priority=7, cpus="1", involuntary_switches=9),
    task(3, "deadline", cpus="0-1", last_cpu=0, major_faults=4),
    task(4, pid=3, name="boosted", kernel_priority=-90),
    kernel(5, "irq/9-x", 50),
)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(), [1, 2, 3, 4, 5]),
        (Choice(real_time=True), [2, 3, 4, 5]),
        (Choice(cpu=0), [1, 3, 4, 5]),
        (Choice(cpu=9), []),
        (Choice(pid=3), [3, 4]),
        (Choice(pid=4), [3, 4]),
        (Choice(pid=9), []),
        (Choice(pid=1, real_time=True), [2]),
        (Choice(order=Order.PRIORITY), [3, 4, 5, 2, 1]),
        (Choice(order=Order.SWITCHES), [2, 3, 4, 5, 1]),
        (Choice(order=Order.FAULTS), [3, 1, 2, 4, 5]),
        (Choice(order=Order.CPU), [3, 1, 2, 4, 5]),
        (Choice(order=Order.TIME), [2, 3, 4, 5, 1]),
        (Choice(order=Order.NAME), [2, 3, 4, 5, 1]),
    ],
)
def test_what_is_asked_for_is_shown(choice: Choice, expected: Sequence[int]) -> None:
    assert tids(SOME, choice) == expected


def test_a_thread_whose_policy_changed_just_then_has_a_place_in_the_order() -> None:
    found = listing(
        task(1, "policy-9", kernel_priority=None), task(2), task(3, "rr", priority=5)
    )

    assert tids(found, Choice(order=Order.PRIORITY)) == [3, 2, 1]


# --- what is not told ------------------------------------------------------------


def test_what_was_not_seen_is_said() -> None:
    found = listing(
        task(
            1,
            "fifo",
            priority=1,
            timer_slack_ns=None,
            unreadable={"timer_slack_ns": "Operation not permitted"},
        ),
        around=replace(AROUND, isolated=None, sched_ext="rusty", hidepid="2"),
        vanished=2,
        not_read=3,
        window_ended=4,
        uid=1000,
    )
    said = notes_of(found)

    assert len(said) == 8
    for words, note in zip(
        (
            "2 ended while they were read",
            "3 could not be listed",
            "4 ended within the window",
            "No kernel thread is visible",
            "hidepid=2",
            "The timer slack of 1 could not be read: Operation not permitted. Run",
            "The isolated CPUs are unknown",
            "A sched_ext scheduler is loaded (rusty)",
        ),
        said,
        strict=True,
    ):
        assert words in note


def test_a_whole_list_leaves_nothing_to_say() -> None:
    assert notes_of(listing(task(1), kernel(2, "kthreadd"), uid=0)) == []


def test_what_surrounds_the_threads_is_read_from_the_machine() -> None:
    found = read_surroundings(
        reader_of(
            {
                "/sys/devices/system/cpu/isolated": "2\n",
                "/sys/fs/cgroup/cpuset.cpus.isolated": "3\n",
                "/sys/kernel/irq/24/actions": "eth0,eth1\n",
                "/sys/kernel/irq/25/actions": "\n",
                "/sys/kernel/sched_ext/state": "enabled\n",
                "/sys/kernel/sched_ext/root/ops": "rusty\n",
                "/proc/self/mountinfo": "9 1 0:5 / /proc rw - proc proc rw,hidepid=2\n",
            }
        )
    )

    assert found.isolated == frozenset({2, 3})
    assert found.irq_devices == {24: ("eth0", "eth1")}
    assert found.sched_ext == "rusty"
    assert found.hidepid == "2"


def test_what_the_machine_does_not_tell_is_unknown_and_not_empty() -> None:
    found = read_surroundings(reader_of({}))

    assert found.isolated is None
    assert (found.sched_ext, found.hidepid) == (None, None)
    none = read_surroundings(reader_of({"/sys/devices/system/cpu/isolated": "\n"}))
    assert none.isolated == frozenset()
