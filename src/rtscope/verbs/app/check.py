"""Check a running program: what its threads do that costs them their real time."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.parts.cache import cache_dir
from rtscope.cli.console import Json, put, put_json, stdout_console
from rtscope.cli.options import BoardKernel, BoardSeed, DisplayOptions
from rtscope.explain.activity import ExplainedWindow, perfetto_trace
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.files.junit import Outcome, TestCase, TestSuite, junit_file
from rtscope.host.units import (
    NS_PER_H,
    NS_PER_MS,
    NS_PER_S,
    NS_PER_US,
    exact_duration,
    parse_duration,
)
from rtscope.machine.target.address import address_of
from rtscope.present.document import Block, Detail, Phrase
from rtscope.present.formats.taskstatistics import statistics_blocks, statistics_rows
from rtscope.present.render.page import page_of
from rtscope.present.render.terminal import print_blocks
from rtscope.stats.evidence import Verdict
from rtscope.verbs.app.checktext import examined_blocks, examined_row, headline
from rtscope.verbs.app.cycletables import (
    JudgedCycles,
    cycle_lines,
    cycles_row,
    longest_words,
)
from rtscope.verbs.app.deadlines import UNSEEN
from rtscope.verbs.app.debuginfod import debuginfod_at
from rtscope.verbs.app.lateness import cycles_by_yield, with_cycles
from rtscope.verbs.app.model import (
    RANK,
    BoardLabel,
    Examined,
    Finding,
    Weight,
    board_row,
    digest_words,
    finding_kinds,
)
from rtscope.verbs.app.page import examined_document
from rtscope.verbs.app.response import Response, judge_response, verdict_phrases
from rtscope.verbs.app.rules import examine
from rtscope.verbs.app.source import Watched, WatchRequest, watch_program
from rtscope.verbs.app.watchedcycles import explained_cycles, with_period

FINDINGS_STATUS = 1


class FailOn(StrEnum):
    """The least weight of a finding that makes the exit status 1."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NEVER = "never"


def check(
    program: Annotated[
        list[str],
        typer.Argument(
            help="PID, or name, of a running process; or -- and a command to run."
        ),
    ],
    *,
    target: Annotated[
        str,
        typer.Option(
            help="Machine: local, ssh:HOST, lab:PLACE or virtual:BOARD, which runs a "
            "command (default: local), e.g. ssh:board."
        ),
    ] = "local",
    kernel: BoardKernel = None,
    append: Annotated[
        str | None,
        typer.Option(
            help="Additional kernel parameters of a virtual board (default: none), "
            "e.g. nowatchdog."
        ),
    ] = None,
    seed: BoardSeed = None,
    duration: Annotated[
        str, typer.Option(help="Time to watch (default: 10s), e.g. 1m.")
    ] = "10s",
    settle: Annotated[
        str,
        typer.Option(help="Time before a command is watched (default: 1s), e.g. 5s."),
    ] = "1s",
    thread: Annotated[
        str | None,
        typer.Option(
            help="Threads to judge, by name or TID (default: real-time ones), e.g. "
            "control,io."
        ),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            help="Period of the cycles of the judged threads (default: found by what "
            "wakes them), e.g. 5ms."
        ),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option(
            help="Longest response time to allow, from the begin of a cycle to its "
            "end (default: no verdict), e.g. 500us."
        ),
    ] = None,
    light: Annotated[
        bool,
        typer.Option(
            "--light",
            help="Watch without probes and cycles: a thread is delayed least.",
        ),
    ] = False,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="Least weight of a finding for exit status 1 (default: low)."
        ),
    ] = FailOn.LOW,
    html: Annotated[
        Path | None,
        typer.Option(help="HTML page to write, with charts, e.g. page.html."),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            help="Trace of the longest cycles to write for ui.perfetto.dev, e.g. "
            "cycles.pftrace."
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            help="JUnit XML to write, a case for each finding looked for, e.g. "
            "check.xml."
        ),
    ] = None,
    debuginfod: Annotated[
        str | None,
        typer.Option(
            help="Server to download debug files from (default: none), e.g. "
            "https://debuginfod.debian.net."
        ),
    ] = None,
    display: DisplayOptions,
    json: Json = False,
) -> int:
    """Find the causes of delays in a running program.

    It is watched from outside: not restarted, and nothing is loaded into it.
    """
    duration_ns = _time("--duration", duration, 100 * NS_PER_MS)
    settle_ns = _time("--settle", settle, NS_PER_MS)
    period_ns = None if period is None else _time("--period", period, NS_PER_US)
    response_ns = None if response is None else _time("--response", response, NS_PER_US)
    if light:
        _refuse_cycles(period=period, response=response, perfetto=perfetto)
    threads = [] if thread is None else thread.split(",")
    for file in filter(None, (html, perfetto, junit)):
        refuse_unwritable(file)
    server = None if debuginfod is None else debuginfod_at(debuginfod, cache_dir())
    request = WatchRequest(
        program,
        _is_command(program),
        settle_ns,
        duration_ns,
        kernel,
        seed,
        append,
        light=light,
        debuginfod=server,
        period_ns=period_ns,
        perfetto=perfetto is not None,
        draws=html is not None,
    )
    watched = watch_program(address_of(target, boards=True), request)
    kept, board = watched.statistics, watched.board
    examined, cycles, whole = _examined(watched, threads, period_ns)
    verdict = judged_response(cycles, response_ns)
    library = tuple(statistics_blocks(kept))
    shown = partial(
        examined_document,
        drawn=watched.drawn,
        board=board,
        kept=library,
        verdict=verdict,
    )
    _write(html, lambda: page_of(shown(examined, cycles, whole)).encode())
    _write(perfetto, lambda: perfetto_trace(whole.values()))
    _write(junit, lambda: examined_junit(examined, board, verdict).encode())
    row = {**examined_row(examined), "cycles": cycles_row(cycles)}
    row["response"] = None if verdict is None else verdict.row()
    row["statistics"] = statistics_rows(kept)
    if json:
        put_json({**row, **board_row(board, row)})
    elif display.detail is Detail.QUIET:
        verdicts = [] if verdict is None else list(verdict.sentences())[:1]
        put("".join(f"{one}\n" for one in (headline(examined), *verdicts)))
    else:
        lines: list[Phrase] = [] if board is None else [(digest_words(row), "muted")]
        _print(examined, cycles, verdict, library, board, lines, display.detail)
    return status_of(examined, fail_on, verdict)


