"""Check a running program: what its threads do that costs them their real time."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import Json, put, put_json, stdout_console
from rtscope.cli.options import BoardKernel, BoardSeed, DisplayOptions
from rtscope.contract import CyclesEnd
from rtscope.explain.timeline import ExplainedWindow, perfetto_trace
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.files.junit import Outcome, TestCase, TestSuite, junit_file
from rtscope.host.units import (
    NS_PER_H,
    NS_PER_MS,
    NS_PER_S,
    exact_duration,
    format_duration,
    parse_duration,
)
from rtscope.machine.target.address import address_of
from rtscope.present.document import Detail, muted
from rtscope.present.formats.taskstatistics import statistics_blocks, statistics_rows
from rtscope.present.render.page import page_of
from rtscope.present.render.terminal import print_blocks
from rtscope.verbs.app.checktext import examined_blocks, examined_row, headline
from rtscope.verbs.app.cycles import Period, ThreadCycles
from rtscope.verbs.app.cycletables import (
    JudgedCycles,
    cycle_lines,
    cycles_row,
    longest_words,
)
from rtscope.verbs.app.model import (
    RANK,
    BoardLabel,
    Examined,
    Finding,
    Unseen,
    Weight,
    board_row,
    digest_words,
    finding_kinds,
)
from rtscope.verbs.app.page import examined_document
from rtscope.verbs.app.rules import examine
from rtscope.verbs.app.source import Watched, WatchRequest, watch_program
from rtscope.verbs.app.watchedcycles import explained_cycles

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
            help="Machine: local, ssh:HOST or virtual:BOARD, which runs a command "
            "(default: local), e.g. ssh:board."
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
    display: DisplayOptions,
    json: Json = False,
) -> int:
    """Find the causes of delays in a running program.

    It is watched from outside: not restarted, and nothing is loaded into it.
    """
    duration_ns = _time("--duration", duration, 100 * NS_PER_MS)
    settle_ns = _time("--settle", settle, NS_PER_MS)
    threads = [] if thread is None else thread.split(",")
    for file in filter(None, (html, perfetto, junit)):
        refuse_unwritable(file)
    command = "--" in sys.argv
    if not command and len(program) > 1:
        raise UsageError(
            f"{program[1]}: name one process; before a command write --: rtscope app "
            f"check -- {' '.join(program)}"
        )
    request = WatchRequest(
        program, command, settle_ns, duration_ns, kernel, seed, append
    )
    watched = watch_program(address_of(target, boards=True), request)
    recording, kept, board = watched.recording, watched.statistics, watched.board
    examined = examine(watched.observation, threads=threads)
    examined = with_cycles(examined, recording.end, recording.threads)
    cycles, whole = _cycles(examined, watched)
    library = tuple(statistics_blocks(kept))
    if html is not None:
        shown = examined_document(examined, cycles, whole, board=board, kept=library)
        write_atomically(html, page_of(shown).encode())
    if perfetto is not None:
        write_atomically(perfetto, perfetto_trace(whole.values()))
    if junit is not None:
        write_atomically(junit, examined_junit(examined, board).encode())
    row = {**examined_row(examined), "cycles": cycles_row(cycles)}
    row["statistics"] = statistics_rows(kept)
    if json:
        put_json({**row, **board_row(board, row)})
    elif display.detail is Detail.QUIET:
        put(f"{headline(examined)}\n")
    else:
        with stdout_console() as console:
            width = min(console.width, 100)
            lines = list(cycle_lines(cycles, width=width))
            if board is not None:
                lines.append(muted(digest_words(row)))
            blocks = examined_blocks(
                examined,
                width=width,
                everything=display.detail is Detail.ALL,
                board=board,
                cycles=lines,
            )
            print_blocks(chain(blocks, library), console)
    return status_of(examined, fail_on)


def _cycles(
    examined: Examined, watched: Watched
) -> tuple[JudgedCycles, Mapping[int, ExplainedWindow]]:
    """Return the cycles of the judged threads, and their longest with its events."""
    names = {one.line.tid: one.name for one in examined.judged}
    recording, board = watched.recording, watched.board
    longest = explained_cycles(
        recording, names, watched.traits, board="" if board is None else board.name
    )
    words = {
        tid: longest_words(one.cycle, one.whole.explanation)
        for tid, one in longest.items()
    }
    begin, end = recording.begin, recording.end
    cycles = JudgedCycles(begin.from_ns, end, recording.threads, names, words)
    return cycles, {tid: one.whole for tid, one in longest.items()}


def status_of(examined: Examined, fail_on: FailOn) -> int:
    """Return 1 for a finding of this weight, 3 if none and not all was seen, else 0."""
    if fail_on is not FailOn.NEVER:
        least = RANK[Weight(fail_on.value)]
        if any(RANK[one.weight] <= least for one in examined.findings):
            return FINDINGS_STATUS
    return MeasurementError.exit_status if examined.unseen else 0


def _time(option: str, text: str, least_ns: int) -> int:
    try:
        time_ns = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error
    if not least_ns <= time_ns <= NS_PER_H:
        least = exact_duration(least_ns)
        raise UsageError(f"{option}: {text}: write {least} to 1h")
    return time_ns


# --- findings about cycles, and what could not be seen of them ----------------------

_IDS = ("RA16", "RA17")


def with_cycles(
    examined: Examined, end: CyclesEnd, threads: Mapping[int, ThreadCycles]
) -> Examined:
    """Add what the cycles of the judged threads show, and what could not be seen."""
    findings = [
        *examined.findings,
        *(
            Finding(
                "RA17",
                words,
                tid=one.line.tid,
                thread=one.name,
                count=late_count(period),
            )
            for one in examined.judged
            if (cycles := threads.get(one.line.tid)) is not None
            and (period := cycles.period) is not None
            and (words := late_words(period))
        ),
    ]
    findings.sort(key=lambda one: (RANK[one.weight], one.id, -(one.count or 0)))
    return replace(
        examined,
        findings=tuple(findings),
        unseen=(*examined.unseen, *_unseen(examined, end, threads)),
    )


def late_count(period: Period) -> int:
    """Return how many periods had no cycle, or one that did not end in time."""
    return period.missed + period.overruns


def late_words(period: Period) -> str:
    """Return how cycles missed their times; empty if they did not."""
    words = [
        f"{number:,} {what}"
        for number, what in (
            (period.missed, "periods without a cycle"),
            (period.late_starts, "began a period late or more"),
            (period.overruns, "ended after the next was due"),
        )
        if number
    ]
    if words:
        words.append(f"the period is {format_duration(period.period_ns)}")
    return ", ".join(words)


def _unseen(
    examined: Examined, end: CyclesEnd, threads: Mapping[int, ThreadCycles]
) -> Iterator[Unseen]:
    tracing = end.tracing
    if not tracing.enabled:
        yield Unseen(_IDS, "cycles", tracing.reason, tracing.remedy)
        return
    if end.not_watched:
        yield Unseen(
            _IDS, f"{end.not_watched} threads", "the agent records 128 at once", ""
        )


# --- findings as JUnit XML, a case for each -----------------------------------------


def examined_junit(examined: Examined, board: BoardLabel | None = None) -> str:
    """
    Return JUnit XML: a case for each rule, which fails if it found something.

    A rule that could not be looked at is an error: it has neither passed nor failed.
    """
    seen = examined.observation
    suite = TestSuite(
        name=f"app check {seen.name}",
        cases=[_case(examined, id_) for id_ in finding_kinds()],
        time_s=seen.watch.window_ns / NS_PER_S,
        properties={} if board is None else {"virtual board": board.words},
    )
    return junit_file([suite])


def _case(examined: Examined, id_: str) -> TestCase:
    kind = finding_kinds()[id_]
    failures = [
        Outcome(message=_message(one), type=kind.weight.value, text=kind.remedy)
        for one in examined.findings
        if one.id == id_
    ]
    unseen = [one for one in examined.unseen if id_ in one.ids]
    error = None
    if unseen and not failures:
        why = unseen[-1]
        message = f"{why.what}: {why.cause}"
        error = Outcome(message=message, type="not seen", text=why.remedy)
    return TestCase(
        classname=examined.observation.name,
        name=f"{id_} {kind.title}",
        failures=failures,
        error=error,
    )


def _message(finding: Finding) -> str:
    thread = finding.tid is not None
    who = f"thread {finding.tid} {finding.thread}: " if thread else ""
    times = "" if finding.count is None else f"{finding.count:,} times "
    return f"{who}{times}{finding.detail}".strip()
