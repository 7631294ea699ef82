"""Explain the worst wake-ups: who made them late, for how long."""

import json as json_text
import re
from pathlib import Path
from typing import Annotated

import typer

from rtscope.analysis import Explained, explained_file, explained_runs
from rtscope.board.cache import cache_dir
from rtscope.cli.console import put, stderr_log, stdout_console
from rtscope.errors import UsageError
from rtscope.explain.events.window import WakeupSelector
from rtscope.files import write_atomically
from rtscope.record.explanation import explained_as_dict
from rtscope.report.formats.explaintext import print_explanations
from rtscope.report.formats.html import render_explanations
from rtscope.report.model.explanations import document_of
from rtscope.units import NS_PER_S

_SECONDS = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9}))?")


def explain(
    record: Annotated[
        Path | None,
        typer.Argument(help="A campaign's directory, a run's, or a record."),
    ] = None,
    *,
    run: Annotated[
        str | None, typer.Option(help="Only this run of a campaign; else all of them.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a record: a trace.dat file of trace-cmd, or text of "
            "ftrace (trace, trace_pipe, trace-cmd report)."
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(help="With --trace: the thread, by name or number."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="With --trace: a time in it, in seconds as it prints them, at which "
            "the thread was late; else its latest wake-up."
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option(min=1, help="How many wake-ups of each run are shown.")
    ] = 1,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound",
            help="What the longest sections could combine to: boots a virtual board "
            "again, or takes the preemptirq events of --trace.",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print all that is known, as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures here.")
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            help="Write a trace for ui.perfetto.dev here: the parts, and what every "
            "CPU did."
        ),
    ] = None,
) -> int:
    """Explain the worst wake-ups: who made them late, for how long."""
    log = stderr_log()
    if trace is not None:
        if record is not None or run is not None:
            raise UsageError("--trace stands instead of a record: leave one out")
        selector = WakeupSelector(thread, None if at is None else _trace_time(at))
        explained = explained_file(trace, selector, bound=bound, log=log)
    elif record is None:
        raise UsageError("name a record, or a trace with --trace FILE")
    elif thread is not None or at is not None:
        raise UsageError("--thread and --at choose a wake-up of a trace: add --trace")
    else:
        cache = cache_dir()
        explained = explained_runs(
            record, run, worst=worst, bound=bound, cache=cache, log=log
        )
    _write(explained, worst=worst, html=html, perfetto=perfetto)
    if json:
        documents = [explained_as_dict(document_of(one)) for one in explained.runs]
        put(json_text.dumps(documents, indent=1) + "\n")
        return 0
    with stdout_console() as console:
        print_explanations(explained.runs, console, worst=worst)
    return 0


def _trace_time(text: str) -> int:
    """Read seconds as a trace prints them; return nanoseconds."""
    match = _SECONDS.fullmatch(text.strip().rstrip(":"))
    if match is None:
        raise UsageError(
            f"--at {text!a}: not a time of a trace; write seconds, as in 1234.567890"
        )
    return int(match[1]) * NS_PER_S + int((match[2] or "0").ljust(9, "0"))


def _write(
    explained: Explained, *, worst: int, html: Path | None, perfetto: Path | None
) -> None:
    if html is not None:
        page = render_explanations(explained.runs, worst=worst)
        write_atomically(html, page.encode())
    if perfetto is not None:
        write_atomically(perfetto, explained.perfetto())