def _print(
    examined: Examined,
    cycles: JudgedCycles,
    verdict: Response | None,
    library: Sequence[Block],
    board: BoardLabel | None,
    below: Sequence[Phrase],
    detail: Detail,
) -> None:
    """Print all of a check on a terminal; lines `below` the cycles end them."""
    everything = detail is Detail.ALL
    with stdout_console() as console:
        uncut = everything or not console.is_terminal
        width = None if uncut else min(console.width, 100)
        lines = [*cycle_lines(cycles, width=width, everything=everything), *below]
        blocks = examined_blocks(
            examined,
            width=width,
            everything=everything,
            board=board,
            cycles=lines,
            verdict=verdict_phrases(verdict, everything=everything),
        )
        print_blocks(chain(blocks, library), console)


def _refuse_cycles(**options: object) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise UsageError(
            f"{given[0]} needs the cycles, which --light leaves out: leave out one of "
            "them"
        )


def _examined(
    watched: Watched, threads: Sequence[str], period_ns: int | None
) -> tuple[Examined, JudgedCycles, Mapping[int, ExplainedWindow]]:
    """Return findings, cycles of the judged threads, and their longest with events."""
    examined = examine(watched.observation, threads=threads)
    names = {one.line.tid: one.name for one in examined.judged}
    recording, board = watched.recording, watched.board
    if period_ns is not None and board is None:
        recording = with_period(recording, period_ns)
    recording, longest = explained_cycles(
        recording, names, watched.traits, board="" if board is None else board.name
    )
    by_yield = cycles_by_yield(examined, recording.threads)
    made = {tid: x for tid, x in recording.threads.items() if tid not in by_yield}
    longest = {tid: one for tid, one in longest.items() if tid in made}
    words = {
        tid: longest_words(recording.threads[tid], one.cycle, one.whole.explanation)
        for tid, one in longest.items()
    } | dict(watched.longest)
    begin, end = recording.begin, recording.end
    unseen = dict.fromkeys(by_yield, UNSEEN)
    cycles = JudgedCycles(begin.from_ns, end, made, names, words, unseen)
    examined = with_cycles(examined, end, made)
    return examined, cycles, {tid: one.whole for tid, one in longest.items()}


