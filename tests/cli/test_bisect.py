"""`rtscope bisect`, as typed: trees that build in no time, boards that do not boot."""

import contextlib
import json
import re
import shutil
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.fakelinux import MAIN, make_programs, make_recipe
from fakes.searched import Measured, git
from pages.jsonkeys import keys_without_words
from rtscope.host.errors import BoardError
from rtscope.record.directory.place import hold
from rtscope.verbs.bisect import bisect
from rtscope.verbs.bisect.kernels import workplace

RT = "CONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n"
BISECT = ("bisect", "--tree", "linux", "--good", "start", "--recipe", "./my.toml")


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", make_programs(tmp_path / "bin"))
    monkeypatch.setattr(bisect, "_sentence", lambda path, seed, _: f"because of {seed}")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Boards on which kernels are late that return 41 or more."""

    def late(image: str) -> bool:
        found = re.search(r"return (\d+)", image)
        return found is not None and int(found[1]) > 40

    made = Measured(late)
    made.install(monkeypatch)
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where recipe and repository of these tests are kept once they are made."""
    return tmp_path_factory.mktemp("made") / "here"


@pytest.fixture
def history(here: Path, made: Path) -> list[str]:
    """Eight commits after a first one, from 37 on; each changes the image."""
    if made.exists():
        shutil.copytree(made, here, symlinks=True, dirs_exist_ok=True)
    else:
        _make_history(here)
        shutil.copytree(here, made, symlinks=True)
    return git("rev-list", "--reverse", "HEAD").split()


def _make_history(here: Path) -> None:
    make_recipe(here, RT)
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "-m", "start")
    git("tag", "start")
    for number in range(37, 45):
        text = MAIN.replace("return 0", f"return {number}")
        (here / "linux/init/main.c").write_text(text)
        git("commit", "--quiet", "-am", f"init: Return {number}")


@pytest.mark.slow
def test_the_first_bad_commit_is_found_with_real_checkouts_and_builds(
    rtscope: Rtscope, history: list[str], measured: Measured, tmp_path: Path
) -> None:
    said = rtscope(*BISECT, "--bad", "HEAD", "--out", "out", "--json")

    assert said.status == 0
    found = json.loads(said.out)
    assert keys_without_words(found, "rtscope bisect --json") == []
    assert found["located"]["changes"] == [
        {"name": history[5], "title": "init: Return 41"}
    ]
    assert found["builds"] <= 6
    assert found["boots"] == 3 * found["builds"] == measured.boots
    assert (found["figure"], found["unit"]) == ("max", "ns")
    assert found["after"]["explanation"] == "because of 3"
    assert git("status", "--porcelain") == ""
    assert not list((tmp_path / "rtscope/bisect").iterdir())


@pytest.mark.slow
def test_a_kernel_on_which_the_load_dies_says_nothing_and_is_skipped(
    rtscope: Rtscope, history: list[str], measured: Measured
) -> None:
    measured.died = lambda image: "return 41" in image

    said = rtscope(*BISECT, "--bad", "HEAD", "--out", "out", "--json")

    assert said.status == 4
    found = json.loads(said.out)
    (skipped,) = found["skipped"]
    assert skipped["name"] == history[5]
    assert skipped["why"].endswith("the load ended before the measurement did")
    assert not found["found"]
    names = [one["name"] for one in found["located"]["changes"]]
    assert names == history[5:7]


@pytest.mark.slow
def test_the_terminal_has_the_change_the_figures_and_both_explanations(
    rtscope: Rtscope, history: list[str], measured: Measured
) -> None:
    said = rtscope(*BISECT, "--bad", "HEAD", "--out", "out")

    assert said.status == 0
    assert f"{history[5][:12]} is the first bad commit: init: Return 41" in said.out
    assert "max under idle, virtual time, µs" in said.out
    assert f"before the change ({history[4][:12]})" in said.out
    assert said.out.count("because of 3") == 2
    assert "8 commits searched: 5 kernels built, 15 boots, 0 skipped" in said.out
    assert len(said.out.splitlines()) <= 22


