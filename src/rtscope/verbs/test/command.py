"""Test a program on virtual boards: exact times, judged by budgets."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.parts.aptroot import lock_text
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.recording.programseen import record_of
from rtscope.cli.console import (
    Json,
    note,
    put,
    put_json,
    stderr_console,
    stdout_console,
)
from rtscope.cli.options import DisplayOptions
from rtscope.cli.progress import Waiting
from rtscope.host.errors import UsageError, quote
from rtscope.host.escape import visible_lines
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.units import NS_PER_S
from rtscope.measure.campaign.messages import OUTPUT
from rtscope.present.document import Detail, Section
from rtscope.present.render.fitted import print_fitted
from rtscope.present.render.markdown import render_document
from rtscope.present.render.page import page_of
from rtscope.present.render.terminal import print_blocks
from rtscope.programs.outside.file import ProgramRecord
from rtscope.verbs.test.answer import (
    ON_A_TERMINAL,
    Answer,
    answer_blocks,
    answer_document,
    brief_blocks,
    worst_of,
)
from rtscope.verbs.test.baseline import (
    Baseline,
    baseline_text,
    changed,
    differences,
    read_baseline,
)
from rtscope.verbs.test.codeseen import CodeReader
from rtscope.verbs.test.file import ProgramTest, load_test, with_values
from rtscope.verbs.test.forms import answer_junit, answer_row
from rtscope.verbs.test.judge import SeenStart, judge, judged_threads
from rtscope.verbs.test.options import OPTION_OF, ProgramTestOptions
from rtscope.verbs.test.page import page_document
from rtscope.verbs.test.plan import Boot, boots_of, lock_of
from rtscope.verbs.test.recorded import Recorded, recorded_cycle
from rtscope.verbs.test.running import Ran, run_boots
from rtscope.verbs.test.runs import run_row, seen_starts
from rtscope.verbs.test.search.found import found_row, found_section
from rtscope.verbs.test.search.searching import RunBoots, Searched, search_worst

BASELINE, SEARCH = "Baseline", "Search"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTestRequest:
    """The arguments of `rtscope test`."""

    program: Annotated[list[str], typer.Argument()]
    """Test file, or -- and a command to run on the board."""
    options: ProgramTestOptions
    display: DisplayOptions
    jobs: Annotated[int | None, typer.Option(min=1, rich_help_panel=OUTPUT)] = None
    """Boots at the same time (default: one for each CPU), e.g. 1."""
    save_lock: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """Lock file to write with the exact packages used, e.g. test.lock."""
    search: Annotated[int | None, typer.Option(min=2, rich_help_panel=SEARCH)] = None
    """
    Starts in which to search for the worst response, several in each boot: no bound,
    and experimental, e.g. 200.
    """
    search_seed: Annotated[int, typer.Option(min=0, rich_help_panel=SEARCH)] = 1
    """Random seed of the search; the same one makes the same starts, e.g. 2."""
    search_thread: Annotated[str | None, typer.Option(rich_help_panel=SEARCH)] = None
    """
    Thread whose worst response is searched (default: nearest to its limit, without
    limits to its period), e.g. control.
    """
    save: Annotated[Path | None, typer.Option(rich_help_panel=BASELINE)] = None
    """File for the results, to compare later ones with, e.g. test.json."""
    identical_to: Annotated[Path | None, typer.Option(rich_help_panel=BASELINE)] = None
    """File of --save; exit status 1 unless every cycle is equal, e.g. test.json."""
    no_worse_than: Annotated[Path | None, typer.Option(rich_help_panel=BASELINE)] = None
    """
    File of --save; exit status 1 if a worst response, a number of instructions or of
    missed periods is more, by the tolerance, e.g. test.json.
    """
    tolerance: Annotated[str | None, typer.Option(rich_help_panel=BASELINE)] = None
    """Share that --no-worse-than allows to be more (default: 0%), e.g. 2%."""
    junit: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """JUnit file to write, a case for each budget, e.g. test.xml."""
    markdown: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """Markdown file to write for a merge request, e.g. test.md."""
    html: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """HTML page to write, e.g. test.html."""
    explain: Annotated[
        bool | None, typer.Option("--explain/--no-explain", rich_help_panel=OUTPUT)
    ] = None
    """
    Boot again with all instructions of the worst cycle recorded, and name its cause
    (default: for a broken budget of a time, and for --html).
    """
    json: Json = False


def test(request: ProgramTestRequest) -> int:
    """Test a program on virtual boards: exact times, judged by budgets.

    Nothing watches inside the board, so the times are those of the program alone. Equal
    inputs give equal times on every computer.
    """
    files = (request.junit, request.markdown, request.html)
    for file in filter(None, (request.save_lock, request.save, *files)):
        refuse_unwritable(file)
    asked = test_asked(request.program, request.options)
    baseline, tolerance = _baseline(request)
    with Waiting(stderr_console()) as waiting:
        boots = boots_of(asked, log=waiting.over(note), progress=waiting)
        if request.save_lock is not None:
            used = lock_text(lock_of(asked, boots))
            write_atomically(request.save_lock, used.encode())
        if _wants_code(request) or _keeps_code(request):
            boots = tuple(
                replace(one, view=replace(one.view, code=True)) for one in boots
            )
        run = partial(_run, jobs=request.jobs, progress=waiting)
        searched = _searched(request, asked, boots, run, log=waiting.over(note))
        ran = [one.worst.ran for one in searched] or run(boots)
        reader = CodeReader(
            lambda one: judged_threads(asked, one.outside),
            shown=_wants_code(request),
            kept=_keeps_code(request),
        )
        tested, latest = _seen(asked, ran, reader)
        path = request.identical_to or request.no_worse_than
        answer = Answer(
            asked,
            tested,
            judge(asked, tested),
            compared="" if path is None else str(path),
            exact=request.identical_to is not None,
            differences=()
            if baseline is None
            else tuple(differences(asked, tested, baseline, tolerance=tolerance)),
            changed=() if baseline is None else changed(tested, baseline),
            code=reader.result(),
        )
        drawn = _drawn(request, answer, ran, latest, waiting)
    if drawn.recorded is not None:
        cause, functions = drawn.recorded.path.says, drawn.recorded.functions
        answer = replace(answer, cause=cause, functions=functions)
    sections = [
        found_section(one, sys.argv[1:], name=f"search{number}")
        for number, one in enumerate(searched, 1)
    ]
    _write(request, answer, drawn, sections)
    if request.json:
        runs = [run_row(one) for one in ran]
        found = [found_row(one, sys.argv[1:]) for one in searched]
        more = {"search": found} if searched else {}
        put_json({**answer_row(answer), **more, "runs": runs})
    else:
        _print(request, answer, ran, sections)
    return answer.exit_status


def _wants_code(request: ProgramTestRequest) -> bool:
    """Tell whether anything shows which code was executed; a search has no place."""
    if request.explain is False or request.search is not None:
        return False
    shown = request.json or request.html is not None or request.markdown is not None
    return shown or bool(request.explain) or request.display.detail is Detail.ALL


def _keeps_code(request: ProgramTestRequest) -> bool:
    """Tell whether a baseline keeps which code was executed, or has to be compared."""
    files = request.save, request.identical_to, request.no_worse_than
    return request.search is None and any(files)


def _seen(
    asked: ProgramTest, ran: Sequence[Ran], code: CodeReader
) -> tuple[tuple[SeenStart, ...], ProgramRecord]:
    """Return the starts of all boots, and the record of the last one."""
    starts: list[SeenStart] = []
    for boot in ran:
        reader = record_of(boot.run)
        of_boot = list(seen_starts(asked, boot, reader))
        starts += code.take(boot, reader.record, of_boot)
    return tuple(starts), reader.record


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What is known of the worst cycle beyond its figures."""

    record: ProgramRecord | None = None
    """Of the boot that it was in."""
    recorded: Recorded | None = None


