"""What a virtual board executed on its way to the worst wake-ups, with symbols."""

import json as json_text
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from rtscope.board.cache import cache_dir
from rtscope.cli.console import put, stderr_console, stdout_console
from rtscope.cli.tracelist import as_dict, print_head, print_path
from rtscope.errors import UsageError
from rtscope.exectrace.file import pack
from rtscope.exectrace.format import Section, SectionKind, Trace, with_windows
from rtscope.exectrace.listing import path_of
from rtscope.files import write_atomically
from rtscope.virtual.recordings import (
    Recorded,
    open_recorded,
    stream_of,
    symbols_of,
)
from rtscope.virtual.replay import Window, replay_run, windows_around

Say = Callable[[str], None]

_WINDOW = re.compile(r"([0-9]{1,15}):([0-9]{1,15})")


def trace(
    record: Annotated[
        Path, typer.Argument(help="A campaign's directory, a run's, or a record.")
    ],
    *,
    run: Annotated[
        str | None, typer.Option(help="Of a campaign; else its latest wake-up's.")
    ] = None,
    worst: Annotated[int, typer.Option(help="How many of the worst wake-ups.")] = 1,
    cpu: Annotated[
        str, typer.Option(help="Another CPU than the wake-up's, or all.")
    ] = "wake-up",
    limit: Annotated[
        int, typer.Option(help="Steps of each path; 0 for all, and what came before.")
    ] = 60,
    again: Annotated[
        bool, typer.Option("--again", help="Boot again, and record tasks too.")
    ] = False,
    window: Annotated[
        list[str] | None,
        typer.Option(help="With --again: instruction counts, FIRST:LAST."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON.")
    ] = False,
) -> int:
    """List what a virtual board executed on its way to the worst wake-ups."""
    chosen = open_recorded(record, run)
    cache = cache_dir(os.environ)
    talk = stderr_console()

    def say(text: str) -> None:
        talk.print(f"rtscope: {text}", markup=False)

    asked = [_window(text) for text in window or []]
    if asked and not again:
        raise UsageError("--window records in a second pass: add --again")
    only = _cpu(cpu)
    symbols = symbols_of(chosen, cache=cache, log=say)
    if again:
        found = _second_pass(chosen, asked, worst=worst, cache=cache, say=say)
    else:
        found = stream_of(chosen)
    paths = [
        path_of(
            section,
            symbols,
            shift=found.shift,
            cpu=_shown_cpu(section, only),
        )
        for section in _sections(found, worst, windows=bool(asked))
    ]
    if json:
        put(
            json_text.dumps(
                [as_dict(path, shift=found.shift) for path in paths], indent=1
            )
            + "\n"
        )
        return 0
    with stdout_console() as console:
        print_head(console, chosen.record, found)
        for number, path in enumerate(paths, 1):
            print_path(console, path, number, limit=limit, shift=found.shift)
    return 0


def _second_pass(
    chosen: Recorded, asked: Sequence[Window], *, worst: int, cache: Path, say: Say
) -> Trace:
    """Record more in a pass of its own, keep it beside the record, and return it."""
    windows = tuple(asked)
    if not windows:
        try:
            sections = stream_of(chosen).sections
        except UsageError:  # recorded without: one more pass tells where they are
            first = replay_run(chosen.record, windows=(), cache=cache, log=say)
            sections = first.trace.sections
        windows = windows_around(sections, worst)
    if not windows:
        raise UsageError(
            "the worst wake-up is longer than a window may be: choose a part of it "
            "with --window FIRST:LAST"
        )
    say(f"booting again, recording {len(windows)} windows")
    done = replay_run(chosen.record, windows=windows, cache=cache, log=say)
    for name in done.not_recorded:
        say(f"{name}: not known where this kernel keeps it, so not recorded")
    path = chosen.replay_path
    content, _ = pack(done.raw, name=path.name)
    write_atomically(path, content)
    say(f"the same result; recorded in {path}")
    return done.trace


def _shown_cpu(section: Section, only: int | Literal["wake-up"] | None) -> int | None:
    if only != "wake-up":
        return only
    return section.cpu if section.kind is SectionKind.WORST else None


def _sections(found: Trace, worst: int, *, windows: bool) -> Sequence[Section]:
    if windows:
        return [s for s in found.sections if s.kind is SectionKind.WINDOW]
    kept = with_windows(found)
    return kept[: max(1, worst)]


def _window(text: str) -> Window:
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--window {text[:40]!r}: write FIRST:LAST, instruction counts"
        )
    return int(match[1]), int(match[2])


def _cpu(text: str) -> int | Literal["wake-up"] | None:
    if text == "wake-up":
        return "wake-up"
    if text == "all":
        return None
    if not re.fullmatch("[0-9]{1,3}", text):
        raise UsageError(f"--cpu {text[:40]!r}: write the number of a CPU, or all")
    return int(text)
