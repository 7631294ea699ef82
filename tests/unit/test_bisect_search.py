"""Searches with kernels that nobody builds: order, counts, skips, no effect, resume."""

import math
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rtscope.host.errors import (
    BoardError,
    HostError,
    KernelError,
    MeasurementError,
    RecordError,
    TargetError,
    UsageError,
)
from rtscope.record.directory.journal import STEPS, Journal, read_journal
from rtscope.verbs.bisect import history
from rtscope.verbs.bisect.bisect import search
from rtscope.verbs.bisect.criterion import Margin, Values, parse_margin
from rtscope.verbs.bisect.outcome import (
    Built,
    CannotGoOnError,
    Change,
    Kind,
    Located,
    Outcome,
    Side,
    Trials,
    Verdict,
)
from rtscope.verbs.bisect.subjects import Subject

SEEDS = (1, 2, 3)
GOOD_NS, BAD_NS = 40_000, 340_000


@dataclass
class FakeKernels:
    """Kernels that are built by their names."""

    broken: Collection[str] = ()
    """Those that do not build."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Those with the same configuration as another."""
    alike: Mapping[str, str] = field(default_factory=dict)
    """Those with the same image as another."""
    full_at: str = ""
    """The one at which the disk is full."""
    built: list[str] = field(default_factory=list)

    def configure(self, name: str) -> str:
        """Give each its own configuration."""
        return f"config of {self.same.get(name, name)}"

    def compile(self, name: str) -> Built:
        """Note the order."""
        if name == self.full_at:
            raise CannotGoOnError("the disk is full")
        self.built.append(name)
        if name in self.broken:
            raise KernelError("kernel/time/hrtimer.c:1: error: no")
        return Built(f"image of {self.alike.get(name, name)}", name)


@dataclass
class FakeBoards:
    """Boards on which some kernels are late."""

    is_bad: Callable[[str], bool]
    panics: Collection[str] = ()
    measured: list[str] = field(default_factory=list)

    def measure(self, built: Built, name: str) -> Values:
        """Return three seeds that differ a little."""
        if name in self.panics:
            raise BoardError("it panics")
        self.measured.append(name)
        base = BAD_NS if self.is_bad(name) else GOOD_NS
        return {seed: float(base + 1_000 * seed) for seed in SEEDS}


def numbers(count: int, culprit: int) -> Callable[[str], bool]:
    return lambda name: int(name) >= culprit


def unexplained(one: Side, two: Side) -> tuple[Side, Side]:
    return one, two


def run(subject: Subject, trials: Trials, *, margin: Margin | None = None) -> Outcome:
    return search(
        subject,
        trials,
        figure="max",
        load="idle",
        margin=margin or Margin(),
        explain=unexplained,
        progress=lambda _left: None,
    )


# --- commits, by git itself -------------------------------------------------------


@dataclass
class Repository:
    """A history of commits that change one file, and what each changes."""

    tree: Path
    commits: Sequence[str]

    def subject(self, tmp_path: Path, kernels: FakeKernels) -> Subject:
        """Search all of it."""
        found = history.find_range(self.tree, self.commits[0], self.commits[-1])
        place = tmp_path / "own"
        own = history.open_history(found, place / "git", place / "source")

        def locate(
            judge: Callable[[str], Verdict], left: Callable[[int], None]
        ) -> Located:
            ended = history.search(
                own, found.good, found.bad, verdict=judge, progress=left
            )
            changes = tuple(Change(one, "") for one in ended.culprits)
            if len(changes) != 1:
                return Located(changes, found.good, found.bad, narrowed=False)
            return Located(
                changes, history.parent_of(own, changes[0].name), changes[0].name
            )

        return Subject(
            kind=Kind.COMMIT,
            what="commits",
            good=found.good,
            bad=found.bad,
            candidates=found.commits,
            most_builds=0,
            kernels=kernels,
            locate=locate,
            title=lambda name: name,
            identity="",
        )

    def bad_from(self, number: int) -> Callable[[str], bool]:
        """Say of each commit whether it is that one or a later one."""
        return lambda commit: self.commits.index(commit) >= number


