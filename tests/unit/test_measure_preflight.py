"""A campaign that a machine cannot measure is refused before anything is done."""

import shutil
from pathlib import Path
from shutil import _ntuple_diskusage

import pytest

from fakes import targets
from fakes.faketarget import FakeTarget
from rtscope.contract import AgentError
from rtscope.host.errors import TargetError, UsageError
from rtscope.measure import preflight
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options
from rtscope.measure.plan import Plan, make_plan

REFUSED = AgentError("no right", cause="capability", remedy="run it as root")


def asked(**options: str) -> tuple[Campaign, Plan]:
    campaign = with_options(Campaign(), Options(**options))  # type: ignore[arg-type]
    return campaign, make_plan(campaign)


def tries(target: FakeTarget) -> list[str]:
    return [line for line in target.log if line.startswith("root measure")]


def test_a_machine_that_can_measure_is_tried_once_for_each_kind_of_run() -> None:
    target = targets.target()
    campaign, plan = asked(load="idle,cpu,memory", policy="fifo,rr", duration="10m")
    preflight.refuse_impossible(target, campaign, plan)

    assert len(tries(target)) == 2
    for line in tries(target):
        assert "--duration-ns 10000000 " in line
    assert not any(line.startswith("load") for line in target.log)


def test_a_setting_that_the_machine_lacks_is_tried_too() -> None:
    target = targets.target()
    campaign, plan = asked(load="idle", governor="performance")
    preflight.refuse_impossible(target, campaign, plan)

    (line,) = tries(target)
    assert "--set governor=performance" in line


def test_what_the_agent_refuses_is_refused_with_its_remedy() -> None:
    target = targets.target({"measure": [[REFUSED]]})
    with pytest.raises(TargetError, match="fake: no right; run it as root"):
        preflight.refuse_impossible(target, *asked(load="idle"))


def test_a_full_disk_is_refused_before_a_directory_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight.refuse_full_disk(tmp_path / "not" / "there")
    full = _ntuple_diskusage(1 << 30, (1 << 30) - (5 << 20), 5 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(UsageError, match=f"{tmp_path}: 5 MiB are free"):
        preflight.refuse_full_disk(tmp_path / "not" / "there")
