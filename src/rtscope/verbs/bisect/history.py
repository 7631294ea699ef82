"""
Commits between good and bad, and which to try next; patches as commits.

It runs in a bare repository of ours that reads the objects of the user's, so that the
user's tree, branches and settings stay as they are whatever happens here.

In ours nothing of the user's settings counts: no hooks, no signatures, no filters. The
user's is only ever read, and runs nothing that its settings name, for it may be a
stranger's: no monitor, hook or filter, and no program that fetches what it lacks.

The repository has only the files that the series touches; the rest of the source lies
beside them and is not looked at.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtscope.boards.kernels.tree import Patch, Series, describe, try_series
from rtscope.host import process
from rtscope.host.errors import KernelError, UsageError
from rtscope.host.escape import printable
from rtscope.host.units import is_whole
from rtscope.verbs.bisect.outcome import Verdict

# --- run git, in repositories of our own and in the user's ----------------------------

MAX_ANSWER_BYTES = 96 << 20
"""Of git, e.g. the names of all commits of Linux."""
PATIENCE_S = 3600.0
NOT_FOUND = 127

_SETTINGS = (
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_AUTHOR_NAME=rtscope",
    "GIT_AUTHOR_EMAIL=rtscope@localhost",
    "GIT_COMMITTER_NAME=rtscope",
    "GIT_COMMITTER_EMAIL=rtscope@localhost",
    "GIT_AUTHOR_DATE=1767225600 +0000",
    "GIT_COMMITTER_DATE=1767225600 +0000",
)


@dataclass(frozen=True, slots=True)
class Said:
    """What git answered."""

    status: int
    text: str
    error: str

    @property
    def words(self) -> str:
        """The end of what it said, on one line, the errors if there are any."""
        return " ".join((self.error or self.text).split())[-400:]


@dataclass(frozen=True, slots=True)
class OwnRepository:
    """A repository of ours, with its work tree beside it."""

    folder: Path
    tree: Path

    def run(self, *words: str) -> str:
        """Return the output of git; KernelError with its words if it fails."""
        said = self.ask(*words)
        if said.status != 0:
            raise KernelError(_failed(words, said))
        return said.text

    def ask(self, *words: str) -> Said:
        """Return what git says, whatever its status."""
        where = (f"--git-dir={self.folder}", f"--work-tree={self.tree}")
        return _git((*_SETTINGS, "GIT_OPTIONAL_LOCKS=0"), (*where, *words), self.tree)

    def take(self, commit: str) -> None:
        """Make the files of the work tree those of a commit; others stay."""
        self.run("read-tree", "--reset", "-u", commit)


def init_bare(folder: Path) -> None:
    """Make an empty repository in a directory that is there."""
    words = ("init", "--quiet", "--bare", "--template=", ".")
    said = _git(_SETTINGS, words, folder)
    if said.status != 0:
        raise KernelError(_failed(words, said))


_ONLY_READ = ("GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
_NO_PROGRAM = ("core.fsmonitor=false", "core.hooksPath=/dev/null")
_FILTER = re.compile(r"^filter\.(.+)\.[a-z]+$", re.I | re.S)


def read_users(tree: Path, *words: str) -> Said:
    """Return what git says about a user's tree; no program of its settings runs."""
    return _git(_ONLY_READ, (*_settings(_NO_PROGRAM), *words), tree)


def uncommitted(tree: Path) -> list[str]:
    """Return the files of a user's tree that differ from its commit, unfiltered."""
    listed = read_users(tree, "config", "--name-only", "-z", "--list").text.split("\0")
    names = {match[1] for match in map(_FILTER.match, listed) if match}
    off = [
        f"filter.{name}.{setting}"
        for name in sorted(names)
        for setting in ("clean=", "smudge=", "process=", "required=false")
    ]
    words = ("status", "--porcelain", "-z", "--untracked-files=no", _NO_SUBMODULES)
    said = _git(_ONLY_READ, (*_settings((*_NO_PROGRAM, *off)), *words), tree)
    return [row[3:] for row in said.text.split("\0") if row[2:3] == " "]


_NO_SUBMODULES = "--ignore-submodules=all"
"""Each would be asked with settings of its own."""


def _settings(settings: Sequence[str]) -> list[str]:
    return [word for one in settings for word in ("-c", one)]


def _git(environment: Sequence[str], words: Sequence[str], where: Path) -> Said:
    argv = ["env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE"]
    argv += ["LC_ALL=C", *environment, "git", "-C", str(where), *words]
    done = process.run(argv, timeout_s=PATIENCE_S, most_bytes=MAX_ANSWER_BYTES)
    if done.status == NOT_FOUND:
        raise KernelError("bisect needs git: install it: apt install git")
    return Said(done.status, done.stdout.decode("utf-8", "replace"), done.stderr)


