"""What a board cannot do is known from the campaign and the catalogue alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rtscope.boards.catalogue import board_names
from rtscope.host.errors import UsageError
from rtscope.measure.campaign.file import from_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.verbs.sweep.preflight import refuse_impossible


def campaign(**tables: Mapping[str, Any]) -> Campaign:
    run = {"load": "idle", "duration": "1s", "interval": "1ms", **tables.pop("run", {})}
    target = {"address": "virtual:pc", **tables.pop("target", {})}
    document = {"target": target, "run": [run], **tables}
    return from_dict(document, source="test")


def refused(**cells: Campaign) -> str:
    with pytest.raises(UsageError) as error:
        refuse_impossible(cells, source="a.toml")
    return str(error.value)


def test_what_a_board_can_do_is_not_refused() -> None:
    base = campaign(kernel={"names": ["pc-6.12-rt"], "config": "CONFIG_HZ_100=y"})
    cpus = campaign(run={"cpus": "0-1"}, target={"tuned": "safe"})
    deadline = campaign(run={"policy": "deadline", "load": ["os", "memory"]})

    refuse_impossible({"base": base, "CPUs": cpus, "d": deadline}, source="a.toml")


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        (
            {"target": {"address": "virtual:pcc"}},
            "no such board: 'pcc'; did you mean 'pc'? (boards: "
            f"{', '.join(board_names())})",
        ),
        ({"run": {"cpus": "1-3"}}, "run.cpus: pc has CPUs 0-1, not 2-3"),
        ({"kernel": {"names": ["pc-6.21"]}}, "no kernel 'pc-6.21' for x86_64; did"),
        (
            {"kernel": {"names": ["jh7110-6.12-rt"]}},
            "no kernel 'jh7110-6.12-rt' for x86_64",
        ),
        ({"kernel": {"names": ["./none"]}}, "--kernel none: no such file"),
        (
            {"kernel": {"names": ["debian-6.12"], "config": "CONFIG_HZ_100=y"}},
            "kernel.config: debian-6.12 is not built here",
        ),
        ({"kernel": {"config": "CONFIG_HZ_100=y"}}, "debian-6.12-rt is not built here"),
        ({"kernel": {"append": "a%b"}}, "'a%b': letters, digits"),
        ({"target": {"tuned": "no_such_check"}}, "'no_such_check' is no check"),
        ({"target": {"tuned": "skewed_ticks"}}, "its remedy is no setting"),
        (
            {"target": {"tuned": "rt_safety_net", "rt_throttling": "off"}},
            "change the same setting",
        ),
        ({"target": {"governor": "performance"}}, "target.governor: no virtual board"),
        ({"target": {"lockfile": "none.lock"}}, "cannot read none.lock"),
        ({"target": {"qemu": "./none"}}, "target.qemu none: no such file"),
        (
            {
                "run": {"load": "custom"},
                "campaign": {"command": ["x"], "guest_files": ["none"]},
            },
            "cannot read none: No such file",
        ),
        (
            {"run": {"policy": "deadline", "interval": "50us"}},
            "run.interval: under policy deadline the kernel accepts 100us to",
        ),
        (
            {"run": {"policy": "deadline", "interval": "5s", "duration": "20s"}},
            "run.interval: under policy deadline the kernel accepts 100us to",
        ),
        (
            {
                "run": {"policy": "deadline"},
                "campaign": {"deadline_runtime": "960us"},
            },
            "campaign.deadline_runtime: the kernel grants at most 95 % of an interval",
        ),
        (
            {"run": {"policy": "deadline"}, "campaign": {"deadline_runtime": "1us"}},
            "campaign.deadline_runtime: the kernel accepts 1024 ns or more",
        ),
    ],
)
def test_what_a_board_cannot_do_is_refused_with_the_reason(
    tables: dict[str, Any], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    said = refused(base=campaign(**tables))

    assert said.startswith("a.toml: base: ")
    assert why in said


def test_without_throttling_the_kernel_grants_a_whole_interval() -> None:
    whole = campaign(
        run={"policy": "deadline"},
        campaign={"deadline_runtime": "1ms"},
        target={"rt_throttling": "off"},
    )

    refuse_impossible({"base": whole}, source="a.toml")


def test_all_that_is_wrong_is_in_one_message_with_the_cells() -> None:
    good, cpus = campaign(), campaign(run={"cpus": "7"})
    kernels = {f"k{n}": campaign(kernel={"names": [f"none{n}"]}) for n in range(6)}

    said = refused(base=good, **{"CPUs: a": cpus, "CPUs: b": cpus}, **kernels)

    first, *rest, last = said.splitlines()
    assert first == "a.toml: the board cannot measure these cells:"
    assert rest[0] == (
        "  CPUs: a, CPUs: b: run.cpus: pc has CPUs 0-1, not 7; choose from 0-1"
    )
    assert rest[1].startswith("  k0: no kernel 'none0'")
    assert len(rest) == 5
    assert last == "  and 2 more"


def test_many_cells_with_one_mistake_are_counted() -> None:
    cells = {f"c{n}": campaign(run={"cpus": "7"}) for n in range(9)}

    said = refused(base=campaign(), **cells)

    assert said.startswith("a.toml: c0, c1, c2 and 6 more: run.cpus:")


def test_a_mistake_of_the_base_names_the_base_alone() -> None:
    wrong = campaign(run={"cpus": "7"})

    assert refused(base=wrong, c1=wrong).startswith("a.toml: base: run.cpus:")
