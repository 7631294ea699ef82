"""
The commit that made a program worse, by its test: `rtscope test` judges each commit.

Each commit is checked out into an empty directory, always the same one, with the test
file of now. `rtscope test` builds and judges it there in a process of its own, as a
user types it: its answer is what the journal goes by. Virtual boards are exact, so one
test of each commit is enough.
"""

import hashlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rtscope.cli.console import typed_words
from rtscope.host import process
from rtscope.host.errors import HostError, KernelError, MeasurementError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files.documents import json_object
from rtscope.host.process import Progress, Step
from rtscope.record.directory.journal import STEPS, Tried, read_journal
from rtscope.record.directory.place import SEARCH, refuse_used, write_document
from rtscope.stats.comparison.design import Exact
from rtscope.verbs.bisect import history
from rtscope.verbs.bisect.criterion import Values
from rtscope.verbs.bisect.directory import SearchOptions
from rtscope.verbs.bisect.history import OwnRepository, Range
from rtscope.verbs.bisect.outcome import Built, Trials, Verdict, skipped_of

COMMAND = (sys.executable, "-P", "-m", "rtscope")
"""This rtscope; -P: a commit may have files that are called as modules of Python."""
KEPT, BROKEN = 0.0, 1.0
"""The figure of a commit in the journal."""
PATIENCE_S = 86_400.0
SAVED, ANSWER, COMPARED, LOG = "test.json", "answer.json", "compared.json", "log"
"""In the directory of a commit: its results, its answer, beside the commit before."""
_KEPT_STATUS, _BROKEN_STATUS = 0, 1
_REFUSED = (2, 3)
_SHARE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4})?\s*%")
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Program:
    """A program's repository, its test, and the commits to search."""

    file: Path
    """The test file, inside of the tree."""
    ends: Range
    content: bytes
    """Of the test file, as it is now."""
    margin: str = ""
    """Share by which a commit is worse than the good one; empty: by its budgets."""

    @property
    def inside(self) -> Path:
        """Where the test file is in the tree."""
        return self.file.relative_to(self.ends.tree)

    @property
    def identity(self) -> str:
        """The digest of all that decides what is found."""
        words = (str(self.inside), self.ends.good, self.ends.bad, self.margin)
        whole = "\0".join(words).encode() + b"\0" + self.content
        return hashlib.sha256(whole).hexdigest()


def find_program(options: SearchOptions) -> Program:
    """
    Return what is searched; UsageError if it cannot be.

    That is a test file outside of a repository, ends that are no commits of it, or
    options that are about kernels.
    """
    _refuse_of_kernels(options)
    assert options.test is not None
    file = options.test.resolve()
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--test {options.test}: {error.strerror}") from error
    tree = _tree(options, file)
    if options.good is None or options.bad is None:
        raise UsageError("name both ends, --good and --bad: commits of the program")
    inside = str(file.relative_to(tree))
    ends = history.find_range(
        tree, options.good, options.bad, of_kernel=False, besides=inside
    )
    margin = (options.margin or "").strip()
    if margin and not _SHARE.fullmatch(margin):
        raise UsageError(f"--margin {margin!a}: with --test write a share, e.g. 2%")
    return Program(file, ends, content, margin)


def _refuse_of_kernels(options: SearchOptions) -> None:
    usual = SearchOptions()
    for name in (
        "patches",
        "recipe",
        "figure",
        "load",
        "duration",
        "interval",
        "seeds",
    ):
        if getattr(options, name) != getattr(usual, name):
            raise UsageError(
                f"--{name} is for kernels: --test has boards, loads, times and budgets "
                "in its file"
            )


def _tree(options: SearchOptions, file: Path) -> Path:
    found = history.read_users(
        options.tree or file.parent, "rev-parse", "--show-toplevel"
    )
    tree = Path(found.text.strip()).resolve()
    if found.status != 0 or not found.text.strip():
        raise UsageError(
            f"--test {options.test}: in no git repository: commits of the program are "
            "searched there, where its test is"
        )
    if not file.is_relative_to(tree):
        raise UsageError(
            f"--test {options.test}: not in the tree {tree}: move it there"
        )
    return tree


def write_program(path: Path, asked: SearchOptions, program: Program) -> None:
    """Write down what is searched of a program; UsageError if another was faster."""
    refuse_used(path)
    ends = program.ends
    options = asdict(asked) | {
        "test": str(program.file),
        "tree": str(ends.tree),
        "good": ends.good,
        "bad": ends.bad,
    }
    write_document(
        path,
        SEARCH,
        options,
        command=typed_words(),
        identity=program.identity,
    )


# --- one commit after the other -------------------------------------------------------


