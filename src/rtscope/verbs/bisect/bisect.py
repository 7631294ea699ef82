"""Find the commit, patch or setting that makes a kernel worse."""

import contextlib
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.runs.store import open_stored
from rtscope.cli.console import (
    log,
    note,
    put,
    put_json,
    say,
    stderr_console,
    stdout_console,
)
from rtscope.cli.options import DisplayOptions, ask_builds
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.explain.directory import explained_runs
from rtscope.host.errors import RtscopeError, UsageError
from rtscope.host.files import write_atomically
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import format_duration, plural
from rtscope.machine.target import agent_file
from rtscope.measure.campaign.messages import BOARDS, OUTPUT
from rtscope.measure.plan import make_plan
from rtscope.measure.preflight import refuse_full_disk
from rtscope.present.document import Block, Detail
from rtscope.present.render.terminal import print_blocks
from rtscope.record.directory.journal import STEPS, Journal, read_journal
from rtscope.record.directory.place import (
    SEARCH,
    hold,
    make_directory,
    new_place,
    refuse_used,
)
from rtscope.record.directory.records import ResultDir
from rtscope.verbs.bisect import subjects
from rtscope.verbs.bisect.criterion import (
    Margin,
    format_value,
    is_reversed,
    parse_margin,
)
from rtscope.verbs.bisect.directory import (
    BisectWork,
    Resumed,
    SearchOptions,
    create,
    new_work,
    read_resumed,
    resumed_work,
)
from rtscope.verbs.bisect.history import open_history
from rtscope.verbs.bisect.kernels import (
    LOG,
    Bench,
    VirtualBoards,
    directory_of,
    workplace,
    worst_seed,
)
from rtscope.verbs.bisect.measured import judge_measured
from rtscope.verbs.bisect.outcome import (
    Kind,
    Outcome,
    Side,
    Trials,
    ends_of,
    outcome_data,
    skipped_of,
)
from rtscope.verbs.bisect.program import (
    ProgramCommits,
    find_program,
    search_program,
    write_program,
)
from rtscope.verbs.bisect.programtext import (
    program_answer,
    program_data,
    program_lines,
)
from rtscope.verbs.bisect.subjects import REPOSITORY, Left, Subject
from rtscope.verbs.bisect.text import answer, lines

# --- one search from its ends to the change: good and bad, then what lies between -----

Explain = Callable[[Side, Side], tuple[Side, Side]]
"""Adds the explanations of two kernels."""


def search(
    subject: Subject,
    trials: Trials,
    *,
    figure: str,
    load: str,
    margin: Margin,
    explain: Explain,
    progress: Left,
) -> Outcome:
    """
    Return the change that makes the difference between good and bad.

    Raises UsageError if good is the worse of the two, KernelError if one of them cannot
    be tested.
    """
    good = trials.required(subject.good, option="--good")
    bad = trials.required(subject.bad, option="--bad")
    one, two, threshold = ends_of(good, bad, margin)
    if is_reversed(threshold, figure):
        other = "swap them" if subject.kind is Kind.SETTING else "name other ends"
        raise UsageError(
            f"--good is bad already: its {figure} is "
            f"{format_value(threshold.first, figure)}, that of --bad "
            f"{format_value(threshold.second, figure)} (medians over seeds): "
            f"{other}, or another --figure"
        )
    located = before = after = without = None
    if threshold.differs:
        trials.threshold = threshold
        located = subject.locate(trials.verdict, progress)
        before, after = _side(located.before, trials), _side(located.after, trials)
        before, after = explain(before, after)
        without = _side(located.without, trials) if located.without else None
    steps = list(trials.journal.steps.values())
    return Outcome(
        kind=subject.kind,
        figure=figure,
        load=load,
        margin=threshold.margin,
        candidates=subject.candidates,
        good=replace(one, name=subject.title(one.name)),
        bad=replace(two, name=subject.title(two.name)),
        located=located,
        before=before and replace(before, name=subject.title(before.name)),
        after=after and replace(after, name=subject.title(after.name)),
        without=without and replace(without, name=subject.title(without.name)),
        builds=sum(step.built for step in steps),
        boots=sum(len(step.values) for step in steps if not step.like),
        skipped=tuple(
            replace(one, name=subject.title(one.name))
            if subject.kind is Kind.SETTING
            else one
            for one in skipped_of(steps)
        ),
    )


