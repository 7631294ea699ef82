"""`rtscope kernel`, as typed: on a tree that builds in no time."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fakes.commandline import Rtscope
from fakes.fakelinux import make_programs, make_recipe
from rtscope.boards.kernels import sourcekernel
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import Part
from rtscope.host.errors import KernelError

RT = "CONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n"
PATCH = """\
Subject: [PATCH] init: Return one

--- a/init/main.c
+++ b/init/main.c
@@ -1,4 +1,4 @@
 int main(void)
 {
-\treturn 0;
+\treturn 1;
 }
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", make_programs(tmp_path / "bin"))


def test_list_has_every_recipe_and_says_that_none_is_built(rtscope: Rtscope) -> None:
    rows = json.loads(rtscope("kernel", "list", "--json").out)

    assert {"jh7110-6.12-rt", "jh7110-6.12-rt-board"} <= {row["name"] for row in rows}
    assert {row["kernel_digest"] for row in rows} == {None}
    assert "jh7110-7.3-rt" in rtscope("kernel", "list").out


def test_show_says_what_a_kernel_is_made_of(rtscope: Rtscope) -> None:
    said = rtscope("kernel", "show", "jh7110-6.1-rt")

    assert "source_package linux 6.1.176-1 of bookworm" in said.out
    assert "debian/patches-rt, riscv-6.1-rt" in said.out


@pytest.mark.slow
def test_a_built_kernel_is_verified_by_its_name_and_shown_by_it(
    rtscope: Rtscope, here: Path, tmp_path: Path
) -> None:
    make_recipe(here, RT)
    rtscope("kernel", "build", "./my.toml")

    said = rtscope("kernel", "verify", "./my.toml")

    assert said.out.startswith("./my.toml: ")
    assert f"{tmp_path}/rtscope/parts" not in said.out
    # The image of the fake tree is read as the text that it is, which is another one.
    against = rtscope("kernel", "verify", "./my.toml", "--against", "./my.toml")
    assert "running kernel: not ./my.toml: another configuration" in against.out


def test_what_a_users_fragment_switches_off_and_is_not_there_is_told(
    rtscope: Rtscope, here: Path
) -> None:
    make_recipe(here, f"{RT}# CONFIG_SPM is not set\n")

    said = rtscope("kernel", "config", "./my.toml")

    assert said.status == 0
    assert "./wanted.config: this source has no SPM to switch off" in said.err


def test_what_a_later_fragment_takes_back_is_told(rtscope: Rtscope, here: Path) -> None:
    recipe = make_recipe(here, f"{RT}CONFIG_SMP=y\n")
    (here / "later.config").write_text("# CONFIG_PREEMPT_RT is not set\n")
    text = recipe.read_text().replace('"./wanted.config"', '"rt", "./wanted.config"')
    recipe.write_text(
        text.replace('wanted.config"', 'wanted.config", "./later.config"')
    )

    said = rtscope("kernel", "config", "./my.toml")

    assert said.status == 0
    assert "CONFIG_PREEMPT_RT" not in said.out
    told = [line for line in said.err.splitlines() if "overrides" in line]
    assert told == [
        "rtscope: ./later.config sets PREEMPT_RT=n and overrides y, set by "
        "./wanted.config"
    ]


