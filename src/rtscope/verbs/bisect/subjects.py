"""
What can be searched: commits of a tree, patches of a series, settings of two kernels.

Each is two ends, kernels to build, and a way to go from the ends to the change.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.boards.kernels.recipe import Recipe, base_file, find_recipe, fragments_of
from rtscope.boards.kernels.resolved import differing_names
from rtscope.boards.kernels.source import find_origin, series_of, wanted_version
from rtscope.boards.kernels.tree import Series, apply_series, read_series
from rtscope.boards.parts.cache import locked
from rtscope.host.errors import KernelError, UsageError, first_of
from rtscope.verbs.bisect import history
from rtscope.verbs.bisect.history import OwnRepository
from rtscope.verbs.bisect.kernels import (
    MOST_NAMED,
    Bench,
    CommitKernels,
    ConfiguredKernels,
)
from rtscope.verbs.bisect.outcome import Change, Kernels, Kind, Located, Verdict
from rtscope.verbs.bisect.settings import (
    Blamed,
    Differences,
    Setting,
    blame,
    differences_of,
    name_of,
)

REPOSITORY = "history.git"

Judge = Callable[[str], Verdict]
Left = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Subject:
    """Something to search in."""

    kind: Kind
    what: str
    """In words, for the plan."""
    good: str
    bad: str
    candidates: int
    most_builds: int
    """Without skipped steps, and with one cause."""
    kernels: Kernels
    locate: Callable[[Judge, Left], Located]
    title: Callable[[str], str]
    """Returns what the journal's name of a kernel stands for."""
    identity: str
    """Of all that decides what is found; a search goes on only with the same."""


def commits(bench: Bench, tree: Path, *, good: str, bad: str) -> Subject:
    """Search the commits between two of a user's tree; see `history.find_range`."""
    ends = history.find_range(tree, good, bad)
    own = history.open_history(ends, bench.root / REPOSITORY, bench.source)
    return _of_history(
        bench,
        own,
        Kind.COMMIT,
        ends=(ends.good, ends.bad),
        count=ends.commits,
        what=f"commits of {tree}, {good} to {bad}",
        change=lambda commit: Change(commit, history.title_of(own, commit)),
        title=lambda commit: commit[: history.SHORT],
    )


def _patches(number: int) -> str:
    """Write how many patches are applied."""
    return "1 patch" if number == 1 else f"{number} patches"


def series(bench: Bench, text: str, *, good: str | None, bad: str | None) -> Subject:
    """
    Search a series of patches, on the source of a recipe with the series before it.

    Raises UsageError for a series that is none, KernelError for a patch that does not
    apply.
    """
    before, wanted = unpack_for_series(bench, text)
    own = OwnRepository(bench.root / REPOSITORY, bench.source)
    first = history.place_in(before, good, option="--good", default=0)
    last = history.place_in(before, bad, option="--bad", default=len(before.patches))
    if first >= last:
        raise UsageError(
            f"--good has {first} patches of {before.name} and --bad has {last}: --bad "
            "needs more of them"
        )
    applied = history.apply_as_commits(before, own, wanted=wanted)
    by_commit = applied.by_commit
    return _of_history(
        bench,
        own,
        Kind.PATCH,
        ends=(applied.commits[first], applied.commits[last]),
        count=last - first,
        what=f"patches of {before.name}",
        change=lambda one: Change(by_commit[one].name, by_commit[one].subject),
        title=lambda one: _patches(applied.count_of(one)),
    )


def unpack_for_series(bench: Bench, text: str) -> tuple[Series, str | None]:
    """Unpack the source, apply the recipe's series before the one that is searched."""
    unpack(bench)
    recipe = bench.recipe
    for one in series_of(recipe, bench.root):
        if one.name == text:
            return one, wanted_version(recipe)
        apply_series(one, bench.source, wanted=wanted_version(recipe))
    path = Path(text)
    if not path.exists():
        names = ", ".join(recipe.patches) or "none"
        raise UsageError(
            f"--patches {text}: no such file or folder, and no series of the recipe "
            f"{recipe.name} (its series: {names})"
        )
    return read_series(path, name=text), None


def unpack(bench: Bench) -> None:
    """Fetch and unpack the source of the recipe."""
    with locked(bench.context.cache, log=bench.context.log):
        find_origin(bench.context, bench.recipe).unpack(bench.root)


def settings(bench: Bench, *, good: str, bad: str) -> Subject:
    """
    Search the settings in which two configurations differ: recipes, or files.

    Raises UsageError if they do not differ, or are of different sources.
    """
    one, two = _configured(bench, good, "--good"), _configured(bench, bad, "--bad")
    unpack(bench)
    for part in series_of(bench.recipe, bench.root):
        apply_series(part, bench.source, wanted=wanted_version(bench.recipe))
    differences = differences_of(
        bench.resolve(one), bench.resolve(two), bench.symbols()
    )
    if not differences.settings:
        raise UsageError(
            f"--good {good} and --bad {bad} are the same kernel: kbuild resolves both "
            "to the same settings"
        )
    kernels = ConfiguredKernels(bench)
    kernels.texts["good"] = differences.mixed(())
    kernels.texts["bad"] = differences.mixed(differences.settings)
    kernels.wanted["good"], kernels.wanted["bad"] = differences.good, differences.bad
    titles = {"good": "good", "bad": "bad"}
    count = len(differences.settings)
    return Subject(
        kind=Kind.SETTING,
        what=f"settings that differ between {good} and {bad}",
        good="good",
        bad="bad",
        candidates=count,
        most_builds=2 * _halvings(count) + 4,
        kernels=kernels,
        locate=lambda judge, left: _blamed(differences, kernels, titles, judge, left),
        title=lambda name: titles.get(name, name),
        identity=_identity(bench.recipe, *kernels.texts.values()),
    )


