"""A search and its directory: a new one by options, or one to continue."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from rtscope.boards.kernels.recipe import Recipe, find_recipe
from rtscope.boards.kernels.sourcekernel import check_board
from rtscope.cli.consent import ask_builds
from rtscope.cli.console import typed_words
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.files.documents import json_object
from rtscope.host.version import __version__
from rtscope.measure.preflight import refuse_full_disk
from rtscope.record.directory.records import is_occupied, refuse_links
from rtscope.stats.costs import IDLE
from rtscope.verbs.bisect.boards import RECORDS, Measurement
from rtscope.verbs.bisect.criterion import parse_margin
from rtscope.verbs.bisect.figures import FIGURES, check_figure, check_load
from rtscope.verbs.bisect.journal import STEPS
from rtscope.verbs.bisect.kernels import LOG
from rtscope.verbs.bisect.outcome import Kind
from rtscope.verbs.bisect.subjects import Subject

DOCUMENT = "bisect.json"
SCHEMA = 1
MAX_DOCUMENT_BYTES = 1 << 20

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
    the good kernel's seeds differ by), e.g. 20us.
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
    where = out or Path(datetime.now().strftime("rtscope-bisect-%Y%m%d-%H%M%S"))
    _refuse_occupied(where)
    refuse_full_disk(where)
    return _work(options, where, typed_words())


def _refuse_occupied(path: Path) -> None:
    if is_occupied(path):
        raise UsageError(f"--out {path}: not empty; name a new directory")


def resumed_work(path: Path, *, yes: bool) -> BisectWork:
    """
    Return the search of a directory, after asking for what it builds, unless `yes`.

    Raises UsageError if there is none, or it has links, and RecordError if its
    document is none of rtscope.
    """
    file = path / DOCUMENT
    if not file.exists():
        raise UsageError(f"{path}: no search there: it has no {DOCUMENT}")
    records = path / RECORDS
    refuse_links(
        *(path / name for name in (DOCUMENT, STEPS, LOG)),
        *(records, *(records.iterdir() if records.is_dir() else ())),
    )
    text = read_bounded(file, limit=MAX_DOCUMENT_BYTES, kind="search")
    try:
        document = json_object(text, name=str(file))
        if document["schema"] != SCHEMA:
            raise RecordError(
                f"{file}: schema {document['schema']!a} is not one that this rtscope "
                "reads; use the version that wrote it"
            )
        options = TypeAdapter(SearchOptions).validate_python(document["asked"])
        typed = tuple(map(str, document["command"]))
        work = _work(options, path, typed)
        if not yes:
            _ask(work)
        return replace(work, identity=str(document.get("identity", "")))
    except OSError as error:  # a name that no file can have
        why = f"{error.strerror}: {printable(str(error.filename), limit=80)}"
        raise RecordError(
            f"{file}: a file that it names cannot be read: {why}"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(f"{file}: no search of rtscope") from error


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
    _refuse_occupied(work.path)
    options = asdict(work.options)
    paths = ["tree", "patches", "recipe"]
    if subject.kind is Kind.SETTING:
        paths += ["good", "bad"]
    for name in paths:
        options[name] = _absolute(options[name])
    if subject.kind is Kind.COMMIT:  # a branch may move
        options |= {"good": subject.good, "bad": subject.bad}
    document = {
        "identity": subject.identity,
        "schema": SCHEMA,
        "rtscope": __version__,
        "command": list(work.typed),
        "asked": options,
    }
    text = json.dumps(document, indent=1).encode() + b"\n"
    write_atomically(work.path / DOCUMENT, text)


def _absolute(value: Any) -> str | None:
    """Make a path absolute; leave other text unchanged."""
    if value is None or not Path(value).exists():
        return None if value is None else str(value)
    return str(Path(value).resolve())
