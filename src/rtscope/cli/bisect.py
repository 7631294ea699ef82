"""Find the commit, patch or setting that makes a kernel worse."""

import contextlib
import json as json_text
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope import __version__
from rtscope.analysis import explained_runs
from rtscope.bisect import subjects
from rtscope.bisect.boards import (
    RECORDS,
    Measurement,
    VirtualBoards,
    directory_of,
    worst_seed,
)
from rtscope.bisect.criterion import parse_margin
from rtscope.bisect.figures import FIGURES, check_figure, check_load
from rtscope.bisect.journal import STEPS, read_journal
from rtscope.bisect.kernels import LOG, Bench
from rtscope.bisect.outcome import Kind, Outcome, Side, outcome_data
from rtscope.bisect.search import search
from rtscope.bisect.subjects import Subject
from rtscope.bisect.trials import Trials
from rtscope.bisect.workplace import workplace
from rtscope.board.buildcontext import BuildContext
from rtscope.board.cache import cache_dir
from rtscope.board.sourcekernel import check_board
from rtscope.campaign.options import BOARDS, OUTPUT
from rtscope.cli.bisectmeasured import judge_measured
from rtscope.cli.consent import ask_builds
from rtscope.cli.console import (
    log,
    note,
    put,
    put_json,
    say,
    stderr_console,
    stdout_console,
    typed_words,
)
from rtscope.cli.detail import Shown
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.errors import RecordError, RtscopeError, UsageError
from rtscope.files import read_bounded, write_atomically
from rtscope.kernel.recipe import Recipe, find_recipe
from rtscope.measure.plan import make_plan
from rtscope.measure.preflight import refuse_full_disk
from rtscope.record.resultdir import (
    ResultDir,
    hold,
    is_occupied,
    make_directory,
    refuse_links,
)
from rtscope.report.formats.bisect import answer, lines
from rtscope.report.formats.brief import Detail
from rtscope.report.words import plural
from rtscope.sweep.costs import IDLE
from rtscope.target import agent_file
from rtscope.units import format_duration
from rtscope.virtual.stored import open_stored

DOCUMENT, RESULT = "bisect.json", "result.json"
SCHEMA = 1
MAX_DOCUMENT_BYTES = 1 << 20
NOT_SHOWN = 4
"""Exit status: no change was found, because there is none or others hide it."""

SEARCHED, CRITERION = "What to search", "What is worse"

