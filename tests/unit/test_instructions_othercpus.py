"""What the other CPUs did during a wait for a lock: found without looking at all."""

from collections.abc import Sequence
from itertools import pairwise
from typing import overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.paths import section, symbols
from rtscope.explain.instructions.calls import Frame, Run
from rtscope.explain.instructions.othercpus import OtherCpus, overlapping
from rtscope.explain.model import OtherCpuActivity
from rtscope.record.instructions.section import executing_cpus

TABLE = symbols("zap", "free_pages")
FRAME = Frame("zap", None, 1)


def runs_at(begins: Sequence[int], *, last: int) -> list[Run]:
    """Make runs that begin there; each ends where the next begins."""
    ends = pairwise([*begins, last])
    return [Run(FRAME, begin, end, end - begin) for begin, end in ends]


class Counting(Sequence[Run]):
    """Runs that count how often one of them was looked at."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.looks = 0

    def __len__(self) -> int:
        return len(self.runs)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Run]: ...
    def __getitem__(self, at: int | slice) -> Run | Sequence[Run]:
        found = self.runs[at]
        self.looks += 1 if isinstance(found, Run) else len(found)
        return found


@given(
    st.lists(st.integers(0, 60), max_size=30).map(sorted),
    st.integers(0, 70),
    st.integers(0, 20),
)
def test_the_runs_between_two_times_are_those_that_a_look_at_each_finds(
    begins: list[int], begin: int, length: int
) -> None:
    runs = runs_at(begins, last=max([60, *begins]))
    end = begin + length

    by_each = [run for run in runs if run.end_ns > begin and run.begin_ns < end]

    assert list(overlapping(runs, begin, end)) == by_each


def test_each_of_many_waits_looks_at_few_of_the_runs() -> None:
    runs = Counting(runs_at(range(0, 4000 * 20, 20), last=4000 * 20))

    for begin in range(0, 4000 * 20, 20):
        (found,) = overlapping(runs, begin + 5, begin + 15)
        assert found.begin_ns == begin

    # Two searches among 4,000 take 13 looks at most each; a look at all takes 4,000.
    assert runs.looks <= 4000 * (2 * 13 + 1)


def test_only_cpus_that_executed_in_the_time_are_told_and_the_own_never() -> None:
    path = section(
        [
            (50, "zap"),
            (30, "free_pages", 2),
            (10, "zap", 2),
            (50, "zap+"),
            (9, "zap", 1),
        ],
        TABLE,
        late=100,
    )
    others = OtherCpus((1, 2), path, TABLE, "riscv64")

    assert executing_cpus(path) == [0, 1, 2]
    assert list(others.between(50, 90)) == [
        OtherCpuActivity(2, "free_pages", 1.0, 40, ("free_pages",))
    ]
    assert list(others.between(0, 50)) == []


READERS = symbols(
    *("zap", "look_up", "other_look_up", "synchronize_rcu"),
    *("__rcu_read_lock", "__rcu_read_unlock", "busy", "__srcu_read_unlock"),
)


def activity(*steps: tuple[int, str], readers: str) -> str:
    """Return what CPU 1 did, by name, while CPU 0 waited for it."""
    path = section(
        [(10, "zap"), *((ns, name, 1) for ns, name in steps), (10, "zap+")],
        READERS,
        late=20,
    )
    others = OtherCpus((1,), path, READERS, "riscv64")
    (found,) = others.between(10, 10 + sum(ns for ns, _ in steps), readers=readers)
    return found.name


def test_a_grace_period_waits_for_the_reader_that_was_there_however_short() -> None:
    later = [(5, "other_look_up"), (5, "__rcu_read_lock"), (5, "__rcu_read_unlock")]
    steps = [(20, "look_up"), (5, "__rcu_read_unlock"), *later, (900, "busy")]

    assert activity(*steps, readers="__rcu_read_unlock") == "look_up"
    assert activity(*steps, readers="") == "busy"


def test_a_reader_that_began_later_or_of_another_kind_holds_no_grace_period() -> None:
    begins = [(20, "look_up"), (5, "__rcu_read_lock"), (5, "look_up+")]
    steps = [*begins, (5, "__rcu_read_unlock"), (900, "busy")]

    assert activity(*steps, readers="__rcu_read_unlock") == "busy"
    assert activity(*steps, readers="__srcu_read_unlock") == "busy"


IDLE = symbols("zap", "do_idle", "default_idle_call", "sound_siren", "tick")


@pytest.mark.parametrize(
    ("did", "name", "is_idle"),
    [
        ([(5, "do_idle"), (600, "sound_siren")], "sound_siren", False),
        ([(5, "do_idle"), (60, "tick")], "tick", True),
        ([(5, "do_idle"), (600, "default_idle_call")], "default_idle_call", True),
        ([(60, "tick")], "tick", False),
    ],
)
def test_a_cpu_that_was_idle_is_awaited_for_what_it_did_for_long(
    did: list[tuple[int, str]], name: str, is_idle: bool
) -> None:
    """A timer that runs for long from the idle loop is what hrtimer_cancel awaits."""
    path = section(
        [(10, "zap"), *((ns, one, 1) for ns, one in did), (10, "zap+")],
        IDLE,
        late=20,
    )
    (found,) = OtherCpus((1,), path, IDLE, "riscv64").between(10, 700)

    assert (found.name, found.is_idle) == (name, is_idle)
