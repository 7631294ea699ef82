"""`rtscope kernel verify`: its exit status, its output, its refusals."""

import json
from pathlib import Path

import pytest

from fakes.commandline import Rtscope

HEAD = "# Automatically generated file; DO NOT EDIT.\n"
RT = HEAD + "".join(
    f"CONFIG_{name}=y\n"
    for name in (
        *("EXPERT", "ARCH_SUPPORTS_RT", "PREEMPT_RT", "PREEMPTION", "PREEMPT_COUNT"),
        *("PREEMPT_RCU", "HIGH_RES_TIMERS", "HZ_PERIODIC"),
    )
)


@pytest.fixture
def config(here: Path) -> Path:
    path = here / "config"
    path.write_text(RT + "CONFIG_CPU_FREQ=y\nCONFIG_CPU_FREQ_DEFAULT_GOV_PERFORMANCE=y")
    return path


def test_a_good_configuration_gives_0(rtscope: Rtscope, config: Path) -> None:
    said = rtscope("kernel", "verify", "--config", config)

    assert said.status == 0, said.out
    assert "0 failed" in said.out


def test_a_failed_check_gives_1_with_its_remedy(rtscope: Rtscope, config: Path) -> None:
    config.write_text(RT)

    said = rtscope("kernel", "verify", "--config", config)

    assert said.status == 1
    assert "FAIL high    CPU frequency scaling: CPU_FREQ=n" in said.out
    assert "build with CONFIG_CPU_FREQ=y" in said.out


def test_fail_on_leaves_lesser_faults_out(rtscope: Rtscope, config: Path) -> None:
    config.write_text(RT)

    said = rtscope("kernel", "verify", "--config", config, "--fail-on", "fatal")

    assert said.status == 0


def test_an_ordinary_kernel_is_only_judged_as_one(
    rtscope: Rtscope, config: Path
) -> None:
    config.write_text(config.read_text().replace("_PREEMPT_RT", "_PREEMPT"))

    asked = ("kernel", "verify", "--config", config)
    assert rtscope(*asked).status == 1
    assert rtscope(*asked, "--ordinary").status == 0


def test_preempt_rt_that_kbuild_would_drop_is_no_pass(
    rtscope: Rtscope, config: Path
) -> None:
    config.write_text(config.read_text().replace("CONFIG_EXPERT=y\n", ""))

    said = rtscope("kernel", "verify", "--config", config)

    assert said.status == 1
    assert "FAIL fatal   prerequisites of PREEMPT_RT: EXPERT=n" in said.out


def test_json_has_stable_ids_and_the_evidence(rtscope: Rtscope, config: Path) -> None:
    said = rtscope("kernel", "verify", "--config", config, "--json")

    document = json.loads(said.out)
    rows = {row["id"]: row for row in document["checks"]}
    assert rows["preempt_rt"]["outcome"] == "pass"
    assert rows["preempt_rt"]["evidence"] == [
        {"path": str(config), "value": "CONFIG_PREEMPT_RT=y"}
    ]
    assert document["kernel"]["preempt_rt"] is True


def test_against_another_configuration_fails(rtscope: Rtscope, config: Path) -> None:
    other = config.with_name("other")
    other.write_text(RT)

    asked = ("kernel", "verify", "--config", config, "--against")
    assert rtscope(*asked, config).status == 0
    said = rtscope(*asked, other)
    assert said.status == 1
    assert "not other: another configuration" in said.out


def test_what_cannot_be_told_is_no_proof(
    rtscope: Rtscope, config: Path, here: Path
) -> None:
    empty = here / "empty"
    empty.mkdir()
    note = here / "note"
    note.write_text("Linux version 6.12.107 (a@b) (gcc) #1 SMP PREEMPT_RT\n")

    nothing = rtscope("kernel", "verify", "--root", empty)
    other = rtscope("kernel", "verify", "--config", config, "--against", note)

    assert (nothing.status, other.status) == (3, 3)
    assert "not proven: PREEMPT_RT: " in nothing.err
    assert "not proven: running kernel: neither note nor the machine" in other.err
    assert rtscope("kernel", "verify", "--root", empty, "--ordinary").status == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--config", "none"), "No such file"),
        (("--image", "empty"), "no kernel image"),
        (("--config", "empty"), "not a kernel configuration"),
        (("--against", "none"), "neither a file nor a recipe"),
        (("--against", "./none"), "No such file"),
        (("--target", "virtual:pc"), "local, ssh:HOST or lab:PLACE"),
        (("--target", "local", "--config", "empty"), "cannot be combined"),
        (("--root", "none"), "no such directory"),
    ],
)
def test_what_is_wrong_is_named(
    rtscope: Rtscope, here: Path, words: tuple[str, ...], complaint: str
) -> None:
    (here / "empty").touch()

    said = rtscope("kernel", "verify", *words)

    assert said.status == 2
    assert complaint in said.err
    assert said.out == ""
