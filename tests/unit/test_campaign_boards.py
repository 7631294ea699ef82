"""What only virtual boards have in a campaign: seeds, kernels and their places."""

from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import SECOND_NS
from fakes.refusals import refused, refused_option
from rtscope.measure.campaign.file import from_dict, to_dict, with_places
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options


@pytest.mark.parametrize(
    ("written", "seeds"),
    [
        (3, (1, 2, 3)),
        ("3", (1, 2, 3)),
        ("1,5, 9", (1, 5, 9)),
        ([5], (5,)),
        ([0, 2**63 - 1], (0, 2**63 - 1)),
    ],
)
def test_seeds_are_a_count_or_a_list(written: object, seeds: tuple[int, ...]) -> None:
    document = {
        "target": {"address": "virtual:pc"},
        "campaign": {"seeds": written},
    }

    assert from_dict(document, source="x").run_seeds == seeds


@pytest.mark.parametrize(
    "written", [0, 1001, "0", "1,x", "1,1", [], [-1], True, "", "²"]
)
def test_other_seeds_are_refused(written: object) -> None:
    document = {
        "target": {"address": "virtual:pc"},
        "campaign": {"seeds": written},
    }

    assert refused(document).startswith("my.toml: [campaign] seeds: ")


def test_a_virtual_board_has_a_seed_and_settles_even_if_nothing_is_said() -> None:
    board = Campaign(target="virtual:pc")

    assert (board.board, board.run_seeds) == ("pc", (1,))
    assert (board.settling_ns, Campaign().settling_ns) == (10 * SECOND_NS, 0)
    assert replace(board, settle_ns=0).settling_ns == 0
    assert replace(board, seed=4).run_seeds == (4,)
    assert Campaign().run_seeds == (None,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": 3}, "--seed: for virtual boards only: a real machine has no random"),
        ({"seeds": "3"}, "--seeds: for virtual boards only: a real machine has"),
        (
            {"qemu": "/q"},
            "--qemu: for virtual boards only: a real machine needs no QEMU",
        ),
        (
            {"lockfile": "l"},
            "--lockfile: for virtual boards only: a real machine uses",
        ),
        (
            {"require_identical": True, "repetitions": 2},
            "--require-identical: for virtual boards only: no two runs of a real",
        ),
        (
            {"require_identical": True, "target": "virtual:pc"},
            "--require-identical: one repetition has no other to be",
        ),
        (
            {"seed": 3, "seeds": "3", "target": "virtual:pc"},
            "--seeds: excludes seed; write one of them",
        ),
    ],
)
def test_what_only_boards_have_is_refused_elsewhere_with_the_reason(
    given: dict[str, object], message: str
) -> None:
    assert refused_option(**given).startswith(message)


def test_an_option_displaces_the_files_seed_and_what_only_its_board_had() -> None:
    board = Campaign(target="virtual:pc", seed=3, qemu="/q", lockfile="/l")

    assert with_options(board, Options(seeds="2")).run_seeds == (1, 2)
    assert with_options(
        with_options(board, Options(seeds="2")), Options(seed=7)
    ).run_seeds == (7,)
    assert with_options(board, Options(target="local")) == Campaign()


def test_paths_of_a_campaign_are_those_of_its_own_place() -> None:
    campaign = Campaign(
        target="virtual:pc",
        kernels=("debian-6.12", "./bzImage", "/boot/vmlinuz"),
        qemu="bin/qemu",
        lockfile="lock.json",
    )

    placed = with_places(campaign, Path("/lab"))

    assert placed.kernels == ("debian-6.12", "/lab/bzImage", "/boot/vmlinuz")
    assert (placed.qemu, placed.lockfile) == ("/lab/bin/qemu", "/lab/lock.json")
    assert with_places(placed, Path("/other")) == placed


def test_parameters_of_the_kernel_are_a_text_or_a_list_of_words() -> None:
    target = {"address": "virtual:pc"}

    for written in ("isolcpus=1,2  nohz=off", ["isolcpus=1,2", "nohz=off"]):
        campaign = from_dict(
            {"target": target, "kernel": {"append": written}}, source="x"
        )
        assert campaign.append == ("isolcpus=1,2", "nohz=off")
        assert from_dict(to_dict(campaign), source="x") == campaign
    board = Campaign(target="virtual:pc")
    assert with_options(board, Options(append="quiet a=b,c")).append == (
        "quiet",
        "a=b,c",
    )
    assert "of a real machine, change its boot loader" in refused(
        {"kernel": {"append": "quiet"}}
    )
    assert refused({"target": target, "kernel": {"append": 7}}).startswith(
        "my.toml: [kernel] append: "
    )
