"""
Run git, in repositories of our own and in the user's.

In ours nothing of the user's settings counts: no hooks, no signatures, no filters. The
user's is only ever read, and runs nothing that its settings name, for it may be a
stranger's: no monitor, hook or filter, and no program that fetches what it lacks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rtscope.host import process
from rtscope.host.errors import KernelError

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
