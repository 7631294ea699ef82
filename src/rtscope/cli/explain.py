"""Explain the worst wake-ups of virtual boards: who made them late, for how long."""

import json as json_text
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rtscope.board.cache import cache_dir
from rtscope.cli.console import put, stderr_console, stdout_console
from rtscope.errors import RecordError, UsageError
from rtscope.explain.path import explain_path
from rtscope.explain.perfetto import Recording, perfetto_trace
from rtscope.record import write_atomically
from rtscope.report.explainpage import render_explanations
from rtscope.report.explaintext import print_explanations
from rtscope.report.explanations import ExplainedRun, explained_run, run_as_dict
from rtscope.trace import Section, Trace
from rtscope.virtual.recorded import (
    Recorded,
    every_recorded,
    open_recorded,
    paths_of,
    symbols_of,
)

EXPLAINED = "explain.json"
"""Lies beside the record of each run that was explained."""

Say = Callable[[str], None]


def explain(
    record: Annotated[
        Path, typer.Argument(help="A campaign's directory, a run's, or a record.")
    ],
    *,
    run: Annotated[
        str | None, typer.Option(help="Only this run of a campaign; else all of them.")
    ] = None,
    worst: Annotated[
        int, typer.Option(min=1, help="How many wake-ups of each run are shown.")
    ] = 1,
    json: Annotated[
        bool, typer.Option("--json", help="Print all that is known, as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures here.")
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(help="Write a trace for ui.perfetto.dev here: parts and calls."),
    ] = None,
) -> int:
    """Explain the worst wake-ups of virtual boards: who made them late, how long."""
    chosen = [open_recorded(record, run)] if run else every_recorded(record)
    talk = stderr_console()

    def say(text: str) -> None:
        talk.print(f"rtscope: {text}", markup=False)

    recordings: list[Recording] = []
    runs = list(_explained(chosen, recordings, worst=worst, say=say))
    if not runs:
        raise UsageError(
            f"{record}: no run has recorded paths; measure without --no-record"
        )
    if html is not None:
        write_atomically(html, render_explanations(runs, worst=worst).encode())
    if perfetto is not None:
        write_atomically(perfetto, perfetto_trace(recordings))
    if json:
        documents = [run_as_dict(one) for one in runs]
        put(json_text.dumps(documents, indent=1) + "\n")
        return 0
    with stdout_console() as console:
        print_explanations(runs, console, worst=worst)
    return 0


def _explained(
    chosen: Sequence[Recorded], shown: list[Recording], *, worst: int, say: Say
) -> Iterator[ExplainedRun]:
    """
    Explain each run, and write that beside its record; say which cannot be.

    The `worst` paths of each go into `shown`.
    """
    for one in chosen:
        try:
            stream, paths = paths_of(one)
        except UsageError as error:
            if len(chosen) == 1:
                raise
            say(str(error))
            continue
        recordings = _recordings(one, stream, paths, say=say)
        shown += recordings[:worst]
        explained = explained_run(one.record, [r.explanation for r in recordings])
        text = json_text.dumps(run_as_dict(explained), indent=1) + "\n"
        try:
            write_atomically(one.directory / EXPLAINED, text.encode())
        except RecordError as error:  # a result that may only be read
            say(f"{EXPLAINED} is not kept: {error}")
        yield explained


def _recordings(
    one: Recorded, stream: Trace, paths: Sequence[Section], *, say: Say
) -> list[Recording]:
    symbols = symbols_of(one, cache=cache_dir(os.environ), say=say)
    arch, shift = stream.arch, stream.shift
    return [
        Recording(
            title=f"{one.record.run.id}, worst wake-up {number}",
            section=section,
            explanation=explain_path(section, symbols, arch=arch, shift=shift),
            symbols=symbols,
            arch=arch,
            shift=shift,
        )
        for number, section in enumerate(paths, 1)
    ]