def judged_response(cycles: JudgedCycles, limit_ns: int | None) -> Response | None:
    """Return the verdict on the response time of the judged threads, if asked for."""
    if limit_ns is None:
        return None
    return judge_response(
        limit_ns, cycles.end, cycles.threads, cycles.names, cycles.unseen
    )


def status_of(
    examined: Examined, fail_on: FailOn, verdict: Response | None = None
) -> int:
    """
    Return the status of the verdict if that is not 0: NO, INVALID, NOT SHOWN.

    Else 1 for a finding of this weight, 3 if none and not all was seen that can be seen
    there, else 0.
    """
    if verdict is not None and verdict.exit_status:
        return verdict.exit_status
    if fail_on is not FailOn.NEVER:
        least = RANK[Weight(fail_on.value)]
        if any(RANK[one.weight] <= least for one in examined.findings):
            return FINDINGS_STATUS
    missing = any(not one.by_nature for one in examined.unseen)
    return MeasurementError.exit_status if missing else 0


def _write(file: Path | None, content: Callable[[], bytes]) -> None:
    if file is not None:
        write_atomically(file, content())


def _is_command(program: Sequence[str]) -> bool:
    """Whether it is a command to run. Raise UsageError for several processes."""
    command = "--" in sys.argv
    if not command and len(program) > 1:
        raise UsageError(
            f"{program[1]}: name one process; before a command write --: rtscope app "
            f"check -- {' '.join(program)}"
        )
    return command


def _time(option: str, text: str, least_ns: int) -> int:
    try:
        time_ns = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error
    if not least_ns <= time_ns <= NS_PER_H:
        least = exact_duration(least_ns)
        raise UsageError(f"{option}: {text}: write {least} to 1h")
    return time_ns


# --- findings as JUnit XML, a case for each -----------------------------------------


def examined_junit(
    examined: Examined,
    board: BoardLabel | None = None,
    verdict: Response | None = None,
) -> str:
    """
    Return JUnit XML: a case for each rule, which fails if it found something.

    A rule that could not be looked at is an error: it has neither passed nor failed; it
    is skipped if no virtual board shows it.
    With a verdict on the response time there is a case for each thread.
    """
    seen = examined.observation
    of_verdict = [] if verdict is None else list(_response_cases(examined, verdict))
    suite = TestSuite(
        name=f"app check {seen.name}",
        cases=[*of_verdict, *(_case(examined, id_) for id_ in finding_kinds())],
        time_s=seen.watch.window_ns / NS_PER_S,
        properties={} if board is None else {"virtual board": board.words},
    )
    return junit_file([suite])


def _response_cases(examined: Examined, verdict: Response) -> Iterator[TestCase]:
    limit = exact_duration(verdict.limit_ns)
    for one in verdict.threads:
        outcome = Outcome(message=one.words, type=one.verdict.value)
        is_no = one.verdict is Verdict.NO
        held = one.verdict is Verdict.HELD_IN_TEST
        worst = {} if one.worst_ns is None else {"longest ns": str(one.worst_ns)}
        yield TestCase(
            classname=examined.observation.name,
            name=f"response of {one.tid} {one.thread} within {limit}",
            properties={**worst, "cycles that took longer": str(one.longer)},
            failures=[outcome] if is_no else [],
            error=None if is_no or held else outcome,
        )


def _case(examined: Examined, id_: str) -> TestCase:
    kind = finding_kinds()[id_]
    failures = [
        Outcome(message=_message(one), type=one.weight.value, text=one.remedy)
        for one in examined.findings
        if one.id == id_
    ]
    unseen = [one for one in examined.unseen if id_ in one.ids]
    error = skipped = None
    if unseen and not failures:
        why = next((one for one in unseen if not one.by_nature), unseen[-1])
        message = f"{why.what}: {why.cause}"
        missing = Outcome(message=message, type="not seen", text=why.remedy)
        error, skipped = (None, missing) if why.by_nature else (missing, None)
    return TestCase(
        classname=examined.observation.name,
        name=f"{id_} {kind.title}",
        failures=failures,
        error=error,
        skipped=skipped,
    )


def _message(finding: Finding) -> str:
    thread = finding.tid is not None
    who = f"thread {finding.tid} {finding.thread}: " if thread else ""
    times = "" if finding.count is None else f"{finding.count:,} times "
    return f"{who}{times}{finding.detail}".strip()