def _drawn(
    request: ProgramTestRequest,
    answer: Answer,
    ran: Sequence[Ran],
    latest: ProgramRecord,
    waiting: Waiting,
) -> _Drawn:
    """
    Return the record of the worst cycle, and its cause, if that is asked for.

    `latest` is the record of the last boot; those of all would need too much memory.
    """
    worst = worst_of(answer)
    wanted = request.explain
    if wanted is None:
        broken = request.display.detail is not Detail.QUIET and answer.is_too_long
        wanted = broken or request.html is not None
    if worst is None or not (wanted or request.html):
        return _Drawn()
    boot = next(one for one in ran if one.run.identity is worst.tested.identity)
    record = latest if boot is ran[-1] else record_of(boot.run).record
    if not wanted:
        return _Drawn(record)
    recorded = recorded_cycle(
        boot,
        record,
        worst.thread,
        worst.cycle,
        log=waiting.over(note),
        progress=waiting,
    )
    return _Drawn(record, recorded)


def _baseline(
    request: ProgramTestRequest,
) -> tuple[Baseline | None, float | None]:
    """Return the baseline, and the tolerance: None if all has to be equal."""
    exact, loose = request.identical_to, request.no_worse_than
    if exact is not None and loose is not None:
        raise UsageError(
            "--identical-to allows no difference, --no-worse-than some: leave one out"
        )
    if request.tolerance is not None and loose is None:
        raise UsageError(
            "--tolerance is for --no-worse-than: add that, or leave it out"
        )
    path = exact or loose
    if path is None:
        return None, None
    return read_baseline(path), None if loose is None else _share(request.tolerance)