MACHINE = "Kernels that you boot yourself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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
    load: Annotated[
        str | None, typer.Option("--load", "-l", rich_help_panel=CRITERION)
    ] = None
    """
    Load to measure under (default: idle; with --measured the only one of the results),
    e.g. memory.
    """
    duration: Annotated[
        str, typer.Option("--duration", "-d", rich_help_panel=CRITERION)
    ] = "5s"
    """Virtual time to measure with each seed (default: 5s), e.g. 20s."""
    interval: Annotated[str, typer.Option(rich_help_panel=CRITERION)] = "1ms"
    """Interval between two wake-ups (default: 1ms), e.g. 200us."""
    seeds: Annotated[str, typer.Option(rich_help_panel=CRITERION)] = "3"
    """Seeds of the board, N for 1 to N, or a list (default: 3), e.g. 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectRequest:
    """The arguments and options of `rtscope bisect`."""

    asked: Asked
    measured: Annotated[str | None, typer.Option(rich_help_panel=MACHINE)] = None
    """
    Results of one kernel on a machine or board, to judge by those of --good and --bad
    for git bisect run: good 0, bad 1, skip 125, any error 128 or more; several with
    commas, e.g. steps/5.
    """
    jobs: Annotated[int | None, typer.Option(min=1, rich_help_panel=BOARDS)] = None
    """
    Number of virtual boards to run at once (default: one per CPU, as far as memory
    allows), e.g. 2.
    """
    dry_run: bool = False
    """Print what the search takes; build nothing."""
    out: Annotated[Path | None, typer.Option("--out", "-o", rich_help_panel=OUTPUT)] = (
        None
    )
    """Directory of the results (default: rtscope-bisect-DATE-TIME), e.g. out."""
    resume: Path | None = None
    """Directory of an interrupted search to continue, e.g. out."""
    yes: bool = False
    """
    Consent to run what a resumed search names: git in a tree, the build of a kernel.
    """
    json: Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT)] = False
    """Result as JSON."""
    shown: Shown


@dataclass(frozen=True, slots=True)
class _Work:
    """A search that is ready to start."""

    asked: Asked
    recipe: Recipe
    measurement: Measurement
    path: Path
    typed: tuple[str, ...]
    identity: str = ""
    """Of the search to continue; empty: it is new, or older than this was noted."""


def bisect(request: BisectRequest) -> int:
    """Find the commit, patch or setting that makes a kernel worse.

    Kernels between a good and a bad one are built and measured on their virtual board.
    The exit status is 4 if good and bad do not differ by more than the margin, or if
    no single change was found.

    With --measured nothing is built: the runs of one kernel that you have booted and
    measured yourself are compared with those of both ends, as a criterion for git
    bisect run.
    """
    if request.measured is not None:
        return _judged(request, request.measured)
    work = _resumed(request) if request.resume is not None else _new(request)
    with Waiting(stderr_console()) as waiting:
        context = BuildContext(
            cache=cache_dir(),
            agent=agent_file,
            log=waiting.over(note),
            progress=waiting,
        )
        with workplace(context.cache) as root:
            bench = Bench(work.recipe, root, context, root / LOG)
            bench.check()
            subject = _subject(work.asked, bench)
            _announce(work, subject)
            if request.dry_run:
                return 0
            if request.resume is None:
                make_directory(work.path)
            elif work.identity not in ("", subject.identity):
                raise UsageError(
                    f"{work.path}: the configurations, commits or patches are not "
                    "those that it was started with: search again with a new --out"
                )
            bench.log_file = work.path / LOG
            with hold(work.path):
                if request.resume is None:
                    _create(work, subject)
                found = _search(work, subject, bench, request)
    return _show(found, work, request)


def _judged(request: BisectRequest, measured: str) -> int:
    """Judge the runs of one kernel; UsageError for an option of a search."""
    asked = request.asked
    left = replace(asked, good=None, bad=None, figure=Asked().figure, load=None)
    whole = replace(request, measured=None, json=False, shown=Shown(), asked=left)
    if whole != BisectRequest(asked=Asked(), shown=Shown()):
        raise UsageError(
            "--measured judges runs that are there, by --good, --bad, --figure and "
            "--load: leave out the options of a search on virtual boards"
        )
    return judge_measured(
        measured,
        good=asked.good,
        bad=asked.bad,
        load=asked.load,
        figure=asked.figure,
        as_json=request.json,
        detail=request.shown.detail,
    )


def _new(request: BisectRequest) -> _Work:
    where = request.out or Path(datetime.now().strftime("rtscope-bisect-%Y%m%d-%H%M%S"))
    _refuse_occupied(where)
    refuse_full_disk(where)
    return _work(request.asked, where, typed_words())


def _refuse_occupied(path: Path) -> None:
    if is_occupied(path):
        raise UsageError(f"--out {path}: not empty; name a new directory")


def _resumed(request: BisectRequest) -> _Work:
    assert request.resume is not None
    if request.out is not None or request.asked != Asked():
        raise UsageError(
            "--resume continues the search as it was started: leave out the other "
            "options"
        )
    file = request.resume / DOCUMENT
    if not file.exists():
        raise UsageError(f"{request.resume}: no search there: it has no {DOCUMENT}")
    records = request.resume / RECORDS
    refuse_links(
        *(request.resume / name for name in (DOCUMENT, STEPS, LOG)),
        *(records, *(records.iterdir() if records.is_dir() else ())),
    )
    text = read_bounded(file, limit=MAX_DOCUMENT_BYTES, kind="search")
    try:
        document: dict[str, Any] = json_text.loads(text)
        if document["schema"] != SCHEMA:
            raise RecordError(
                f"{file}: schema {document['schema']!a} is not one that this rtscope "
                "reads; use the version that wrote it"
            )
        asked = document["asked"]
        tree = Path(asked.pop("tree")) if asked["tree"] else asked.pop("tree")
        typed = tuple(map(str, document["command"]))
        work = _work(Asked(**asked, tree=tree), request.resume, typed)
        if not request.yes:
            _ask(work)
        return replace(work, identity=str(document.get("identity", "")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(f"{file}: no search of rtscope") from error


def _ask(work: _Work) -> None:
    """Ask whether to build what a search names, which may have come by mail."""
    asked = work.asked
    own = asked.patches in work.recipe.patches
    kernels = [asked.recipe]
    if asked.tree is None and asked.patches is None:
        kernels += [asked.good, asked.bad]
    ask_builds(
        tree=asked.tree,
        patches=None if own else asked.patches,
        kernels=[name for name in kernels if name is not None],
    )


def _work(asked: Asked, path: Path, typed: tuple[str, ...]) -> _Work:
    """Check everything that can be checked before the first build."""
    load = asked.load or IDLE
    asked = replace(asked, load=load)
    if asked.tree is not None and asked.patches is not None:
        raise UsageError("--tree and --patches: search one of them; leave one out")
    if asked.patches is None and (asked.good is None or asked.bad is None):
        raise UsageError(
            "name both ends, --good and --bad: commits with --tree, or two recipes or "
            "configurations"
        )
    recipe = _recipe(asked)
    check_board(recipe)
    check_load(check_figure(asked.figure), load)
    parse_margin(asked.margin, asked.figure)
    measurement = Measurement(
        board=recipe.board,
        load=load,
        duration=asked.duration,
        interval=asked.interval,
        seeds=asked.seeds,
        figure=asked.figure,
    )
    campaign = measurement.campaign("kernel")
    if asked.margin is None and len(campaign.run_seeds) < 2:
        raise UsageError(
            "--seeds: one seed says nothing of how much chance does: name --margin, "
            "e.g. --margin 20us, or more seeds"
        )
    return _Work(asked, recipe, measurement, path, typed)


def _recipe(asked: Asked) -> Recipe:
    if asked.recipe is not None:
        return find_recipe(asked.recipe)
    if asked.tree is not None or asked.patches is not None or asked.good is None:
        raise UsageError(
            "name the recipe that the kernels are built by, e.g. --recipe pc-6.12-rt "
            "(rtscope kernel list)"
        )
    if Path(asked.good).is_file() and not asked.good.endswith(".toml"):
        raise UsageError(
            f"--good {asked.good}: a configuration; name the recipe whose source it is "
            "for, e.g. --recipe pc-6.12-rt"
        )
    return find_recipe(asked.good)


def _subject(asked: Asked, bench: Bench) -> Subject:
    if asked.patches is not None:
        return subjects.series(bench, asked.patches, good=asked.good, bad=asked.bad)
    assert asked.good is not None
    assert asked.bad is not None
    if asked.tree is not None:
        return subjects.commits(bench, asked.tree, good=asked.good, bad=asked.bad)
    return subjects.settings(bench, good=asked.good, bad=asked.bad)


def _announce(work: _Work, subject: Subject) -> None:
    plan = make_plan(work.measurement.campaign("kernel"))
    seeds, builds = len(plan.runs), subject.most_builds
    virtual = format_duration(plan.total_ns * builds)
    note(
        f"{subject.candidates:,} {subject.what}: about {plural(builds, 'kernel')} to "
        f"build at most, and {builds * seeds} boots, {virtual} of virtual time on "
        f"{work.measurement.board}; more if steps are skipped, or the history branches"
    )
    note(
        f"  {work.asked.figure} under {work.measurement.load}, median of "
        f"{plural(seeds, 'seed')}; the first kernel takes minutes to an hour, later "
        "ones what their change takes"
    )
    if work.asked.tree is not None and work.recipe.patches:
        note(f"  without the patches of {work.recipe.name}: the tree is as it is")


def _create(work: _Work, subject: Subject) -> None:
    """Write down what is searched; UsageError if another start was faster."""
    _refuse_occupied(work.path)
    asked = asdict(work.asked)
    paths = ["tree", "patches", "recipe"]
    if subject.kind is Kind.SETTING:
        paths += ["good", "bad"]
    for name in paths:
        asked[name] = _absolute(asked[name])
    if subject.kind is Kind.COMMIT:  # a branch may move
        asked |= {"good": subject.good, "bad": subject.bad}
    document = {
        "identity": subject.identity,
        "schema": SCHEMA,
        "rtscope": __version__,
        "command": list(work.typed),
        "asked": asked,
    }
    text = json_text.dumps(document, indent=1).encode() + b"\n"
    write_atomically(work.path / DOCUMENT, text)


def _absolute(value: Any) -> str | None:
    """Return a path as seen from everywhere; what is none stays as it is."""
    if value is None or not Path(value).exists():
        return None if value is None else str(value)
    return str(Path(value).resolve())


def _search(
    work: _Work, subject: Subject, bench: Bench, request: BisectRequest
) -> Outcome:
    boards = VirtualBoards(
        work.measurement,
        work.path,
        bench.context,
        bench.part_of,
        work.typed,
        display=lambda plan: LiveDisplay(stderr_console(), plan),
        results=open_stored(log=log),
        jobs=request.jobs,
    )
    journal = read_journal(work.path / STEPS)
    trials = Trials(subject.kernels, boards, journal, log=bench.context.log)
    with _told(work.path):
        return search(
            subject,
            trials,
            figure=work.asked.figure,
            load=work.measurement.load,
            margin=parse_margin(work.asked.margin, work.asked.figure),
            explain=lambda one, two: _explained(work, bench, one, two),
            progress=lambda left: bench.context.log(
                f"{plural(left, subject.kind)} left to search"
            ),
        )


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say how a search that ended early goes on."""
    try:
        yield
    except (RtscopeError, KeyboardInterrupt):
        say(f"to continue: rtscope bisect --resume {shlex.quote(str(path))}")
        raise


