"""Explain the worst wake-ups: their causes, and the time of each."""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rtscope.boards.parts.cache import cache_dir
from rtscope.cli.console import (
    Json,
    log,
    put,
    stderr_console,
    stdout_console,
    typed_words,
)
from rtscope.cli.options import DisplayOptions
from rtscope.cli.progress import Waiting
from rtscope.explain.directory import Explained, explained_file, explained_runs
from rtscope.explain.events.window import WakeupSelector
from rtscope.host.errors import UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_S
from rtscope.present.document import Detail
from rtscope.present.documents.pages import render_explanations
from rtscope.record.explanation import explained_as_dict
from rtscope.record.pack import is_packed, unpacking
from rtscope.verbs.explain.ctf import refuse_used, write_ctf
from rtscope.verbs.explain.text import (
    print_brief_explanations,
    print_explanations,
    worst_sentence,
)

_SECONDS = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9}))?")


def explain(
    record: Annotated[
        Path | None,
        typer.Argument(
            help="Directory of a campaign or a run, an archive of rtscope pack, or a "
            "record.json."
        ),
    ] = None,
    *,
    run: Annotated[
        str | None,
        typer.Option(help="Run of a campaign (default: all), e.g. 002-memory-r1."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Trace instead of a record: trace.dat of trace-cmd, or text of ftrace "
            "and its tracers, trace-cmd report, perf script, babeltrace, rtla -a."
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(help="Thread of --trace by name or PID, e.g. cyclictest."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="Time in --trace at which the thread was late, in seconds (default: "
            "its worst wake-up), e.g. 1234.567890."
        ),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of wake-ups of each run to show in full, e.g. 5.",
        ),
    ] = None,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound",
            help="Latency bound from observed critical sections: from the preemptirq "
            "events of --trace, or by a replay of a virtual board.",
        ),
    ] = False,
    json: Json = False,
    display: DisplayOptions,
    html: Annotated[
        Path | None,
        typer.Option(help="HTML page to write, with charts, e.g. page.html."),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            help="Trace to write for ui.perfetto.dev: parts, causes, activity of all "
            "CPUs."
        ),
    ] = None,
    ctf: Annotated[
        Path | None,
        typer.Option(
            help="New folder for a trace in the Common Trace Format, for babeltrace2 "
            "and Trace Compass: events of a machine, calls of a board, e.g. trace.ctf."
        ),
    ] = None,
) -> int:
    """Explain the worst wake-ups: their causes, and the time of each."""
    _refuse_mixed(record, run, trace, of_trace=thread is not None or at is not None)
    detail = display.detail
    _refuse_places(html, perfetto, ctf)
    number = worst or 1
    drawn = number if html or perfetto or ctf else 0
    with unpacking() as opened:
        if trace is not None:
            selector = WakeupSelector(thread, None if at is None else _trace_time(at))
            explained = explained_file(trace, selector, bound=bound, log=log)
        else:
            assert record is not None
            if is_packed(record):
                log(f"{record}: the explanation is not kept in the archive")
            path, cache = opened(record), cache_dir()
            with Waiting(stderr_console()) as waiting:
                explained = explained_runs(
                    path,
                    run,
                    worst=drawn,
                    bound=bound,
                    cache=cache,
                    log=waiting.over(log),
                    progress=waiting,
                )
        if ctf is not None:
            place = record and _place(opened(record), run)
            write_ctf(ctf, explained, trace=trace, record=place)
    if html is not None:
        _write_page(explained, html, worst=number)
    if perfetto is not None:
        write_atomically(perfetto, explained.perfetto())
    if json:
        documents = [explained_as_dict(one.document) for one in explained.runs]
        put(json_text(documents, indent=1))
        return 0
    with stdout_console() as console:
        if detail is Detail.QUIET:
            console.print(Text(worst_sentence(explained.runs)), soft_wrap=True)
        elif detail is Detail.BRIEF and worst is None:
            print_brief_explanations(
                explained.runs,
                console,
                command=shlex.join(typed_words()),
                page=str(html or ""),
            )
        else:
            print_explanations(explained.runs, console, worst=number)
    return 0


def _refuse_places(html: Path | None, perfetto: Path | None, ctf: Path | None) -> None:
    """Raise UsageError or RecordError before any work for what cannot be written."""
    for file in filter(None, (html, perfetto)):
        refuse_unwritable(file)
    if ctf is not None:
        refuse_used(ctf)


def _place(record: Path, run: str | None) -> Path:
    return record if run is None else record / "runs" / run


def _refuse_mixed(
    record: Path | None, run: str | None, trace: Path | None, *, of_trace: bool
) -> None:
    """Raise UsageError but for a record or a trace, each with options of its own."""
    if trace is not None:
        if record is not None or run is not None:
            raise UsageError("--trace replaces the record: leave one of them out")
    elif record is None:
        raise UsageError(
            "no record given: name a result directory, or a trace with --trace FILE"
        )
    elif of_trace:
        raise UsageError(
            "--thread and --at select a wake-up of a trace: add --trace FILE"
        )


def _trace_time(text: str) -> int:
    """Read seconds as a trace prints them; return nanoseconds."""
    match = _SECONDS.fullmatch(text.strip().rstrip(":"))
    if match is None:
        raise UsageError(f"--at {text!a}: not a time; write seconds, e.g. 1234.567890")
    return int(match[1]) * NS_PER_S + int((match[2] or "0").ljust(9, "0"))


def _write_page(explained: Explained, html: Path, *, worst: int) -> None:
    lines = explained.timelines()
    page = render_explanations(explained.runs, worst=worst, timelines=lines)
    write_atomically(html, page.encode())
