"""Sources of a recipe: an archive, a repository, and what can be wrong with each."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.fakelinux import make_programs, make_recipe, make_tree
from rtscope.boards.kernels.recipe import find_recipe
from rtscope.boards.kernels.source import find_origin
from rtscope.boards.kernels.sourcekernel import kernel_part, newest_of
from rtscope.boards.kernels.tree import tree_digest
from rtscope.boards.parts import aptroot
from rtscope.boards.parts.aptroot import Package
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import all_parts, locked
from rtscope.host.errors import KernelError, RtscopeError, UsageError

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
    context = BuildContext(cache=cache, agent=Path)
    with locked(cache, log=context.log):
        part = kernel_part(context, find_recipe(str(recipe)))
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_program_that_a_source_needs_and_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _with_source(tmp_path / "a", 'git = "https://there/linux"')
    (tmp_path / "few").mkdir()
    (tmp_path / "few/env").symlink_to(shutil.which("env") or "")
    monkeypatch.setenv("PATH", str(tmp_path / "few"))

    with pytest.raises(KernelError, match=r"^git is needed .*: apt install git$"):
        _digest(tmp_path / "cache", recipe)


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


@pytest.mark.slow
def test_head_of_a_clone_is_its_own_and_not_that_of_where_it_came_from(
    tmp_path: Path,
) -> None:
    make_recipe(_made(tmp_path / "a"), RT)
    _repository(tmp_path / "a/linux")
    clone = tmp_path / "clone"
    _git(tmp_path, "clone", "-q", str(tmp_path / "a/linux"), str(clone))
    (clone / "init/main.c").write_text("int main(void) { return 1; }\n")
    _git(clone, "commit", "-q", "-a", "-m", "two")
    newest = _git(clone, "rev-parse", "HEAD")

    head = _with_source(tmp_path / "b", 'git = "../clone"')
    pinned = _with_source(tmp_path / "c", f'git = "../clone"\nref = "{newest}"')

    cache = tmp_path / "cache"
    assert _digest(cache, head) == _digest(cache, pinned)


@pytest.mark.slow
@pytest.mark.parametrize("ref", ["v1", "tags/v1", "refs/tags/v1"])
def test_a_tag_is_found_by_its_whole_name_and_as_the_commit_that_it_names(
    tmp_path: Path, ref: str
) -> None:
    make_recipe(_made(tmp_path / "a"), RT)
    tree = tmp_path / "a/linux"
    commit = _repository(tree)
    _git(tree, "tag", "-a", "-m", "one", "v1")
    (tree / "init/main.c").write_text("int main(void) { return 1; }\n")
    _git(tree, "commit", "-q", "-a", "-m", "two")
    _git(tree, "branch", "wip/v1")

    tag = _with_source(tmp_path / "b", f'git = "../a/linux"\nref = "{ref}"')
    pinned = _with_source(tmp_path / "c", f'git = "../a/linux"\nref = "{commit}"')

    cache = tmp_path / "cache"
    assert _digest(cache, tag) == _digest(cache, pinned)


@pytest.mark.slow
def test_a_source_of_another_version_than_the_recipe_says_is_refused(
    tmp_path: Path,
) -> None:
    right = _with_source(tmp_path / "a", 'directory = "linux"\nversion = "6.12.1"')
    wrong = _with_source(tmp_path / "b", 'directory = "linux"\nversion = "6.12.2"')

    assert len(_digest(tmp_path / "cache", right)) == 64
    with pytest.raises(KernelError, match=r"is Linux 6\.12\.1, .* expects 6\.12\.2"):
        _digest(tmp_path / "cache", wrong)


@pytest.mark.slow
def test_a_directory_can_be_pinned_too(tmp_path: Path) -> None:
    recipe = _with_source(tmp_path / "a", f'directory = "linux"\nsha256 = "{"0" * 64}"')
    with pytest.raises(KernelError, match="a file was changed") as refused:
        _digest(tmp_path / "cache", recipe)
    now = re.findall(r"[0-9a-f]{64}", str(refused.value))[0]
    recipe.write_text(recipe.read_text().replace("0" * 64, now))

    assert len(_digest(tmp_path / "cache", recipe)) == 64


@pytest.mark.slow
def test_of_two_kernels_of_a_recipe_the_one_that_was_built_last_counts(
    tmp_path: Path,
) -> None:
    recipe = make_recipe(_made(tmp_path / "a"), RT)
    cache = tmp_path / "cache"
    _digest(cache, recipe)
    (tmp_path / "a/linux/init/main.c").write_text("int a;\n")
    _digest(cache, recipe)
    one, two = all_parts(cache)

    for old, new in ((one, two), (two, one)):
        os.utime(old.path, (1, 1))
        os.utime(new.path, (2, 2))
        found = newest_of(all_parts(cache), find_recipe(str(recipe)))
        assert found is not None
        assert found.path == new.path


def test_a_worktree_is_the_same_source_wherever_it_is(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_tree(tmp_path / name)
        (tmp_path / name / ".git").write_text(f"gitdir: /{name}\n")

    assert tree_digest(tmp_path / "a") == tree_digest(tmp_path / "b")


def test_a_recipe_that_names_another_package_now_is_not_built_from_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def resolve(names: Sequence[str], **_options: object) -> tuple[Package, ...]:
        asked.extend(names)
        return (_package(names[0]),)

    monkeypatch.setattr(aptroot, "resolve", resolve)
    context = BuildContext(cache=tmp_path / "cache", agent=Path)
    recipe = _with_source(tmp_path / "a", 'package = "linux-source-6.1"')
    with locked(context.cache, log=context.log):
        one = find_origin(context, find_recipe(str(recipe)))
        again = find_origin(context, find_recipe(str(recipe)))
        recipe.write_text(recipe.read_text().replace("6.1", "6.6"))
        other = find_origin(context, find_recipe(str(recipe)))

    assert asked == ["linux-source-6.1", "linux-source-6.6"]
    assert one.inputs == again.inputs != other.inputs


def _package(name: str) -> Package:
    url = f"http://archive.example/pool/main/l/linux/{name}_1-1_all.deb"
    return Package(name, "1-1", "all", url, 8, "a" * 64)


def test_an_archive_of_something_else_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/file").touch()
    archive = tmp_path / "x.tar"
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", str(archive), "x"], check=True)
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    recipe = _with_source(tmp_path / "a", f'tarball = "../x.tar"\nsha256 = "{sha256}"')

    with pytest.raises(RtscopeError, match=r"^\.\./x\.tar: no source of a kernel"):
        _digest(tmp_path / "cache", recipe)