def _identity(recipe: Recipe, *ends: str) -> str:
    """Return the digest of the ends of a search and of what else is built."""
    base = base_file(recipe)
    whole = (
        repr((recipe.source, recipe.arch, recipe.board, recipe.size, recipe.base)),
        base.read_text(errors="replace") if base else "",
        *(f"{name}\n{text}" for name, text in fragments_of(recipe).items()),
        *ends,
    )
    return hashlib.sha256("\0".join(whole).encode()).hexdigest()


def _configured(bench: Bench, text: str, option: str) -> Recipe:
    path = Path(text)
    if text.endswith(".toml") or not path.is_file():
        named = find_recipe(text)
        recipe = bench.recipe
        if (named.source, named.patches, named.arch) != (
            recipe.source,
            recipe.patches,
            recipe.arch,
        ):
            raise UsageError(
                f"{option} {text}: has another source than {recipe.name}: settings are "
                "compared on one source; to search its commits, name --tree"
            )
        return named
    return replace(
        bench.recipe, base=f"./{path.name}", folder=path.resolve().parent, fragments=()
    )


def _blamed(
    differences: Differences,
    kernels: ConfiguredKernels,
    titles: dict[str, str],
    judge: Judge,
    left: Left,
) -> Located:
    skipped: list[frozenset[Setting]] = []

    def named(chosen: Sequence[Setting]) -> str:
        if len(chosen) == len(differences.settings):
            return "bad"
        name = name_of(chosen)
        kernels.texts[name] = differences.mixed(chosen)
        titles[name] = first_of(MOST_NAMED, [one.title for one in chosen])
        return name

    def is_bad(chosen: Sequence[Setting]) -> bool:
        verdict = judge(named(chosen))
        if verdict is Verdict.SKIPPED:
            skipped.append(frozenset(chosen))
        return verdict is Verdict.BAD

    blamed = blame(differences, is_bad, progress=left)
    closed = differences.closed(blamed.settings)
    return Located(
        changes=_symbols(differences, blamed.settings),
        along=_symbols(differences, blamed.along),
        before="good",
        after=named(closed),
        without=_without(differences, kernels, blamed, judge, named),
        narrowed=not any(some < frozenset(closed) for some in skipped),
    )


def _without(
    differences: Differences,
    kernels: ConfiguredKernels,
    blamed: Blamed,
    judge: Judge,
    named: Callable[[Sequence[Setting]], str],
) -> str:
    """Return the kernel with what goes along alone; empty: it cannot be had."""
    if not blamed.along:
        return ""
    name = named(differences.closed(blamed.along))
    if judge(name) is Verdict.SKIPPED:
        return ""
    values = kernels.resolve(name)
    wanted = {
        symbol: config.get(symbol, "n")
        for settings, config in (
            (blamed.along, differences.bad),
            (blamed.settings, differences.good),
        )
        for one in settings
        for symbol in one.names
    }
    is_made = wanted.keys().isdisjoint(differing_names(wanted, values))
    return name if is_made else ""


def _symbols(
    differences: Differences, chosen: tuple[Setting, ...]
) -> tuple[Change, ...]:
    return tuple(
        Change(
            f"{name}={differences.bad.get(name, 'n')}", differences.good.get(name, "n")
        )
        for setting in chosen
        for name in setting.names
    )


def _of_history(
    bench: Bench,
    own: OwnRepository,
    kind: Kind,
    *,
    ends: tuple[str, str],
    count: int,
    what: str,
    change: Callable[[str], Change],
    title: Callable[[str], str],
) -> Subject:
    good, bad = ends

    def locate(judge: Judge, left: Left) -> Located:
        result = history.search(own, good, bad, verdict=judge, progress=left)
        if len(result.culprits) != 1:
            return Located(
                tuple(map(change, result.culprits)), good, bad, narrowed=False
            )
        (culprit,) = result.culprits
        return Located((change(culprit),), _before(own, culprit, judge, good), culprit)

    return Subject(
        kind=kind,
        what=what,
        good=good,
        bad=bad,
        candidates=count,
        most_builds=_halvings(count) + 2,
        kernels=CommitKernels(bench, own.take, title),
        locate=locate,
        title=title,
        identity=_identity(bench.recipe, good, bad),
    )


def _before(own: OwnRepository, culprit: str, judge: Judge, good: str) -> str:
    """Return the kernel without a commit: its parent, unless that is not testable."""
    try:
        parent = history.parent_of(own, culprit)
    except KernelError:
        return good
    return parent if judge(parent) is Verdict.GOOD else good


def _halvings(count: int) -> int:
    return math.ceil(math.log2(count)) if count > 1 else 0
