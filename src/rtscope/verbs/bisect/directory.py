"""A search and its directory: a new one by options, or one to continue."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from rtscope.boards.kernels.recipe import Recipe, find_recipe
from rtscope.boards.kernels.sourcekernel import check_board
from rtscope.cli.console import typed_words
from rtscope.cli.options import ask_builds
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.escape import printable
from rtscope.measure.preflight import refuse_full_disk
from rtscope.record.directory import place
from rtscope.record.directory.journal import STEPS
from rtscope.record.directory.records import refuse_links
from rtscope.stats.figures import IDLE
from rtscope.verbs.bisect.criterion import (
    FIGURES,
    check_figure,
    check_load,
    parse_margin,
)
from rtscope.verbs.bisect.kernels import LOG, Measurement
from rtscope.verbs.bisect.outcome import Kind
from rtscope.verbs.bisect.subjects import Subject

SEARCHED, CRITERION = "What to search", "What is worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search was started with; the rest is in its results."""

    good: Annotated[str | None, typer.Option(rich_help_panel=SEARCHED)] = None
    """
    Good end: a commit of --tree, a number of patches of --patches, a recipe or
    configuration, or results with --measured, e.g. v6.12.
    """
    bad: Annotated[str | None, typer.Option(rich_help_panel=SEARCHED)] = None
    """Bad end, e.g. HEAD."""
    tree: Annotated[Path | None, typer.Option(rich_help_panel=SEARCHED)] = None
    """Git repository of a kernel whose commits to search, e.g. linux."""
    test: Annotated[Path | None, typer.Option(rich_help_panel=SEARCHED)] = None
    """
    Test file as the criterion, to search the commits of the program in whose
    repository it is, e.g. control.toml.
    """
    patches: Annotated[str | None, typer.Option(rich_help_panel=SEARCHED)] = None
    """
    Series of patches to search: of the recipe, or a folder with a file series, e.g.
    riscv-6.1-rt.
    """
    recipe: Annotated[str | None, typer.Option(rich_help_panel=SEARCHED)] = None
    """
    Kernel recipe with configuration, board and, without --tree, source (default: the
    recipe that --good names), e.g. pc-6.12-rt.
    """
    figure: Annotated[
        str,
        typer.Option(
            rich_help_panel=CRITERION,
            help=f"Figure that is worse: {', '.join(FIGURES)} (default: max).",
        ),
    ] = "max"
    margin: Annotated[str | None, typer.Option(rich_help_panel=CRITERION)] = None
    """
    Least difference of the medians over seeds, as a time or a share (default: what
    the good kernel's seeds differ by), e.g. 20us. With --test a share by which a
    commit is worse than the good one (default: a budget is broken).
    """
    load: Annotated[str | None, typer.Option(rich_help_panel=CRITERION)] = None
    """
    Load to measure under (default: idle; with --measured the only one of the results),
    e.g. memory.
    """
    duration: Annotated[str, typer.Option(rich_help_panel=CRITERION)] = "5s"
    """Virtual time to measure with each seed (default: 5s), e.g. 20s."""
    interval: Annotated[str, typer.Option(rich_help_panel=CRITERION)] = "1ms"
    """Interval between two wake-ups (default: 1ms), e.g. 200us."""
    seeds: Annotated[str, typer.Option(rich_help_panel=CRITERION)] = "3"
    """Seeds of the board, N for 1 to N, or a list (default: 3), e.g. 5."""


@dataclass(frozen=True, slots=True)
class BisectWork:
    """A search that is ready to start."""

    options: SearchOptions
    recipe: Recipe
    measurement: Measurement
    path: Path
    typed: tuple[str, ...]
    identity: str = ""
    """Of the search to continue; empty: it is new, or older than this was noted."""