def _explained(work: _Work, bench: Bench, one: Side, two: Side) -> tuple[Side, Side]:
    """Explain the worst wake-ups of the same seed before and after the change."""
    journal = read_journal(work.path / STEPS)
    places = {
        side.name: directory_of(work.path, journal.steps[side.name].directory)
        for side in (one, two)
    }
    seed = worst_seed(places[two.name])
    before, after = (
        replace(side, explanation=_sentence(places[side.name], seed, bench))
        for side in (one, two)
    )
    return before, after


def _sentence(path: Path, seed: int, bench: Bench) -> str:
    records = ResultDir(path).records()
    run_id = next(one.run.id for one in records if (one.run.seed or 0) == seed)
    try:
        explained = explained_runs(
            path,
            run_id,
            worst=1,
            bound=False,
            cache=bench.context.cache,
            log=bench.context.log,
            progress=bench.context.progress,
        )
    except RtscopeError as error:
        bench.context.log(f"{path}: not explained: {error}")
        return ""
    wakeups = [wakeup for run in explained.runs for wakeup in run.document.wakeups]
    return wakeups[0].sentence if wakeups else ""


def _show(found: Outcome, work: _Work, request: BisectRequest) -> int:
    data = outcome_data(found)
    text = json_text.dumps(data, indent=1).encode() + b"\n"
    write_atomically(work.path / RESULT, text)
    if request.json:
        put_json(data)
    elif request.shown.detail is Detail.QUIET:
        put(f"{answer(found)}\n")
    else:
        with stdout_console() as console:
            everything = request.shown.detail is Detail.ALL
            for line in lines(found, all_of_it=everything):
                console.print(line)
            where = shlex.quote(str(work.path / RECORDS))
            console.print(f"Records of every kernel: {where}", markup=False)
    return 0 if found.is_found else NOT_SHOWN
