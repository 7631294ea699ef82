"""Sources of a recipe: an archive, a repository, and what can be wrong with each."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from fakes.fakelinux import make_programs, make_recipe
from rtscope.board.cache import all_parts, locked
from rtscope.board.sourcekernel import kernel_part
from rtscope.board.workshop import Workshop
from rtscope.errors import KernelError, RtscopeError, UsageError
from rtscope.kernel.recipe import find_recipe

RT = "CONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n"


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", make_programs(tmp_path / "bin"))


def _with_source(folder: Path, source: str) -> Path:
    """Write a recipe whose source is another than the directory beside it."""
    folder.mkdir(exist_ok=True)
    recipe = make_recipe(folder, RT)
    recipe.write_text(recipe.read_text().replace('directory = "linux"', source))
    return recipe


def _digest(cache: Path, recipe: Path) -> str:
    shop = Workshop(cache=cache, agent=Path)
    with locked(cache, say=shop.say):
        part = kernel_part(shop, find_recipe(str(recipe)))
    return str(part.manifest["files"]["kernel"]["sha256"])


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def _repository(folder: Path) -> str:
    """Make a repository of the tree; return its commit."""
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "one")
    return _git(folder, "rev-parse", "HEAD")


def test_an_archive_and_a_repository_give_the_kernel_that_the_directory_gives(
    tmp_path: Path,
) -> None:
    make_recipe(_made(tmp_path / "a"), RT)
    tree = tmp_path / "a/linux"
    archive = tmp_path / "linux.tar"
    subprocess.run(
        ["tar", "-C", str(tmp_path / "a"), "-cf", str(archive), "linux"], check=True
    )
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    _repository(tree)

    of_archive = _with_source(
        tmp_path / "b", f'tarball = "../linux.tar"\nsha256 = "{sha256}"'
    )
    of_repository = _with_source(tmp_path / "c", 'git = "../a/linux"\nref = "main"')

    expected = _digest(tmp_path / "one", tmp_path / "a/my.toml")
    assert _digest(tmp_path / "two", of_archive) == expected
    assert _digest(tmp_path / "three", of_repository) == expected


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_another_commit_is_another_kernel_and_a_commit_can_be_named(
    tmp_path: Path,
) -> None:
    make_recipe(_made(tmp_path / "a"), RT)
    tree = tmp_path / "a/linux"
    first = _repository(tree)
    (tree / "init/main.c").write_text("int main(void) { return 1; }\n")
    _git(tree, "commit", "-q", "-a", "-m", "two")

    newest = _with_source(tmp_path / "b", 'git = "../a/linux"\nref = "main"')
    pinned = _with_source(tmp_path / "c", f'git = "../a/linux"\nref = "{first}"')
    cache = tmp_path / "cache"

    assert _digest(cache, newest) != _digest(cache, pinned)
    assert len(all_parts(cache)) == 2


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        ('git = "../gone"', KernelError, "gone"),
        ('git = "./linux"\nref = "v9"', RtscopeError, "v9|not a git repository"),
        (f'tarball = "./gone.tar"\nsha256 = "{"a" * 64}"', UsageError, "gone.tar"),
        (f'tarball = "./my.toml"\nsha256 = "{"a" * 64}"', KernelError, "its SHA-256"),
        ('directory = "./gone"', RtscopeError, "gone"),
        ('directory = "."', RtscopeError, "Makefile|no Linux|kernel"),
    ],
)
def test_a_source_that_is_not_there_or_another_is_named_and_nothing_is_left(
    tmp_path: Path, source: str, kind: type[RtscopeError], said: str
) -> None:
    recipe = _with_source(tmp_path / "a", source)

    with pytest.raises(kind, match=said):
        _digest(tmp_path / "cache", recipe)

    parts = tmp_path / "cache/parts"
    assert not parts.is_dir() or list(parts.iterdir()) == []


def test_an_archive_of_something_else_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/file").touch()
    archive = tmp_path / "x.tar"
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", str(archive), "x"], check=True)
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    recipe = _with_source(tmp_path / "a", f'tarball = "../x.tar"\nsha256 = "{sha256}"')

    with pytest.raises(RtscopeError, match=r"Makefile|kernel"):
        _digest(tmp_path / "cache", recipe)
