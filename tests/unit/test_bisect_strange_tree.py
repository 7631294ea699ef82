"""A stranger's tree is only read: nothing that its settings name is run."""

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rtscope.host.errors import UsageError
from rtscope.verbs.bisect.history import find_range, open_history

HOOKS = ("post-checkout", "reference-transaction", "post-index-change", "pre-commit")


def git(tree: Path, *words: str) -> None:
    who = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "core.hooksPath=/dev/null",
    )
    subprocess.run(["git", "-C", tree, *who, *words], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three commits with odd names, as somebody may send them."""
    made = tmp_path / "tree"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "Kconfig").write_text("mainmenu x\n")
    (made / "Makefile").write_text(f"all:\n\ttouch {tmp_path}/ran-make\n")
    (made / ".gitattributes").write_text("*.f filter=f diff=f export-subst\n")
    _commit(made, "one")
    (made / "a.f").write_text("one\n")
    (made / "new\nline \x1b[31m").write_text("one\n")
    (made / "out").symlink_to(tmp_path / "outside")
    _commit(made, "two")
    (made / "a.f").write_text("two\n")
    _commit(made, "three")
    git(made, "update-ref", "refs/heads/--upload-pack=x", "HEAD")
    return made


def _commit(tree: Path, name: str) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", name)


def _setting(name: str, value: str = "{ran}; cat") -> Callable[[Path, str], None]:
    return lambda tree, ran: git(tree, "config", name, value.format(ran=ran))


def _hooks(tree: Path, ran: str) -> None:
    for name in HOOKS:
        (tree / ".git/hooks").mkdir(exist_ok=True)
        hook = tree / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\n{ran}\n")
        hook.chmod(0o755)


def _filter_anew(tree: Path, ran: str) -> None:
    (tree / ".git/info/attributes").write_text("* filter=x.y\n")
    git(tree, "config", "filter.x.y.clean", f"{ran}; cat")


def _included(tree: Path, ran: str) -> None:
    more = tree.with_name("more")
    more.write_text(f'[core]\n\tfsmonitor = "{ran}"\n[filter "f"]\n\tclean = "{ran}"\n')
    git(tree, "config", "include.path", str(more))


def _elsewhere(tree: Path, ran: str) -> None:
    git(tree, "config", "core.fsmonitor", ran)
    (tree / ".git").rename(tree.with_name("git"))
    (tree / ".git").write_text(f"gitdir: {tree.with_name('git')}\n")


def _lacking(tree: Path, ran: str) -> None:
    """Without an object, which the tree says can be fetched."""
    git(tree, "config", "core.repositoryformatversion", "1")
    git(tree, "config", "extensions.partialClone", "origin")
    git(tree, "config", "remote.origin.promisor", "true")
    git(tree, "config", "remote.origin.url", f"ext::sh -c {ran.replace(' ', '% ')}")
    git(tree, "config", "protocol.ext.allow", "always")
    said = ["git", "-C", str(tree), "rev-parse", "HEAD:Kconfig"]
    blob = subprocess.run(said, check=True, capture_output=True, text=True).stdout
    (tree / ".git/objects" / blob[:2] / blob[2:].strip()).unlink()


TRAPS: dict[str, Callable[[Path, str], None]] = {
    "a monitor": _setting("core.fsmonitor", "{ran}"),
    "a filter that cleans": _setting("filter.f.clean"),
    "a filter that smudges": _setting("filter.f.smudge"),
    "a filter that stays": _setting("filter.f.process"),
    "a filter that is not in the tree": _filter_anew,
    "an included file": _included,
    "a git directory elsewhere": _elsewhere,
    "hooks": _hooks,
    "a pager": _setting("core.pager"),
    "a diff": _setting("diff.external"),
    "a text of files": _setting("diff.f.textconv"),
    "an alias": _setting("alias.rev-parse", "!{ran}"),
    "another alias": _setting("alias.status", "!{ran}"),
    "objects to fetch": _lacking,
}


@pytest.mark.slow
@pytest.mark.parametrize("changed", [False, True], ids=["as it is", "changed"])
@pytest.mark.parametrize("kind", TRAPS)
def test_nothing_that_the_settings_of_a_tree_name_is_run(
    kind: str, changed: bool, tree: Path, tmp_path: Path
) -> None:
    TRAPS[kind](tree, f"touch {tmp_path}/ran")
    if changed:
        (tree / "a.f").write_text("tre\n")

    refused = changed or kind == "objects to fetch"
    with pytest.raises(UsageError) if refused else contextlib.nullcontext():
        ends = find_range(tree, "HEAD~2", "HEAD")
        own = open_history(ends, tmp_path / "own", tmp_path / "files")
        own.take(ends.bad)

    assert not list(tmp_path.glob("ran*"))
    assert not (tmp_path / "outside").exists()


def test_files_with_odd_names_that_differ_are_named_in_visible_characters(
    tree: Path,
) -> None:
    (tree / "new\nline \x1b[31m").write_text("three\n")

    with pytest.raises(UsageError, match=r"from HEAD \(new\\x0aline \\x1b\[31m\) and"):
        find_range(tree, "HEAD~2", "HEAD")


def test_a_branch_is_not_taken_for_an_option(tree: Path) -> None:
    with pytest.raises(UsageError, match="no commit begins with '-'"):
        find_range(tree, "--upload-pack=x", "HEAD")