def git(tree: Path, *words: str) -> str:
    argv = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run([*argv, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(tree: Path, count: int) -> Repository:
    """Make `count` commits after a first one."""
    tree.mkdir()
    git(tree, "init", "--quiet")
    (tree / "Kconfig").write_text("")
    (tree / "file").write_text("0")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "start")
    for number in range(1, count + 1):
        (tree / "file").write_text(str(number))
        git(tree, "commit", "--quiet", "-am", f"change {number}")
    return Repository(tree, git(tree, "rev-list", "--reverse", "HEAD").split())


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("history") / "linux", 64)


@pytest.mark.parametrize(
    ("kernels", "builds"),
    [(FakeKernels(alike={"2": "1"}), 2), (FakeKernels(same={"2": "1"}), 1)],
)
def test_a_kernel_like_another_is_not_booted_but_counts_if_it_was_built(
    kernels: FakeKernels, builds: int
) -> None:
    boards = FakeBoards(numbers(9, culprit=9))
    trials = Trials(kernels, boards, Journal())

    trials.measured("1")
    second = trials.measured("2")

    assert second.like == "1"
    assert boards.measured == ["1"]
    assert len(kernels.built) == builds
    assert sum(step.built for step in trials.journal.steps.values()) == builds


def state_of(tree: Path) -> dict[str, str]:
    """Return all files of a tree, those of .git as well."""
    files = [path for path in sorted(tree.rglob("*")) if path.is_file()]
    return {str(path): path.read_bytes().hex() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("culprit", [1, 2, 31, 32, 33, 41, 63, 64])
def test_one_commit_among_64_is_found_with_nine_builds_or_fewer(
    repository: Repository, tmp_path: Path, culprit: int
) -> None:
    kernels = FakeKernels()
    boards = FakeBoards(repository.bad_from(culprit))
    trials = Trials(kernels, boards, Journal())

    found = run(repository.subject(tmp_path, kernels), trials)

    assert found.located is not None
    assert [c.name for c in found.located.changes] == [repository.commits[culprit]]
    assert found.located.before == repository.commits[culprit - 1]
    assert len(kernels.built) == found.builds <= math.log2(64) + 3
    assert found.boots == len(SEEDS) * found.builds
    assert found.is_found
    assert found.share == pytest.approx(1)


def git_that_says(folder: Path, change: str) -> str:
    """Write a git that changes its own words by sed; return the PATH with it first."""
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        f'#!/bin/sh\nsaid=$({shutil.which("git")} "$@")\nstatus=$?\n'
        f'[ -z "$said" ] || printf "%s\\n" "$said" | sed "{change}"\nexit $status\n'
    )
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def search_by(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Outcome]:
    """Search for commit 41 by a git that changes its words so."""

    def searched(change: str) -> Outcome:
        monkeypatch.setenv("PATH", git_that_says(tmp_path / "bin", change))
        kernels = FakeKernels()
        trials = Trials(kernels, FakeBoards(repository.bad_from(41)), Journal())
        return run(repository.subject(tmp_path, kernels), trials)

    return searched


def test_the_words_of_git_2_55_are_understood(
    repository: Repository, search_by: Callable[[str], Outcome]
) -> None:
    found = search_by("s/is the first '*bad'* commit/is the first 'bad' commit/")

    assert found.located is not None
    assert [c.name for c in found.located.changes] == [repository.commits[41]]


def test_a_git_with_other_words_ends_the_search(
    search_by: Callable[[str], Outcome],
) -> None:
    with pytest.raises(KernelError, match=r"a second time: .* did it .*git --version"):
        search_by("s/is the first '*bad'* commit/did it/")


def test_good_and_bad_are_built_first(repository: Repository, tmp_path: Path) -> None:
    kernels = FakeKernels()
    trials = Trials(kernels, FakeBoards(repository.bad_from(20)), Journal())

    run(repository.subject(tmp_path, kernels), trials)

    assert kernels.built[:2] == [repository.commits[0], repository.commits[-1]]