@dataclass(slots=True)
class ProgramCommits:
    """Builds and tests commits; the kernels and the boards of a search."""

    program: Program
    own: OwnRepository
    path: Path
    """The results of the search."""
    progress: Progress
    good: str = ""
    """The commit that the others are compared with; empty: with none."""

    def configure(self, name: str) -> str:
        """Check out a commit with the test of now."""
        shutil.rmtree(self.own.tree, ignore_errors=True)
        self.own.tree.mkdir(parents=True)
        self.own.run("read-tree", "--empty")
        self.own.take(name)
        file = self.own.tree / self.program.inside
        if not file.parent.resolve().is_relative_to(self.own.tree.resolve()):
            raise KernelError(f"{self.program.inside} leads out of the tree")
        file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.program.content)
        return name

    def compile(self, name: str) -> Built:
        """Leave the build to the test."""
        return Built(name, name[: history.SHORT])

    def measure(self, built: Built, name: str) -> Values:
        """Return whether its test holds; MeasurementError if it does not run."""
        folder = self.folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        words = ["--save", str(folder / SAVED), "--no-explain"]
        if self.good and self.good != name:
            good = str(self.folder(self.good) / SAVED)
            words += ["--no-worse-than", good, "--tolerance", self.program.margin]
        status = self._test(name, ANSWER, words)
        return {1: BROKEN if status == _BROKEN_STATUS else KEPT}

    def compared(self, name: str, before: str) -> Mapping[str, Any]:
        """Return the answer of a commit beside an earlier one, with its cause."""
        file = self.folder(name) / COMPARED
        if not file.exists():
            self.configure(name)
            good = str(self.folder(before) / SAVED)
            self._test(name, COMPARED, ["--identical-to", good, "--explain"])
        return json_object(file.read_bytes(), name=str(file))

    def answer(self, name: str) -> Mapping[str, Any]:
        """Return the answer of a commit that was tested."""
        file = self.folder(name) / ANSWER
        return json_object(file.read_bytes(), name=str(file))

    def folder(self, name: str) -> Path:
        """Return where the results of a commit are."""
        return self.path.resolve() / SEARCH.parts / name[:40]

    def _test(self, name: str, answer: str, words: list[str]) -> int:
        """Run the test of what is checked out; return its status."""
        folder, short = self.folder(name), name[: history.SHORT]
        part, log = folder / f"{answer}.part", folder / LOG
        file = self.own.tree / self.program.inside
        began = time.monotonic()
        status = process.run_watched(
            [*COMMAND, "test", file.name, *words, "--json"],
            timeout_s=PATIENCE_S,
            log=log,
            watch=lambda: self.progress(
                Step(f"testing {short}", int(time.monotonic() - began), unit="s")
            ),
            cwd=file.parent,
            out=part,
        )
        if status in (_KEPT_STATUS, _BROKEN_STATUS):
            part.replace(folder / answer)
            return status
        part.unlink(missing_ok=True)
        said = _last_words(log, self.own.tree)
        if status in _REFUSED:
            raise MeasurementError(said)
        raise HostError(f"{short}: rtscope test ended with status {status}: {said}")


def _last_words(log: Path, tree: Path) -> str:
    """Return the message of a test that did not run, on one line."""
    text = log.read_bytes()[-(64 << 10) :].decode("utf-8", "replace")
    at = text.rfind("rtscope: ")
    said = " ".join(text[max(0, at) :].removeprefix("rtscope: ").split())
    return printable(said.replace(f"{tree}/", ""), limit=_SHOWN) or "it printed nothing"


# --- from the ends to the commit ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that a search ended with."""

    name: str
    title: str
    author: str
    """Name, address and day."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    test: str
    candidates: int
    tested: int
    skipped: tuple[Tried, ...]
    culprits: tuple[Commit, ...] = ()
    """One; several if others could not be tested; none: bad is not worse."""
    before: str = ""
    """The last good commit."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of `rtscope test`, of the good and the bad end, before and after."""
    compared: Mapping[str, Any] = field(default_factory=dict)
    """The answer of the first bad commit beside the one before, with the cause."""

    @property
    def is_found(self) -> bool:
        """Whether the search ended with one commit."""
        return len(self.culprits) == 1


def search_program(
    commits: ProgramCommits,
    *,
    log: Callable[[str], None],
) -> Found:
    """
    Return the first commit whose test does not hold.

    Raises UsageError if it does not hold at the good end, KernelError if an end cannot
    be tested.
    """
    program, own = commits.program, commits.own
    ends = program.ends
    journal = read_journal(commits.path / STEPS)
    trials = Trials(commits, commits, journal, log=log)
    good = trials.required(ends.good, option="--good")
    if program.margin:
        commits.good = ends.good
    if good.values[1] == BROKEN:
        raise UsageError(
            f"--good is bad already: {commits.answer(ends.good).get('answer')}: name "
            "an older commit, or a wider budget"
        )
    bad = trials.required(ends.bad, option="--bad")
    answers = {
        "good": commits.answer(ends.good),
        "bad": commits.answer(ends.bad),
    }
    found = Found(program.inside.name, ends.commits, 0, (), answers=answers)
    if bad.values[1] == BROKEN:
        trials.threshold = Exact(KEPT, BROKEN, (KEPT + BROKEN) / 2)
        located = history.search(
            own,
            ends.good,
            ends.bad,
            verdict=trials.verdict,
            progress=lambda left: log(f"{left:,} commits left to search"),
        )
        found = replace(found, culprits=_commits(own, located.culprits))
    if found.is_found:
        found = _beside(found, commits, trials)
    steps = list(journal.steps.values())
    tested = sum(bool(one.values) for one in steps)
    return replace(found, tested=tested, skipped=skipped_of(steps))


def _commits(own: OwnRepository, names: tuple[str, ...]) -> tuple[Commit, ...]:
    return tuple(
        Commit(one, history.title_of(own, one), history.author_of(own, one))
        for one in names
    )


def _beside(found: Found, commits: ProgramCommits, trials: Trials) -> Found:
    """Add the answers before and after the commit, and what differs first."""
    (culprit,) = found.culprits
    before = commits.program.ends.good
    try:
        parent = history.parent_of(commits.own, culprit.name)
    except KernelError:
        parent = before
    if trials.verdict(parent) is Verdict.GOOD:
        before = parent
    answers = {
        **found.answers,
        "before": commits.answer(before),
        "after": commits.answer(culprit.name),
    }
    compared = commits.compared(culprit.name, before)
    return replace(found, before=before, answers=answers, compared=compared)
