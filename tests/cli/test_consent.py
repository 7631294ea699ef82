"""Programs that a campaign names are not run unasked, if it may have come by mail."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from rtscope.record.resultdir import create

EVIL = "mail/qemu"
RAN = "ran"

PROGRAMS: list[tuple[dict[str, Any], str]] = [
    ({"target": {"qemu": EVIL}}, f"the program {EVIL} as QEMU"),
    ({"kernel": {"names": ["mail/k.toml"]}}, "the build of the kernel mail/k.toml"),
    ({"target": {"lockfile": "mail/l.json"}}, "QEMU as the lock file mail/l.json name"),
]


def campaign(more: Mapping[str, Any]) -> dict[str, Any]:
    target = {"address": "virtual:pc", **more.get("target", {})}
    run = {"load": ["idle"], "duration": ["1s"]}
    return {**more, "target": target, "run": [run]}


@pytest.fixture
def mail(here: Path) -> Path:
    """A directory with a program that leaves a trace."""
    (here / "mail").mkdir()
    (here / EVIL).write_text(f"#!/bin/sh\ntouch {here / RAN}\nexit 1\n")
    (here / EVIL).chmod(0o755)
    return here / "mail"


@pytest.mark.parametrize(("more", "told"), PROGRAMS)
def test_a_campaign_runs_no_program_that_it_names(
    rtscope: Rtscope, mail: Path, more: dict[str, Any], told: str
) -> None:
    create(mail, campaign(more), command=(), rtscope="0")

    said = rtscope("run", "--resume", "mail")

    assert (said.status, said.out) == (2, "")
    assert f"this campaign runs {told}" in said.err
    assert "add --yes" in said.err
    assert not Path(RAN).exists()


def test_with_yes_it_does(rtscope: Rtscope, mail: Path) -> None:
    create(mail, campaign({"target": {"qemu": EVIL}}), command=(), rtscope="0")

    rtscope("run", "--resume", "mail", "--yes")

    assert Path(RAN).exists()


def test_with_yes_a_sweep_does(rtscope: Rtscope, mail: Path) -> None:
    write_sweep(mail, {"target": {"qemu": EVIL}})

    rtscope("sweep", "--resume", "mail", "--yes")

    assert Path(RAN).exists()


@pytest.mark.parametrize(("more", "told"), PROGRAMS)
def test_a_sweep_runs_no_program_that_it_names(
    rtscope: Rtscope, mail: Path, more: dict[str, Any], told: str
) -> None:
    write_sweep(mail, more)

    said = rtscope("sweep", "--resume", "mail")

    assert (said.status, said.out) == (2, "")
    assert f"this campaign runs {told}" in said.err
    assert not Path(RAN).exists()


def test_a_sweep_of_kernels_that_come_with_rtscope_asks_nothing(
    rtscope: Rtscope, mail: Path, sweep_board: FakeBoard
) -> None:
    write_sweep(mail, {"kernel": {"names": ["debian-6.12-rt"]}})

    assert "add --yes" not in rtscope("sweep", "--resume", "mail").err


def write_sweep(folder: Path, more: Mapping[str, Any]) -> None:
    base = campaign(more)
    level = {"name": "off", "kernel": {"append": "nohz=off"}}
    axes = [{"name": "tick", "level": [level]}]
    document = {"schema": 1, "command": [], "sweep": {"base": base, "axis": axes}}
    (folder / "sweep.json").write_text(json.dumps(document))
