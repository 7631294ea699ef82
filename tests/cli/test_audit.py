"""`rtscope audit`: its exit status, its output, its refusals, its captures."""

import json
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.trees import GUEST, VISIONFIVE, write_tree

QUICK = ("--observe", "0")


def test_a_tree_is_judged_worst_first(rtscope: Rtscope, here: Path) -> None:
    write_tree(here / "guest", GUEST)

    brief = rtscope("audit", "--root", "guest")
    said = rtscope("audit", "--root", "guest", "-v")

    assert brief.status == 1
    assert len(brief.out.splitlines()) <= 40
    assert brief.out.count("→") > 3
    assert said.status == 1
    assert said.out.startswith("guest: Linux 6.18.44 (not PREEMPT_RT: none)\n")
    assert said.out.index("FAIL fatal") < said.out.index("FAIL high")
    assert "n/a   governor of every CPU" in said.out
    assert "unknown" in said.out


def test_a_directory_that_is_no_system_is_no_pass(rtscope: Rtscope, here: Path) -> None:
    (here / "empty").mkdir()

    said = rtscope("audit", "--root", "empty")

    assert said.status == 3
    assert "empty: no check has an answer" in " ".join(said.err.split())


def test_fail_on_decides_the_exit_status(rtscope: Rtscope, here: Path) -> None:
    write_tree(here / "board", VISIONFIVE)

    assert rtscope("audit", "--root", "board").status == 0
    assert rtscope("audit", "--root", "board", "--fail-on", "medium").status == 1


def test_the_profile_decides_what_is_asked(rtscope: Rtscope, here: Path) -> None:
    write_tree(here / "board", VISIONFIVE)

    said = rtscope("audit", "--root", "board", "--profile", "polling", "--json")

    rows = {row["id"]: row for row in json.loads(said.out)["checks"]}
    assert rows["rt_throttling"]["outcome"] == "fail"
    assert rows["isolated_cpus"]["severity"] == "high"
    assert said.status == 1


def test_a_configuration_alone_is_asked_what_it_can_tell(
    rtscope: Rtscope, here: Path
) -> None:
    head = "# Automatically generated file; DO NOT EDIT.\n"
    settings = "CONFIG_PREEMPT_RT=y\nCONFIG_RT_GROUP_SCHED=y\n"
    (here / "config").write_text(head + settings)

    said = rtscope("audit", "--config", "config", "--json")

    rows = {row["id"]: row for row in json.loads(said.out)["checks"]}
    assert rows["preempt_rt"]["outcome"] == "pass"
    assert rows["rt_group_sched"]["outcome"] == "fail"
    assert "watchdog" not in rows


@pytest.mark.slow
def test_this_machine_is_captured_and_judged_again(
    rtscope: Rtscope, here: Path
) -> None:
    first = rtscope("audit", *QUICK, "--json", "--capture", "machine.tar.gz")
    again = rtscope("audit", "--root", "machine.tar.gz", "--json")

    assert first.status in (0, 1)
    assert "rtscope: wrote machine.tar.gz" in first.err
    assert "redacted:" in first.err
    assert again.status == first.status
    before, after = json.loads(first.out), json.loads(again.out)
    assert after["summary"] == before["summary"]
    assert (here / "machine.tar.gz").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--root", "nowhere"), "nowhere: no such directory or archive"),
        (("--root", "junk"), "junk: not a capture, or damaged"),
        (("--root", "junk", "--config", "junk"), "cannot be combined"),
        (("--root", "junk", "--capture", "x"), "cannot be combined"),
        (("--target", "pc"), "local, ssh:HOST, lab:PLACE or virtual:BOARD"),
        (("--target", "virtual:pd"), "no such board: 'pd' (boards: "),
        (
            ("--target", "virtual:pc", "--append", "a;b"),
            "--append: 'a;b': letters, digits and",
        ),
        (("--append", "isolcpus=1"), "add --target virtual:BOARD"),
        (("--target", "local", "--kernel", "x"), "add --target virtual:BOARD"),
        (("--observe", "-1"), "--observe -1: write 0 to 60 seconds"),
        (("--cpus", "x"), "not a CPU list"),
        ((*QUICK, "--cpus", "4095"), "--cpus: CPU 4095 is not online"),
    ],
)
def test_what_cannot_be_is_refused(
    rtscope: Rtscope, here: Path, words: tuple[str, ...], complaint: str
) -> None:
    (here / "junk").write_text("hello")

    said = rtscope("audit", *words)

    assert said.status == 2
    assert complaint in said.err