def new_work(options: SearchOptions, out: Path | None) -> BisectWork:
    """
    Return a search to start in `out`, or in a directory named by date and time.

    Raises UsageError if an end, a criterion or the place is not one.
    """
    where = place.new_place(out, "bisect")
    place.refuse_used(where)
    refuse_full_disk(where)
    return _work(options, where, typed_words())


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a search was started with."""

    path: Path
    options: SearchOptions
    document: place.Document


def resumed_work(resumed: Resumed, *, yes: bool) -> BisectWork:
    """
    Return a search of kernels, after asking for what it builds, unless `yes`.

    Raises UsageError if it cannot be continued, and RecordError if its document is none
    of rtscope.
    """
    path, document = resumed.path, resumed.document
    try:
        work = _work(resumed.options, path, document.command)
        if not yes:
            _ask(work)
        return replace(work, identity=document.identity)
    except OSError as error:  # a name that no file can have
        why = f"{error.strerror}: {printable(str(error.filename), limit=80)}"
        raise RecordError(
            f"{document.source}: a file that it names cannot be read: {why}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise place.SEARCH.damaged(path) from error


def read_resumed(path: Path) -> Resumed:
    """
    Return what the search of a directory was started with.

    Raises UsageError if there is none, or it has links, and RecordError if its
    document is none of rtscope.
    """
    steps = path / place.SEARCH.parts
    refuse_links(
        *(path / name for name in (place.SEARCH.file, STEPS, LOG)),
        *(steps, *(steps.iterdir() if steps.is_dir() else ())),
    )
    document = place.read_document(path, place.SEARCH)
    try:
        options = TypeAdapter(SearchOptions).validate_python(document.asked)
    except (ValueError, RecursionError) as error:
        raise place.SEARCH.damaged(path) from error
    return Resumed(path, options, document)


def _ask(work: BisectWork) -> None:
    """Ask whether to build what a search names, which may have come by mail."""
    options = work.options
    own = options.patches in work.recipe.patches
    kernels = [options.recipe]
    if options.tree is None and options.patches is None:
        kernels += [options.good, options.bad]
    ask_builds(
        tree=options.tree,
        patches=None if own else options.patches,
        kernels=[name for name in kernels if name is not None],
    )


def _work(options: SearchOptions, path: Path, typed: tuple[str, ...]) -> BisectWork:
    """Check everything that can be checked before the first build."""
    load = options.load or IDLE
    options = replace(options, load=load)
    if options.tree is not None and options.patches is not None:
        raise UsageError("--tree and --patches: search one of them; leave one out")
    if options.patches is None and (options.good is None or options.bad is None):
        raise UsageError(
            "name both ends, --good and --bad: commits with --tree, or two recipes or "
            "configurations"
        )
    recipe = _recipe(options)
    check_board(recipe)
    check_load(check_figure(options.figure), load)
    parse_margin(options.margin, options.figure)
    measurement = Measurement(
        board=recipe.board,
        load=load,
        duration=options.duration,
        interval=options.interval,
        seeds=options.seeds,
        figure=options.figure,
    )
    campaign = measurement.campaign("kernel")
    if options.margin is None and len(campaign.run_seeds) < 2:
        raise UsageError(
            "--seeds: one seed says nothing of how much chance does: name --margin, "
            "e.g. --margin 20us, or more seeds"
        )
    return BisectWork(options, recipe, measurement, path, typed)


def _recipe(options: SearchOptions) -> Recipe:
    if options.recipe is not None:
        return find_recipe(options.recipe)
    if options.tree is not None or options.patches is not None or options.good is None:
        raise UsageError(
            "name the recipe that the kernels are built by, e.g. --recipe pc-6.12-rt "
            "(rtscope kernel list)"
        )
    if Path(options.good).is_file() and not options.good.endswith(".toml"):
        raise UsageError(
            f"--good {options.good}: a configuration; name the recipe whose source it "
            "is for, e.g. --recipe pc-6.12-rt"
        )
    return find_recipe(options.good)


def create(work: BisectWork, subject: Subject) -> None:
    """Write down what is searched; UsageError if another start was faster."""
    place.refuse_used(work.path)
    options = asdict(work.options)
    del options["test"]  # of a program's commits alone
    paths = ["tree", "patches", "recipe"]
    if subject.kind is Kind.SETTING:
        paths += ["good", "bad"]
    for name in paths:
        options[name] = _absolute(options[name])
    if subject.kind is Kind.COMMIT:  # a branch may move
        options |= {"good": subject.good, "bad": subject.bad}
    place.write_document(
        work.path, place.SEARCH, options, command=work.typed, identity=subject.identity
    )


def _absolute(value: Any) -> str | None:
    """Make a path absolute; leave other text unchanged."""
    if value is None or not Path(value).exists():
        return None if value is None else str(value)
    return str(Path(value).resolve())
