"""What changes between two lists of threads, in words and as lines of JSON."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.threads import kernel, listing, task
from rtscope.contract.commands import TaskLine
from rtscope.machine.capabilities import (
    CAPABILITIES,
    capability_names,
    capability_words,
)
from rtscope.verbs.tasks.changes import changes
from rtscope.verbs.tasks.changing import change_json, change_words

ALL = (1 << len(CAPABILITIES)) - 1
THREAD = task(
    41,
    "fifo",
    pid=40,
    priority=80,
    name="loop",
    started_ns=5,
    cgroup="/a",
    capabilities="0000000000000000",
)


def seen(before: TaskLine, after: TaskLine) -> list[tuple[str, str | None, str | None]]:
    found = changes(listing(before), listing(after))
    return [(one.what, one.before, one.after) for one in found]


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ({"priority": 81, "kernel_priority": -82}, ("policy", "fifo 80", "fifo 81")),
        ({"policy": "rr"}, ("policy", "fifo 80", "rr 80")),
        ({"cpus": "2"}, ("cpus", "0-3", "2")),
        ({"state": "T"}, ("state", "running or sleeping", "stopped")),
        ({"cgroup": "/b"}, ("cgroup", "/a", "/b")),
        ({"capabilities": "800000"}, ("capabilities", "none", "sys_nice")),
        ({"name": "other"}, ("name", "loop", "other")),
        ({"kernel_priority": -96}, ("effective", "its own", "real-time 95")),
    ],
)
def test_a_change_is_seen_both_ways(
    given: dict[str, Any], change: tuple[str, str, str]
) -> None:
    what, before, after = change
    other = replace(THREAD, **given)

    assert seen(THREAD, other) == [change]
    assert seen(other, THREAD) == [(what, after, before)]


@pytest.mark.parametrize(
    "given",
    [
        {"state": "R"},
        {"last_cpu": 0, "cpu_time_ns": 10**9, "voluntary_switches": 900},
        {"cpus": None},
        {"cgroup": None},
        {"capabilities": None},
    ],
)
def test_what_goes_on_all_the_time_or_was_not_read_is_no_change(
    given: dict[str, Any],
) -> None:
    assert seen(THREAD, replace(THREAD, **given)) == []


def test_a_number_that_another_thread_has_now_is_an_end_and_a_begin() -> None:
    other = replace(THREAD, started_ns=6)

    assert seen(THREAD, other) == [
        ("ended", "fifo 80", None),
        ("begun", None, "fifo 80"),
    ]


def test_threads_that_begin_and_end_are_named_with_their_policy() -> None:
    first, nice = task(1), task(7, "batch", nice=5)
    begun = list(changes(listing(first), listing(first, nice)))
    ended = list(changes(listing(first, nice), listing(first)))

    assert [(c.what, c.after) for c in begun] == [("begun", "batch, nice 5")]
    assert [(c.what, c.before) for c in ended] == [("ended", "batch, nice 5")]


def test_a_worker_of_the_kernel_is_called_as_its_work_is() -> None:
    busy = kernel(9, "kworker/0:1-events")

    assert seen(busy, replace(busy, name="kworker/0:1+ext4")) == []


def test_a_change_is_a_line_with_time_thread_and_both_values() -> None:
    first = task(40, name="control")
    hostile = replace(THREAD, name="a\x1b[31m")
    (change,) = changes(
        listing(first, hostile), listing(first, replace(hostile, cpus="2"))
    )

    assert change_words(change, 1_250_000_000).plain == (
        "   1.2 s      41 a\\x1b[31m [control]    CPUs 0-3 → 2"
    )
    assert json.loads(change_json(change, 7)) == {
        "at_ns": 7,
        "pid": 40,
        "tid": 41,
        "name": "a\x1b[31m",
        "process": "control",
        "what": "cpus",
        "before": "0-3",
        "after": "2",
    }


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, "none"),
        (1 << 23, "sys_nice"),
        (1 << 23 | 1 << 14, "ipc_lock, sys_nice"),
        (ALL, "all"),
        (ALL & ~(1 << 25), "all but sys_time"),
        (1 << 41, "41"),
        (ALL << 6 & ALL, ", ".join(name.lower() for name in CAPABILITIES[6:])),
    ],
)
def test_capabilities_have_words(bits: int, words: str) -> None:
    assert capability_words(bits) == words


def test_the_names_of_capabilities_stand_at_their_bits() -> None:
    assert capability_names(1 << 23 | 1 << 14 | 1) == ("chown", "ipc_lock", "sys_nice")