def test_the_users_repository_is_as_it_was(
    repository: Repository, tmp_path: Path
) -> None:
    before = state_of(repository.tree)
    kernels = FakeKernels()
    trials = Trials(kernels, FakeBoards(repository.bad_from(20)), Journal())

    run(repository.subject(tmp_path, kernels), trials)

    assert state_of(repository.tree) == before


@pytest.mark.slow
def test_a_commit_that_does_not_build_is_skipped(
    repository: Repository, tmp_path: Path
) -> None:
    first = FakeKernels()
    run(
        repository.subject(tmp_path / "a", first),
        Trials(first, FakeBoards(repository.bad_from(41)), Journal()),
    )
    kernels = FakeKernels(broken={first.built[2]})
    trials = Trials(kernels, FakeBoards(repository.bad_from(41)), Journal())

    found = run(repository.subject(tmp_path / "b", kernels), trials)

    assert found.located is not None
    assert [c.name for c in found.located.changes] == [repository.commits[41]]
    assert [tried.name for tried in found.skipped] == [first.built[2]]
    assert "error: no" in found.skipped[0].why


def test_a_culprit_beside_one_that_does_not_boot_is_one_of_two(
    repository: Repository, tmp_path: Path
) -> None:
    kernels = FakeKernels()
    boards = FakeBoards(repository.bad_from(41), panics={repository.commits[40]})

    found = run(
        repository.subject(tmp_path, kernels), Trials(kernels, boards, Journal())
    )

    assert found.located is not None
    names = {change.name for change in found.located.changes}
    assert names == {repository.commits[40], repository.commits[41]}
    assert not found.is_found


def test_a_planted_change_without_effect_is_called_so(
    repository: Repository, tmp_path: Path
) -> None:
    kernels = FakeKernels()
    boards = FakeBoards(lambda _: False)

    found = run(
        repository.subject(tmp_path, kernels), Trials(kernels, boards, Journal())
    )

    assert not found.differs
    assert not found.is_found
    assert len(kernels.built) == 2


def test_a_difference_within_the_margin_is_no_difference(
    repository: Repository, tmp_path: Path
) -> None:
    kernels = FakeKernels()
    trials = Trials(kernels, FakeBoards(repository.bad_from(41)), Journal())
    margin = parse_margin("1ms", "max")

    found = run(repository.subject(tmp_path, kernels), trials, margin=margin)

    assert not found.differs


@pytest.mark.parametrize(
    "error",
    [
        RecordError("cannot write record.json: No space left on device"),
        HostError("pc: No space left in /tmp"),
        TargetError("cannot run qemu: No space left"),
    ],
)
def test_what_this_machine_lacks_is_no_fault_of_a_kernel(
    repository: Repository, tmp_path: Path, error: MeasurementError
) -> None:
    class FullDisk(FakeBoards):
        def measure(self, built: Built, name: str) -> Values:
            if len(self.measured) == 3:
                raise error
            return super().measure(built, name)

    kernels = FakeKernels()
    trials = Trials(kernels, FullDisk(repository.bad_from(30)), Journal())

    with pytest.raises(type(error), match="No space left"):
        run(repository.subject(tmp_path, kernels), trials)
    assert len(trials.journal.steps) == 3


def test_ends_that_are_the_wrong_way_round_are_refused(
    repository: Repository, tmp_path: Path
) -> None:
    kernels = FakeKernels()
    is_bad = repository.bad_from(30)
    boards = FakeBoards(lambda commit: not is_bad(commit))

    with pytest.raises(UsageError, match=r"--good is bad already: .* name other ends"):
        run(repository.subject(tmp_path, kernels), Trials(kernels, boards, Journal()))


def test_an_end_that_does_not_build_ends_the_search(
    repository: Repository, tmp_path: Path
) -> None:
    kernels = FakeKernels(broken={repository.commits[-1]})
    trials = Trials(kernels, FakeBoards(lambda _: False), Journal())

    with pytest.raises(KernelError, match=r"--bad .* cannot be tested: it does not b"):
        run(repository.subject(tmp_path, kernels), trials)


