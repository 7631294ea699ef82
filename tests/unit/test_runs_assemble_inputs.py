"""What a virtual result depends on is digested; what it does not depend on is not."""

from dataclasses import replace
from typing import Any

import pytest

from rtscope.boards.catalogue import Board, get_board
from rtscope.boards.runs.assemble import board_digest, campaign_digest
from rtscope.measure.campaign.model import Campaign
from rtscope.record.model import InputDigests, Run

BOARD = get_board("pc")

RUN = Run(
    id="001-idle",
    target="virtual:pc",
    kernel="debian-6.12-rt",
    load="idle",
    repetition=1,
    policy="fifo",
    priority=99,
    interval_ns=1_000_000,
    duration_ns=2_000_000_000,
    cpus=None,
    seed=1,
)

INPUTS = InputDigests(
    kernel="k", initrd="i", qemu="q", plugin="p", board="b", campaign="c", seed=1
)


@pytest.mark.parametrize(
    "other",
    [
        {"quantum_instructions": 2501},
        {"shift": 2},
        {"memory": "2G"},
        {"cpus": 3},
        {"cpu": "max"},
        {"machine": "q35"},
        {"append": ("quiet",)},
        {"console": "ttyS1"},
        {"results_devices": ()},
    ],
)
def test_whatever_of_a_board_decides_a_result_is_in_its_digest(
    other: dict[str, Any],
) -> None:
    changed: Board = replace(BOARD, **other)

    assert board_digest(changed) != board_digest(BOARD)


def test_what_is_only_said_of_a_board_is_not() -> None:
    described = replace(BOARD, title="x", models=("y",), leaves_out=(), kernels=())

    assert board_digest(described) == board_digest(BOARD)


@pytest.mark.parametrize(
    "other",
    [
        {"load": "cpu"},
        {"interval_ns": 2_000_000},
        {"duration_ns": 1_000_000_000},
        {"policy": "rr"},
        {"priority": 1},
        {"cpus": (0,)},
    ],
)
def test_whatever_is_asked_of_a_run_is_in_the_campaigns_digest(
    other: dict[str, Any],
) -> None:
    campaign = Campaign(target="virtual:pc")

    changed = campaign_digest(replace(RUN, **other), campaign)

    assert changed != campaign_digest(RUN, campaign)


@pytest.mark.parametrize(
    "other", [{"settle_ns": 1}, {"warmup_ns": 1}, {"worst": 1}, {"governor": "x"}]
)
def test_so_is_what_the_campaign_asks_of_every_run(other: dict[str, Any]) -> None:
    campaign = Campaign(target="virtual:pc")

    changed = campaign_digest(RUN, replace(campaign, **other))

    assert changed != campaign_digest(RUN, campaign)


def test_neither_number_nor_repetition_nor_other_runs_are() -> None:
    campaign = Campaign(target="virtual:pc")
    again = replace(RUN, id="007-idle-r2", repetition=2)
    larger = replace(campaign, name="x", deadline_ns=1, seeds=(1, 2))

    assert campaign_digest(again, larger) == campaign_digest(RUN, campaign)


@pytest.mark.parametrize("name", InputDigests.__slots__)
def test_every_input_is_in_the_digest_of_all(name: str) -> None:
    value: Any = 2 if name == "seed" else "other"
    other = replace(INPUTS, **{name: value})

    assert other.digest != INPUTS.digest
    assert len(INPUTS.digest) == 64


def test_explain_is_no_input_of_a_board() -> None:
    campaign = Campaign(target="virtual:pc")

    explained = campaign_digest(RUN, replace(campaign, explain=True))

    assert explained == campaign_digest(RUN, campaign)
