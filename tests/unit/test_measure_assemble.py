"""A load is believed to have run only while its CPU time grows."""

from collections.abc import Sequence

import pytest

from rtscope.contract import LoadEnd, LoadTick
from rtscope.measure.assemble import caveats_from_load
from rtscope.measure.loads import get_load

S = 1_000_000_000
ASKED = LoadEnd(
    status=0, signal=None, stop_requested=True, killed=0, oom_kills=None, cpu_ns=10 * S
)


def ended(**changes: object) -> LoadEnd:
    fields: dict[str, object] = {
        name: getattr(ASKED, name) for name in LoadEnd.__slots__ if name != "type"
    }
    return LoadEnd(**{**fields, **changes})  # type: ignore[arg-type]


def working(*cpu_s: float) -> list[LoadTick]:
    """Return a report for each second, from 1 s before a window from 100 s."""
    return [
        LoadTick(t_ns=(99 + n) * S, processes=3, cpu_ns=int(cpu * S))
        for n, cpu in enumerate(cpu_s)
    ]


BUSY = working(*range(12))


def raised(
    ticks: Sequence[LoadTick] = BUSY,
    *,
    load: str = "cpu",
    end: LoadEnd | None = ASKED,
    ended_early: bool = False,
    seconds: int = 10,
) -> dict[str, str]:
    found = caveats_from_load(
        get_load(load),
        ticks,
        end=end,
        ended_early=ended_early,
        window_ns=(100 * S, (100 + seconds) * S),
    )
    return {caveat.id: caveat.detail for caveat in found}


def test_a_load_that_worked_throughout_raises_nothing() -> None:
    assert raised() == {}


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (ended(stop_requested=False, status=None, signal=9), "ended by signal 9"),
        (ended(stop_requested=False, status=0), "exit status 0"),
        (None, ""),
    ],
)
def test_a_load_that_ended_early_died(end: LoadEnd | None, how: str) -> None:
    assert raised(end=end, ended_early=True) == {"load_died": how}


@pytest.mark.parametrize(
    ("status", "failed"), [(0, False), (130, False), (143, False), (1, True), (3, True)]
)
def test_a_load_that_reports_a_failure_of_its_own_is_told(
    status: int, failed: bool
) -> None:
    expected = {"load_failed": f"exit status {status}"} if failed else {}
    assert raised(end=ended(status=status)) == expected


def test_a_signal_that_we_sent_is_no_failure() -> None:
    assert raised(end=ended(status=None, signal=15)) == {}


def test_a_guard_that_does_not_report_the_end_leaves_it_unproved() -> None:
    assert set(raised(end=None)) == {"load_unproved"}


@pytest.mark.parametrize(
    ("cpu_s", "stalled_s"),
    [
        ((0, 1, 2, 3, 3, 3, 6, 7, 8, 9, 10, 11), None),  # two seconds are no doubt
        ((0, 1, 2, 2, 2, 2, 6, 7, 8, 9, 10, 11), 3),
        ((0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8), 3),
        ((0, 0, 0, 0, 4, 5, 6, 7, 8, 9, 10, 11), 3),
        ((5,) * 12, 11),
        ((0, 1, 2, 3, 4, 4, 4, 4, 4, 9, 10, 11), 4),
    ],
)
def test_three_seconds_without_cpu_time_are_a_stall(
    cpu_s: tuple[float, ...], stalled_s: int | None
) -> None:
    expected = (
        {} if stalled_s is None else {"load_stalled": f"no CPU time for {stalled_s} s"}
    )
    assert raised(working(*cpu_s)) == expected


def test_cpu_time_that_shrinks_is_no_progress() -> None:
    # a worker that was killed takes its time along
    assert "load_stalled" in raised(working(9, 9, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4))


def test_in_a_run_shorter_than_that_all_of_it_must_be_without_progress() -> None:
    assert raised(working(0, 1, 1, 1), seconds=2) == {}
    assert set(raised(working(1, 1, 1, 1), seconds=2)) == {"load_stalled"}


def test_what_the_load_did_before_and_after_the_window_does_not_count() -> None:
    before = [LoadTick(t_ns=n * S, processes=3, cpu_ns=n * S) for n in range(90)]
    after = [LoadTick(t_ns=n * S, processes=3, cpu_ns=n * S) for n in range(112, 120)]
    idle = [LoadTick(t_ns=n * S, processes=3, cpu_ns=90 * S) for n in range(99, 112)]
    assert set(raised([*before, *idle, *after])) == {"load_stalled"}


@pytest.mark.parametrize("count", [0, 1])
def test_one_report_proves_nothing(count: int) -> None:
    assert raised(BUSY[:count]) == {
        "load_unproved": f"only {count} reports during the run"
    }


def test_a_command_that_does_nothing_here_may_do_it_elsewhere() -> None:
    assert raised(working(*[5] * 12), load="custom") == {
        "load_unproved": "no CPU time for 11 s"
    }
    assert raised(load="custom") == {}


@pytest.mark.parametrize(("kills", "doubted"), [(3, False), (0, True), (None, True)])
def test_an_oom_load_that_killed_nothing_did_not_test_it(
    kills: int | None, doubted: bool
) -> None:
    found = raised(load="oom", end=ended(oom_kills=kills))
    assert found == ({"no_oom_kill": ""} if doubted else {})