@pytest.mark.slow
def test_a_search_goes_on_where_it_was_interrupted(
    repository: Repository, tmp_path: Path
) -> None:
    whole = FakeKernels()
    is_bad = repository.bad_from(41)
    run(
        repository.subject(tmp_path / "a", whole),
        Trials(whole, FakeBoards(is_bad), Journal()),
    )
    file = tmp_path / STEPS
    first = FakeKernels(full_at=whole.built[5])
    with pytest.raises(CannotGoOnError):
        run(
            repository.subject(tmp_path / "b", first),
            Trials(first, FakeBoards(is_bad), read_journal(file)),
        )
    second = FakeKernels()
    found = run(
        repository.subject(tmp_path / "c", second),
        Trials(second, FakeBoards(is_bad), read_journal(file)),
    )

    assert first.built + second.built == whole.built
    assert found.is_found
    assert found.builds == len(whole.built)


def test_a_line_that_was_cut_off_is_tried_again(tmp_path: Path) -> None:
    file = tmp_path / STEPS
    kernels = FakeKernels()
    trials = Trials(kernels, FakeBoards(numbers(9, 5)), read_journal(file))
    trials.measured("1")
    trials.measured("2")
    file.write_bytes(file.read_bytes()[:-9])

    again = read_journal(file)
    Trials(kernels, FakeBoards(numbers(9, 5)), again).measured("3")

    assert list(again.steps) == ["1", "3"]
    assert list(read_journal(file).steps) == ["1", "3"]


@pytest.mark.parametrize(
    "line",
    [
        '{"name": 1, "what": 2}',
        '{"name": [], "values": {}}',
        '{"name": "a", "values": {"1": NaN}}',
        '{"name": "a", "values": {"1": 1}, "why": []}',
        '{"name": "../../a", "values": {"1": 1}}',
        '{"name": "a", "values": {"1": 1}, "like": "/home"}',
        "[" * 200_000,
    ],
    ids=lambda line: line[:50],
)
def test_a_damaged_journal_is_named(tmp_path: Path, line: str) -> None:
    """Or one that came by mail: its names are those of directories."""
    file = tmp_path / STEPS
    file.write_text(f"{line}\n")

    with pytest.raises(RecordError, match="line 1: no step of a search"):
        read_journal(file)


def test_the_same_configuration_is_neither_built_nor_booted_again() -> None:
    kernels = FakeKernels(same={"2": "1"})
    boards = FakeBoards(numbers(9, 5))
    trials = Trials(kernels, boards, Journal())

    one, two = trials.measured("1"), trials.measured("2")

    assert two.values == one.values
    assert two.directory == "1"
    assert kernels.built == ["1"]
    assert boards.measured == ["1"]


# --- names of commits -------------------------------------------------------------


def test_names_that_are_no_commits_are_refused(repository: Repository) -> None:
    for good in ("nothing", "--all", "HEAD:file"):
        with pytest.raises(UsageError, match="--good"):
            history.find_range(repository.tree, good, "HEAD")


def test_ends_in_the_wrong_order_are_refused(repository: Repository) -> None:
    with pytest.raises(UsageError, match="--bad HEAD~3 is older than --good HEAD"):
        history.find_range(repository.tree, "HEAD", "HEAD~3")


def test_a_directory_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no git repository"):
        history.find_range(tmp_path, "a", "b")


def test_a_repository_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "other", 1)
    git(made.tree, "rm", "--quiet", "Kconfig")
    git(made.tree, "commit", "--quiet", "-m", "no kernel")

    with pytest.raises(UsageError, match="HEAD is no kernel"):
        history.find_range(made.tree, made.commits[0], "HEAD")


def test_changes_that_are_in_no_commit_are_refused(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "dirty", 3)
    (made.tree / "file").write_text("mine")

    with pytest.raises(UsageError, match=r"files differ from HEAD \(file\)"):
        history.find_range(made.tree, "HEAD~3", "HEAD")
    assert history.find_range(made.tree, "HEAD~3", "HEAD~1").commits == 2
    assert (made.tree / "file").read_text() == "mine"