@pytest.mark.slow
def test_a_change_without_effect_is_called_so_and_ends_with_a_status_of_its_own(
    rtscope: Rtscope, history: list[str], measured: Measured
) -> None:
    said = rtscope(*BISECT, "--bad", "HEAD~5", "--out", "out")

    assert said.status == 4
    assert "good and bad do not differ by more than the margin" in said.out
    assert "3 commits searched: 2 kernels built, 6 boots, 0 skipped" in said.out
    assert measured.boots == 6
    again = rtscope("bisect", "--resume", "out", "--yes")
    assert (again.status, again.out, measured.boots) == (4, said.out, 6)


@pytest.mark.slow
def test_an_interrupted_search_goes_on_without_building_again(
    rtscope: Rtscope,
    history: list[str],
    measured: Measured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, built = measured.late, list[str]()

    def interrupts(image: str) -> bool:
        built.append(image)
        if len(built) == 8:
            raise KeyboardInterrupt
        return late(image)

    measured.late = interrupts
    first = rtscope(*BISECT, "--bad", "HEAD", "--out", "out")
    measured.late = late
    boots = measured.boots
    second = rtscope("bisect", "--resume", "out", "--yes", "--json")

    assert first.status == 130
    assert "to continue: rtscope bisect --resume out" in first.err
    assert second.status == 0
    assert json.loads(second.out)["located"]["changes"][0]["name"] == history[5]
    # Two kernels are known when the third is interrupted.
    assert measured.boots - boots == 9


@pytest.mark.slow
def test_a_commit_that_does_not_build_is_skipped_and_named(
    rtscope: Rtscope, history: list[str], measured: Measured, here: Path
) -> None:
    git("checkout", "--quiet", history[3])
    (here / "linux/init/main.c").write_text("#error not finished\n")
    git("commit", "--quiet", "-am", "init: Break it")
    git("cherry-pick", "-X", "theirs", f"{history[3]}..{history[8]}")

    said = rtscope(*BISECT, "--bad", "HEAD", "--out", "out")

    assert said.status == 0
    assert "is the first bad commit: init: Return 41" in said.out


def test_the_plan_says_what_it_takes_and_builds_nothing(
    rtscope: Rtscope, history: list[str], measured: Measured, here: Path
) -> None:
    said = rtscope(*BISECT, "--bad", "HEAD", "--dry-run")

    assert said.status == 0
    words = " ".join(said.err.split())
    assert "8 commits of linux, start to HEAD: about 5 kernels to build" in words
    assert "and 15 boots" in words
    assert measured.boots == 0
    assert sorted(path.name for path in here.glob("rtscope-*")) == []


@pytest.mark.slow
def test_a_search_goes_on_with_the_commits_that_it_was_started_with(
    rtscope: Rtscope, history: list[str], measured: Measured, here: Path
) -> None:
    rtscope(*BISECT, "--bad", "HEAD", "--out", "out")
    (here / "linux/init/main.c").write_text(MAIN.replace("return 0", "return 99"))
    git("commit", "--quiet", "-am", "init: Return 99")
    (here / "HEAD").mkdir()  # a name of a commit, and of a folder

    said = rtscope("bisect", "--resume", "out", "--yes", "--json")

    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert (found["candidates"], found["bad"]["name"]) == (8, history[8][:12])


def test_one_seed_needs_a_margin_and_idle_does_nothing(
    rtscope: Rtscope, history: list[str], measured: Measured
) -> None:
    alone = rtscope(*BISECT, "--bad", "HEAD", "--seeds", "1")
    idle = rtscope(*BISECT, "--bad", "HEAD", "--figure", "operations/s")

    assert (alone.status, idle.status) == (2, 2)
    assert "one seed says nothing of" in alone.err
    assert "the load idle does nothing" in idle.err


# --- a series of patches ----------------------------------------------------------


def patch(number: int) -> str:
    return (
        f"Subject: [PATCH] init: Return {number}\n\n--- a/init/main.c\n"
        "+++ b/init/main.c\n@@ -1,4 +1,4 @@\n int main(void)\n {\n"
        f"-\treturn {number - 1};\n+\treturn {number};\n }}\n"
    )


@pytest.fixture
def series(here: Path) -> Path:
    """Ten patches; the sixth, the 41st of all, is the cause."""
    make_recipe(here, RT)
    text = MAIN.replace("return 0", "return 35")
    (here / "linux/init/main.c").write_text(text)
    folder = here / "patches"
    folder.mkdir()
    names = [f"{number:04}-return.patch" for number in range(36, 46)]
    (folder / "series").write_text("\n".join(names) + "\n")
    for number, name in enumerate(names, 36):
        (folder / name).write_text(patch(number))
    return folder


@pytest.mark.slow
def test_one_patch_of_a_series_is_found(
    rtscope: Rtscope, series: Path, measured: Measured
) -> None:
    said = rtscope(
        *("bisect", "--patches", "./patches", "--recipe", "./my.toml"),
        *("--out", "out", "--json"),
    )

    assert said.status == 0
    found = json.loads(said.out)
    assert found["located"]["changes"] == [
        {"name": "0041-return.patch", "title": "init: Return 41"}
    ]
    assert found["before"]["name"] == "5 patches"
    assert found["builds"] <= 7


def test_the_ends_of_a_series_are_numbers_or_names(
    rtscope: Rtscope, series: Path, measured: Measured
) -> None:
    search = ("bisect", "--patches", "./patches", "--recipe", "./my.toml")
    said = rtscope(*search, "--good", "4", "--bad", "0042-return.patch", "--dry-run")
    wrong = rtscope(*search, "--good", "11")

    assert "3 patches of" in said.err
    assert wrong.status == 2
    assert "has 10 patches; write how many are applied, 0 to 10" in wrong.err


@pytest.mark.slow
def test_a_patch_that_does_not_apply_is_named(
    rtscope: Rtscope, series: Path, measured: Measured
) -> None:
    (series / "0042-return.patch").write_text(patch(9))

    said = rtscope("bisect", "--patches", "./patches", "--recipe", "./my.toml")

    assert said.status == 3
    assert "patch 7 of 10 does not apply: 0042-return.patch" in said.err


# --- settings ---------------------------------------------------------------------


SETTINGS = (
    *("bisect", "--good", "good.config", "--bad", "bad.config"),
    *("--recipe", "./my.toml", "--out", "out", "--json"),
)


@pytest.fixture
def configurations(here: Path) -> Path:
    """Two configurations that differ in eight settings."""
    make_recipe(here, RT)
    names = [f"DEBUG_{number:03}" for number in range(8)]
    kconfig = here / "linux/Kconfig"
    more = "".join(f'\nconfig {name}\n\tbool "{name}"\n' for name in names)
    kconfig.write_text(kconfig.read_text() + more)
    common = f"{RT}CONFIG_SMP=y\n"
    (here / "good.config").write_text(common)
    on = "".join(f"CONFIG_{name}=y\n" for name in names)
    (here / "bad.config").write_text(common + on)
    return here


@pytest.fixture
def selecting(configurations: Path) -> Path:
    """Configurations of which DEBUG_005 selects DEBUG_001."""
    kconfig = configurations / "linux/Kconfig"
    more = '\nconfig DEBUG_005\n\tbool "DEBUG_005"\n\tselect DEBUG_001\n'
    kconfig.write_text(kconfig.read_text() + more)
    return configurations


@pytest.mark.slow
def test_one_setting_of_two_configurations_is_found(
    rtscope: Rtscope, configurations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = Measured(lambda image: "CONFIG_DEBUG_005=y" in image)
    boards.install(monkeypatch)

    said = rtscope(*SETTINGS)

    assert said.status == 0
    found = json.loads(said.out)
    assert found["candidates"] == 8
    assert found["located"]["changes"] == [{"name": "DEBUG_005=y", "title": "n"}]
    assert found["builds"] <= 12
    assert found["boots"] == 3 * found["builds"]


@pytest.mark.slow
def test_what_kconfig_changes_with_a_setting_is_shown_without_it(
    rtscope: Rtscope, selecting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Measured(lambda image: "CONFIG_DEBUG_005=y" in image).install(monkeypatch)

    found = json.loads(rtscope(*SETTINGS).out)
    text = rtscope(*SETTINGS[:-3], "--out", "again").out

    assert found["located"]["changes"] == [{"name": "DEBUG_005=y", "title": "n"}]
    assert found["located"]["along"] == [{"name": "DEBUG_001=y", "title": "n"}]
    assert found["without"]["name"] == "DEBUG_001"
    assert (found["share"], found["share_without"]) == (1, 0)
    assert (
        "DEBUG_005=y (was n) makes the difference, with what Kconfig changes with it "
        "Kconfig changes with it: DEBUG_001=y (was n). By itself it makes nothing of "
        "the difference between good and bad, all together 100%."
    ) in " ".join(text.split())


@pytest.mark.slow
def test_what_kbuild_does_not_make_by_itself_has_no_part_of_its_own(
    rtscope: Rtscope, selecting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody can choose DEBUG_001 without what selects it.
    resolve = selecting / "linux/scripts/resolve.sh"
    resolve.write_text(
        resolve.read_text()
        + "\ngrep -q '^CONFIG_DEBUG_005=y' $1 || sed -i '/^CONFIG_DEBUG_001=/d' $1\n"
    )
    bad = selecting / "bad.config"
    Measured(lambda image: "CONFIG_DEBUG_005=y" in image).install(monkeypatch)

    found = json.loads(rtscope(*SETTINGS).out)

    assert "CONFIG_DEBUG_001=y" in bad.read_text()
    assert found["located"]["along"] == [{"name": "DEBUG_001=y", "title": "n"}]
    assert (found["without"], found["share_without"]) == (None, None)


@pytest.mark.slow
def test_two_settings_that_work_only_together_are_shown_with_their_part(
    rtscope: Rtscope, selecting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ("CONFIG_DEBUG_005=y", "CONFIG_DEBUG_007=y")
    Measured(lambda image: all(one in image for one in both)).install(monkeypatch)

    found = json.loads(rtscope(*SETTINGS).out)

    names = [one["name"] for one in found["located"]["changes"]]
    assert names == ["DEBUG_005=y", "DEBUG_007=y"]
    assert (found["without"]["name"], found["share_without"]) == ("DEBUG_001", 0)


@pytest.mark.slow
def test_settings_of_which_a_part_was_skipped_are_no_certain_answer(
    rtscope: Rtscope, configurations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(image: str) -> bool:
        if "CONFIG_DEBUG_005=y" in image and "CONFIG_DEBUG_004=y" not in image:
            raise BoardError("it panics")
        return "CONFIG_DEBUG_005=y" in image

    Measured(late).install(monkeypatch)

    said = rtscope(*SETTINGS)

    found = json.loads(said.out)
    assert (said.status, found["found"]) == (4, False)
    assert [one["name"] for one in found["located"]["changes"]] == [
        "DEBUG_004=y",
        "DEBUG_005=y",
    ]
    assert "DEBUG_005" in [one["name"] for one in found["skipped"]]


@pytest.mark.slow
def test_a_search_does_not_go_on_with_a_broken_journal_or_another_configuration(
    rtscope: Rtscope, configurations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = Measured(lambda image: "CONFIG_DEBUG_005=y" in image)
    boards.install(monkeypatch)
    rtscope(*SETTINGS)
    journal = configurations / "out/steps.jsonl"
    steps = journal.read_bytes()
    journal.write_bytes(b"\xff\xfe\n")

    said = rtscope("bisect", "--resume", "out", "--yes")

    assert said.status == 3
    assert "no journal of a search" in said.err
    journal.write_bytes(steps)
    bad = configurations / "bad.config"
    bad.write_text(bad.read_text().replace("CONFIG_DEBUG_005=y\n", ""))

    said = rtscope("bisect", "--resume", "out", "--yes")

    assert said.status == 2
    assert "are not those that it was started with" in " ".join(said.err.split())


@pytest.mark.parametrize("name", ["bisect.json", "steps.jsonl", "steps"])
def test_a_search_with_links_is_not_continued(
    rtscope: Rtscope, here: Path, name: str
) -> None:
    (here / "out").mkdir()
    (here / "out/bisect.json").write_text("{}")
    (here / "elsewhere").write_text("mine\n")
    (here / "out" / name).unlink(missing_ok=True)
    (here / "out" / name).symlink_to(here / "elsewhere")

    said = rtscope("bisect", "--resume", "out")

    assert said.status == 3
    assert f"out/{name}: a link, which rtscope does not make" in said.err
    assert (here / "elsewhere").read_text() == "mine\n"


def test_a_directory_that_another_start_holds_gets_no_document(
    rtscope: Rtscope, history: list[str], measured: Measured, here: Path
) -> None:
    (here / "out").mkdir()
    with hold(here / "out"):
        said = rtscope(*BISECT, "--bad", "HEAD", "--out", "out")

    assert said.status == 2
    assert "another rtscope measures into it" in " ".join(said.err.split())
    assert not list((here / "out").iterdir())


def test_configurations_that_resolve_to_the_same_are_refused(
    rtscope: Rtscope, here: Path
) -> None:
    make_recipe(here, RT)
    (here / "one.config").write_text(RT)
    (here / "two.config").write_text(f"{RT}CONFIG_NO_SUCH_THING=y\n")

    said = rtscope(
        *("bisect", "--good", "one.config", "--bad", "two.config"),
        *("--recipe", "./my.toml"),
    )

    assert said.status == 2
    assert "are the same kernel" in said.err


# --- what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bisect",), "name both ends, --good and --bad"),
        (("bisect", "--good", "a", "--bad", "b", "--tree", "linux"), "--recipe pc-6."),
        ((*BISECT, "--bad", "HEAD", "--patches", "x"), "search one of them"),
        ((*BISECT, "--bad", "nothing"), "linux has no such commit, branch or tag"),
        ((*BISECT, "--bad", "HEAD", "--figure", "worst"), "no such figure: 'worst'"),
        ((*BISECT, "--bad", "HEAD", "--margin", "far"), "a duration or a share"),
        ((*BISECT, "--bad", "HEAD", "--load", "cpu,os"), "a search has one load"),
        ((*BISECT, "--bad", "HEAD", "--seeds", "none"), "--seeds"),
        ((*BISECT, "--bad", "HEAD", "--tree", "nowhere"), "given twice"),
        (("bisect", "--resume", "."), "no search there"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_built(
    rtscope: Rtscope, history: list[str], words: tuple[str, ...], message: str
) -> None:
    said = rtscope(*words)

    assert said.status == 2
    assert message in " ".join(said.err.split())


def test_a_missing_compiler_ends_the_search_with_what_to_install(
    rtscope: Rtscope,
    history: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("x86_64-linux-gnu-gcc", "bison"):
        (tmp_path / "bin" / name).unlink()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/nonexistent")

    said = rtscope(*BISECT, "--bad", "HEAD")

    assert said.status == 3
    assert "needs x86_64-linux-gnu-gcc" in said.err
    assert "apt install" in said.err


def test_other_options_than_resume_are_refused(
    rtscope: Rtscope, history: list[str]
) -> None:
    said = rtscope("bisect", "--resume", "out", "--seeds", "5")

    assert said.status == 2
    assert "leave out the other options" in said.err


# --- the place of a search --------------------------------------------------------


def test_a_place_is_removed_at_the_end_and_on_an_interruption(tmp_path: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), workplace(tmp_path) as place:
        (place / "source").mkdir()
        raise KeyboardInterrupt

    assert not place.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": 0},
        {"margin": 0},
        {"good": []},
        {"tree": {}},
        {"seeds": 3},
        {"patches": 1.5},
        {"good": "x" * 300, "recipe": None},
    ],
)
def test_a_search_whose_options_were_changed_is_refused(
    rtscope: Rtscope, here: Path, changes: dict[str, object]
) -> None:
    asked = {"good": "a", "bad": "b", "recipe": "pc-6.12-rt", **changes}
    document = {"schema": 1, "command": ["rtscope"], "asked": asked}
    (here / "x").mkdir()
    (here / "x/bisect.json").write_text(json.dumps(document))

    said = rtscope("bisect", "--resume", "x", "--yes")

    assert said.status in (2, 3), said.err
    assert "internal error" not in said.err
