"""
Commits between good and bad, and which of them to try next: git's own bisection.

It runs in a bare repository of ours that reads the objects of the user's, so that the
user's tree, branches and settings stay as they are whatever happens here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtscope.host.errors import KernelError, UsageError
from rtscope.host.escape import printable
from rtscope.verbs.bisect.gitrun import (
    OwnRepository,
    init_bare,
    read_users,
    uncommitted,
)
from rtscope.verbs.bisect.trials import Verdict

SHORT = 12
"""Shown of a commit."""

# git 2.55 puts 'bad' in quotes.
_FIRST_BAD = re.compile(r"^([0-9a-f]{40}) is the first '?bad'? commit", re.M)
_COMMIT = re.compile(r"^([0-9a-f]{40})$", re.M)
_SHOWN_FILES = 3


@dataclass(frozen=True, slots=True)
class Range:
    """The two ends of a search in a user's tree."""

    tree: Path
    good: str
    bad: str
    commits: int
    """To search among: those of bad that are not of good."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Where a search ended."""

    culprits: tuple[str, ...]
    """One commit; several if all between them were skipped."""


def find_range(tree: Path, good: str, bad: str) -> Range:
    """
    Return the commits that two names of a user's tree stand for.

    Raises UsageError for names that are none, ends that are the wrong way round, a tree
    that has no kernel, and changes that no commit has.
    """
    if read_users(tree, "rev-parse", "--git-dir").status != 0:
        raise UsageError(
            f"--tree {tree}: no git repository; name a clone of a kernel, or search a "
            "series of patches with --patches"
        )
    one, two = _commit(tree, good, "--good"), _commit(tree, bad, "--bad")
    if one == two:
        raise UsageError(f"--good {good} and --bad {bad} are the same commit")
    for name, commit in ((good, one), (bad, two)):
        if read_users(tree, "cat-file", "-e", f"{commit}:Kconfig").status != 0:
            raise UsageError(f"--tree {tree}: {name} is no kernel (it has no Kconfig)")
    if read_users(tree, "merge-base", "--is-ancestor", two, one).status == 0:
        raise UsageError(
            f"--bad {bad} is older than --good {good}: a search goes from an older "
            "good kernel to a newer bad one"
        )
    _refuse_uncommitted(tree, {good: one, bad: two})
    said = read_users(tree, "rev-list", "--count", f"{one}..{two}")
    if said.status != 0:
        raise UsageError(f"--tree {tree}: {' '.join(said.error.split())[-300:]}")
    return Range(tree.resolve(), one, two, int(said.text))


def _commit(tree: Path, name: str, option: str) -> str:
    if name.startswith("-"):
        raise UsageError(f"{option} {name!a}: no commit begins with '-'")
    said = read_users(
        tree,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{name}^{{commit}}",
    )
    commit = said.text.strip().splitlines()[-1:] or [""]
    if said.status != 0 or not _COMMIT.fullmatch(commit[0]):
        raise UsageError(f"{option} {name}: {tree} has no such commit, branch or tag")
    return commit[0]


def _refuse_uncommitted(tree: Path, ends: dict[str, str]) -> None:
    """Raise UsageError if a reader could think that changed files are searched too."""
    head = read_users(tree, "rev-parse", "--verify", "--quiet", "HEAD").text.strip()
    name = next((name for name, commit in ends.items() if commit == head), None)
    bare = read_users(tree, "rev-parse", "--is-bare-repository").text.strip() == "true"
    if name is None or bare:
        return
    files = uncommitted(tree)
    if files:
        shown = ", ".join(map(printable, files[:_SHOWN_FILES]))
        more = ", ..." if len(files) > _SHOWN_FILES else ""
        raise UsageError(
            f"--tree {tree}: files differ from {name} ({shown}{more}) "
            "and only commits are searched: commit them (git commit -a), or leave them "
            f"out by naming the commit before: {name}~1"
        )


def open_history(ends: Range, folder: Path, tree: Path) -> OwnRepository:
    """Make a repository that reads the objects of a user's; `tree` gets its files."""
    tree.mkdir(parents=True, exist_ok=True)
    own = OwnRepository(folder, tree)
    common = Path(read_users(ends.tree, "rev-parse", "--git-common-dir").text.strip())
    common = (ends.tree / common).resolve()
    objects = (ends.tree / _git_path(ends.tree, "objects")).resolve()
    make_bare(own)
    (folder / "objects/info").mkdir(parents=True, exist_ok=True)
    (folder / "objects/info/alternates").write_text(f"{objects}\n")
    if (common / "shallow").is_file():
        (folder / "shallow").write_bytes((common / "shallow").read_bytes())
    return own


def make_bare(own: OwnRepository) -> None:
    """Make the repository, without anything of a template."""
    own.folder.mkdir(parents=True)
    init_bare(own.folder)


def _git_path(tree: Path, name: str) -> str:
    return read_users(tree, "rev-parse", "--git-path", name).text.strip()


def search(
    own: OwnRepository,
    good: str,
    bad: str,
    *,
    verdict: Callable[[str], Verdict],
    progress: Callable[[int], None] = lambda _left: None,
) -> SearchResult:
    """
    Return the first bad commit, or those that skipped ones cannot be told from.

    `verdict` is asked for one commit after the other; `progress` gets the number of
    commits that are left. Raises KernelError if the history has no answer: a common
    ancestor of both is bad already.
    """
    # A bisection wants a HEAD to come back to.
    own.run("update-ref", "--no-deref", "HEAD", bad)
    said = own.ask("bisect", "start", "--no-checkout", bad, good)
    commits: set[str] = set()
    while True:
        if match := _FIRST_BAD.search(said.text):
            return SearchResult((match[1],))
        if "only 'skip'ped commits left" in said.text:
            return SearchResult(tuple(dict.fromkeys([*_COMMIT.findall(said.text)])))
        if said.status != 0:
            raise KernelError(f"git bisect: {said.words}")
        commit = own.run("rev-parse", "--verify", "BISECT_HEAD").strip()
        if commit in commits:
            raise KernelError(
                f"git bisect asks for {commit[:SHORT]} a second time: {said.words}; "
                "this version of git may be one that rtscope does not know: "
                "git --version"
            )
        commits.add(commit)
        progress(_left(own))
        word = {Verdict.GOOD: "good", Verdict.BAD: "bad", Verdict.SKIPPED: "skip"}
        said = own.ask("bisect", word[verdict(commit)], commit)


def _left(own: OwnRepository) -> int:
    refs = own.run("for-each-ref", "--format=%(refname)", "refs/bisect")
    bad = [ref for ref in refs.split() if ref == "refs/bisect/bad"]
    good = [f"^{ref}" for ref in refs.split() if "/good-" in ref]
    return int(own.run("rev-list", "--count", *bad, *good)) if bad else 0


def parent_of(own: OwnRepository, commit: str) -> str:
    """Return the first parent of a commit."""
    return own.run("rev-parse", "--verify", f"{commit}^1").strip()


def title_of(own: OwnRepository, commit: str) -> str:
    """Return the subject of a commit."""
    return own.run("log", "-1", "--format=%s", commit).strip()