def _failed(words: Sequence[str], said: Said) -> str:
    why = said.words or f"status {said.status}"
    return f"git {' '.join(words)[:160]}: {why}"


# --- commits between good and bad, and which of them to try next: git's own bisection -

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


def find_range(
    tree: Path, good: str, bad: str, *, of_kernel: bool = True, besides: str = ""
) -> Range:
    """
    Return the commits that two names of a user's tree stand for.

    Changes of the file `besides` may be in no commit. Raises UsageError for names that
    are none, ends that are the wrong way round, a tree that has no kernel, if it is to
    be `of_kernel`, and other changes that no commit has.
    """
    if read_users(tree, "rev-parse", "--git-dir").status != 0:
        raise UsageError(
            f"--tree {tree}: no git repository; name a clone of a kernel, or search a "
            "series of patches with --patches"
        )
    one, two = _commit(tree, good, "--good"), _commit(tree, bad, "--bad")
    if one == two:
        raise UsageError(f"--good {good} and --bad {bad} are the same commit")
    for name, commit in ((good, one), (bad, two)) if of_kernel else ():
        if read_users(tree, "cat-file", "-e", f"{commit}:Kconfig").status != 0:
            raise UsageError(f"--tree {tree}: {name} is no kernel (it has no Kconfig)")
    if read_users(tree, "merge-base", "--is-ancestor", two, one).status == 0:
        raise UsageError(
            f"--bad {bad} is older than --good {good}: a search goes from an older "
            f"good {'kernel' if of_kernel else 'commit'} to a newer bad one"
        )
    _refuse_uncommitted(tree, {good: one, bad: two}, besides)
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


def _refuse_uncommitted(tree: Path, ends: dict[str, str], besides: str) -> None:
    """Raise UsageError if a reader could think that changed files are searched too."""
    head = read_users(tree, "rev-parse", "--verify", "--quiet", "HEAD").text.strip()
    name = next((name for name, commit in ends.items() if commit == head), None)
    bare = read_users(tree, "rev-parse", "--is-bare-repository").text.strip() == "true"
    if name is None or bare:
        return
    files = [one for one in uncommitted(tree) if one != besides]
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


def author_of(own: OwnRepository, commit: str) -> str:
    """Return who wrote a commit, and when."""
    return own.run("log", "-1", "--format=%an <%ae>, %as", commit).strip()


# --- A series of patches as commits, so that it is searched as a history is -----------


@dataclass(frozen=True, slots=True)
class Applied:
    """The commits of a series: the source without it first."""

    commits: tuple[str, ...]
    patches: tuple[Patch, ...]

    @property
    def by_commit(self) -> Mapping[str, Patch]:
        """Return the patch that each commit but the first applies."""
        return dict(zip(self.commits[1:], self.patches, strict=True))

    def count_of(self, commit: str) -> int:
        """Return how many patches a commit has."""
        return self.commits.index(commit)


def apply_as_commits(
    series: Series, own: OwnRepository, *, wanted: str | None
) -> Applied:
    """Apply a series patch by patch; KernelError names the first that does not fit."""
    rejected = try_series(series, own.tree, wanted=wanted)
    if rejected is not None:
        raise KernelError(describe(series, rejected))
    make_bare(own)
    touched = {name for patch in series.patches for name in patch.touches()}
    there = sorted(name for name in touched if (own.tree / name).is_file())
    if there:
        own.run("add", "--force", "--", *there)
    commits = [_committed(own, "the source without the series")]
    for patch in series.patches:
        own.run(
            *("apply", "--index", "--whitespace=nowarn", f"-p{patch.strip}"),
            str(patch.path.resolve()),
        )
        commits.append(_committed(own, patch.subject))
    return Applied(tuple(commits), series.patches)


def _committed(own: OwnRepository, subject: str) -> str:
    own.run("commit", "--quiet", "--allow-empty", "--no-verify", "-m", subject)
    return own.run("rev-parse", "--verify", "HEAD").strip()


def place_in(series: Series, text: str | None, *, option: str, default: int) -> int:
    """
    Return how many patches of a series `--good` or `--bad` stands for.

    A number counts from 0, none, to all; a name includes that patch.
    """
    if text is None:
        return default
    names = [patch.name for patch in series.patches]
    if is_whole(text) and int(text) <= len(names):
        return int(text)
    if text in names:
        return names.index(text) + 1
    raise UsageError(
        f"{option} {text}: {series.name} has {len(names)} patches; write how many are "
        f"applied, 0 to {len(names)}, or the name of the last one, e.g. {names[0]}"
    )