def _share(text: str | None) -> float:
    match = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,4})?)\s*%", text or "0%")
    if match is None:
        raise UsageError(f"--tolerance {quote(text)}: write a share such as 2%")
    return float(match[1]) / 100


def _run(
    boots: Sequence[Boot], *, jobs: int | None, progress: Waiting
) -> Sequence[Ran]:
    return list(run_boots(boots, jobs=jobs, progress=progress))


def _searched(
    request: ProgramTestRequest,
    asked: ProgramTest,
    boots: Sequence[Boot],
    run: RunBoots,
    *,
    log: Callable[[str], None],
) -> Sequence[Searched]:
    """Search the worst start of each boot; empty if no search was asked for."""
    if request.search is None:
        if request.search_thread is not None:
            raise UsageError("--search-thread is for a search: add --search 200")
        if asked.vary and not asked.value_of:
            names = ", ".join(asked.vary)
            raise UsageError(
                f"search.vary has {names}, and nothing has a value for a single start: "
                "add --search 200, or values to the table [program]"
            )
        return ()
    if asked.starts > 1:
        raise UsageError("--search makes its own starts: leave --starts out")
    return [
        search_worst(
            *(asked, boot),
            count=request.search,
            seed=request.search_seed,
            thread=request.search_thread,
            run=run,
            cache=cache_dir(),
            log=log,
        )
        for boot in boots
    ]


def _write(
    request: ProgramTestRequest,
    answer: Answer,
    drawn: _Drawn,
    sections: Sequence[Section],
) -> None:
    """Write the files that were asked for."""
    document = answer_document(answer)
    document = replace(document, blocks=(*document.blocks, *sections))
    if request.save is not None:
        text = baseline_text(answer.test, answer.tested)
        write_atomically(request.save, text.encode())
    if request.junit is not None:
        write_atomically(request.junit, answer_junit(answer).encode())
    if request.markdown is not None:
        text = render_document(document)
        write_atomically(request.markdown, text.encode())
    if request.html is not None:
        page = page_document(answer, drawn.record, drawn.recorded)
        page = replace(page, blocks=(*page.blocks, *sections))
        write_atomically(request.html, page_of(page).encode())


def _print(
    request: ProgramTestRequest,
    answer: Answer,
    ran: Sequence[Ran],
    sections: Sequence[Section],
) -> None:
    detail = request.display.detail
    if detail is Detail.QUIET:
        put(f"{answer.sentence}\n")
        return
    with stdout_console() as console:
        if detail is Detail.ALL:
            print_blocks(answer_blocks(answer, tables=ON_A_TERMINAL), console)
        else:
            print_fitted(partial(brief_blocks, answer), console)
        print_blocks([block for one in sections for block in ("", one)], console)
    if detail is Detail.ALL:
        put("".join(_outputs(ran)))


def test_asked(words: Sequence[str], options: ProgramTestOptions) -> ProgramTest:
    """Return the test of a file or a command, with its options; UsageError."""
    given: Mapping[str, object] = options.given
    if "--" in sys.argv:
        command = sys.argv[sys.argv.index("--") + 1 :]
        if len(words) > len(command):
            raise UsageError(
                f"{words[0]}: a test file has its command: write rtscope test "
                f"{words[0]}, or rtscope test -- {' '.join(command)}"
            )
        test = ProgramTest()
        given = {**given, "program.command": list(words)}
    elif len(words) > 1:
        raise UsageError(
            f"{words[1]}: name one test file; before a command write --: rtscope test "
            f"-- {' '.join(words)}"
        )
    else:
        _refuse_program(Path(words[0]))
        test = load_test(Path(words[0]))
    return with_values(test, given, OPTION_OF)


def _refuse_program(path: Path) -> None:
    """Raise UsageError for a program where a test file is expected."""
    if path.is_file() and path.suffix != ".toml" and os.access(path, os.X_OK):
        raise UsageError(
            f"{path}: a program, no test file: before a command write --: rtscope test "
            f"-- {path}"
        )


def _outputs(ran: Sequence[Ran]) -> Iterator[str]:
    """Yield what each start printed, and how it ended."""
    for one in ran:
        for start in one.run.starts:
            end = "ran until it was ended" if start.stopped else "ended by itself"
            lasted = f"{start.lasted_ns / NS_PER_S:.2f} virtual s"
            yield f"\n{one.run.identity.words}: {end} after {lasted}\n"
            yield visible_lines(start.stdout.text + start.stderr.text)
