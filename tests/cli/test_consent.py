"""Programs that a campaign names are not run unasked, if it may have come by mail."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.sweepfile import one_line
from rtscope.host.errors import KernelError
from rtscope.record.directory.records import create
from rtscope.verbs.bisect import history
from rtscope.verbs.bisect.kernels import Bench

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
def no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a cache of its own, and end a search that goes on where it would build."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(Bench, "check", _stop)
    monkeypatch.setattr(history, "open_history", _stop)


def _stop(*_: object) -> None:
    raise KernelError("reached the build")


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
    create(mail, campaign(more), command=())

    said = rtscope("run", "--resume", "mail")

    assert (said.status, said.out) == (2, "")
    assert f"this campaign runs {told}" in said.err
    assert "add --yes" in said.err
    assert not Path(RAN).exists()


def test_with_yes_it_does(rtscope: Rtscope, mail: Path) -> None:
    create(mail, campaign({"target": {"qemu": EVIL}}), command=())

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


SEARCHES: list[tuple[dict[str, str], str]] = [
    (
        {"tree": "mail/linux", "good": "a", "bad": "b", "recipe": "pc-6.12-rt"},
        "the build of commits of the tree mail/linux, by its Makefiles",
    ),
    (
        {"patches": "mail/series", "recipe": "jh7110-6.12-rt"},
        "the build of a kernel with the patches mail/series",
    ),
    (
        {"good": "pc-6.12-rt", "bad": "mail/k.toml"},
        "the build of the kernel mail/k.toml",
    ),
    (
        {"good": "pc-6.12-rt", "bad": "mail/bad.config", "recipe": "pc-6.12-rt"},
        "the build of a kernel with the configuration mail/bad.config",
    ),
]


@pytest.mark.usefixtures("no_build")
@pytest.mark.parametrize(("asked", "told"), SEARCHES)
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_search_runs_and_builds_nothing_that_it_names(
    rtscope: Rtscope,
    mail: Path,
    asked: dict[str, str],
    told: str,
    more: tuple[str, ...],
) -> None:
    (mail / "bad.config").write_text("CONFIG_EXPERT=y\n")
    write_search(mail, asked)

    said = rtscope("bisect", "--resume", "mail", *more)

    assert (said.status, said.out) == (2, "")
    assert f"this search runs {told}; if you trust it, add --yes" in one_line(said.err)


@pytest.mark.usefixtures("no_build")
@pytest.mark.parametrize("yes", [(), ("--yes",)])
def test_git_runs_no_program_of_a_mailed_tree_with_yes_either(
    rtscope: Rtscope,
    mail: Path,
    monkeypatch: pytest.MonkeyPatch,
    yes: tuple[str, ...],
) -> None:
    monkeypatch.setattr(Bench, "check", lambda _: None)
    make_tree(mail / "linux", runs=mail.parent / EVIL)
    tree = {"tree": "mail/linux", "good": "HEAD~1", "bad": "HEAD"}
    write_search(mail, {**tree, "recipe": "pc-6.12-rt"})

    rtscope("bisect", "--resume", "mail", "--dry-run", *yes)

    assert not Path(RAN).exists()


@pytest.mark.usefixtures("no_build")
def test_a_search_of_what_comes_with_rtscope_asks_nothing(
    rtscope: Rtscope, mail: Path
) -> None:
    write_search(mail, {"patches": "riscv-6.1-rt", "recipe": "jh7110-6.1-rt"})

    assert "reached the build" in rtscope("bisect", "--resume", "mail").err


def make_tree(tree: Path, *, runs: Path) -> None:
    """Make a tree of two commits, in which `git status` runs a program."""
    tree.mkdir()
    (tree / "Kconfig").write_text("")

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", tree, *who, *words], check=True)

    git("init", "--quiet")
    git("add", "Kconfig")
    for message in ("one", "two"):
        git("commit", "--quiet", "--allow-empty", "-m", message)
    git("config", "core.fsmonitor", str(runs))


def write_search(folder: Path, asked: Mapping[str, str]) -> None:
    options = {"tree": None, "patches": None, "recipe": None, **asked}
    document = {"schema": 1, "command": [], "asked": options}
    (folder / "bisect.json").write_text(json.dumps(document))


def write_sweep(folder: Path, more: Mapping[str, Any]) -> None:
    base = campaign(more)
    level = {"name": "off", "kernel": {"append": "nohz=off"}}
    axes = [{"name": "tick", "level": [level]}]
    document = {"schema": 1, "command": [], "sweep": {"base": base, "axis": axes}}
    (folder / "sweep.json").write_text(json.dumps(document))
