"""How long runs will take here: from boots that were measured here, or not at all."""

from dataclasses import replace

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.boards.catalogue import get_board
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.prepare import request_for
from rtscope.boards.runs.store import HostTime, Kind, Took, host_time, kind_of, took
from rtscope.measure.campaign.model import Campaign

IDLE, OS = Kind("pc", "idle", 12_000_000_000), Kind("pc", "os", 12_000_000_000)
SECOND_NS = 1_000_000_000


def test_the_mean_of_each_kind_counts_for_each_run_of_it() -> None:
    earlier = [Took(IDLE, 4.0), Took(IDLE, 6.0), Took(OS, 50.0)]

    found = host_time([IDLE, IDLE, OS], earlier, at_once=2)

    assert found == HostTime(seconds=30.0, runs=3)


def test_boots_of_other_kinds_tell_nothing_and_are_not_counted() -> None:
    longer = replace(OS, virtual_ns=1)

    assert host_time([IDLE], [Took(IDLE, 4.0), Took(OS, 9.0)], at_once=1) == HostTime(
        4.0, 1
    )
    assert host_time([IDLE, longer], [Took(IDLE, 4.0)], at_once=1) is None


def test_a_boot_that_records_no_paths_is_of_another_kind() -> None:
    """It takes less time."""
    run = on_board(record([thread([9_000])])).run
    recorded, not_recorded = (
        kind_of(run, Campaign(target="virtual:pc", record=record))
        for record in (True, False)
    )

    assert host_time([recorded], [Took(not_recorded, 4.0)], at_once=1) is None


@pytest.mark.parametrize("kinds", [[IDLE], []])
def test_without_a_boot_there_is_no_estimate(kinds: list[Kind]) -> None:
    assert host_time(kinds, [], at_once=1) is None


def test_a_boot_is_of_its_board_load_and_whole_virtual_time() -> None:
    run = replace(
        on_board(record([thread([9_000])])).run, load="os", duration_ns=2 * SECOND_NS
    )
    campaign = Campaign(target="virtual:pc", settle_ns=3 * SECOND_NS)
    request = request_for(run, campaign, get_board("pc"), ())
    booted = Booted({}, {}, "a" * 64, "b" * 64, 7.5, None)

    assert kind_of(run, campaign) == Kind("pc", "os", 6 * SECOND_NS)
    assert took(request, booted) == Took(Kind("pc", "os", 6 * SECOND_NS), 7.5)
