"""
A series of patches as commits, so that it is searched as a history is.

The repository has only the files that the series touches; the rest of the source lies
beside them and is not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.boards.kernels.series import Patch, Series, describe, try_series
from rtscope.host.errors import KernelError, UsageError
from rtscope.verbs.bisect.gitrun import OwnRepository
from rtscope.verbs.bisect.history import make_bare


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
    commits = [_commit(own, "the source without the series")]
    for patch in series.patches:
        own.run(
            *("apply", "--index", "--whitespace=nowarn", f"-p{patch.strip}"),
            str(patch.path.resolve()),
        )
        commits.append(_commit(own, patch.subject))
    return Applied(tuple(commits), series.patches)


def _commit(own: OwnRepository, subject: str) -> str:
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
    if text.isdecimal() and int(text) <= len(names):
        return int(text)
    if text in names:
        return names.index(text) + 1
    raise UsageError(
        f"{option} {text}: {series.name} has {len(names)} patches; write how many are "
        f"applied, 0 to {len(names)}, or the name of the last one, e.g. {names[0]}"
    )
