"""Recipes as data: ours are complete, twins differ little, mistakes are named."""

from pathlib import Path

import pytest

from fakes.fakelinux import RECIPE, make_recipe
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.recipe import (
    configuration_digest,
    find_recipe,
    fragment_text,
    get_recipe,
    parse_recipe,
    recipe_names,
)
from rtscope.host.errors import UsageError

ASKED_FOR = {
    "jh7110-6.1-rt",
    "jh7110-6.1-rt-debug",
    "jh7110-6.1-rt-nolazy",
    "jh7110-6.1",
    "jh7110-6.12-rt",
    "jh7110-6.12",
    "jh7110-6.12-dynamic",
    "jh7110-7.3-dynamic",
    "jh7110-7.3-rt",
    "jh7110-7.3",
    "rpi-6.12-rt",
    "rpi-6.12",
    "pc-6.12-rt",
    "pc-6.12-rtgroup",
    "pc-6.12",
}


# Mainline 6.1 knows neither clocks nor pins of the JH-7110; the one with limits of
# control groups is for demonstrations, the dynamic ones for a sweep.
VIRTUAL_ALONE = {
    "jh7110-6.1-rt",
    "jh7110-6.1-rt-debug",
    "jh7110-6.1-rt-nolazy",
    "jh7110-6.1",
    "jh7110-6.12-dynamic",
    "jh7110-7.3-dynamic",
    "pc-6.12-rtgroup",
}


def test_every_recipe_is_there_in_each_size_that_the_source_allows() -> None:
    assert set(recipe_names(size="virtual")) == ASKED_FOR
    assert set(recipe_names(size="board")) == {
        f"{name}-board" for name in ASKED_FOR - VIRTUAL_ALONE
    }


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_names_a_board_of_its_architecture_and_fragments_that_exist(
    name: str,
) -> None:
    recipe = get_recipe(name)

    assert get_board(recipe.board).arch == recipe.arch
    assert all(fragment_text(recipe, fragment) for fragment in recipe.fragments)


@pytest.mark.parametrize(
    "name", [n for n in recipe_names(size="virtual") if n.endswith("-rt")]
)
def test_twins_have_the_same_source_patches_and_fragments_but_for_preemption(
    name: str,
) -> None:
    realtime, twin = get_recipe(name), get_recipe(name.removesuffix("-rt"))

    assert realtime.source == twin.source
    assert realtime.patches == twin.patches
    shared = len(twin.fragments) - 1
    assert realtime.fragments[:shared] == twin.fragments[:shared]
    assert realtime.fragments[shared] == "rt"
    assert twin.fragments[shared:] == ("preempt",)


def test_an_unknown_recipe_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'jh7110-6\.12-rt'"):
        find_recipe("jh7110-6.12-tr")


def test_a_kernel_of_the_distribution_is_no_recipe_and_no_slip() -> None:
    with pytest.raises(
        UsageError, match=r"debian-6\.12-rt': Debian's .* are not built"
    ):
        find_recipe("debian-6.12-rt")


def test_a_size_is_chosen_by_name() -> None:
    assert find_recipe("pc-6.12", size="board").name == "pc-6.12-board"
    assert find_recipe("pc-6.12-board").size == "board"


def test_a_recipe_of_the_user_is_named_by_its_path(tmp_path: Path) -> None:
    recipe = find_recipe(str(make_recipe(tmp_path, "CONFIG_SMP=y\n")))

    assert (recipe.name, recipe.source.kind) == ("my", "directory")
    assert fragment_text(recipe, "./wanted.config") == "CONFIG_SMP=y\n"


def test_the_board_size_of_a_users_recipe_is_named_as_ours_are(tmp_path: Path) -> None:
    recipe = make_recipe(tmp_path, "CONFIG_SMP=y\n")

    board = find_recipe(str(recipe.with_name("my-board.toml")))
    assert (board.name, board.size) == ("my-board", "board")

    recipe.with_name("my-board.toml").write_text(RECIPE.replace("for tests", "alone"))
    alone = find_recipe(str(recipe.with_name("my-board.toml")))
    assert (alone.title, alone.size) == ("A kernel alone", "virtual")


@pytest.mark.parametrize("name", ["My_Kernel", "my+rt", "-x", "_x"])
def test_a_file_whose_name_no_kernel_can_have_is_refused(
    tmp_path: Path, name: str
) -> None:
    recipe = make_recipe(tmp_path, "CONFIG_SMP=y\n")

    with pytest.raises(UsageError, match="name of the file is the kernel's name"):
        find_recipe(str(recipe.rename(recipe.with_name(f"{name}.toml"))))


def test_the_digest_of_a_configuration_follows_what_is_asked_for_alone(
    tmp_path: Path,
) -> None:
    recipe = find_recipe(str(make_recipe(tmp_path, "CONFIG_SMP=y\n")))
    before = configuration_digest(recipe)

    (tmp_path / "wanted.config").write_text("# a comment\nCONFIG_SMP=y\n")
    assert configuration_digest(recipe) == before

    (tmp_path / "wanted.config").write_text("CONFIG_SMP=n\n")
    assert configuration_digest(recipe) != before


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('arch = "x86_64"', 'arch = "z80"', "arch: one of"),
        ('title = "A kernel for tests"', "titel = 1", "'titel'; did you mean 'title'"),
        ('base = "allnoconfig"', "bases = 1", r"size\.virtual\.bases'; did you mean"),
        ('directory = "linux"', 'directory = "a"\nsuite = "sid"', "has no suite"),
        ('directory = "linux"', f'git = "a"\nsha256 = "{"a" * 64}"', "has no sha256"),
        ('directory = "linux"', 'directory = "a"\nref = "v6.1"', "has no ref"),
        ('directory = "linux"', 'package = "*"', "is a pattern"),
        ('directory = "linux"', 'package = "[[a]"', "Possible nested set"),
        ('directory = "linux"', "", "exactly one of .* not none"),
        ('directory = "linux"', 'git = "a"\ndirectory = "b"', "git and directory"),
        ('directory = "linux"', 'tarball = "a.tar"', "needs its sha256"),
        ('directory = "linux"', 'source_package = "linux"', "needs its version"),
        ("[size.board]", "[size.huge]", r"\[size.virtual\], \[size.board\]"),
        ("[source]", "[source", "my.toml"),
        (
            '"./wanted.config"]',
            '"./wanted.config"]\npatches = "./s"',
            "expected a list",
        ),
        ('"A kernel for tests"', r'"A\nDepends: evil"', "title: .* match pattern"),
        ('"A kernel for tests"', r'"\u001b[31mred"', "title: .* match pattern"),
    ],
)
def test_a_mistake_in_a_recipe_is_named(old: str, new: str, said: str) -> None:
    assert old in RECIPE

    with pytest.raises(UsageError, match=said):
        parse_recipe("my", RECIPE.replace(old, new))


def test_a_fragment_that_does_not_exist_gets_the_nearest(tmp_path: Path) -> None:
    recipe = find_recipe(str(make_recipe(tmp_path, "CONFIG_SMP=y\n")))

    with pytest.raises(UsageError, match="did you mean 'preempt'"):
        fragment_text(recipe, "prempt")