def test_two_preemption_models_of_ours_are_told_and_what_boards_change_is_not(
    rtscope: Rtscope, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(here, RT)
    ours = {
        "rt": "CONFIG_SMP=y\nCONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n",
        "preempt": "# CONFIG_SMP is not set\n# CONFIG_PREEMPT_RT is not set\n",
    }
    monkeypatch.setattr("rtscope.boards.kernels.recipe.our_fragment", ours.__getitem__)
    recipe.write_text(
        recipe.read_text().replace('"./wanted.config"', '"rt", "preempt"')
    )

    said = rtscope("kernel", "config", "./my.toml")

    assert "preempt sets PREEMPT_RT=n and overrides y, set by rt" in said.err
    assert "SMP" not in said.err


@pytest.mark.slow
def test_build_prints_the_digest_and_package_writes_both_files(
    rtscope: Rtscope, here: Path
) -> None:
    make_recipe(here, RT)

    built = rtscope("kernel", "build", "./my.toml")
    packed = rtscope("kernel", "package", "./my.toml")

    digest = built.out.split()[0]
    assert (built.status, len(digest), packed.status) == (0, 64, 0)
    assert (here / "my-6.1.tar.gz").exists()
    assert (here / f"linux-image-6.1_6.1+rtscope.{digest[:8]}_amd64.deb").exists()


def test_the_archive_that_is_written_is_named_where_no_debian_package_can_be(
    rtscope: Rtscope, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_recipe(here, RT)
    rtscope("kernel", "build", "./my.toml")
    find = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name == "dpkg-deb" else find(name)
    )

    said = rtscope("kernel", "package", "./my.toml")

    assert said.status == 3
    assert (
        "dpkg-deb: install it (apt install dpkg); the archive is complete" in said.err
    )
    assert (here / "my-6.1.tar.gz").exists()


def test_a_built_kernel_is_verified_by_its_recipe(rtscope: Rtscope, here: Path) -> None:
    make_recipe(here, RT)
    rtscope("kernel", "build", "./my.toml")

    said = rtscope("kernel", "verify", "./my.toml", "--json", "--fail-on", "fatal")

    rows = {row["id"]: row for row in json.loads(said.out)["checks"]}
    assert rows["preempt_rt"]["outcome"] == "pass"


@pytest.mark.slow
def test_a_recipe_without_rt_is_verified_as_an_ordinary_kernel(
    rtscope: Rtscope, here: Path
) -> None:
    make_recipe(here, "CONFIG_EXPERT=y\nCONFIG_PREEMPT=y\n")
    rtscope("kernel", "build", "./my.toml")

    said = rtscope("kernel", "verify", "./my.toml", "--json", "--fail-on", "fatal")

    ids = {row["id"] for row in json.loads(said.out)["checks"]}
    assert "preempt_rt" not in ids


def test_what_is_not_built_cannot_be_verified(rtscope: Rtscope, here: Path) -> None:
    make_recipe(here, RT)

    of_recipe = rtscope("kernel", "verify", "./my.toml")
    against = rtscope("kernel", "verify", "--against", "pc-6.12-rt")

    assert (of_recipe.status, against.status) == (2, 2)
    assert "my is not built; build it: rtscope kernel build ./my.toml" in of_recipe.err
    assert "rtscope kernel build pc-6.12-rt" in against.err


@pytest.mark.slow
def test_twins_that_differ_in_preemption_only_are_told_by_the_exit_status(
    rtscope: Rtscope, here: Path
) -> None:
    for name, wanted in (
        ("rt", RT),
        ("std", "CONFIG_EXPERT=y\nCONFIG_PREEMPT=y\n"),
        ("other", "CONFIG_EXPERT=y\nCONFIG_PREEMPT=y\nCONFIG_MODULES=y\n"),
    ):
        (here / name).mkdir()
        make_recipe(here / name, wanted)

    twins = rtscope("kernel", "config", "./rt/my.toml", "--diff", "./std/my.toml")
    strangers = rtscope("kernel", "config", "./rt/my.toml", "--diff", "./other/my.toml")

    assert (twins.status, strangers.status) == (0, 1)
    assert "other differences: nothing" in twins.out
    assert "RT_MUTEXES                   y -> n" in twins.out
    assert (
        "MODULES                      n -> y"
        in strangers.out.split("other differences")[1]
    )


def test_patches_shows_where_a_series_stops_and_that_is_status_1(
    rtscope: Rtscope, here: Path
) -> None:
    (here / "good.patch").write_text(PATCH)
    (here / "bad.patch").write_text(PATCH.replace("return 0", "return 5"))
    make_recipe(here, RT, patches='"./good.patch", "./bad.patch", "./good.patch"')

    said = rtscope("kernel", "patches", "./my.toml")

    assert said.status == 1
    assert "good.patch: applies" in said.out
    assert "bad.patch: REJECTED: init/main.c, hunk 1" in said.out
    assert said.out.count("not tried") == 1


@pytest.mark.slow
def test_results_are_had_as_json(rtscope: Rtscope, here: Path) -> None:
    (here / "good.patch").write_text(PATCH)
    make_recipe(here, RT, patches='"./good.patch"')

    def asked(*words: str) -> Any:
        return json.loads(rtscope("kernel", *words, "--json").out)

    (built,) = asked("build", "./my.toml")
    (series,) = asked("patches", "./my.toml")
    packed = asked("package", "./my.toml")

    assert (built["name"], built["release"], len(built["kernel_digest"])) == (
        *("my", "6.1"),
        64,
    )
    assert series["patches"] == [
        {"name": "good.patch", "subject": "init: Return one", "state": "applies"}
    ]
    assert [Path(one["path"]).stat().st_size for one in packed] == [
        one["bytes"] for one in packed
    ]
    assert asked("config", "./my.toml")["PREEMPT_RT"] == "y"
    differ = asked("config", "./my.toml", "--diff", "./my-board.toml")
    assert differ == {
        "preemption": {},
        "follows": {},
        "other": {"MODULES": ["n", "y"]},
    }


def test_a_slip_in_what_is_compared_with_is_told_before_any_work(
    rtscope: Rtscope, here: Path
) -> None:
    make_recipe(here, RT)

    said = rtscope("kernel", "config", "./my.toml", "--diff", "./mine.toml")

    assert (said.status, said.err) == (
        2,
        "rtscope: cannot read mine.toml: No such file or directory\n",
    )


@pytest.mark.slow
def test_a_kernel_for_the_virtual_board_is_not_packed_for_a_real_one_in_silence(
    rtscope: Rtscope, here: Path
) -> None:
    make_recipe(here, RT)

    virtual = rtscope("kernel", "package", "./my.toml")
    board = rtscope("kernel", "package", "./my-board.toml")

    assert "for the virtual board" in virtual.err
    assert "rtscope kernel package ./my-board.toml" in virtual.err
    assert "for the virtual board" not in board.err


@pytest.mark.parametrize(("option", "upgrade"), [([], False), (["--upgrade"], True)])
def test_a_kernel_can_be_built_of_what_the_archive_has_now(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch, option: list[str], upgrade: bool
) -> None:
    def part(context: BuildContext, _recipe: object) -> Part:
        raise KernelError(f"upgrade is {context.upgrade}")

    monkeypatch.setattr(sourcekernel, "kernel_part", part)

    said = rtscope("kernel", "build", "jh7110-6.12-rt", *option)

    assert said.err == f"rtscope: upgrade is {upgrade}\n"


def test_a_reject_stops_the_build(rtscope: Rtscope, here: Path) -> None:
    (here / "bad.patch").write_text(PATCH.replace("return 0", "return 5"))
    make_recipe(here, RT, patches='"./bad.patch"')

    said = rtscope("kernel", "build", "./my.toml")

    assert (said.status, said.out) == (3, "")
    assert "init/main.c, hunk 1" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("show jh7110-6.12-tr", "did you mean 'jh7110-6.12-rt'?"),
        ("build ./gone.toml", "cannot read gone.toml"),
        ("package pc-6.12 --out ./gone", "gone: no such directory"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_done(
    rtscope: Rtscope, words: str, told: str
) -> None:
    said = rtscope("kernel", *words.split())

    assert said.status == 2
    assert told in said.err