def _side(name: str, trials: Trials) -> Side:
    step = trials.measured(name)
    return Side(step.name, step.values)


# --- find the commit, patch or setting that makes a kernel worse ----------------------

RESULT = "result.json"
NOT_SHOWN = 4
"""Exit status: no change was found, because there is none or others hide it."""

MACHINE = "Kernels that you boot yourself"


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectRequest:
    """The arguments and options of `rtscope bisect`."""

    options: SearchOptions
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
    out: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """Directory of the results (default: rtscope-bisect-DATE-TIME), e.g. out."""
    resume: Path | None = None
    """Directory of an interrupted search to continue, e.g. out."""
    yes: bool = False
    """
    Consent to run what a resumed search names: git in a tree, the build of a kernel.
    """
    json: Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT)] = False
    """Result as JSON."""
    display: DisplayOptions


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
    resumed = _resumed(request)
    if (request.options if resumed is None else resumed.options).test is not None:
        return _bisect_program(request, resumed)
    work = (
        new_work(request.options, request.out)
        if resumed is None
        else resumed_work(resumed, yes=request.yes)
    )
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
            subject = _subject(work.options, bench)
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
                    create(work, subject)
                outcome = _search(work, subject, bench, request)
    everything = request.display.detail is Detail.ALL
    _show(
        Shown(
            outcome_data(outcome),
            answer(outcome),
            lines(outcome, all_of_it=everything),
            parts="Records of every kernel",
        ),
        work.path,
        request,
    )
    return 0 if outcome.is_found else NOT_SHOWN


# --- the commit of a program, by its test ---------------------------------------------


def _bisect_program(request: BisectRequest, resumed: Resumed | None) -> int:
    """Search the commits of a program; print which one made it worse."""
    asked = request.options if resumed is None else resumed.options
    if resumed is not None and asked.test is not None and not request.yes:
        ask_builds(tree=asked.test.parent, patches=None, kernels=())
    program = find_program(asked)
    path = request.resume or new_place(request.out, "bisect")
    if resumed is None:
        refuse_used(path)
        refuse_full_disk(path)
    elif resumed.document.identity != program.identity:
        raise UsageError(
            f"{path}: the test or the commits are not those that it was started with: "
            "search again with a new --out"
        )
    ends = program.ends
    most = 2 + (ends.commits - 1).bit_length()
    note(
        f"{plural(ends.commits, 'commit')} of {ends.tree}: about "
        f"{plural(most, 'test')} of {program.inside} at most, and two more boots at "
        "the end"
    )
    if request.dry_run:
        return 0
    with Waiting(stderr_console()) as waiting, workplace(cache_dir()) as root:
        own = open_history(ends, root / REPOSITORY, root / "source")
        commits = ProgramCommits(program, own, path, waiting)
        if request.resume is None:
            make_directory(path)
        with hold(path):
            if request.resume is None:
                write_program(path, asked, program)
            with _note_how_to_continue(path):
                found = search_program(commits, log=waiting.over(note))
    everything = request.display.detail is Detail.ALL
    _show(
        Shown(
            program_data(found),
            program_answer(found),
            program_lines(found, all_of_it=everything),
            parts="Answers of every commit",
        ),
        path,
        request,
    )
    return 0 if found.is_found else NOT_SHOWN


def _resumed(request: BisectRequest) -> Resumed | None:
    """Return the search to continue; None: a new one begins."""
    if request.resume is None:
        return None
    if request.out is not None or request.options != SearchOptions():
        raise UsageError(
            "--resume continues the search as it was started: leave out the other "
            "options"
        )
    return read_resumed(request.resume)


