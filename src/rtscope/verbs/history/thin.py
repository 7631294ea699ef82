"""`rtscope history thin`: free disk, and keep all figures and the worst recordings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope.cli.console import Json, log, put, put_json
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.escape import printable
from rtscope.host.units import format_size, parse_size, plural
from rtscope.verbs.history.thinning import Freed, Run, remove, runs_below, to_thin

MOST = 100_000
MOST_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinRequest:
    """The arguments and options of `rtscope history thin`."""

    directory: Annotated[list[Path], typer.Argument(metavar="DIR")]
    """Folders with result directories at any depth, e.g. nights."""
    keep_nights: Annotated[int, typer.Option(min=1, max=MOST)] = 30
    """Newest nights of each series that keep all files (default: 30), e.g. 60."""
    keep_worst: Annotated[int, typer.Option(min=0, max=MOST)] = 5
    """Worst older runs of each series that keep all files (default: 5), e.g. 10."""
    budget: str | None = None
    """
    Size that recordings, traces and samples may take in all: beyond it the oldest go,
    those of the worst runs last (default: none), e.g. 20G.
    """
    dry_run: bool = False
    """Remove nothing; print what would go."""
    json: Json = False


def thin(request: ThinRequest) -> int:
    """
    Free disk: remove recordings, traces and kept samples of old nights.

    Records, explanations, logs and pages stay, so all figures do. A night is one result
    directory. What rtscope run did not make, sweeps, searches, links, and results that
    are being written are left as they are. Explain old results first: without its
    recording a run cannot be explained.
    """
    places = [_checked(path) for path in request.directory]
    budget = request.budget
    budget_bytes = None if budget is None else parse_size(budget)
    found = runs_below(places)
    going = to_thin(
        found.runs,
        keep_nights=request.keep_nights,
        keep_worst=request.keep_worst,
        budget_bytes=budget_bytes,
    )
    freed = Freed(left=list(found.unreadable))
    if request.dry_run:
        freed.results = {run.directory for run in going}
        freed.files = sum(len(run.sizes) for run in going)
        freed.size_bytes = sum(run.size_bytes for run in going)
    else:
        try:
            remove(going, freed)
        except KeyboardInterrupt:
            log(f"interrupted: {_sentence(freed, request)}; type it again to go on")
            raise
    for line in freed.left[:MOST_NAMED]:
        log(f"left as it is: {line}")
    if (left := len(freed.left) - MOST_NAMED) > 0:
        log(f"left as they are: {left:,} more; --json names all")
    if request.json:
        put_json(_document(freed, going, request))
    else:
        _print(freed, going, request)
    if freed.failed:
        first, more = freed.failed[0], len(freed.failed) - 1
        also = f", and {more:,} more files" if more else ""
        raise RecordError(
            f"cannot remove {first}{also}; all else is done; type it again as their "
            "owner"
        )
    return 0


def _checked(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"{path}: no such directory; name a folder with results")
    return path.resolve()


def _sentence(freed: Freed, request: ThinRequest) -> str:
    """Say the whole in a line."""
    verb = "would free" if request.dry_run else "freed"
    files = f"{plural(freed.files, 'file')} of {plural(len(freed.results), 'result')}"
    return f"{verb} {format_size(freed.size_bytes)}: {files}"


def _print(freed: Freed, going: tuple[Run, ...], request: ThinRequest) -> None:
    if request.dry_run:
        for run in going[:MOST_NAMED]:
            path = printable(str(run.directory / "runs" / run.name))
            names = ", ".join(name for name, _ in run.sizes)
            put(f"{path}: {names} ({format_size(run.size_bytes)})\n")
        if (more := len(going) - MOST_NAMED) > 0:
            put(f"and of {plural(more, 'more run')}; --json names all\n")
    put(f"{_sentence(freed, request)}\n")
    if number := sum(run.needs_explanation for run in going):
        runs = plural(number, "run")
        put(
            f"{runs} with a recording and no explanation; type rtscope explain DIR "
            "first\n"
            if request.dry_run
            else f"{runs} had a recording and no explanation, and cannot have one now\n"
        )


def _document(
    freed: Freed, going: tuple[Run, ...], request: ThinRequest
) -> dict[str, Any]:
    """Return it for programs: sizes in bytes."""
    return {
        "dry_run": request.dry_run,
        "results": len(freed.results),
        "files": freed.files,
        "size_bytes": freed.size_bytes,
        "left": freed.left,
        "failed": freed.failed,
        "runs": [
            {
                "path": str(run.directory / "runs" / run.name),
                "series": run.series,
                "explained": run.is_explained,
                "files": [name for name, _ in run.sizes],
                "size_bytes": run.size_bytes,
            }
            for run in going
        ],
    }