def _judged(request: BisectRequest, measured: str) -> int:
    """Judge the runs of one kernel; UsageError for an option of a search."""
    options = request.options
    left = replace(
        options, good=None, bad=None, figure=SearchOptions().figure, load=None
    )
    whole = replace(
        request, measured=None, json=False, display=DisplayOptions(), options=left
    )
    if whole != BisectRequest(options=SearchOptions(), display=DisplayOptions()):
        raise UsageError(
            "--measured judges runs that are there, by --good, --bad, --figure and "
            "--load: leave out the options of a search on virtual boards"
        )
    return judge_measured(
        measured,
        good=options.good,
        bad=options.bad,
        load=options.load,
        figure=options.figure,
        as_json=request.json,
        detail=request.display.detail,
    )


def _subject(options: SearchOptions, bench: Bench) -> Subject:
    if options.patches is not None:
        return subjects.series(
            bench, options.patches, good=options.good, bad=options.bad
        )
    assert options.good is not None
    assert options.bad is not None
    if options.tree is not None:
        return subjects.commits(bench, options.tree, good=options.good, bad=options.bad)
    return subjects.settings(bench, good=options.good, bad=options.bad)


def _announce(work: BisectWork, subject: Subject) -> None:
    plan = make_plan(work.measurement.campaign("kernel"))
    seeds, builds = len(plan.runs), subject.most_builds
    virtual = format_duration(plan.total_ns * builds)
    note(
        f"{subject.candidates:,} {subject.what}: about {plural(builds, 'kernel')} to "
        f"build at most, and {builds * seeds} boots, {virtual} of virtual time on "
        f"{work.measurement.board}; more if steps are skipped, or the history branches"
    )
    note(
        f"  {work.options.figure} under {work.measurement.load}, median of "
        f"{plural(seeds, 'seed')}; the first kernel takes minutes to an hour, later "
        "ones what their change takes"
    )
    if work.options.tree is not None and work.recipe.patches:
        note(f"  without the patches of {work.recipe.name}: the tree is as it is")


def _search(
    work: BisectWork, subject: Subject, bench: Bench, request: BisectRequest
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
    with _note_how_to_continue(work.path):
        return search(
            subject,
            trials,
            figure=work.options.figure,
            load=work.measurement.load,
            margin=parse_margin(work.options.margin, work.options.figure),
            explain=lambda one, two: _explained(work, bench, journal, one, two),
            progress=lambda left: bench.context.log(
                f"{plural(left, subject.kind)} left to search"
            ),
        )


@contextlib.contextmanager
def _note_how_to_continue(path: Path) -> Iterator[None]:
    """Say how a search that ended early goes on."""
    try:
        yield
    except (RtscopeError, KeyboardInterrupt):
        say(f"to continue: {SEARCH.to_go_on(path)}")
        raise


def _explained(
    work: BisectWork, bench: Bench, journal: Journal, one: Side, two: Side
) -> tuple[Side, Side]:
    """Explain the worst wake-ups of the same seed before and after the change."""
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
            worst=0,
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


@dataclass(frozen=True, slots=True)
class Shown:
    """What a search came to: as JSON, in a line, for a terminal."""

    data: dict[str, Any]
    answer: str
    lines: Iterator[Block]
    parts: str
    """What lies in the directory of its steps."""


def _show(shown: Shown, path: Path, request: BisectRequest) -> None:
    """Write down what a search came to, and print it as it is asked for."""
    write_atomically(path / RESULT, json_text(shown.data, indent=1).encode())
    if request.json:
        put_json(shown.data)
    elif request.display.detail is Detail.QUIET:
        put(f"{shown.answer}\n")
    else:
        with stdout_console() as console:
            print_blocks(shown.lines, console)
            where = shlex.quote(str(path / SEARCH.parts))
            print_blocks([f"{shown.parts}: {where}"], console)
